//! One line in plain words for each recorded event: what `events` prints and what progress is made
//! of. Old events read the same as live ones, since there is nothing else to read from. Pure.

use super::agent_text::one_line;
use super::paint::Tone;
use super::words::{counted, duration, short};
use crate::event::{Checkout, Event, SealFacts};
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

fn told(beat: Beat, tone: Tone, text: impl AsRef<str>) -> Told {
    Told {
        beat,
        tone,
        text: one_line(text.as_ref()),
    }
}

/// Tells one event.
pub fn tell(event: &Event) -> Told {
    use Beat::{Begins, Ends, Remark};
    use Tone::{Bad, Doubtful, Good, Quiet, Strong};
    match event {
        Event::Queued { spec, .. } => told(
            Remark,
            Quiet,
            format!(
                "asked for: {} in isolation {} on {}",
                spec.agent,
                spec.isolation.as_str(),
                short(&spec.base)
            ),
        ),
        Event::Preparing => told(Begins, Quiet, "prepares worktree and room"),
        Event::Prepared { workspace, .. } => told(
            Remark,
            Quiet,
            format!("worktree is {}", workspace.display()),
        ),
        Event::Started { attempt, .. } => {
            told(Begins, Strong, format!("agent works, attempt {attempt}"))
        }
        Event::Ended { outcome, .. } => {
            let tone = if matches!(outcome.exit, sandbox::Exit::Code(0)) {
                Good
            } else {
                Bad
            };
            told(
                Ends,
                tone,
                format!(
                    "agent {} after {}",
                    ended(outcome),
                    duration(outcome.elapsed_ms)
                ),
            )
        }
        Event::Sealing => told(Begins, Quiet, "reads the tree"),
        Event::Sealed { seal } => sealed(seal),
        Event::Empty => told(Ends, Doubtful, "nothing was delivered"),
        Event::Gating => told(Begins, Quiet, "gates judge"),
        Event::Judged { judgement } => judged(judgement),
        Event::Recorded { evidence } => {
            let how = if evidence.signed {
                "signed"
            } else {
                "not signed"
            };
            told(
                Remark,
                Quiet,
                format!("evidence {} ({how})", evidence.digest),
            )
        }
        Event::Rejected { again: true } => told(
            Remark,
            Doubtful,
            "rejected; the agent gets it back with the reasons",
        ),
        Event::Rejected { again: false } => told(Remark, Bad, "rejected"),
        Event::Overridden { gate, reason, by } => told(
            Remark,
            Doubtful,
            format!("{by} lets gate {gate} pass: {reason}"),
        ),
        Event::Accepted { commit, branch } => told(
            Remark,
            Good,
            format!("accepted: {} on {branch}", short(commit)),
        ),
        Event::Landing { plan } => told(Begins, Quiet, format!("lands on {}", plan.target)),
        Event::LandStep { step } => told(Remark, Quiet, format!("landing: {step:?}")),
        Event::Landed { target, commit } => {
            told(Ends, Good, format!("{target} is now at {}", short(commit)))
        }
        Event::NotLanded { failure } => told(Ends, Bad, format!("not landed: {failure}")),
        Event::Failed { failure } => told(Ends, Bad, format!("failed: {failure}")),
        Event::Stopped { by, reason } => told(Ends, Doubtful, format!("stopped by {by}: {reason}")),
        Event::Lost { reason } => told(Ends, Bad, format!("lost: {reason}")),
        Event::Discarded { reason } => told(Ends, Quiet, format!("discarded: {reason}")),
        Event::Checkout { checkout, reason } => {
            let what = match checkout {
                Checkout::Kept => "kept",
                Checkout::Removed => "removed",
            };
            told(Remark, Quiet, format!("checkout {what}: {reason}"))
        }
        Event::Removed => told(Remark, Quiet, "removed from the list"),
    }
}

fn sealed(seal: &SealFacts) -> Told {
    let text = match &seal.commit {
        Some(commit) => format!("sealed as commit {}", short(commit)),
        None => "sealed: nothing differs from the base".to_owned(),
    };
    if seal.problems.is_empty() {
        return told(Beat::Ends, Tone::Good, text);
    }
    let problems = counted(seal.problems.len() as u64, "path");
    told(
        Beat::Ends,
        Tone::Doubtful,
        format!("{text}; {problems} cannot be in a commit"),
    )
}

fn judged(judgement: &gates::Judgement) -> Told {
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
    told(Beat::Ends, tone, format!("gates: {}", parts.join("; ")))
}
