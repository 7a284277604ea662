//! What a person reads when a task is over, and whenever it is shown: what was delivered, what the
//! gates say, where the evidence is, where it landed, what to do next. The gates' part is that of
//! [`gates::report`], the same as of `airlock gate`. Computes lines from the task's view; text of
//! agents in it is made safe here.

use gates::{Judgement, Level};

use super::agent_text::one_line;
use super::console::Console;
use super::narration::set_up;
use super::paint::{Paint, Tone};
use super::progress::mark;
use super::words::{counted, duration, short};
use crate::answer::Answer;
use crate::event::{Checkout, SealFacts};
use crate::stage::Stage;
use crate::task::Net;
use crate::view::{TaskView, ended};

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// At the end of a run.
    Closing,
    /// All that is known.
    Full,
}

/// Files, and reasons of one gate, that a closing report lists.
const FEW: usize = 15;

/// Lines of the agent's last words that a closing report tells.
const LAST_WORDS: usize = 3;

/// Prints the report of a task as data.
pub fn print(console: &Console, view: &TaskView, depth: Depth) {
    for line in lines(view, depth, &console.command(), console.paint()) {
        console.data(&line);
    }
}

/// The tone of a stage.
fn tone(view: &TaskView) -> Tone {
    match view.stage {
        Stage::Accepted if view.failure.is_some() => Tone::Doubtful,
        Stage::Accepted | Stage::Landed => Tone::Good,
        Stage::Empty | Stage::Stopped => Tone::Doubtful,
        Stage::Rejected | Stage::Failed | Stage::Timeout | Stage::OverLimit | Stage::Lost => {
            Tone::Bad
        }
        Stage::Discarded
        | Stage::Queued
        | Stage::Preparing
        | Stage::Running
        | Stage::Waiting
        | Stage::Sealing
        | Stage::Gating
        | Stage::Landing => Tone::Quiet,
    }
}

/// The report as lines; `command` is how the reader calls this program.
pub fn lines(view: &TaskView, depth: Depth, command: &str, paint: Paint) -> Vec<String> {
    let full = depth == Depth::Full;
    let mut report = Report {
        lines: Vec::new(),
        paint,
    };
    report.head(view);
    if let Some(goal) = view.spec.goal.as_ref().filter(|_| full) {
        report.section("goal", goal.lines().map(one_line).collect());
    }
    if let Some(answer) = &view.answer {
        report.section("what the agent says of it", said(answer, full));
    }
    report.section("what went wrong", wrong(view));
    if let Some((seal, judgement)) = view.seal.as_ref().zip(view.judgement.as_ref()) {
        report.judged(view, seal, judgement, full);
    }
    report.section("let pass by hand", overrides(view));
    report.section("what came back", came_back(view, full));
    report.section("where it is", places(view));
    if full {
        report.section("setup", setup(view));
        report.section("toolchains in the room", toolchains(view));
    }
    report.section("what next", next(view, command));
    report.lines
}

struct Report {
    lines: Vec<String>,
    paint: Paint,
}

impl Report {
    fn section(&mut self, title: &str, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        self.lines.push(String::new());
        self.lines.push(self.paint.put(Tone::Strong, title));
        self.lines
            .extend(lines.into_iter().map(|line| format!("  {line}")));
    }

    fn head(&mut self, view: &TaskView) {
        let (paint, tone) = (self.paint, tone(view));
        let summary = paint.put(Tone::Strong, &one_line(&view.summary()));
        self.lines
            .push(format!("{} {summary}", paint.put(tone, mark(tone))));
        let mut facts = vec![one_line(&view.spec.agent)];
        facts.push(counted(u64::from(view.attempts), "attempt"));
        facts.extend(
            view.outcome
                .as_ref()
                .map(|outcome| duration(outcome.elapsed_ms)),
        );
        facts.push(room(view));
        if view.refused > 0 {
            facts.push(counted(view.refused, "refusal"));
        }
        if let Some(stat) = view.seal.as_ref().and_then(|seal| seal.diff_stat) {
            let files = counted(stat.files as u64, "file");
            facts.push(format!("{files} +{} -{}", stat.insertions, stat.deletions));
        }
        self.lines
            .push(format!("  {}", paint.put(Tone::Quiet, &facts.join(" · "))));
        if !view.spec.isolation.confined() {
            let warning = paint.put(Tone::Doubtful, "! the agent was not confined");
            self.lines.push(format!("  {warning}"));
        }
    }

