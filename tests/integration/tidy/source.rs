//! Rust source as the rules see it: which files there are, and their code without comments and
//! literals. Knows just enough of the language for that.

use std::fs;
use std::path::PathBuf;

use super::{CRATES, root};

/// A Rust file of the workspace.
pub(super) struct Source {
    /// Path in the workspace.
    pub(super) name: String,
    /// All of it.
    pub(super) text: String,
}

impl Source {
    /// What is built into the product.
    pub(super) fn production(&self) -> &str {
        if self.name.ends_with("/tests.rs") {
            return "";
        }
        self.text
            .split("#[cfg(test)]\nmod ")
            .next()
            .unwrap_or_default()
    }

    /// Production code with comments and the content of literals blanked out.
    pub(super) fn code(&self) -> String {
        blank(self.production())
    }
}

pub(super) fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = CRATES.iter().map(|name| root().join(name)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir()
                && path
                    .file_name()
                    .is_some_and(|name| name != "target" && name != "data")
            {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                found.push(Source {
                    name,
                    text: fs::read_to_string(&path).unwrap(),
                });
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(found.len() > 50, "the sources are somewhere else");
    found
}

/// Replaces comments, strings and character literals by blanks; lines stay where they are.
pub(super) fn blank(text: &str) -> String {
    let bytes: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = bytes.get(at) {
        let end = match c {
            '/' if bytes.get(at + 1) == Some(&'/') => line_end(&bytes, at),
            '/' if bytes.get(at + 1) == Some(&'*') => comment_end(&bytes, at),
            '"' => string_end(&bytes, at),
            'r' | 'b' | 'c' if !word_before(&bytes, at) => raw_end(&bytes, at).unwrap_or(at + 1),
            '\'' => character_end(&bytes, at),
            _ => at + 1,
        };
        if end == at + 1 {
            out.push(c);
        } else {
            out.extend(
                bytes[at..end]
                    .iter()
                    .map(|c| if *c == '\n' { '\n' } else { ' ' }),
            );
        }
        at = end;
    }
    out
}

fn word_before(text: &[char], at: usize) -> bool {
    at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_')
}

fn line_end(text: &[char], at: usize) -> usize {
    text[at..]
        .iter()
        .position(|c| *c == '\n')
        .map_or(text.len(), |length| at + length)
}

fn comment_end(text: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while at + 1 < text.len() {
        match (text[at], text[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn string_end(text: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// The end of `r"…"`, `r#"…"#`, `b"…"`, `br#"…"#` and the like.
fn raw_end(text: &[char], start: usize) -> Option<usize> {
    let mut at = start;
    while at < text.len() && at < start + 2 && "rbc".contains(text[at]) {
        at += 1;
    }
    let raw = text[start..at].contains(&'r');
    let hashes = text[at..].iter().take_while(|c| **c == '#').count();
    if text.get(at + hashes) != Some(&'"') || (hashes > 0 && !raw) {
        return None;
    }
    if !raw {
        return Some(string_end(text, at));
    }
    let close: Vec<char> = std::iter::once('"')
        .chain(std::iter::repeat_n('#', hashes))
        .collect();
    let body = at + hashes + 1;
    let found = text[body..]
        .windows(close.len())
        .position(|window| window == close)?;
    Some(body + found + close.len())
}

fn character_end(text: &[char], start: usize) -> usize {
    match (text.get(start + 1), text.get(start + 2)) {
        (Some('\\'), _) => {
            let rest = text[start + 3..].iter().position(|c| *c == '\'');
            rest.map_or(text.len(), |length| start + 3 + length + 1)
        }
        (Some(_), Some('\'')) => start + 3,
        _ => start + 1,
    }
}

/// Name and number of lines of each function.
pub(super) fn functions(code: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let starts = code
        .match_indices("fn ")
        .map(|(at, word)| code.split_at(at + word.len()));
    for (before, rest) in starts {
        let inside_a_word = before
            .chars()
            .rev()
            .nth(3)
            .is_some_and(|c| c.is_alphanumeric() || c == '_');
        let name: String = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let (Some(open), end) = (rest.find('{'), rest.find(';')) else {
            continue;
        };
        if inside_a_word || name.is_empty() || end.is_some_and(|end| end < open) {
            continue;
        }
        let (mut depth, mut lines) = (0, 1);
        for c in rest.chars() {
            lines += usize::from(c == '\n');
            depth += i32::from(c == '{') - i32::from(c == '}');
            if c == '}' && depth == 0 {
                found.push((name, lines));
                break;
            }
        }
    }
    found
}
