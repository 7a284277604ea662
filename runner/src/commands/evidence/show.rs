//! What evidence says, for people and for scripts.

use gates::Judgement;
use gates::evidence::{Record, Verified};
use gates::report::{Report, TaskFacts};
use serde_json::json;

use super::check::Checked;
use super::find::Found;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::reporter::Console;

/// The statement.
pub(super) fn show(console: &Console, verified: &Verified) -> Result<Exit, Failure> {
    let record = verified.record();
    if console.is_json() {
        console.json(&serde_json::to_value(verified.evidence.statement()).or_fail(Exit::Internal)?);
        return Ok(Exit::Ok);
    }
    console.raw(
        report(record, &verified.digest)
            .text(&gates::report::Plain)
            .as_bytes(),
    );
    console.data("");
    console.data(&format!("signed by {}", verified.keyid));
    console.data(&format!("statement {}", verified.digest));
    console.data(&format!(
        "judged    {} to {}",
        record.started, record.finished
    ));
    console.data(&format!(
        "by        {} {}",
        record.engine.name, record.engine.version
    ));
    console.data(&format!("policy    {}", record.policy.digest));
    Ok(Exit::Ok)
}

/// What was found to hold.
pub(super) fn verified(console: &Console, found: &Found, checked: &Checked) {
    let Checked {
        verified,
        files,
        note_agrees,
    } = checked;
    let record = verified.record();
    let approval = verified.evidence.approve();
    if console.is_json() {
        console.json(&json!({
            "schema": 1,
            "valid": true,
            "commit": record.commit,
            "tree": record.tree,
            "task": record.task,
            "digest": verified.digest,
            "keyid": verified.keyid,
            "files": files,
            "note_agrees": note_agrees,
            "approves": approval.is_ok(),
        }));
        return;
    }
    console.data(&format!("the evidence in {} holds", found.place));
    console.data(&format!("  signed by {}", verified.keyid));
    console.data(&format!(
        "  about     commit {}, tree {}",
        record.commit, record.tree
    ));
    console.data(&format!(
        "  compared  {files} {} with the objects here",
        if *files == 1 { "file" } else { "files" }
    ));
    match note_agrees {
        Some(true) => console.data("  note      git's note carries the same statement"),
        Some(false) | None if found.of_task.is_some() => {
            console.data("  note      the commit has no note");
        }
        Some(false) | None => {}
    }
    match approval {
        Ok(_) => console.data("  says      accepted"),
        Err(refused) => console.data(&format!("  says      not accepted: {refused}")),
    }
}

fn report(record: &Record, digest: &str) -> Report {
    let task = record.task.clone().map(|task| TaskFacts {
        task,
        run: record.run.clone(),
        summary: None,
        isolation: Some(record.isolation.mode.clone()),
        agent: record
            .agent
            .as_ref()
            .map(|agent| format!("{} ({})", agent.name, agent.outcome)),
        overrides: record
            .overrides
            .iter()
            .map(|word| (word.gate, word.reason.clone(), word.by.clone()))
            .collect(),
        digest: Some(digest.to_owned()),
    });
    Report {
        repository: record.repository.clone(),
        base: record.base.clone(),
        commit: record.commit.clone(),
        tree: record.tree.clone(),
        task,
        judgement: Judgement {
            gates: record.gates.clone(),
            files: record.files.clone(),
            claims: record.claims.clone(),
        },
    }
}
