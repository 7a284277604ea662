//! The commit gate: which commit is judged, who made it, what the agent committed on its own.
//! Whether a delivery is empty is the caller's decision; this gate only counts.

use crate::{Delivery, Finding, Gate, GateRun, Reason};

pub(crate) fn judge(delivery: &Delivery) -> GateRun {
    if delivery.commit.is_empty() || delivery.tree.is_empty() {
        return GateRun::could_not_check(Gate::Commit, "no commit was given to judge");
    }
    let made = Reason::info("commit.judged", judged(delivery));
    let mut reasons = vec![made];
    reasons.extend(agent_work(delivery));
    if delivery.engine_made {
        return GateRun::of(Gate::Commit, reasons);
    }
    // Without a task there is nobody whose commit this gate could vouch for.
    GateRun {
        gate: Gate::Commit,
        finding: Finding::NotApplicable,
        reasons,
    }
}

fn judged(delivery: &Delivery) -> String {
    let count = delivery.changes.len();
    let files = if count == 1 { "file" } else { "files" };
    let who = if delivery.engine_made {
        "made by the engine"
    } else {
        "found, not made by the engine"
    };
    format!(
        "commit {} in {}, {who}: {count} {files} changed since {}",
        short(&delivery.commit),
        delivery.repository,
        short(&delivery.base),
    )
}

fn agent_work(delivery: &Delivery) -> Vec<Reason> {
    let agent = &delivery.agent;
    let mut reasons = Vec::new();
    for commit in &agent.commits {
        let from = commit
            .reference
            .as_ref()
            .map_or_else(String::new, |name| format!(" on {name}"));
        let message = format!(
            "the agent committed {}{from}: {}; its files are in the sealed commit, its commit is not",
            short(&commit.oid),
            commit.subject
        );
        reasons.push(Reason::info("commit.agent", message));
    }
    for name in &agent.references {
        let message = format!("the agent made or moved {name} in its own git directory");
        reasons.push(Reason::info("commit.agent-ref", message));
    }
    if let Some(why) = &agent.unreadable {
        let message = format!("the agent's own git directory could not be read in full: {why}");
        reasons.push(
            Reason::warn("commit.agent-unreadable", message)
                .help("the sealed commit was made from the files and is not affected"),
        );
    }
    reasons
}

/// The first 12 digits of an object id.
pub(crate) fn short(oid: &str) -> &str {
    oid.get(..12).unwrap_or(oid)
}
