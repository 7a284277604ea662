//! SARIF 2.1.0: one run, one result a reason. Code hosts refuse more than 25,000 results.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::inert::shown;
use super::list::{Item, Report, fingerprint};
use crate::Level;

/// Results of one run at most.
const MOST: usize = 25_000;

pub(super) fn write(report: &Report) -> String {
    let mut items: Vec<Item<'_>> = report.items().collect();
    items.sort_by_key(|item| std::cmp::Reverse(item.level));
    items.truncate(MOST);
    let mut rules: BTreeMap<&str, Value> = BTreeMap::new();
    for item in &items {
        rules.entry(item.code).or_insert_with(|| rule(item));
    }
    let index: HashMap<&str, usize> = rules
        .keys()
        .enumerate()
        .map(|(at, code)| (*code, at))
        .collect();
    let mut seen = HashMap::new();
    let results: Vec<Value> = items
        .iter()
        .map(|item| result(item, &index, &mut seen))
        .collect();
    let unchecked = items.iter().any(|item| item.level == Level::CouldNotCheck);
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "airlock",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.into_values().collect::<Vec<_>>(),
            }},
            "automationDetails": {"id": "airlock/gate/"},
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": !unchecked}],
            "properties": {"repository": report.repository, "base": report.base, "commit": report.commit},
            "results": results,
        }],
    });
    format!("{log}\n")
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Fail | Level::CouldNotCheck => "error",
        Level::Warn => "warning",
        Level::Info => "note",
    }
}

fn rule(item: &Item<'_>) -> Value {
    json!({
        "id": shown(item.code),
        "shortDescription": {"text": format!("{} gate: {}", item.gate, shown(item.code))},
        "properties": {"tags": [item.gate.name()]},
    })
}

fn result(
    item: &Item<'_>,
    index: &HashMap<&str, usize>,
    seen: &mut HashMap<String, usize>,
) -> Value {
    let help = if item.help.is_empty() {
        String::new()
    } else {
        format!("\nHelp: {}", shown(item.help))
    };
    let mut result = json!({
        "ruleId": shown(item.code),
        "ruleIndex": index.get(item.code),
        "level": level(item.level),
        "message": {"text": format!("{}{help}", shown(item.message))},
        "partialFingerprints": {"airlock/v1": fingerprint(item, seen)},
    });
    if let (Some(path), Some(fields)) = (item.path, result.as_object_mut()) {
        let mut region = json!({"startLine": item.line.unwrap_or(1).max(1)});
        if let (Some(column), Some(region)) = (item.column, region.as_object_mut()) {
            region.insert("startColumn".to_owned(), json!(column.max(1)));
        }
        let location = json!({"physicalLocation": {
            "artifactLocation": {"uri": uri(path), "uriBaseId": "%SRCROOT%"},
            "region": region,
        }});
        fields.insert("locations".to_owned(), json!([location]));
    }
    result
}

/// A path as a relative URI reference.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for nibble in [byte >> 4, byte & 15] {
                let digit = char::from_digit(u32::from(nibble), 16).unwrap_or('0');
                out.push(digit.to_ascii_uppercase());
            }
        }
    }
    out
}
