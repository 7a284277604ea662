//! One pass over JSON text without recursion: depth, duplicate keys, lone surrogates, placeholder leaves.

use std::collections::HashSet;

use super::number;

/// The line on which brackets outside strings nest deeper than `limit`.
pub(super) fn too_deep(text: &str, limit: usize) -> Option<u32> {
    let (mut depth, mut line, mut in_string, mut escaped) = (0_usize, 1_usize, false, false);
    for byte in text.bytes() {
        match byte {
            b'\n' => line += 1,
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return Some(number(line));
        }
    }
    None
}

/// What a text of valid grammar holds.
#[derive(Default)]
pub(super) struct Facts {
    /// A key that one object has twice, with its line.
    pub(super) duplicate: Option<(String, u32)>,
    /// Line of an escape that is half of a character.
    pub(super) surrogate: Option<u32>,
    leaves: usize,
    placeholders: usize,
}

impl Facts {
    /// Whether every leaf is a stand-in such as "TODO" or "...".
    pub(super) fn only_placeholders(&self) -> bool {
        self.leaves > 0 && self.leaves == self.placeholders
    }
}

/// Reads a text whose grammar is known to be valid.
pub(super) fn facts(text: &str) -> Facts {
    let mut facts = Facts::default();
    let mut open: Vec<Option<HashSet<String>>> = Vec::new();
    let mut line = 1_usize;
    let mut at = 0_usize;
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\n' => line += 1,
            b'{' => open.push(Some(HashSet::new())),
            b'[' => open.push(None),
            b'}' | b']' => {
                open.pop();
            }
            b'"' => {
                let end = string_end(bytes, at);
                let raw = text.get(at..end).unwrap_or_default();
                if facts.surrogate.is_none() && has_lone_surrogate(raw) {
                    facts.surrogate = Some(number(line));
                }
                let key = is_key(bytes, end);
                match open.last_mut() {
                    Some(Some(keys)) if key => {
                        let name = plain(raw);
                        if facts.duplicate.is_none() && !keys.insert(name.clone()) {
                            facts.duplicate = Some((name, number(line)));
                        }
                    }
                    _ => {
                        facts.leaves += 1;
                        facts.placeholders += usize::from(is_placeholder(&plain(raw)));
                    }
                }
                at = end;
                continue;
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                facts.leaves += 1;
                while bytes
                    .get(at + 1)
                    .is_some_and(|next| next.is_ascii_alphanumeric() || b"+-.".contains(next))
                {
                    at += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    facts
}

/// Index after the closing quote.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn is_key(bytes: &[u8], end: usize) -> bool {
    bytes
        .get(end..)
        .unwrap_or_default()
        .iter()
        .find(|byte| !byte.is_ascii_whitespace())
        == Some(&b':')
}

/// The unescaped string; as written where an escape is no character.
fn plain(raw: &str) -> String {
    serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned())
}

fn has_lone_surrogate(raw: &str) -> bool {
    if !raw.contains("\\u") {
        return false;
    }
    let mut rest = raw;
    let mut high = false;
    while let Some(at) = rest.find('\\') {
        let escape = rest.get(at..).unwrap_or_default();
        let code = escape
            .strip_prefix("\\u")
            .and_then(|hex| hex.get(..4))
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let low = code.is_some_and(|code| (0xDC00..0xE000).contains(&code));
        if (high && !(low && at == 0)) || (low && !high) {
            return true;
        }
        high = code.is_some_and(|code| (0xD800..0xDC00).contains(&code));
        let step = if code.is_some() { 6 } else { 2 };
        rest = escape.get(step..).unwrap_or_default();
    }
    high
}

fn is_placeholder(text: &str) -> bool {
    let text = text
        .trim()
        .trim_matches(|c| "<>[]{}()".contains(c))
        .to_lowercase();
    matches!(
        text.as_str(),
        "todo"
            | "..."
            | "…"
            | "tbd"
            | "fixme"
            | "placeholder"
            | "xxx"
            | "your value here"
            | "待实现"
            | "占位"
            | "待定"
            | "待补充"
    ) || text.starts_with("todo:")
}
