//! Commit ids and digests. A short hash counts only with a word about commits before it and a digit in it.

use super::words::{has_any, tail};
use super::{About, Claim, shown};
use crate::{ClaimKind, ClaimValue, Comparison};

const CONTEXT: [&str; 12] = [
    "commit",
    "commits",
    "committed",
    "head",
    "sha",
    "hash",
    "revision",
    "rev",
    "提交",
    "哈希",
    "已提交",
    "版本",
];

/// Words that make the commit somebody else's.
const CITED: [&str; 18] = [
    "see",
    "revert",
    "reverts",
    "reverted",
    "from",
    "since",
    "cherry-picked",
    "based on",
    "before",
    "after",
    "fixes",
    "introduced",
    "upstream",
    "parent",
    "base",
    "基于",
    "参见",
    "回退",
];

pub(super) fn read(line: &str) -> Vec<Claim> {
    let mut found = Vec::new();
    for (at, word) in words(line) {
        let hex = word.chars().all(|c| c.is_ascii_hexdigit());
        let digit = word.chars().any(|c| c.is_ascii_digit());
        if !hex || !digit {
            continue;
        }
        let before = line.get(..at).unwrap_or_default();
        match word.len() {
            64 => found.push(claim(ClaimKind::Sha256, word, About::Own, line)),
            7..=40 => {
                if let Some(about) = commit_before(before, word) {
                    found.push(claim(ClaimKind::Commit, word, about, line));
                }
            }
            _ => {}
        }
    }
    found
}

fn claim(kind: ClaimKind, value: &str, about: About, line: &str) -> Claim {
    Claim {
        text: shown(line),
        line: 0,
        kind,
        value: ClaimValue::Text(value.to_ascii_lowercase()),
        comparison: Comparison::Eq,
        path: None,
        slack: 0.0,
        about,
    }
}

fn commit_before(before: &str, word: &str) -> Option<About> {
    // `[main 5d41402]` is git's own line.
    let bracket = before.trim_start().starts_with('[') && !before.contains(']');
    let near = tail(before, 48).to_lowercase();
    let letters = word.chars().any(|c| c.is_ascii_alphabetic());
    if bracket && (letters || word.len() == 7) {
        return Some(About::Own);
    }
    if !has_any(&near, &CONTEXT)
        && !["提交", "哈希"]
            .iter()
            .any(|context| near.contains(context))
    {
        return None;
    }
    if !letters
        && word.len() < 40
        && !near
            .trim_end()
            .ends_with(['t', 's', 'd', 'h', ':', '为', '是', '`', '希', '交'])
    {
        return None;
    }
    let cited = has_any(&near, &CITED);
    Some(if cited { About::Unsaid } else { About::Own })
}

fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.' || c == '/';
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = line.get(at..)?;
        let start = at + rest.find(part)?;
        let rest = line.get(start..)?;
        let end = start + rest.find(|c| !part(c)).unwrap_or(rest.len());
        at = end;
        let word = line.get(start..end)?.trim_end_matches('.');
        Some((start, word))
    })
}
