//! One rule of the network's allow-list, as a person writes it, and the groups of hosts that have a name of their own.
//!
//! Must never let a rule mean more than it says: `*.example.org` is not `example.org`, and a port that is not named is
//! 80 or 443.

use std::fmt;
use std::str::FromStr;

use super::host::{Host, HostError};

/// Ports of a rule that names none.
pub(super) const USUAL_PORTS: [u16; 2] = [80, 443];
/// Hosts below this name are the proxy's own: each is the way to one credential.
const OWN: &str = "airlock";

/// Hosts that are allowed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Packages of Node.
    Npm,
    /// Packages of Python.
    Pypi,
    /// Packages of Rust.
    Crates,
    /// Modules of Go.
    Go,
    /// Repositories and releases.
    Github,
    /// Packages of Debian.
    Debian,
}

impl Group {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Npm,
        Self::Pypi,
        Self::Crates,
        Self::Go,
        Self::Github,
        Self::Debian,
    ];

    /// The word in a policy.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Crates => "crates",
            Self::Go => "go",
            Self::Github => "github",
            Self::Debian => "debian",
        }
    }

    /// The hosts, on the usual ports. Read-only places first of all; a code host is a way to upload, too.
    pub fn hosts(self) -> &'static [&'static str] {
        match self {
            Self::Npm => &["registry.npmjs.org", "registry.yarnpkg.com"],
            Self::Pypi => &["pypi.org", "files.pythonhosted.org"],
            Self::Crates => &["crates.io", "index.crates.io", "static.crates.io"],
            Self::Go => &["proxy.golang.org", "sum.golang.org"],
            Self::Github => &[
                "github.com",
                "api.github.com",
                "codeload.github.com",
                "raw.githubusercontent.com",
                "objects.githubusercontent.com",
                "release-assets.githubusercontent.com",
            ],
            Self::Debian => &["deb.debian.org", "security.debian.org"],
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name() == word)
    }
}

/// One entry of an allow-list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The hosts of a group.
    Group(Group),
    /// This host alone. With a port it is named explicitly: only then may it be at an address that is not public.
    Name {
        /// The host.
        host: Host,
        /// The only port; else 80 and 443.
        port: Option<u16>,
    },
    /// Every host below this one, at any depth, and not this one itself.
    Below {
        /// What they are below.
        domain: Host,
        /// The only port; else 80 and 443.
        port: Option<u16>,
    },
    /// `NAME.airlock`: what the user's configuration puts behind this credential.
    Credential(String),
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Not a host name.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A scheme, a path, a user: more than a host and a port.
    #[error("{0:?}: write the host alone, such as example.org or *.example.org:8443")]
    NotAHost(String),
    /// One word that is no group.
    #[error(
        "{0:?} is neither a group (npm, pypi, crates, go, github, debian) nor a domain; a local name needs a port, such as {0}:8080"
    )]
    Word(String),
    /// Not a port.
    #[error("{0:?} is no port: write a number from 1 to 65535")]
    Port(String),
    /// Everything, or everything below a top domain.
    #[error("{0:?} lets through more than a list can vouch for: name domains, or use --net host")]
    TooWide(String),
    /// A star that is not the whole first part.
    #[error("{0:?}: a star can only be the whole first part, such as *.example.org")]
    Star(String),
    /// Below `airlock`, but not the name of a credential.
    #[error("{0:?} is not NAME.airlock: such a name is the way to one credential, and has no port")]
    Own(String),
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        if let Some(group) = Group::of(text) {
            return Ok(Self::Group(group));
        }
        if text.contains(['/', '@', '?', '#', '\\', ' ']) {
            return Err(RuleError::NotAHost(text.to_owned()));
        }
        let (name, port) = split_port(text)?;
        if name == "*" {
            return Err(RuleError::TooWide(text.to_owned()));
        }
        if let Some(domain) = name.strip_prefix("*.") {
            return below(text, domain, port);
        }
        if name.contains('*') {
            return Err(RuleError::Star(text.to_owned()));
        }
        let host = Host::parse(name)?;
        if is_own(&host) {
            return match (own_name(&host), port) {
                (Some(name), None) => Ok(Self::Credential(name.to_owned())),
                _ => Err(RuleError::Own(text.to_owned())),
            };
        }
        if port.is_none() && (host.labels() == 1 || host.is_localhost()) {
            return Err(RuleError::Word(text.to_owned()));
        }
        Ok(Self::Name { host, port })
    }
}

