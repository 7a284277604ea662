//! The one decision: may a room open a connection to this host and port?
//!
//! Must never look at how the request came in.

use super::host::Host;
use super::policy::Policy;
use super::refusal::Refusal;
use super::rule::{Rule, is_own};

/// Where a request wants to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The host, by name.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// What a request is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant<'p> {
    /// The rule that lets it through.
    pub rule: &'p Rule,
    /// The rule names host and port: the address may be one that is not public, and the protocol is nobody's business.
    pub explicit: bool,
}

impl Grant<'_> {
    /// The credential that is behind this name.
    pub fn credential(&self) -> Option<&str> {
        match self.rule {
            Rule::Credential(name) => Some(name),
            Rule::Group(_) | Rule::Name { .. } | Rule::Below { .. } => None,
        }
    }
}

impl Policy {
    /// The rule that lets this target through, or why none does. The most explicit rule answers.
    pub fn judge(&self, target: &Target) -> Result<Grant<'_>, Refusal> {
        let about: Vec<&Rule> = self
            .rules()
            .filter(|rule| rule.names(&target.host))
            .collect();
        let fitting = about.iter().filter(|rule| rule.takes(target.port));
        let explicit = |rule: &Rule| matches!(rule, Rule::Name { port: Some(_), .. });
        let best = fitting.max_by_key(|rule| explicit(rule));
        match (best, about.first()) {
            (Some(rule), _) => Ok(Grant {
                rule,
                explicit: explicit(rule),
            }),
            (None, Some(rule)) => Err(Refusal::Port {
                target: target.clone(),
                rule: rule.to_string(),
            }),
            (None, None) => Err(Refusal::Host {
                target: target.clone(),
                own: is_own(&target.host),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(policy: &str, host: &str, port: u16) -> Result<(String, bool), Refusal> {
        let policy: Policy = policy.parse().unwrap();
        let target = Target {
            host: Host::parse(host).unwrap(),
            port,
        };
        policy
            .judge(&target)
            .map(|grant| (grant.rule.to_string(), grant.explicit))
    }

    #[test]
    fn the_rule_that_lets_through_is_named() {
        let list = "npm,example.org,*.example.org,example.org:443,localhost:18080,model.airlock";
        for (host, port, rule, explicit) in [
            ("registry.npmjs.org", 443, "npm", false),
            ("example.org", 80, "example.org", false),
            ("example.org", 443, "example.org:443", true),
            ("a.b.example.org", 443, "*.example.org", false),
            ("LOCALHOST.", 18080, "localhost:18080", true),
            ("model.airlock", 80, "model.airlock", false),
        ] {
            let found = judge(list, host, port).unwrap();
            assert_eq!(found, (rule.to_owned(), explicit), "{host}:{port}");
        }
    }

    #[test]
    fn look_alikes_and_other_ports_are_refused() {
        for (list, host, port) in [
            ("allowed.test", "evilallowed.test", 443),
            ("allowed.test", "allowed.test.evil.test", 443),
            ("allowed.test", "rebind.allowed.test", 443),
            ("*.allowed.test", "allowed.test", 443),
            ("*.allowed.test", "evilallowed.test", 443),
            ("localhost:18080", "a.localhost", 18080),
            ("model.airlock", "other.airlock", 80),
        ] {
            assert!(
                matches!(judge(list, host, port), Err(Refusal::Host { .. })),
                "{list} {host}"
            );
        }
        for (list, host, port) in [
            ("allowed.test", "allowed.test", 22),
            ("allowed.test:8443", "allowed.test", 443),
            ("localhost:18080", "localhost", 80),
            ("model.airlock", "model.airlock", 443),
        ] {
            assert!(
                matches!(judge(list, host, port), Err(Refusal::Port { .. })),
                "{list} {host}"
            );
        }
    }
}
