//! Why a request was not let through: the rule that refused it, and what would allow it.
//!
//! Must never advise more than the one thing that was asked for.

use std::net::IpAddr;

use super::address::may_reach;
use super::judge::Target;
use super::policy::Policy;
use crate::denial::{Denial, DenialKind};

/// A request that was understood and refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No entry is about this host.
    #[error("{}:{} is not on the list", target.host, target.port)]
    Host {
        /// What was asked for.
        target: Target,
        /// A name below `airlock`: a credential that this task does not have.
        own: bool,
    },
    /// The entry about this host is not about this port.
    #[error("{rule} does not let port {} through", target.port)]
    Port {
        /// What was asked for.
        target: Target,
        /// The entry about the host.
        rule: String,
    },
    /// An address in place of a name.
    #[error("{text:?} is an address: only names are let through")]
    Address {
        /// As it was written.
        text: String,
        /// The port.
        port: Option<u16>,
    },
    /// Not a name in any reading.
    #[error("{text:?} is not a host name")]
    Name {
        /// As it was written, cut to a bearable length.
        text: String,
    },
    /// The name leads to an address that is not public.
    #[error("{} is at {address}, which is not a public address", target.host)]
    Answer {
        /// What was asked for.
        target: Target,
        /// The first address that was refused.
        address: IpAddr,
    },
    /// The name inside the encrypted connection is another one.
    #[error("the connection to {} asks for the certificate of {found:?}", target.host)]
    OtherName {
        /// What was asked for.
        target: Target,
        /// What the TLS greeting names.
        found: String,
    },
    /// The `Host` of a request is another one than that of its URL or of its connection.
    #[error("the request to {} says Host: {found:?}", target.host)]
    OtherHost {
        /// What was asked for.
        target: Target,
        /// What stands in `Host`.
        found: String,
    },
    /// It begins as TLS does, and what name it asks for cannot be read.
    #[error("the connection to {} begins like TLS and has no greeting that can be read", target.host)]
    Greeting {
        /// What was asked for.
        target: Target,
    },
    /// Something else than TLS on a port that is for TLS.
    #[error("the connection to {}:{} does not speak TLS", target.host, target.port)]
    NotTls {
        /// What was asked for.
        target: Target,
    },
    /// The TLS greeting hides the name that it asks for.
    #[error("the connection to {} hides the name that it asks for (encrypted ClientHello)", target.host)]
    HiddenName {
        /// What was asked for.
        target: Target,
    },
    /// A credential's host does not take this method and path.
    #[error("{method} {path} is not among what the credential {credential} is for")]
    Path {
        /// The credential.
        credential: String,
        /// The method.
        method: String,
        /// The path, without the query.
        path: String,
    },
}

impl Refusal {
    /// The refusal of a text that was to be a host name.
    pub fn of_name(text: &str, port: Option<u16>, error: &super::HostError) -> Self {
        let text: String = text.chars().take(256).collect();
        match error {
            super::HostError::Address(_) => Self::Address { text, port },
            super::HostError::Empty
            | super::HostError::TooLong(_)
            | super::HostError::Character(_)
            | super::HostError::Label(_) => Self::Name { text },
        }
    }

    /// The host that was asked for, as far as it is one.
    pub fn host(&self) -> String {
        self.asked_for().0
    }

    /// The port that was asked for.
    pub fn port(&self) -> Option<u16> {
        self.asked_for().1
    }

    fn asked_for(&self) -> (String, Option<u16>) {
        match self {
            Self::Host { target, .. }
            | Self::Port { target, .. }
            | Self::Answer { target, .. }
            | Self::OtherName { target, .. }
            | Self::OtherHost { target, .. }
            | Self::Greeting { target }
            | Self::NotTls { target }
            | Self::HiddenName { target } => (target.host.to_string(), Some(target.port)),
            Self::Address { text, port, .. } => (text.clone(), *port),
            Self::Name { text } => (text.clone(), None),
            Self::Path { credential, .. } => (format!("{credential}.airlock"), Some(80)),
        }
    }

    /// The rule that refused, in words.
    pub fn rule(&self, policy: &Policy) -> String {
        match self {
            Self::Host { .. } if policy.is_empty() => "the list is empty".to_owned(),
            Self::Host { .. } => format!("not on the list: {policy}"),
            Self::Port { rule, .. } => {
                format!("{rule}: only the ports that it names, else 80 and 443")
            }
            Self::Address { .. } => "no addresses, in any notation".to_owned(),
            Self::Name { .. } => "only a-z, 0-9, '.' and '-' in a host name".to_owned(),
            Self::Answer { .. } => {
                "only public addresses, unless host and port are named".to_owned()
            }
            Self::OtherName { .. } | Self::OtherHost { .. } => {
                "one connection, one host name".to_owned()
            }
            Self::Greeting { .. } => "a TLS connection begins with its whole greeting".to_owned(),
            Self::NotTls { .. } => {
                "TLS alone on port 443, unless host and port are named".to_owned()
            }
            Self::HiddenName { .. } => "no encrypted ClientHello".to_owned(),
            Self::Path { credential, .. } => {
                format!("methods and paths of [sandbox.credentials.{credential}]")
            }
        }
    }