fn below(text: &str, domain: &str, port: Option<u16>) -> Result<Rule, RuleError> {
    if domain.contains('*') {
        return Err(RuleError::Star(text.to_owned()));
    }
    let domain = Host::parse(domain)?;
    if is_own(&domain) {
        return Err(RuleError::Own(text.to_owned()));
    }
    if domain.labels() < 2 {
        return Err(RuleError::TooWide(text.to_owned()));
    }
    Ok(Rule::Below { domain, port })
}

/// Whether a host is the proxy's own: `airlock` and all below it.
pub(super) fn is_own(host: &Host) -> bool {
    host.as_str().rsplit('.').next() == Some(OWN)
}

/// `NAME` of `NAME.airlock`.
fn own_name(host: &Host) -> Option<&str> {
    let (name, last) = host.as_str().rsplit_once('.')?;
    (last == OWN && !name.contains('.')).then_some(name)
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), RuleError> {
    // More than one colon is an address, which the name's own reader refuses.
    let Some((name, port)) = text
        .rsplit_once(':')
        .filter(|(name, _)| !name.contains(':'))
    else {
        return Ok((text, None));
    };
    Ok((
        name,
        Some(parse_port(port).ok_or_else(|| RuleError::Port(port.to_owned()))?),
    ))
}

/// A port as digits only: no sign, no blank, no zero in front.
pub(super) fn parse_port(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    plain.then(|| text.parse().ok()).flatten()
}

impl Rule {
    /// Whether the rule is about this host, on whatever port.
    pub(super) fn names(&self, host: &Host) -> bool {
        match self {
            Self::Group(group) => group.hosts().contains(&host.as_str()),
            Self::Name { host: own, .. } => own == host,
            Self::Below { domain, .. } => host.is_below(domain),
            Self::Credential(name) => own_name(host) == Some(name.as_str()),
        }
    }

    /// Whether the rule is about this port.
    pub(super) fn takes(&self, wanted: u16) -> bool {
        match self {
            Self::Name { port, .. } | Self::Below { port, .. } => {
                port.map_or_else(|| USUAL_PORTS.contains(&wanted), |port| port == wanted)
            }
            Self::Group(_) => USUAL_PORTS.contains(&wanted),
            Self::Credential(_) => wanted == 80,
        }
    }

