//! One line in plain words for each recorded event: what `events` prints and what progress is made
//! of. Old events read the same as live ones, since there is nothing else to read from. Pure.

use worktrees::LandStep;

use super::agent_text::one_line;
use super::paint::Tone;
use super::words::{counted, duration, short};
use crate::answer::Answer;
use crate::event::{Checkout, Event, EvidenceFacts, SealFacts, SetUpFacts};
use crate::task::Spec;
use crate::view::ended;

/// What an event means for somebody who watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    /// Something goes on from here.
    Begins,
    /// The thing that went on is over.
    Ends,
    /// A fact beside it.
    Remark,
}

/// An event in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its place in the story.
    pub beat: Beat,
    /// How it is meant.
    pub tone: Tone,
    /// The words; one line, safe to show.
    pub text: String,
}

/// Tells one event.
pub fn tell(event: &Event) -> Told {
    use Beat::{Begins, Ends, Remark};
    use Tone::{Bad, Doubtful, Good, Quiet, Strong};
    let (beat, tone, text) = match event {
        Event::Queued { spec, .. } => (Remark, Quiet, asked_for(spec)),
        Event::Preparing => (Begins, Quiet, "prepares worktree and room".to_owned()),
        Event::SettingUp { commands, .. } => (
            Begins,
            Quiet,
            format!("setup runs: {}", commands.join("; ")),
        ),
        Event::SetUp { facts } => (Ends, Good, set_up(facts)),
        Event::Prepared { workspace, .. } => (
            Remark,
            Quiet,
            format!("worktree is {}", workspace.display()),
        ),
        Event::Started { attempt, .. } => {
            (Begins, Strong, format!("agent works, attempt {attempt}"))
        }
        Event::Ended { outcome, .. } => agent_ended(outcome),
        Event::Returned {
            note, artifacts, ..
        } => (Remark, Quiet, came_back(note.as_deref(), artifacts.len())),
        Event::Exec { command, by, .. } => {
            let text = format!("{by} runs in the room: {}", command.join(" "));
            (Remark, Quiet, text)
        }
        Event::ExecEnded { job, outcome } => (Remark, Quiet, format!("{job} {}", ended(outcome))),
        Event::Answered { answer, .. } => (Remark, Quiet, agent_said(answer)),
        Event::Sealing => (Begins, Quiet, "reads the tree".to_owned()),
        Event::Sealed { seal } => sealed(seal),
        Event::Empty => (Ends, Doubtful, "nothing was delivered".to_owned()),
        Event::Gating => (Begins, Quiet, "gates judge".to_owned()),
        Event::Judged { judgement } => judged(judgement),
        Event::Recorded { evidence } => (Remark, Quiet, recorded(evidence)),
        Event::Rejected { again: true } => {
            let text = "rejected; the agent gets it back with the reasons";
            (Remark, Doubtful, text.to_owned())
        }
        Event::Rejected { again: false } => (Remark, Bad, "rejected".to_owned()),
        Event::Overridden { gate, reason, by } => (
            Remark,
            Doubtful,
            format!("{by} lets gate {gate} pass: {reason}"),
        ),
        Event::Accepted { commit, branch } => (
            Remark,
            Good,
            format!("accepted: {} on {branch}", short(commit)),
        ),
        Event::Landing { plan } => (Begins, Quiet, format!("lands on {}", plan.target)),
        Event::LandStep { step } => (Remark, Quiet, landing(*step).to_owned()),
        Event::Landed { target, commit } => {
            (Ends, Good, format!("{target} is now at {}", short(commit)))
        }
        Event::NotLanded { failure } => (Ends, Bad, format!("not landed: {failure}")),
        Event::Failed { failure } => (Ends, Bad, format!("failed: {failure}")),
        Event::Stopped { by, reason } => (Ends, Doubtful, format!("stopped by {by}: {reason}")),
        Event::Lost { reason } => (Ends, Bad, format!("lost: {reason}")),
        Event::Discarded { reason } => (Ends, Quiet, format!("discarded: {reason}")),
        Event::Checkout {
            checkout: Checkout::Kept,
            reason,
        } => (Remark, Quiet, format!("checkout kept: {reason}")),
        Event::Checkout {
            checkout: Checkout::Removed,
            reason,
        } => (Remark, Quiet, format!("checkout removed: {reason}")),
        Event::Removed => (Remark, Quiet, "removed from the list".to_owned()),
    };
    Told {
        beat,
        tone,
        text: one_line(&text),
    }
}

type Words = (Beat, Tone, String);

fn came_back(note: Option<&str>, artifacts: usize) -> String {
    let note = if note.is_some() { "a note" } else { "no note" };
    let files = counted(artifacts as u64, "file");
    format!("came back: {note}, {files}")
}

