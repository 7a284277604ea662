//! How the gates are set: modes, target version, skipped paths, size limits.
//! It must never come from the judged tree; the caller reads it from the base and the user's file.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Gate;

/// Settings of all gates. The default is: every gate on, pictures must be pictures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// Modes that differ from [`Mode::Fail`].
    pub gates: BTreeMap<Gate, Setting>,
    /// What the diagram gate asks of figures.
    pub diagram: DiagramMode,
    /// Python version that the project's code must be valid for.
    pub python: PythonTarget,
    /// Paths that no content gate judges; each skipped file is recorded.
    pub skip: Vec<Skip>,
    /// A larger file is refused as not judgeable, in bytes.
    pub max_file_bytes: u64,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            gates: BTreeMap::new(),
            diagram: DiagramMode::Images,
            python: PythonTarget::default(),
            skip: Vec::new(),
            max_file_bytes: 10 * 1024 * 1024,
        }
    }
}

impl Profile {
    /// Mode of one gate.
    #[must_use]
    pub fn mode(&self, gate: Gate) -> Mode {
        self.gates.get(&gate).map_or(Mode::Fail, |set| set.mode)
    }

    /// The first skip rule that covers a path.
    #[must_use]
    pub fn skip_of(&self, path: &str) -> Option<&Skip> {
        self.skip.iter().find(|skip| glob_matches(&skip.glob, path))
    }
}

/// A gate's mode and who set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The mode.
    pub mode: Mode,
    /// Where it was set, for the record: `flag --gate`, `airlock.toml of the base`, ...
    pub set_by: String,
}

/// What a gate's refusal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A failed check refuses the delivery.
    Fail,
    /// A failed check is shown and recorded, and refuses nothing.
    Warn,
    /// The gate does not run; that is recorded.
    Off,
}

/// What the diagram gate asks of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiagramMode {
    /// A figure must be a real image in the tree.
    #[default]
    Images,
    /// For repositories that render diagram source: labelled source is allowed.
    Lint,
    /// Figures are not judged.
    Off,
}

/// Paths that are not judged, with the place that says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skip {
    /// `*` and `?` stay within a path part, `**` crosses parts; a trailing `/` means everything below.
    pub glob: String,
    /// Where it was set, for the record.
    pub set_by: String,
}

/// A Python version such as `3.14`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PythonTarget {
    /// Always 3.
    pub major: u8,
    /// 7 to 15.
    pub minor: u8,
}

impl Default for PythonTarget {
    fn default() -> Self {
        Self {
            major: 3,
            minor: 14,
        }
    }
}

impl fmt::Display for PythonTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The text is not a Python version that can be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a Python version from 3.7 to 3.15")]
pub struct PythonTargetError {
    /// What was given.
    pub text: String,
}

impl FromStr for PythonTarget {
    type Err = PythonTargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let minor = text
            .trim()
            .strip_prefix("3.")
            .and_then(|rest| rest.parse::<u8>().ok())
            .filter(|minor| (7..=15).contains(minor));
        match minor {
            Some(minor) => Ok(Self { major: 3, minor }),
            None => Err(PythonTargetError {
                text: text.to_owned(),
            }),
        }
    }
}

impl TryFrom<String> for PythonTarget {
    type Error = PythonTargetError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PythonTarget> for String {
    fn from(target: PythonTarget) -> Self {
        target.to_string()
    }
}

/// Whether a glob covers a path. Work is bounded by pattern length times path length.
#[must_use]
pub fn glob_matches(glob: &str, path: &str) -> bool {
    let mut pattern: Vec<char> = glob.trim_start_matches("./").chars().collect();
    if pattern.last() == Some(&'/') {
        pattern.extend(['*', '*']);
    }
    let text: Vec<char> = path.chars().collect();
    let tokens = tokens_of(&pattern);
    // One row of a reachability table: which text positions the tokens so far can end at.
    let mut reach = vec![false; text.len() + 1];
    if let Some(first) = reach.first_mut() {
        *first = true;
    }
    for token in &tokens {
        reach = advance(*token, &text, &reach);
        if !reach.contains(&true) {
            return false;
        }
    }
    reach.last().copied().unwrap_or(false)
}

#[derive(Clone, Copy)]
enum Token {
    Literal(char),
    One,
    Part,
    Anything,
    Folders,
}

fn tokens_of(pattern: &[char]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = pattern.get(at) {
        let rest = pattern.get(at..).unwrap_or_default();
        if rest.starts_with(&['*', '*', '/']) {
            tokens.push(Token::Folders);
            at += 3;
        } else if rest.starts_with(&['*', '*']) {
            tokens.push(Token::Anything);
            at += 2;
        } else {
            tokens.push(match c {
                '*' => Token::Part,
                '?' => Token::One,
                other => Token::Literal(other),
            });
            at += 1;
        }
    }
    tokens
}

fn advance(token: Token, text: &[char], reach: &[bool]) -> Vec<bool> {
    let mut next = vec![false; reach.len()];
    let mut open = false;
    for (at, slot) in next.iter_mut().enumerate() {
        let here = reach.get(at).copied().unwrap_or(false);
        let before = at.checked_sub(1).and_then(|i| text.get(i)).copied();
        let from_before = at > 0 && reach.get(at - 1).copied().unwrap_or(false);
        match token {
            Token::Literal(want) => *slot = from_before && before == Some(want),
            Token::One => *slot = from_before && before.is_some_and(|c| c != '/'),
            Token::Part => {
                open = here || (open && before.is_some_and(|c| c != '/'));
                *slot = open;
            }
            Token::Anything => {
                open = open || here;
                *slot = open;
            }
            Token::Folders => {
                *slot = here || (open && before == Some('/'));
                open = open || here;
            }
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        let yes = [
            ("tests/data/", "tests/data/a/b.py"),
            ("**/*.py", "a.py"),
            ("**/*.py", "x/y/a.py"),
            ("src/*.py", "src/a.py"),
            ("a?c", "abc"),
            ("**", "any/thing"),
            ("docs/**/x.md", "docs/x.md"),
            ("docs/**/x.md", "docs/a/b/x.md"),
        ];
        for (glob, path) in yes {
            assert!(glob_matches(glob, path), "{glob} should cover {path}");
        }
        let no = [
            ("src/*.py", "src/a/b.py"),
            ("a?c", "a/c"),
            ("*.py", "x/a.py"),
            ("docs/**/x.md", "docs/ax.md"),
            ("tests/data/", "tests/data"),
        ];
        for (glob, path) in no {
            assert!(!glob_matches(glob, path), "{glob} should not cover {path}");
        }
    }

    #[test]
    fn a_hostile_glob_is_not_exponential() {
        let glob = "*a".repeat(500);
        let path = "a".repeat(5000);
        assert!(!glob_matches(&format!("{glob}b"), &path));
    }

    #[test]
    fn python_targets() {
        assert_eq!("3.9".parse::<PythonTarget>().map(|t| t.minor), Ok(9));
        assert!("2.7".parse::<PythonTarget>().is_err());
        assert!("3.99".parse::<PythonTarget>().is_err());
        assert!(serde_json::from_str::<Profile>(r#"{"python":"4"}"#).is_err());
        assert!(serde_json::from_str::<Profile>(r#"{"pyton":"3.9"}"#).is_err());
    }
}