    /// The entry of the list that would allow exactly this; none where no entry does.
    fn entry(&self) -> Option<String> {
        match self {
            Self::Host { target, own } if *own || usual(target) => Some(target.host.to_string()),
            Self::Answer { address, .. } if !may_reach(*address, true) => None,
            Self::Host { target, .. }
            | Self::Port { target, .. }
            | Self::Answer { target, .. }
            | Self::NotTls { target } => Some(format!("{}:{}", target.host, target.port)),
            Self::Address { .. }
            | Self::Name { .. }
            | Self::OtherName { .. }
            | Self::OtherHost { .. }
            | Self::Greeting { .. }
            | Self::HiddenName { .. }
            | Self::Path { .. } => None,
        }
    }

    /// The record of it.
    pub fn denial(&self, policy: &Policy) -> Denial {
        let (kind, what) = match (self, self.port()) {
            (Self::Port { .. } | Self::NotTls { .. }, Some(port)) => {
                (DenialKind::Port, format!("{}:{port}", self.host()))
            }
            (Self::Path { method, path, .. }, _) => {
                (DenialKind::Host, format!("{} {method} {path}", self.host()))
            }
            (_, _) => (DenialKind::Host, self.host()),
        };
        let denial = Denial::now(None, kind, &what, &self.rule(policy));
        if let Self::Path {
            credential,
            method,
            path,
        } = self
        {
            let section = format!("sandbox.credentials.{credential}");
            let line = format!("methods = [{method:?}], paths = [{path:?}]");
            return denial.allowed_by(&[], Some((&section, &line)));
        }
        let Some(entry) = self.entry() else {
            return denial;
        };
        let word = policy.word_with(&entry);
        denial.allowed_by(
            &["--net", &word],
            Some(("sandbox", &format!("net = {word:?}"))),
        )
    }

    /// What to tell the room, and what would allow it, for whoever reads the agent's output.
    pub fn told(&self, policy: &Policy) -> String {
        let rule = self.rule(policy);
        let advice = match self.entry() {
            // Nothing in a list is special to a shell but the star.
            Some(entry) => format!(
                "; to allow it: airlock run --net '{}'",
                policy.word_with(&entry)
            ),
            None => String::new(),
        };
        format!("refused by Airlock: {self} ({rule}){advice}\n")
    }
}

/// Whether a rule without a port would do.
fn usual(target: &Target) -> bool {
    super::rule::USUAL_PORTS.contains(&target.port)
        && target.host.labels() > 1
        && !target.host.is_localhost()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::Host;

    #[test]
    fn the_remedy_is_the_very_flag() {
        let policy: Policy = "npm".parse().unwrap();
        let target = |host: &str, port| Target {
            host: Host::parse(host).unwrap(),
            port,
        };
        let word = |refusal: &Refusal| {
            let allow = refusal.denial(&policy).allow;
            allow.map(|allow| allow.flag.join(" ")).unwrap_or_default()
        };
        for (host, port, what, flag) in [
            ("evil.test", 443, "evil.test", "--net allow:npm,evil.test"),
            ("evil.test", 22, "evil.test", "--net allow:npm,evil.test:22"),
            ("localhost", 80, "localhost", "--net allow:npm,localhost:80"),
            (
                "registry.npmjs.org",
                22,
                "registry.npmjs.org:22",
                "--net allow:npm,registry.npmjs.org:22",
            ),
            (
                "model.airlock",
                80,
                "model.airlock",
                "--net allow:npm,model.airlock",
            ),
        ] {
            let wanted = target(host, port);
            let refusal = policy.judge(&wanted).unwrap_err();
            assert_eq!(
                (
                    refusal.denial(&policy).what.as_str(),
                    word(&refusal).as_str()
                ),
                (what, flag)
            );
            // What is advised is taken, and is enough.
            let list = flag.strip_prefix("--net allow:").unwrap();
            assert!(
                list.parse::<Policy>().unwrap().judge(&wanted).is_ok(),
                "{flag}"
            );
        }
        let other = Refusal::OtherHost {
            target: target("a.org", 80),
            found: "b.org".to_owned(),
        };
        insta::assert_snapshot!(other.told(&policy), @r#"refused by Airlock: the request to a.org says Host: "b.org" (one connection, one host name)"#);
        let address = Refusal::of_name(
            "127.0.0.1",
            Some(80),
            &Host::parse("127.0.0.1").unwrap_err(),
        );
        assert_eq!((word(&address).as_str(), address.port()), ("", Some(80)));
    }
}