    fn judged(&mut self, view: &TaskView, seal: &SealFacts, judgement: &Judgement, full: bool) {
        let mut judgement = judgement.clone();
        let hidden = if full { 0 } else { shorten(&mut judgement) };
        let report = gates::report::Report {
            repository: view.repository.clone(),
            base: view.spec.base.clone(),
            commit: seal.commit.clone().unwrap_or_default(),
            tree: seal.tree.clone(),
            task: None,
            judgement,
        };
        self.lines.push(String::new());
        self.lines
            .extend(report.text(&self.paint).lines().map(str::to_owned));
        if hidden > 0 {
            let id = &view.spec.task;
            let more = format!("… and {hidden} more; `airlock show {id}` has them all");
            self.lines.push(self.paint.put(Tone::Quiet, &more));
        }
    }
}

/// Cuts long lists; answers how many entries went.
fn shorten(judgement: &mut Judgement) -> usize {
    let mut hidden = judgement.files.len().saturating_sub(FEW);
    judgement.files.truncate(FEW);
    for run in &mut judgement.gates {
        let mut told = 0;
        run.reasons.retain(|reason| {
            let tells = reason.level > Level::Info;
            told += usize::from(tells);
            !tells || told <= FEW
        });
        hidden += told.saturating_sub(FEW);
    }
    hidden
}

fn room(view: &TaskView) -> String {
    let isolation = view.spec.isolation;
    let net = match &view.spec.net {
        Net::None => "no network".to_owned(),
        Net::Allow(policy) => format!("network {policy}"),
        Net::Host => "the host's network".to_owned(),
    };
    if isolation.confined() {
        format!("{}, {net}", isolation.as_str())
    } else {
        format!("isolation {}", isolation.as_str())
    }
}

/// The agent's own words and figures; a person reads them as that.
fn said(answer: &Answer, full: bool) -> Vec<String> {
    let mut figures = Vec::new();
    figures.extend(answer.cost_usd.map(|cost| format!("cost ${cost:.4}")));
    if let (Some(sent), Some(got)) = (answer.input_tokens, answer.output_tokens) {
        figures.push(format!("{sent} tokens sent, {got} received"));
    }
    figures.extend(
        answer
            .session
            .iter()
            .map(|id| format!("session {}", one_line(id))),
    );
    let words = answer.result.as_deref().unwrap_or_default();
    let all = words.lines().count();
    let told = if full { all } else { all.min(LAST_WORDS) };
    let mut lines: Vec<String> = words.lines().skip(all - told).map(one_line).collect();
    if answer.result_cut && full {
        lines.push("… (longer than what is kept)".to_owned());
    }
    if !figures.is_empty() {
        lines.push(figures.join(" · "));
    }
    lines
}

fn wrong(view: &TaskView) -> Vec<String> {
    if let Some(failure) = &view.failure {
        let causes = failure
            .causes
            .iter()
            .map(|cause| format!("cause: {}", one_line(cause)));
        let next = failure.next.iter().map(|next| one_line(next));
        return std::iter::once(one_line(&failure.what))
            .chain(causes)
            .chain(next)
            .collect();
    }
    let failed = view
        .outcome
        .iter()
        .filter(|outcome| outcome.code != Some(0));
    failed
        .map(|outcome| format!("the agent {}", one_line(&ended(outcome))))
        .collect()
}

