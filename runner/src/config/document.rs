//! A TOML document whose every value knows its line, read section by section against the keys that
//! are known there. Knows no setting; turns text into values or into an error that names file,
//! line, key and what was expected.

use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::nearest::nearest;
use super::origin::{Given, Origin};

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not TOML.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Line, from one.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A key or section that does not exist.
    #[error("{file}:{line}: unknown key `{key}`{}", hint(nearest.as_deref(), known))]
    UnknownKey {
        /// The file.
        file: String,
        /// Line, from one.
        line: usize,
        /// The key with its section.
        key: String,
        /// What was probably meant.
        nearest: Option<String>,
        /// What could stand there.
        known: String,
    },
    /// A value of another kind.
    #[error("{file}:{line}: `{key}` is {found}, expected {expected}")]
    WrongType {
        /// The file.
        file: String,
        /// Line, from one.
        line: usize,
        /// The key with its section.
        key: String,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// A value of the right kind that makes no sense.
    #[error("{file}:{line}: bad value for `{key}`: {problem}")]
    BadValue {
        /// The file.
        file: String,
        /// Line, from one.
        line: usize,
        /// The key with its section.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The file is not text.
    #[error("{file} is not UTF-8 text")]
    NotText {
        /// The file.
        file: String,
    },
}

fn hint(nearest: Option<&str>, known: &str) -> String {
    match nearest {
        Some(nearest) => format!(", did you mean `{nearest}`?"),
        None => format!("; known are {known}"),
    }
}

/// Whose file it is; decides how its values are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The user's own file.
    User(PathBuf),
    /// `airlock.toml` of the base commit.
    Repository,
    /// The profile of an agent that comes with the program.
    BuiltIn(String),
}

impl Source {
    fn name(&self) -> String {
        match self {
            Self::User(path) => path.display().to_string(),
            Self::Repository => "airlock.toml".to_owned(),
            Self::BuiltIn(agent) => format!("{agent}.toml"),
        }
    }
}

/// A parsed file.
#[derive(Debug)]
pub(super) struct Document<'t> {
    source: Source,
    text: &'t str,
    table: DeTable<'t>,
}

impl<'t> Document<'t> {
    /// Parses the bytes of a file.
    pub(super) fn parse(source: Source, bytes: &'t [u8]) -> Result<Self, ConfigError> {
        let file = source.name();
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Err(ConfigError::NotText { file });
        };
        match DeTable::parse(text) {
            Ok(table) => Ok(Self {
                source,
                text,
                table: table.into_inner(),
            }),
            Err(error) => Err(ConfigError::Syntax {
                line: line_of(text, error.span().map_or(0, |span| span.start)),
                file,
                message: error.message().to_owned(),
            }),
        }
    }

    /// Whose file it is.
    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// The document as one section.
    pub(super) fn root(&self) -> Section<'_> {
        Section {
            document: self,
            path: String::new(),
            table: Some(&self.table),
        }
    }

    fn line(&self, offset: usize) -> usize {
        line_of(self.text, offset)
    }

    fn origin(&self, offset: usize) -> Origin {
        let line = self.line(offset);
        match &self.source {
            Source::User(file) => Origin::User {
                file: file.clone(),
                line,
            },
            Source::Repository => Origin::Repository { line },
            Source::BuiltIn(agent) => Origin::BuiltIn {
                agent: agent.clone(),
            },
        }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text
        .bytes()
        .take(offset)
        .filter(|byte| *byte == b'\n')
        .count()
}

/// One table of a document; an absent one is empty.
#[derive(Debug, Clone)]
pub struct Section<'d> {
    document: &'d Document<'d>,
    path: String,
    table: Option<&'d DeTable<'d>>,
}