    /// Whether everything that `other` lets through is let through by this rule, in the same way.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Credential(one), Self::Credential(two)) => one == two,
            (Self::Group(one), Self::Group(two)) => one == two,
            (Self::Group(group), Self::Name { host, port: None }) => {
                group.hosts().contains(&host.as_str())
            }
            (_, Self::Group(group)) => group.hosts().iter().all(|host| {
                Host::parse(host).is_ok_and(|host| self.names(&host)) && self.port().is_none()
            }),
            (Self::Name { .. }, Self::Name { .. }) => self == other,
            (
                Self::Below { domain, port },
                Self::Below {
                    domain: inner,
                    port: theirs,
                },
            ) => (inner == domain || inner.is_below(domain)) && port == theirs,
            // With a port a name is explicit and may be local, which no wider rule grants.
            (Self::Below { domain, port: None }, Self::Name { host, port: None }) => {
                host.is_below(domain)
            }
            _ => false,
        }
    }

    fn port(&self) -> Option<u16> {
        match self {
            Self::Name { port, .. } | Self::Below { port, .. } => *port,
            Self::Group(_) | Self::Credential(_) => None,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(group) => f.write_str(group.name()),
            Self::Name { host, .. } => host.fmt(f),
            Self::Below { domain, .. } => write!(f, "*.{domain}"),
            Self::Credential(name) => write!(f, "{name}.{OWN}"),
        }?;
        match self.port() {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(text: &str) -> Rule {
        text.parse().unwrap()
    }

    #[test]
    fn rules_are_what_they_look_like() {
        for text in [
            "npm",
            "example.org",
            "*.example.org",
            "example.org:8443",
            "*.example.org:8443",
            "localhost:18080",
            "a.localhost:1",
            "db:5432",
            "model.airlock",
        ] {
            assert_eq!(rule(text).to_string(), text);
        }
        assert_eq!(rule("EXAMPLE.org."), rule("example.org"));
    }

    #[test]
    fn what_is_no_rule_says_why() {
        let why = |text: &str| text.parse::<Rule>().unwrap_err().to_string();
        insta::assert_snapshot!(why("nmp"), @r#""nmp" is neither a group (npm, pypi, crates, go, github, debian) nor a domain; a local name needs a port, such as nmp:8080"#);
        insta::assert_snapshot!(why("localhost"), @r#""localhost" is neither a group (npm, pypi, crates, go, github, debian) nor a domain; a local name needs a port, such as localhost:8080"#);
        insta::assert_snapshot!(why("https://example.org/x"), @r#""https://example.org/x": write the host alone, such as example.org or *.example.org:8443"#);
        insta::assert_snapshot!(why("*"), @r#""*" lets through more than a list can vouch for: name domains, or use --net host"#);
        insta::assert_snapshot!(why("*.org"), @r#""*.org" lets through more than a list can vouch for: name domains, or use --net host"#);
        insta::assert_snapshot!(why("a*.example.org"), @r#""a*.example.org": a star can only be the whole first part, such as *.example.org"#);
        insta::assert_snapshot!(why("127.0.0.1:80"), @r#""127.0.0.1" is an address, and addresses are never let through: name the host"#);
        insta::assert_snapshot!(why("[::1]:80"), @r#""[::1]:80" is an address, and addresses are never let through: name the host"#);
        insta::assert_snapshot!(why("example.org:0"), @r#""0" is no port: write a number from 1 to 65535"#);
        insta::assert_snapshot!(why("a.b.airlock"), @r#""a.b.airlock" is not NAME.airlock: such a name is the way to one credential, and has no port"#);
        for text in [
            "",
            "example.org:",
            "example.org:080",
            "example.org:+1",
            "*.*.org",
            "*.airlock",
            "airlock:80",
            "model.airlock:80",
        ] {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_wider_rule_covers_a_narrower_one_and_no_local_name() {
        for (wide, narrow) in [
            ("*.example.org", "a.example.org"),
            ("*.example.org", "*.a.example.org"),
            ("npm", "registry.npmjs.org"),
            ("*.debian.org", "debian"),
            ("example.org:8443", "example.org:8443"),
        ] {
            assert!(rule(wide).covers(&rule(narrow)), "{wide} {narrow}");
            assert!(
                wide == narrow || !rule(narrow).covers(&rule(wide)),
                "{narrow} {wide}"
            );
        }
        for (one, other) in [
            ("*.example.org", "example.org"),
            ("*.example.org", "a.example.org:443"),
            ("example.org", "example.org:443"),
            ("*.example.org:443", "a.example.org:443"),
            ("registry.npmjs.org", "npm"),
        ] {
            assert!(!rule(one).covers(&rule(other)), "{one} {other}");
        }
    }

    /// A rule over few words, so that any two often have to do with each other.
    pub(in crate::egress) fn few_rules() -> impl Strategy<Value = String> {
        let host = "(a|b|registry|deb|x)(\\.(a|npmjs|debian))?\\.(org|test)";
        let port = prop_oneof![
            Just(String::new()),
            Just(":80".to_owned()),
            Just(":8443".to_owned())
        ];
        let star = prop_oneof![Just(""), Just("*.")];
        let group = prop::sample::select(Group::ALL.map(|group| group.name().to_owned()).to_vec());
        prop_oneof![
            4 => (star, host, port).prop_map(|(star, host, port)| format!("{star}{host}{port}")),
            1 => group,
            1 => Just("localhost:80".to_owned()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_read_or_refused_and_comes_back_the_same(text in "\\PC{0,80}|(\\*\\.)?[a-zA-Z0-9.-]{1,40}(:[0-9]{1,6})?") {
            if let Ok(rule) = text.parse::<Rule>() {
                prop_assert_eq!(rule.to_string().parse::<Rule>().unwrap(), rule);
            }
        }

        #[test]
        fn what_a_covered_rule_lets_through_its_cover_lets_through(
            wide in few_rules(), narrow in few_rules(),
            host in "(a|b|registry|deb|x)(\\.(a|npmjs|debian))?\\.(org|test)", port in prop::sample::select(vec![80u16, 443, 8443])
        ) {
            let (wide, narrow) = (rule(&wide), rule(&narrow));
            let host = Host::parse(&host).unwrap();
            let lets = |rule: &Rule| rule.names(&host) && rule.takes(port);
            if wide.covers(&narrow) && lets(&narrow) {
                prop_assert!(lets(&wide), "{} covers {}", wide, narrow);
            }
        }
    }
}
