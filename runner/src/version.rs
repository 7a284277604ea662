//! Versions of other people's programs, as those print them: the first dotted number in a text.
//! Compares numbers only; says nothing about what comes after them.

use std::fmt;
use std::str::FromStr;

/// A version, such as 2.1.197.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(Vec<u64>);

/// A text that names no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no version, such as 1.2.3")]
pub struct NoVersion(String);

impl Version {
    /// The first dotted number of a text, such as what a program prints.
    pub fn first_in(text: &str) -> Option<Self> {
        let words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
        words.map(|word| word.trim_matches('.')).find_map(|word| {
            let numbers: Vec<&str> = word.split('.').collect();
            let all = numbers.iter().map(|number| number.parse().ok());
            (numbers.len() > 1).then(|| all.collect::<Option<Vec<u64>>>().map(Self))?
        })
    }
}

impl FromStr for Version {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let all = text.split('.').map(|number| number.parse().ok());
        all.collect::<Option<Vec<u64>>>()
            .map(Self)
            .ok_or_else(|| NoVersion(text.to_owned()))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&numbers.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_name_their_versions_in_their_own_ways() {
        for (said, version) in [
            ("2.1.197 (Claude Code)", "2.1.197"),
            ("codex-cli 0.171.0\n", "0.171.0"),
            ("This is mini-swe-agent version 2.4.6.\nmore 9.9", "2.4.6"),
            ("GitHub Copilot CLI 1.0.102.", "1.0.102"),
            (
                "0.0.1790142911-g7618fb (released 2026-09-23)",
                "0.0.1790142911",
            ),
            ("v22.1", "22.1"),
        ] {
            assert_eq!(Version::first_in(said), version.parse().ok(), "{said}");
        }
        assert_eq!(Version::first_in("no version 7 here"), None);
        assert_eq!(Version::first_in("1.99999999999999999999999"), None);
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        assert!(version("2.10.0") > version("2.9.9"));
        assert!(version("2.1") < version("2.1.0"));
        assert!("2.x".parse::<Version>().is_err());
    }
}
