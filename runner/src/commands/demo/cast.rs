//! The four agents and what was promised of each. Pure; a promise is checked on the object that
//! `run --json` ended with.

use serde_json::Value;

/// An agent of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Does its work.
    Honest,
    /// Boasts first, works after it was refused.
    Boaster,
    /// Tries to get out.
    Escaper,
    /// Draws in characters where a figure belongs.
    Artist,
}

impl Part {
    /// All of them, in the order of the table.
    pub(super) const ALL: [Self; 4] = [Self::Honest, Self::Boaster, Self::Escaper, Self::Artist];

    /// The name of the part; its task has the same.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Boaster => "boaster",
            Self::Escaper => "escaper",
            Self::Artist => "artist",
        }
    }

    /// Its script.
    pub(super) fn script(self) -> &'static str {
        match self {
            Self::Honest => include_str!("agents/honest.sh"),
            Self::Boaster => include_str!("agents/boaster.sh"),
            Self::Escaper => include_str!("agents/escaper.sh"),
            Self::Artist => include_str!("agents/artist.sh"),
        }
    }

    /// Where the script is in the repository.
    pub(super) fn script_path(self) -> String {
        format!("agents/{}.sh", self.name())
    }

    /// How often it may deliver.
    pub(super) fn attempts(self) -> u32 {
        match self {
            Self::Boaster => 2,
            Self::Honest | Self::Escaper | Self::Artist => 1,
        }
    }

    /// What it does, in a few words.
    pub(super) fn character(self) -> &'static str {
        match self {
            Self::Honest => "does its work",
            Self::Boaster => "boasts first",
            Self::Escaper => "tries to get out",
            Self::Artist => "draws in ASCII",
        }
    }

    /// What was promised, for people.
    pub(super) fn promise(self) -> &'static str {
        match self {
            Self::Honest => "accepted and merged",
            Self::Boaster => "refused, told why, fixed on the second attempt, merged",
            Self::Escaper => "held, and nothing to deliver",
            Self::Artist => "refused by the gate diagram",
        }
    }

    /// Whether the task ended as promised.
    pub(super) fn kept(self, object: &Value) -> bool {
        let state = object["state"].as_str();
        match self {
            Self::Honest => state == Some("landed"),
            Self::Boaster => state == Some("landed") && object["agent"]["attempts"] == 2,
            Self::Escaper => state == Some("empty"),
            Self::Artist => state == Some("rejected") && red_gates(object).contains(&"diagram"),
        }
    }
}

/// The gates that refused.
fn red_gates(object: &Value) -> Vec<&str> {
    let gates = object["gates"].as_array().into_iter().flatten();
    gates
        .filter(|run| run["finding"] == "fail")
        .filter_map(|run| run["gate"].as_str())
        .collect()
}

/// The first reason for a refusal in a list of gates, in words.
pub(super) fn first_reason(gates: &Value) -> Option<String> {
    let runs = gates.as_array()?.iter();
    let mut reasons = runs.filter_map(|run| run["reasons"].as_array()).flatten();
    let reason = reasons.find(|reason| reason["level"] == "fail")?;
    // Up to the details after a colon: there is one line for it.
    let message = reason["message"].as_str()?.split(": ").next()?;
    Some(match (reason["path"].as_str(), reason["line"].as_u64()) {
        (Some(path), Some(line)) => format!("{path}:{line}: {message}"),
        (Some(path), None) => format!("{path}: {message}"),
        (None, _) => message.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn promises_are_checked_on_the_result() {
        let landed = json!({"state": "landed", "agent": {"attempts": 1}});
        assert!(Part::Honest.kept(&landed));
        assert!(
            !Part::Boaster.kept(&landed),
            "it must have been refused once"
        );
        let red = json!({"state": "rejected", "gates": [{"gate": "stub", "finding": "fail"}]});
        assert!(!Part::Artist.kept(&red), "by another gate");
        assert!(!Part::Escaper.kept(&json!({})));
    }

    #[test]
    fn the_first_refusing_reason_is_told() {
        let gates = json!([
            {"reasons": [{"level": "info", "message": "a"}]},
            {"reasons": [{"level": "fail", "path": "x.py", "line": 3, "message": "only comments: `pass`"}]}
        ]);
        assert_eq!(
            first_reason(&gates).as_deref(),
            Some("x.py:3: only comments")
        );
        assert_eq!(first_reason(&json!([])), None);
    }
}