impl<'d> Section<'d> {
    /// Refuses every key but these.
    pub fn only(&self, known: &[&str]) -> Result<(), ConfigError> {
        for key in self.table.into_iter().flat_map(DeTable::keys) {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                return Err(ConfigError::UnknownKey {
                    file: self.document.source.name(),
                    line: self.document.line(key.span().start),
                    key: self.full(name),
                    nearest: nearest(name, known).map(str::to_owned),
                    known: known.join(", "),
                });
            }
        }
        Ok(())
    }

    /// The keys, in the order of the file.
    pub fn keys(&self) -> Vec<String> {
        let keys = self.table.into_iter().flat_map(DeTable::keys);
        keys.map(|key| key.get_ref().to_string()).collect()
    }

    /// A table below this one.
    pub fn section(&self, key: &str) -> Result<Self, ConfigError> {
        let path = self.full(key);
        let table = match self.find(key) {
            None => None,
            Some(value) => {
                let DeValue::Table(table) = value.get_ref() else {
                    return Err(self.wrong(key, value, value.get_ref(), "a section"));
                };
                Some(table)
            }
        };
        Ok(Self {
            document: self.document,
            path,
            table,
        })
    }

    /// Whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Whose file this is.
    pub fn source(&self) -> &'d Source {
        &self.document.source
    }

    /// The tables of a list, as of `[[key]]`.
    pub fn sections(&self, key: &str) -> Result<Vec<Self>, ConfigError> {
        let Some(value) = self.find(key) else {
            return Ok(Vec::new());
        };
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong(key, value, value.get_ref(), "a list of sections"));
        };
        let section = |item: &'d Spanned<DeValue<'d>>| {
            let DeValue::Table(table) = item.get_ref() else {
                return Err(self.wrong(key, item, item.get_ref(), "a section"));
            };
            Ok(Self {
                document: self.document,
                path: self.full(key),
                table: Some(table),
            })
        };
        items.iter().map(section).collect()
    }

    /// A text.
    pub fn text(&self, key: &str) -> Result<Option<Given<String>>, ConfigError> {
        self.find(key)
            .map(|value| {
                let text = value.get_ref().as_str();
                text.map(|text| self.given(value, text.to_owned()))
                    .ok_or_else(|| self.wrong(key, value, value.get_ref(), "a text in quotes"))
            })
            .transpose()
    }

    /// A whole number that is not negative.
    pub fn number(&self, key: &str) -> Result<Option<Given<u64>>, ConfigError> {
        let expected = "a whole number, zero or more";
        self.find(key)
            .map(|value| {
                let number = value.get_ref().as_integer();
                number
                    .and_then(|number| {
                        u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
                    })
                    .map(|number| self.given(value, number))
                    .ok_or_else(|| self.wrong(key, value, value.get_ref(), expected))
            })
            .transpose()
    }

    /// A list of texts, each with its line.
    pub fn texts(&self, key: &str) -> Result<Vec<Given<String>>, ConfigError> {
        let expected = "a list of texts";
        let Some(value) = self.find(key) else {
            return Ok(Vec::new());
        };
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong(key, value, value.get_ref(), expected));
        };
        items
            .iter()
            .map(|item| {
                let text = item.get_ref().as_str();
                text.map(|text| self.given(item, text.to_owned()))
                    .ok_or_else(|| self.wrong(key, item, item.get_ref(), expected))
            })
            .collect()
    }

    /// A text that `read` understands.
    pub fn read<T, E: std::fmt::Display>(
        &self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<Given<T>>, ConfigError> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        match read(&text.value) {
            Ok(value) => Ok(Some(Given::new(value, text.origin))),
            Err(problem) => Err(self.bad(key, &problem)),
        }
    }

    /// The complaint about the value of a key.
    pub fn bad(&self, key: &str, problem: &dyn std::fmt::Display) -> ConfigError {
        let offset = self.find(key).map_or(0, |value| value.span().start);
        ConfigError::BadValue {
            file: self.document.source.name(),
            line: self.document.line(offset),
            key: self.full(key),
            problem: problem.to_string(),
        }
    }

    /// Where a key stands.
    pub fn origin(&self, key: &str) -> Origin {
        self.find(key).map_or(Origin::Default, |value| {
            self.document.origin(value.span().start)
        })
    }

    fn find(&self, key: &str) -> Option<&'d Spanned<DeValue<'d>>> {
        self.table.and_then(|table| table.get(key))
    }

    fn given<T>(&self, value: &Spanned<DeValue<'_>>, inner: T) -> Given<T> {
        Given::new(inner, self.document.origin(value.span().start))
    }

    fn full(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn wrong(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        found: &DeValue<'_>,
        expected: &str,
    ) -> ConfigError {
        ConfigError::WrongType {
            file: self.document.source.name(),
            line: self.document.line(value.span().start),
            key: self.full(key),
            found: name_of(found),
            expected: expected.to_owned(),
        }
    }
}

fn name_of(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(date) => format!("the date {date}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a section".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Document<'_>, ConfigError> {
        Document::parse(Source::Repository, text.as_bytes())
    }

    #[test]
    fn values_know_their_lines() {
        let document = parse("[task]\n\nbranch = \"x\"\nlist = [\n \"a\",\n \"b\"]\n").unwrap();
        let task = document.root().section("task").unwrap();
        let branch = task.text("branch").unwrap().unwrap();
        assert_eq!(branch.origin, Origin::Repository { line: 3 });
        let lines: Vec<Origin> = task
            .texts("list")
            .unwrap()
            .into_iter()
            .map(|item| item.origin)
            .collect();
        assert_eq!(
            lines,
            [
                Origin::Repository { line: 5 },
                Origin::Repository { line: 6 }
            ]
        );
    }

    #[test]
    fn errors_name_file_line_and_what_is_expected() {
        let document = parse("[task]\nbrnach = 1\nzzz = 2\nbranch = 3\nattempts = -1\n").unwrap();
        let task = document.root().section("task").unwrap();
        let unknown = task.only(&["branch", "attempts", "zzz"]).unwrap_err();
        insta::assert_snapshot!(unknown, @"airlock.toml:2: unknown key `task.brnach`, did you mean `branch`?");
        let strange = task.only(&["brnach", "branch", "attempts"]).unwrap_err();
        insta::assert_snapshot!(strange, @"airlock.toml:3: unknown key `task.zzz`; known are brnach, branch, attempts");
        let wrong = task.text("branch").unwrap_err();
        insta::assert_snapshot!(wrong, @"airlock.toml:4: `task.branch` is the number 3, expected a text in quotes");
        let negative = task.number("attempts").unwrap_err();
        insta::assert_snapshot!(negative, @"airlock.toml:5: `task.attempts` is the number -1, expected a whole number, zero or more");
    }

    #[test]
    fn broken_text_is_refused_with_its_line() {
        let broken = parse("[task]\nbranch = \n").unwrap_err();
        assert!(
            broken.to_string().starts_with("airlock.toml:2: "),
            "{broken}"
        );
        let binary = Document::parse(Source::Repository, b"\xff\xfe").unwrap_err();
        insta::assert_snapshot!(binary, @"airlock.toml is not UTF-8 text");
    }
}
