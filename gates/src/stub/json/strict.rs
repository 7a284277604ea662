//! RFC 8259 by `serde_json`'s grammar alone: nothing is built, so neither a huge number nor depth can hurt.

use serde::de::IgnoredAny;

use super::{Fault, number, scan};

/// Faults of one JSON text.
pub(super) fn faults(text: &str) -> Vec<Fault> {
    match serde_json::from_str::<IgnoredAny>(text) {
        Err(error) => vec![named(text, &error)],
        Ok(IgnoredAny) => content(text),
    }
}

/// What valid grammar may still hide.
pub(super) fn content(text: &str) -> Vec<Fault> {
    let facts = scan::facts(text);
    let placeholder = facts.only_placeholders();
    let mut faults = Vec::new();
    if let Some((key, line)) = facts.duplicate {
        let key: String = key.chars().take(60).collect();
        let message = format!(
            "has the key \"{key}\" twice in one object: readers keep one of them in silence"
        );
        faults.push(Fault::fail("json.dupkey", message, "keep one of the two").on(line));
    }
    if let Some(line) = facts.surrogate {
        let message = "has an escape that is half of a character; some readers refuse it";
        faults.push(Fault::warn("json.surrogate", message, "write the whole character").on(line));
    }
    if placeholder {
        let message = "every value in it is a placeholder";
        faults.push(Fault::warn(
            "json.placeholder",
            message,
            "fill in the values",
        ));
    }
    faults
}

/// Gives the grammar error the name of its cause, so that the agent can act.
fn named(text: &str, error: &serde_json::Error) -> Fault {
    let rest = rest_at(text, error.line(), error.column());
    let position = |fault: Fault| {
        fault
            .on(number(error.line()))
            .column(number(error.column().max(1)))
    };
    if is_not_finite(rest) {
        let message = "NaN and Infinity are no JSON numbers: only some readers take them";
        return position(Fault::fail(
            "json.nan",
            message,
            "write null, or the number as a string",
        ));
    }
    if holds_several(text) {
        let message = "holds several values, one after another";
        let help = "name it .jsonl, or put the values in one array";
        return position(Fault::fail("json.lines", message, help));
    }
    let detail = error.to_string();
    let detail = detail.split(" at line ").next().unwrap_or_default();
    let (cause, help) = cause(text, rest, error);
    let message = match cause {
        Some(cause) => format!("is not JSON: {cause}"),
        None => format!("is not JSON: {detail}"),
    };
    position(Fault::fail("json.syntax", message, help))
}

/// The text from where the grammar stopped; the reported column is that of the last byte read.
fn rest_at(text: &str, line: usize, column: usize) -> &str {
    let mut from = 0;
    for _ in 1..line {
        match text.get(from..).and_then(|rest| rest.find('\n')) {
            Some(end) => from += end + 1,
            None => return "",
        }
    }
    let mut at = (from + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.get(at..).unwrap_or_default()
}

fn is_not_finite(rest: &str) -> bool {
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    ["NaN", "Infinity", "nan", "inf", "Inf"]
        .iter()
        .any(|word| rest.starts_with(word))
}

/// Whether the text is two or more whole values and nothing else.
fn holds_several(text: &str) -> bool {
    let mut values = 0;
    for value in serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>() {
        if value.is_err() {
            return false;
        }
        values += 1;
    }
    values > 1
}

fn cause(
    text: &str,
    rest: &str,
    error: &serde_json::Error,
) -> (Option<&'static str>, &'static str) {
    if text.trim_start().starts_with("```") {
        return (
            Some("a Markdown fence around it"),
            "remove the fence and the prose",
        );
    }
    if error.is_eof() {
        return (Some("it ends in the middle"), "write the file to its end");
    }
    let first = rest.chars().next().unwrap_or_default();
    let word: String = rest
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    match (first, word.as_str()) {
        ('/' | '#', _) => (
            Some("a comment"),
            "remove the comment: only names such as tsconfig.json or *.jsonc may hold one",
        ),
        ('\'', _) => (
            Some("single quotes"),
            "use double quotes; write it with json.dump, not with repr",
        ),
        (_, "True" | "False" | "None") => (Some("a Python constant"), "write true, false, null"),
        ('}' | ']', _) => (
            Some("a comma before a closing bracket, or one bracket too many"),
            "remove it",
        ),
        _ => (None, "correct the text; write it with a JSON library"),
    }
}
