//! Small readers of text: phrases with word boundaries, at the start, at the end, anywhere.

/// Whether a phrase stands in a lower-cased text; ASCII phrases need word boundaries.
pub(super) fn has(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let before = text.get(..at).and_then(|s| s.chars().next_back());
        let after = text.get(at + phrase.len()..).and_then(|s| s.chars().next());
        let first = phrase.chars().next();
        let last = phrase.chars().next_back();
        !joins(before, first) && !joins(last, after)
    })
}

pub(super) fn has_any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| has(text, phrase))
}

/// Whether a text ends with a phrase, spaces and a colon aside.
pub(super) fn ends(text: &str, phrase: &str) -> bool {
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || c == ':' || c == '：');
    text.strip_suffix(phrase)
        .is_some_and(|rest| !joins(rest.chars().next_back(), phrase.chars().next()))
}

pub(super) fn ends_any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| ends(text, phrase))
}

fn joins(left: Option<char>, right: Option<char>) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    part(left) && part(right)
}

pub(super) fn is_cjk(c: char) -> bool {
    matches!(u32::from(c), 0x3400..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3134F)
}

/// At most the last `count` bytes of a text.
pub(super) fn tail(text: &str, count: usize) -> &str {
    let mut start = text.len().saturating_sub(count);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}

/// At most the first `count` bytes of a text.
pub(super) fn head(text: &str, count: usize) -> &str {
    let mut end = text.len().min(count);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