/// Note and files of a task without a worktree.
fn came_back(view: &TaskView, full: bool) -> Vec<String> {
    let Some(returned) = view.returned.as_ref().filter(|_| !view.removed) else {
        return Vec::new();
    };
    let few = if full { usize::MAX } else { FEW };
    let note = returned.note.iter().flat_map(|note| note.lines());
    let mut lines: Vec<String> = note.clone().take(few).map(one_line).collect();
    let files = returned.artifacts.iter();
    lines.extend(
        files
            .take(few)
            .map(|file| format!("{} ({})", one_line(&file.path), counted(file.bytes, "byte"))),
    );
    let left = note.count().saturating_sub(few) + returned.artifacts.len().saturating_sub(few);
    if returned.more || left > 0 {
        lines.push("… and more".to_owned());
    }
    if !lines.is_empty() {
        lines.push(format!("in {}", returned.outbox.display()));
    }
    lines
}

fn overrides(view: &TaskView) -> Vec<String> {
    let told = view.overrides.iter();
    told.map(|(gate, reason, by)| format!("{gate} by {by}: {}", one_line(reason)))
        .collect()
}

fn places(view: &TaskView) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(evidence) = &view.evidence {
        let signed = if evidence.signed {
            "signed"
        } else {
            "not signed"
        };
        lines.push(format!(
            "evidence  {} ({signed})",
            evidence.statement.display()
        ));
        lines.push(format!("          {}", evidence.digest));
    }
    if let Some(landing) = &view.landing {
        lines.push(match &landing.landed {
            Some(commit) => format!("landed    {} is at {}", landing.plan.target, short(commit)),
            None => format!("landed    no, {} is untouched", landing.plan.target),
        });
    }
    // Landed work is named by its target; the branch goes with the checkout.
    let landed = view
        .landing
        .as_ref()
        .is_some_and(|landing| landing.landed.is_some());
    let gone = landed && view.checkout == Some(Checkout::Removed);
    if let Some(commit) = view.accepted.as_ref().filter(|_| !gone) {
        lines.push(format!(
            "branch    {} ({})",
            view.spec.branch,
            short(commit)
        ));
    }
    match (view.checkout, &view.workspace) {
        _ if view.removed && view.spec.isolation.has_worktree() => {
            lines.push("worktree  removed".to_owned());
        }
        (Some(Checkout::Kept), Some(workspace)) => {
            lines.push(format!("worktree  {}", workspace.display()));
        }
        (Some(Checkout::Removed), _) => lines.push("worktree  removed".to_owned()),
        (Some(Checkout::Kept) | None, _) => {}
    }
    lines
}

/// What was done to the tree before the agent entered it.
fn setup(view: &TaskView) -> Vec<String> {
    let Some(setup) = &view.spec.setup else {
        return Vec::new();
    };
    let commands = setup.commands.iter();
    let commands = commands.map(|command| format!("$ {}", one_line(command)));
    let from = format!(
        "as said in {}; digest {}",
        one_line(&setup.origin),
        setup.key
    );
    let came = view.setup.iter().map(|facts| one_line(&set_up(facts)));
    commands.chain([from]).chain(came).collect()
}

/// What the room showed of this host for each toolchain.
fn toolchains(view: &TaskView) -> Vec<String> {
    let mut lines = Vec::new();
    for tools in &view.spec.toolchains {
        let name = tools.language.as_str();
        lines.push(format!("{name:<8}  for {}", one_line(&tools.origin)));
        let programs = tools.programs.iter();
        lines.extend(programs.map(|path| format!("          {}, read-only", path.display())));
        lines.extend(tools.layers.iter().map(|shown| {
            let how = if shown.private_layer {
                "written to a layer of its own"
            } else {
                "read-only"
            };
            let (from, at) = (shown.from.display(), shown.at.display());
            format!("          {from} as {at}, {how}")
        }));
    }
    lines
}

