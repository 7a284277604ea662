//! A host name in the one form that rules are compared in. Strict on purpose: what two readers could take for two
//! different hosts is no name here.
//!
//! Must never take an address, in any notation that some resolver understands.

use std::fmt;
use std::str::FromStr;

/// Longest name, without the dot at its end.
const LONGEST: usize = 253;
/// Longest part between two dots.
const LONGEST_LABEL: usize = 63;

/// A host name: lower case, without a dot at its end, nothing but `a-z`, `0-9`, `.` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(String);

/// Why a text is no host name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing is there.
    #[error("there is no host name")]
    Empty,
    /// Longer than a name can be.
    #[error("a host name of {0} bytes is too long")]
    TooLong(usize),
    /// Something else than letters, digits, dots and hyphens.
    #[error("{0:?} is no host name: only a-z, 0-9, '.' and '-' can stand in one")]
    Character(String),
    /// An empty part, one that begins or ends with a hyphen, or one that is too long.
    #[error("{0:?} is no host name: look at its parts between the dots")]
    Label(String),
    /// An address, in whatever notation.
    #[error("{0:?} is an address, and addresses are never let through: name the host")]
    Address(String),
}

impl Host {
    /// Reads a name. Upper case is lowered and one dot at the end is dropped; nothing else is forgiven.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if text.len() > LONGEST + 1 {
            return Err(HostError::TooLong(text.len()));
        }
        if text.starts_with('[') || text.contains(':') {
            return Err(HostError::Address(text.to_owned()));
        }
        let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
        if !text.bytes().all(good) {
            return Err(HostError::Character(text.to_owned()));
        }
        let name = text.to_ascii_lowercase();
        let name = name.strip_suffix('.').unwrap_or(&name);
        if name.len() > LONGEST {
            return Err(HostError::TooLong(name.len()));
        }
        let label_is_bad = |label: &str| {
            label.is_empty()
                || label.len() > LONGEST_LABEL
                || label.starts_with('-')
                || label.ends_with('-')
        };
        if name.split('.').any(label_is_bad) {
            return Err(HostError::Label(text.to_owned()));
        }
        if ends_in_number(name) {
            return Err(HostError::Address(text.to_owned()));
        }
        Ok(Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is a name below `domain`, and not `domain` itself.
    pub fn is_below(&self, domain: &Self) -> bool {
        self.0
            .strip_suffix(&domain.0)
            .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    }

    /// Whether the name means the machine that asks, by RFC 6761: it is never looked up.
    pub fn is_localhost(&self) -> bool {
        self.0 == "localhost" || self.0.ends_with(".localhost")
    }

    /// How many parts the name has.
    pub(crate) fn labels(&self) -> usize {
        self.0.split('.').count()
    }
}

/// Resolvers read such a name as an IPv4 address: `127.1`, `2130706433`, `0x7f.1`, `0177.0.0.1`.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x");
    last.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        Self::parse(text)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_form_for_one_host() {
        for text in ["example.org", "EXAMPLE.org.", "Example.Org"] {
            assert_eq!(Host::parse(text).unwrap().as_str(), "example.org");
        }
        assert!(Host::parse("xn--bcher-kva.example").is_ok());
    }

    #[test]
    fn no_notation_of_an_address_is_a_name() {
        for text in [
            "127.0.0.1",
            "127.1",
            "0177.0.0.1",
            "2130706433",
            "0x7f000001",
            "0x7f.0.0.0x1",
            "0x",
            "127.0.0.1.",
            "[::1]",
            "::1",
            "[::ffff:127.0.0.1]",
            "example.1",
            "0",
        ] {
            assert!(
                matches!(Host::parse(text), Err(HostError::Address(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_odd_is_no_name() {
        for text in [
            "",
            ".",
            "..",
            "example.org..",
            ".example.org",
            "a..b",
            "-a.org",
            "a-.org",
            "exa mple.org",
            "example.org\0.evil.test",
            "user@example.org",
            "example.org#x",
            "example.org/x",
            "example.org\\",
            "exämple.org",
            "exam_ple.org",
            "example.org%00",
            "example。org",
        ] {
            assert!(Host::parse(text).is_err(), "{text:?}");
        }
        assert!(Host::parse(&format!("{}.org", "a".repeat(64))).is_err());
        assert!(Host::parse(&"a.".repeat(128)).is_err());
    }

    #[test]
    fn below_means_at_a_dot() {
        let host = |text| Host::parse(text).unwrap();
        assert!(host("a.example.org").is_below(&host("example.org")));
        assert!(host("a.b.example.org").is_below(&host("example.org")));
        for other in ["example.org", "evilexample.org", "example.org.evil.test"] {
            assert!(!host(other).is_below(&host("example.org")), "{other}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_address_of_either_kind_is_a_name(four in any::<u32>(), six in any::<u128>()) {
            let four = Ipv4Addr::from(four);
            let six = Ipv6Addr::from(six);
            let [a, b, c, d] = four.octets();
            for text in [
                four.to_string(),
                u32::from(four).to_string(),
                format!("{:#x}", u32::from(four)),
                format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
                format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
                format!("{a}.{b}.{}", u16::from_be_bytes([c, d])),
                six.to_string(),
                format!("[{six}]"),
                format!("::ffff:{four}"),
            ] {
                prop_assert!(Host::parse(&text).is_err(), "{}", text);
            }
        }

        #[test]
        fn a_name_is_what_is_allowed_and_its_own_normal_form(text in "\\PC{0,300}|[a-zA-Z0-9.-]{0,300}") {
            if let Ok(host) = Host::parse(&text) {
                let name = host.as_str();
                prop_assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-'));
                prop_assert!(name.len() <= 253 && !name.starts_with('.') && !name.ends_with('.') && !name.contains(".."));
                let lower = text.to_ascii_lowercase();
                prop_assert_eq!(name, lower.trim_end_matches('.'));
                prop_assert_eq!(Host::parse(name).unwrap(), host.clone());
                prop_assert!(name.parse::<std::net::IpAddr>().is_err());
            }
        }

        #[test]
        fn below_agrees_with_the_list_of_labels(one in "[ab]{1,2}(\\.[ab]{1,2}){0,4}", other in "[ab]{1,2}(\\.[ab]{1,2}){0,3}") {
            let (one, other) = (Host::parse(&one).unwrap(), Host::parse(&other).unwrap());
            let labels = |host: &Host| host.as_str().rsplit('.').map(str::to_owned).collect::<Vec<_>>();
            let (long, short) = (labels(&one), labels(&other));
            prop_assert_eq!(one.is_below(&other), long.len() > short.len() && long.starts_with(&short));
        }
    }
}
