//! GitLab code quality: a JSON array; fingerprints do not hold line numbers.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::inert::shown;
use super::list::{Item, Report, fingerprint};
use crate::Level;

pub(super) fn write(report: &Report) -> String {
    let mut seen = HashMap::new();
    let issues: Vec<Value> = report
        .items()
        .filter(|item| item.level > Level::Info)
        .map(|item| issue(&item, &mut seen))
        .collect();
    format!("{}\n", Value::Array(issues))
}

fn issue(item: &Item<'_>, seen: &mut HashMap<String, usize>) -> Value {
    let severity = match item.level {
        Level::Fail => "major",
        Level::CouldNotCheck => "critical",
        Level::Warn => "minor",
        Level::Info => "info",
    };
    let help = if item.help.is_empty() {
        String::new()
    } else {
        format!(" ({})", shown(item.help))
    };
    json!({
        "description": format!("{}{help}", shown(item.message)),
        "check_name": format!("airlock.{}.{}", item.gate, shown(item.code)),
        "fingerprint": fingerprint(item, seen),
        "severity": severity,
        "location": {
            // The widget needs a path; what concerns the whole delivery stands at the root.
            "path": item.path.map_or_else(|| ".".to_owned(), shown),
            "lines": {"begin": item.line.unwrap_or(1).max(1)},
        },
    })
}