/// Whether the task's own tree is still there.
fn has_tree(view: &TaskView) -> bool {
    view.spec.isolation.has_worktree() && view.checkout == Some(Checkout::Kept)
}

/// Whether `resume` has something to go on with.
pub fn resumes(view: &TaskView) -> bool {
    match view.stage {
        _ if view.removed => false,
        Stage::Landed | Stage::Discarded => false,
        Stage::Rejected
        | Stage::Empty
        | Stage::Failed
        | Stage::Timeout
        | Stage::OverLimit
        | Stage::Stopped => {
            let never_began = view.job.is_none();
            has_tree(view) || !view.spec.isolation.has_worktree() || never_began
        }
        Stage::Lost
        | Stage::Accepted
        | Stage::Queued
        | Stage::Preparing
        | Stage::Running
        | Stage::Waiting
        | Stage::Sealing
        | Stage::Gating
        | Stage::Landing => true,
    }
}

/// The order that lands this delivery, with what it cannot do without.
fn merge(view: &TaskView) -> String {
    let spec = &view.spec;
    let into = if spec.into.is_none() {
        " --into BRANCH"
    } else {
        ""
    };
    let unconfined = if spec.isolation.confined() || spec.allow_unconfined {
        ""
    } else {
        " --allow-unconfined"
    };
    format!("merge {}{into}{unconfined}", spec.task)
}

/// The command that tells what the room refused, if it did.
fn why(view: &TaskView) -> Option<(String, &'static str)> {
    let step = format!("why {}", view.spec.task);
    (view.refused > 0).then_some((step, "what the room refused, and what would allow it"))
}

/// Commands that make sense from here, each with what it is for.
fn next(view: &TaskView, command: &str) -> Vec<String> {
    let id = &view.spec.task;
    let steps: Vec<(String, &str)> = match view.stage {
        Stage::Landed => vec![
            (format!("diff {id}"), "what landed"),
            (
                format!("evidence verify {id}"),
                "check the evidence against the commit",
            ),
        ],
        _ if view.removed => Vec::new(),
        Stage::Accepted => {
            let mut steps = vec![(format!("diff {id}"), "what was accepted")];
            steps.extend(why(view));
            if view.spec.merge_allowed {
                steps.push((merge(view), "land it"));
            }
            steps
        }
        Stage::Rejected => {
            let mut steps = vec![(format!("diff {id}"), "what was refused")];
            steps.extend(why(view));
            if resumes(view) {
                let why = "let the agent try again in the same tree";
                steps.push((format!("resume {id}"), why));
            }
            steps.push((format!("rm {id} --discard"), "throw it away"));
            steps
        }
        Stage::Empty
        | Stage::Failed
        | Stage::Timeout
        | Stage::OverLimit
        | Stage::Stopped
        | Stage::Lost => {
            let mut steps = Vec::new();
            if view.job.is_some() {
                steps.push((format!("logs {id}"), "what the agent printed"));
            }
            steps.extend(why(view));
            if has_tree(view) && view.stage != Stage::Empty {
                steps.push((format!("deliver {id}"), "judge what is in its tree"));
            }
            if resumes(view) {
                steps.push((format!("resume {id}"), "go on in the same tree"));
            }
            steps.push((format!("rm {id}"), "remove it"));
            steps
        }
        Stage::Discarded => Vec::new(),
        Stage::Queued
        | Stage::Preparing
        | Stage::Running
        | Stage::Waiting
        | Stage::Sealing
        | Stage::Gating
        | Stage::Landing => vec![
            (format!("logs {id} -f"), "follow it"),
            (format!("stop {id}"), "stop it"),
        ],
    };
    let width = steps.iter().map(|(step, _)| step.len()).max().unwrap_or(0);
    steps
        .into_iter()
        .map(|(step, why)| format!("{command} {step:<width$}   {why}"))
        .collect()
}

#[cfg(test)]
pub(super) mod tests;
#[cfg(test)]
pub(crate) use tests::spec as a_spec;