fn asked_for(spec: &Spec) -> String {
    let isolation = spec.isolation.as_str();
    format!(
        "asked for: {} in isolation {isolation} on {}",
        spec.agent,
        short(&spec.base)
    )
}

fn agent_said(answer: &Answer) -> String {
    let mut parts = Vec::new();
    if let Some(cost) = answer.cost_usd {
        parts.push(format!("it cost ${cost:.4}"));
    }
    if let (Some(sent), Some(got)) = (answer.input_tokens, answer.output_tokens) {
        parts.push(format!("{sent} tokens sent, {got} received"));
    }
    if let Some(session) = &answer.session {
        parts.push(format!("session {session}"));
    }
    if let Some(line) = answer
        .result
        .as_deref()
        .and_then(|text| text.lines().next())
    {
        parts.push(format!("\"{}\"", beginning(line)));
    }
    format!("the agent says: {}", parts.join(" · "))
}

/// As much of a line as fits on one.
fn beginning(line: &str) -> String {
    let mut chars = line.chars();
    let begun: String = chars.by_ref().take(100).collect();
    if chars.next().is_some() {
        begun + "…"
    } else {
        begun
    }
}

fn agent_ended(outcome: &sandbox::Outcome) -> Words {
    let good = matches!(outcome.exit, sandbox::Exit::Code(0));
    let text = format!(
        "agent {} after {}",
        ended(outcome),
        duration(outcome.elapsed_ms)
    );
    (Beat::Ends, if good { Tone::Good } else { Tone::Bad }, text)
}

/// What came into the tree, and whether anything had to be run for it.
pub(super) fn set_up(facts: &SetUpFacts) -> String {
    let how = if facts.reused { "reused" } else { "made" };
    let what = if facts.kept.is_empty() {
        "nothing to keep".to_owned()
    } else {
        let files = counted(facts.size.files, "entry");
        format!("{} ({files})", facts.kept.join(", "))
    };
    format!("setup {how}: {what} after {}", duration(facts.elapsed_ms))
}

fn landing(step: LandStep) -> &'static str {
    match step {
        LandStep::Starting => "landing: everything is checked, nothing is written yet",
        LandStep::FilesWritten => "landing: the checkout has the new files",
        LandStep::IndexWritten => "landing: the index has them too",
        LandStep::RefMoved => "landing: the branch has moved",
    }
}

fn recorded(evidence: &EvidenceFacts) -> String {
    let how = if evidence.signed {
        "signed"
    } else {
        "not signed"
    };
    format!("evidence {} ({how})", evidence.digest)
}

fn sealed(seal: &SealFacts) -> Words {
    let text = match &seal.commit {
        Some(commit) => format!("sealed as commit {}", short(commit)),
        None => "sealed: nothing differs from the base".to_owned(),
    };
    if seal.problems.is_empty() {
        return (Beat::Ends, Tone::Good, text);
    }
    let problems = counted(seal.problems.len() as u64, "path");
    (
        Beat::Ends,
        Tone::Doubtful,
        format!("{text}; {problems} cannot be in a commit"),
    )
}

fn judged(judgement: &gates::Judgement) -> Words {
    let of = |finding: gates::Finding| {
        let runs = judgement.gates.iter().filter(|run| run.finding == finding);
        runs.map(|run| run.gate.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let parts = [
        ("pass", gates::Finding::Pass),
        ("warn", gates::Finding::Warn),
        ("fail", gates::Finding::Fail),
        ("could not check", gates::Finding::CouldNotCheck),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(word, finding)| (word, of(finding)))
        .filter(|(_, gates)| !gates.is_empty())
        .map(|(word, gates)| format!("{word}: {gates}"))
        .collect();
    let tone = match judgement.verdict() {
        gates::Verdict::Accepted => Tone::Good,
        gates::Verdict::Rejected => Tone::Bad,
        gates::Verdict::CouldNotCheck => Tone::Doubtful,
    };
    (Beat::Ends, tone, format!("gates: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_chose_stays_within_its_line() {
        let by = "mallory\n✓ accepted".to_owned();
        let told = tell(&Event::Stopped {
            by,
            reason: "\u{1b}[2Jno reason".to_owned(),
        });
        assert_eq!(told.text, "stopped by mallory ✓ accepted: no reason");
        assert_eq!(told.beat, Beat::Ends);
    }

    #[test]
    fn gates_are_told_by_finding() {
        let passed = gates::GateRun::of(gates::Gate::Commit, Vec::new());
        let failed = gates::GateRun::of(gates::Gate::Stub, vec![gates::Reason::fail("a", "b")]);
        let judgement = gates::Judgement {
            gates: vec![passed, failed],
            ..Default::default()
        };
        let told = tell(&Event::Judged {
            judgement: Box::new(judgement),
        });
        assert_eq!(told.text, "gates: pass: commit; fail: stub");
        assert_eq!(told.tone, Tone::Bad);
    }
}
