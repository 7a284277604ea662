//! A line of a note, sentence by sentence: demands and hopes are set aside, the rest is read for claims.

use super::number::{self, Number};
use super::path::{self, Named};
use super::words::has_any;
use super::{Claim, sizes, testing};
use crate::{ClaimKind, ClaimValue};

/// A sentence with its numbers and file names.
pub(super) struct Sentence<'a> {
    pub(super) text: &'a str,
    pub(super) lower: String,
    pub(super) numbers: Vec<Number>,
    pub(super) names: Vec<Named>,
}

const HOPES: [&str; 22] = [
    "should",
    "once",
    "will",
    "would",
    "hopefully",
    "probably",
    "might",
    "plan to",
    "going to",
    "if",
    "expected to",
    "expect",
    "could",
    "应该",
    "应当",
    "理应",
    "预计",
    "希望",
    "可能",
    "将会",
    "计划",
    "一旦",
];

pub(super) fn read(line: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    // A unit that a demand named: "asked for 5000 characters; I delivered 1225".
    let mut carried: Option<ClaimKind> = None;
    let line_lower = line.trim_start().to_lowercase();
    if line_lower.starts_with("test suites:") || line_lower.starts_with("snapshots:") {
        return claims;
    }
    let tests = testing::concerns(&line_lower);
    for text in split(line) {
        let (names, masks) = path::all(text);
        let sentence = Sentence {
            text,
            lower: text.to_lowercase(),
            numbers: number::all(text, &masks),
            names,
        };
        if let Some(denial) = testing::denied(&sentence) {
            claims.push(denial);
            continue;
        }
        if has_any(&sentence.lower, &HOPES) {
            continue;
        }
        let mut used = vec![false; sentence.numbers.len()];
        if tests {
            claims.extend(testing::read(&sentence, &mut used));
        }
        claims.extend(sizes::read(&sentence, &mut used, &mut carried));
    }
    claims
}

/// Sentences of a line. A full stop ends one only before a space, so that names and decimals stay whole.
fn split(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let space = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        let ends =
            matches!(c, '。' | '！' | '？' | '；' | ';') || (matches!(c, '.' | '!' | '?') && space);
        if ends {
            let end = at + c.len_utf8();
            found.extend(line.get(start..end));
            start = end;
        }
    }
    found.extend(line.get(start..));
    found.retain(|text| !text.trim().is_empty());
    found
}

/// A count where the number is whole, else a decimal.
pub(super) fn value_of(value: f64) -> ClaimValue {
    let whole = value.round();
    if (value - whole).abs() < 1e-6 && (0.0..9e15).contains(&whole) {
        let digits = format!("{whole:.0}");
        if let Ok(count) = digits.parse() {
            return ClaimValue::Count(count);
        }
    }
    ClaimValue::Decimal(value)
}
