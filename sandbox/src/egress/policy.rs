//! The allow-list of a room's network: what a person writes, how two of them are put together, how one narrows another.
//!
//! Must never become wider by being narrowed.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::rule::{Rule, RuleError};

/// What a room may reach. Written as `npm,example.org,*.example.net:8443`; the order means nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Policy {
    rules: BTreeSet<Rule>,
}

/// An allow-list that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Nothing is in it.
    #[error("the list is empty: name a domain, or use --net none")]
    Empty,
    /// An entry is no rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

impl Policy {
    /// Reads a list of entries.
    pub fn of<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Result<Self, PolicyError> {
        let rules = entries.into_iter().map(|entry| entry.as_ref().parse());
        let rules = rules.collect::<Result<BTreeSet<Rule>, _>>()?;
        if rules.is_empty() {
            return Err(PolicyError::Empty);
        }
        Ok(Self { rules })
    }

    /// The entries, in a fixed order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Whether nothing is let through.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What either lets through.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            rules: self.rules.union(&other.rules).cloned().collect(),
        }
    }

    /// What both let through, as far as it can be said in rules of either; never more.
    #[must_use]
    pub fn narrowed_by(&self, other: &Self) -> Self {
        let covered = |rules: &BTreeSet<Rule>, by: &BTreeSet<Rule>| {
            let kept = rules
                .iter()
                .filter(|rule| by.iter().any(|wide| wide.covers(rule)));
            kept.cloned().collect::<BTreeSet<Rule>>()
        };
        Self {
            rules: &covered(&self.rules, &other.rules) | &covered(&other.rules, &self.rules),
        }
    }

    /// The entries that `other` does not cover.
    pub fn beyond(&self, other: &Self) -> Vec<&Rule> {
        let covered = |rule: &&Rule| !other.rules.iter().any(|wide| wide.covers(rule));
        self.rules.iter().filter(covered).collect()
    }

    /// The word of the flag that allows one entry more: `allow:npm,example.org`.
    pub fn word_with(&self, entry: &str) -> String {
        let own = self.rules.iter().map(Rule::to_string);
        let entries: Vec<String> = own.chain([entry.to_owned()]).collect();
        format!("allow:{}", entries.join(","))
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        if text.is_empty() {
            return Err(PolicyError::Empty);
        }
        Self::of(text.split(','))
    }
}

impl TryFrom<String> for Policy {
    type Error = PolicyError;

    fn try_from(text: String) -> Result<Self, PolicyError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        text.parse()
    }
}

impl From<Policy> for String {
    fn from(policy: Policy) -> Self {
        policy.to_string()
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, rule) in self.rules.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            rule.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::egress::host::Host;
    use crate::egress::judge::Target;
    use crate::egress::rule::tests::few_rules;

    fn policy(text: &str) -> Policy {
        text.parse().unwrap()
    }

    #[test]
    fn lists_are_sorted_and_free_of_repetition() {
        assert_eq!(
            policy("b.org,npm,a.org,b.org").to_string(),
            "npm,a.org,b.org"
        );
        assert!("a.org,,b.org".parse::<Policy>().is_err());
        assert!("a.org, b.org".parse::<Policy>().is_err());
        assert_eq!("".parse::<Policy>(), Err(PolicyError::Empty));
    }

    #[test]
    fn narrowing_keeps_what_both_have() {
        let narrowed = |one: &str, two: &str| policy(one).narrowed_by(&policy(two)).to_string();
        assert_eq!(
            narrowed("npm,*.example.org", "a.example.org,evil.test"),
            "a.example.org"
        );
        assert_eq!(
            narrowed("npm", "registry.npmjs.org,pypi"),
            "registry.npmjs.org"
        );
        assert_eq!(narrowed("example.org", "*.example.org"), "");
        assert_eq!(narrowed("example.org", "example.org:443"), "");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_a_list_or_none(text in "\\PC{0,120}") {
            if let Ok(read) = text.parse::<Policy>() {
                prop_assert_eq!(policy(&read.to_string()), read);
            }
        }

        #[test]
        fn a_narrowed_list_lets_nothing_through_that_either_refuses(
            one in prop::collection::vec(few_rules(), 1..5), two in prop::collection::vec(few_rules(), 1..5),
            host in "(a|b|registry|deb|x)(\\.(a|npmjs|debian))?\\.(org|test)|localhost", port in prop::sample::select(vec![80u16, 443, 8443])
        ) {
            let of = |rules: &[String]| Policy::of(rules).unwrap();
            let (one, two) = (of(&one), of(&two));
            let target = Target { host: Host::parse(&host).unwrap(), port };
            if let Ok(grant) = one.narrowed_by(&two).judge(&target) {
                for whole in [&one, &two] {
                    let wide = whole.judge(&target);
                    prop_assert!(wide.is_ok_and(|wide| wide.explicit || !grant.explicit));
                }
            }
            prop_assert_eq!(one.narrowed_by(&one), one.clone());
            prop_assert!(one.narrowed_by(&two).beyond(&one).is_empty());
        }
    }
}
