//! Why a room refused something, and what would allow it: exactly where it was recorded, guessed from the output where
//! it was not, and by the rules of the room for a path. Computes; prints nothing.

mod governs;
mod inferred;

use std::collections::BTreeSet;
use std::path::Path;

use sandbox::{Allow, Denial, Denials};
use serde_json::{Value, json};

pub use governs::{Governed, Reach, Surroundings, governs};
pub use inferred::{Inferred, infer};

use crate::reporter::words::shell_word;

/// The refusals of one rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Group<'d> {
    /// The rule.
    pub rule: &'d str,
    /// What it refused, in the order of the first.
    pub denials: Vec<&'d Denial>,
}

/// Refusals by the rule that refused, in the order of the first.
pub fn grouped(denials: &Denials) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for denial in &denials.records {
        match groups.iter_mut().find(|group| group.rule == denial.rule) {
            Some(group) => group.denials.push(denial),
            None => groups.push(Group {
                rule: &denial.rule,
                denials: vec![denial],
            }),
        }
    }
    groups
}

/// A flag as words that a shell takes as they are.
pub fn flag(words: &[String]) -> Option<String> {
    let quoted = words.iter().map(|word| shell_word(Path::new(word)));
    let line = quoted.collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

/// What allows something, as lines for a person: a flag, and a line of the configuration.
pub fn remedy(allow: &Allow) -> Vec<String> {
    let flag = flag(&allow.flag).map(|flag| format!("airlock run {flag} …"));
    let config = allow
        .config
        .as_ref()
        .map(|(section, line)| format!("[{section}] {line}   in your config.toml"));
    flag.into_iter().chain(config).collect()
}

fn allow_object(allow: &Allow) -> Value {
    json!({
        "flag": flag(&allow.flag),
        "words": allow.flag,
        "config": allow.config.as_ref().map(|(section, line)| json!({"section": section, "line": line})),
    })
}

/// The whole answer for programs.
pub fn object(
    task: &str,
    denials: &Denials,
    inferred: &[Inferred],
    path: Option<&Governed>,
) -> Value {
    let groups: Vec<Value> = grouped(denials)
        .iter()
        .map(|group| {
            let refused: Vec<Value> = group.denials.iter().map(|denial| refusal(denial)).collect();
            json!({"rule": group.rule, "refused": refused})
        })
        .collect();
    let guesses: Vec<Value> = inferred
        .iter()
        .map(|guess| {
            json!({
                "inferred": true, "job": guess.job, "line": guess.line, "count": guess.count,
                "rule": guess.rule, "allow": guess.allow.as_ref().map(allow_object),
            })
        })
        .collect();
    let path = path.map(|governed| {
        json!({
            "path": governed.path, "reach": governed.reach.as_str(), "rule": governed.rule,
            "allow": governed.allow.as_ref().map(allow_object), "why_not": governed.never,
        })
    });
    json!({
        "schema": 1, "task": task, "refusals": denials.total(), "groups": groups, "full": denials.full,
        "broken_lines": denials.broken, "inferred": guesses, "path": path,
    })
}

fn refusal(denial: &Denial) -> Value {
    json!({
        "kind": denial.kind, "what": denial.what, "count": denial.count, "job": denial.job,
        "time": denial.time, "allow": denial.allow.as_ref().map(allow_object),
    })
}

/// The jobs that were refused something by this group.
pub fn jobs<'d>(group: &Group<'d>) -> BTreeSet<&'d str> {
    let jobs = group
        .denials
        .iter()
        .filter_map(|denial| denial.job.as_deref());
    jobs.collect()
}

#[cfg(test)]
mod tests {
    use sandbox::DenialKind;

    use super::*;

    #[test]
    fn refusals_are_grouped_by_rule_and_quoted_for_a_shell() {
        let of = |what: &str, rule: &str| Denial::now(Some("agent"), DenialKind::Host, what, rule);
        let sly = of("b; rm -rf /", "--net none").allowed_by(&["--net", "allow:b; rm -rf /"], None);
        let denials = Denials {
            records: vec![of("a.test", "--net none"), of("memory", "memory = 1G"), sly],
            full: false,
            broken: 1,
        };
        let groups = grouped(&denials);
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].denials.len(), 2);
        assert_eq!(jobs(&groups[0]), BTreeSet::from(["agent"]));
        let object = object("t1", &denials, &[], None);
        assert_eq!(object["refusals"], 3);
        assert_eq!(object["broken_lines"], 1);
        let allow = &object["groups"][0]["refused"][1]["allow"];
        assert_eq!(allow["flag"], "--net 'allow:b; rm -rf /'");
        assert_eq!(object["path"], Value::Null);
    }
}
