//! What a room may reach, as one word of text in every place that holds it: flag, files, events, evidence.
//!
//! Must never make a network wider by putting two of them together.

use std::fmt;

use sandbox::egress::Policy;
use serde::{Deserialize, Serialize};

use crate::config::words::{self, WordError};

/// What a room may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Net {
    /// Its own loopback only.
    None,
    /// What a list lets through, by the proxy.
    Allow(Policy),
    /// The host's network, recorded as such.
    Host,
}

impl Net {
    /// What both let through.
    #[must_use]
    pub fn narrowed_by(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::Host, narrow) | (narrow, Self::Host) => narrow.clone(),
            (Self::Allow(one), Self::Allow(two)) => {
                let both = one.narrowed_by(two);
                if both.is_empty() {
                    Self::None
                } else {
                    Self::Allow(both)
                }
            }
        }
    }

    /// The list; none where there is none.
    pub fn policy(&self) -> Option<&Policy> {
        match self {
            Self::Allow(policy) => Some(policy),
            Self::None | Self::Host => None,
        }
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Allow(policy) => write!(f, "allow:{policy}"),
            Self::Host => f.write_str("host"),
        }
    }
}

impl TryFrom<String> for Net {
    type Error = WordError;

    fn try_from(text: String) -> Result<Self, WordError> {
        words::net(&text)
    }
}

impl From<Net> for String {
    fn from(net: Net) -> Self {
        net.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> Net {
        words::net(text).unwrap()
    }

    #[test]
    fn one_word_stands_for_it_everywhere() {
        for text in ["none", "host", "allow:npm,example.org"] {
            let json = serde_json::to_string(&net(text)).unwrap();
            assert_eq!(json, format!("{text:?}"));
            assert_eq!(serde_json::from_str::<Net>(&json).unwrap(), net(text));
        }
    }

    #[test]
    fn two_networks_are_as_narrow_as_either() {
        for (one, two, both) in [
            ("host", "allow:npm", "allow:npm"),
            ("none", "host", "none"),
            (
                "allow:npm,*.example.org",
                "allow:a.example.org,evil.test",
                "allow:a.example.org",
            ),
            ("allow:npm", "allow:pypi", "none"),
            ("host", "host", "host"),
        ] {
            assert_eq!(net(one).narrowed_by(&net(two)), net(both));
            assert_eq!(net(two).narrowed_by(&net(one)), net(both));
        }
    }
}
