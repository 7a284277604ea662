//! Where a value was said. Ordered by strength, so that precedence is a comparison and every
//! message about a value can name its place. Holds places only; decides nothing.

use std::fmt;
use std::path::PathBuf;

/// The place of a value; a later variant beats an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nobody said it.
    Default,
    /// Nobody, but a file of the base commit calls for it.
    Detected {
        /// Its path in the repository, fit to be shown.
        file: String,
    },
    /// A profile that comes with the program.
    BuiltIn {
        /// The agent.
        agent: String,
    },
    /// The repository's `airlock.toml`, as the base commit has it.
    Repository {
        /// Line, from one.
        line: usize,
    },
    /// The user's own file.
    User {
        /// The file.
        file: PathBuf,
        /// Line, from one.
        line: usize,
    },
    /// What `--spec` named.
    TaskFile {
        /// The file as it was named; `-` is standard input.
        file: String,
        /// The key.
        key: &'static str,
    },
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the default"),
            Self::Detected { file } => write!(f, "{file} of the base commit"),
            Self::BuiltIn { agent } => write!(f, "the built-in profile of {agent}"),
            Self::Repository { line } => write!(f, "airlock.toml:{line} of the base commit"),
            Self::User { file, line } => write!(f, "{}:{line}", file.display()),
            Self::TaskFile { file, key } if file == "-" => {
                write!(f, "`{key}` of the task on standard input")
            }
            Self::TaskFile { file, key } => write!(f, "`{key}` of {file}"),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// A value with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// Where it was said.
    pub origin: Origin,
}

impl<T> Given<T> {
    /// A value and its place.
    pub fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }

    /// A value that nobody said.
    pub fn default(value: T) -> Self {
        Self::new(value, Origin::Default)
    }

    /// The same place with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Given<U> {
        Given {
            value: change(self.value),
            origin: self.origin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_beats_every_file() {
        let mut places = [
            Origin::Flag("--net"),
            Origin::Default,
            Origin::User {
                file: "/c".into(),
                line: 9,
            },
            Origin::TaskFile {
                file: "-".to_owned(),
                key: "net",
            },
            Origin::Repository { line: 1 },
        ];
        places.sort();
        let said: Vec<String> = places.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "the default",
                "airlock.toml:1 of the base commit",
                "/c:9",
                "`net` of the task on standard input",
                "--net"
            ]
        );
    }
}
