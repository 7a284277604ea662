//! What a task looks like now: the fold of its events, and the one JSON object that `run --json`,
//! `show --json` and `task.json` share. Computes; never reads a file or a clock.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};
use worktrees::Worktree;

use crate::answer::Answer;
use crate::config::quantity;
use crate::event::{Artifact, Checkout, Event, EvidenceFacts, Record, SealFacts, SetUpFacts};
use crate::exit::{Exit, Failure};
use crate::setup;
use crate::stage::{IllegalOrder, Stage};
use crate::task::{Cleanup, Spec};

/// A landing that was begun.
#[derive(Debug, Clone)]
pub struct LandingView {
    /// What was planned.
    pub plan: worktrees::LandPlan,
    /// Where the target points when it is done.
    pub landed: Option<String>,
}

/// What a task without a worktree brought back.
#[derive(Debug, Clone, Serialize)]
pub struct ReturnedView {
    /// The folder that holds it.
    pub outbox: PathBuf,
    /// The agent's note.
    pub note: Option<String>,
    /// Files of the outbox.
    pub artifacts: Vec<Artifact>,
    /// Whether there are more than these.
    pub more: bool,
}

/// A task folded from its events.
#[derive(Debug, Clone)]
pub struct TaskView {
    /// What was asked for.
    pub spec: Spec,
    /// Short name of the repository.
    pub repository: String,
    /// Where the user stood.
    pub start: PathBuf,
    /// Where it stands.
    pub stage: Stage,
    /// Position of the last event.
    pub seq: u64,
    /// When it was asked for, in milliseconds since 1970.
    pub created: u64,
    /// When something last happened.
    pub changed: u64,
    /// The worktree, as long as it is there.
    pub worktree: Option<Worktree>,
    /// Where the work happens.
    pub workspace: Option<PathBuf>,
    /// Attempts begun.
    pub attempts: u32,
    /// The job of the last attempt.
    pub job: Option<String>,
    /// How the last attempt ended.
    pub outcome: Option<sandbox::Outcome>,
    /// What the agent says of the last attempt.
    pub answer: Option<Answer>,
    /// What came back without a worktree.
    pub returned: Option<ReturnedView>,
    /// Commands that people run in the room now, by job.
    pub execs: BTreeSet<String>,
    /// How many there were so far.
    pub exec_count: u64,
    /// One of them ran after the tree was last sealed: the tree may be another by now.
    pub touched: bool,
    /// How often its room has refused something.
    pub refused: u64,
    /// How the tree was set up.
    pub setup: Option<SetUpFacts>,
    /// The last seal.
    pub seal: Option<SealFacts>,
    /// The last judgement.
    pub judgement: Option<gates::Judgement>,
    /// The last evidence.
    pub evidence: Option<EvidenceFacts>,
    /// Red gates that a person let pass.
    pub overrides: Vec<(String, String, String)>,
    /// The accepted commit.
    pub accepted: Option<String>,
    /// The last landing.
    pub landing: Option<LandingView>,
    /// Why the engine could not go on, or a landing was refused.
    pub failure: Option<Failure>,
    /// Why it is stopped, lost or discarded.
    pub reason: Option<String>,
    /// What became of the checkout.
    pub checkout: Option<Checkout>,
    /// No longer listed.
    pub removed: bool,
}

impl TaskView {
    /// Folds the events of one task; none for an empty list.
    pub fn fold(records: &[Record]) -> Result<Option<Self>, IllegalOrder> {
        let mut view = None;
        for record in records {
            Self::advance(&mut view, record)?;
        }
        Ok(view)
    }

    /// Takes one more event in.
    pub fn advance(view: &mut Option<Self>, record: &Record) -> Result<(), IllegalOrder> {
        let stage = Stage::apply(view.as_ref().map(|view| view.stage), &record.event)?;
        if let Event::Queued {
            spec,
            repository,
            start,
        } = &record.event
        {
            *view = Some(Self::queued(spec, repository, start, record));
        }
        if let Some(view) = view {
            view.stage = stage;
            view.seq = record.seq;
            if !record.event.is_aside() {
                view.changed = record.at;
            }
            view.learn(&record.event);
        }
        Ok(())
    }

    fn queued(spec: &Spec, repository: &str, start: &Path, record: &Record) -> Self {
        Self {
            spec: spec.clone(),
            repository: repository.to_owned(),
            start: start.to_owned(),
            stage: Stage::Queued,
            seq: record.seq,
            created: record.at,
            changed: record.at,
            worktree: None,
            workspace: None,
            attempts: 0,
            job: None,
            outcome: None,
            answer: None,
            returned: None,
            execs: BTreeSet::new(),
            exec_count: 0,
            touched: false,
            refused: 0,
            setup: None,
            seal: None,
            judgement: None,
            evidence: None,
            overrides: Vec::new(),
            accepted: None,
            landing: None,
            failure: None,
            reason: None,
            checkout: None,
            removed: false,
        }
    }

    /// What people do in the room beside the task's own way.
    fn learn_aside(&mut self, event: &Event) {
        if let Event::Exec { job, .. } = event {
            self.execs.insert(job.clone());
            self.exec_count += 1;
            self.touched = true;
        } else if let Event::ExecEnded { job, .. } = event {
            self.execs.remove(job);
        }
    }

    fn learn_landing(&mut self, event: &Event) {
        if let Event::Landing { plan } = event {
            self.failure = None;
            self.landing = Some(LandingView {
                plan: (**plan).clone(),
                landed: None,
            });
        } else if let (Event::Landed { commit, .. }, Some(landing)) = (event, &mut self.landing) {
            landing.landed = Some(commit.clone());
        }
    }

    fn learn(&mut self, event: &Event) {
        match event {
            Event::Preparing => (self.failure, self.reason) = (None, None),
            Event::SetUp { facts } => self.setup = Some(facts.clone()),
            Event::Queued { .. }
            | Event::SettingUp { .. }
            | Event::Gating
            | Event::LandStep { .. }
            | Event::Empty
            | Event::Rejected { .. } => {}
            Event::Prepared {
                worktree,
                workspace,
            } => {
                self.worktree.clone_from(worktree);
                self.workspace = Some(workspace.clone());
                self.checkout = Some(Checkout::Kept);
            }
            Event::Started { attempt, job } => {
                self.attempts = *attempt;
                self.job = Some(job.clone());
                (self.outcome, self.failure, self.reason) = (None, None, None);
                self.answer = None;
            }
            Event::Ended {
                outcome, refused, ..
            } => {
                self.outcome = Some(outcome.clone());
                self.refused = *refused;
            }
            Event::Returned {
                outbox,
                note,
                artifacts,
                more,
            } => {
                self.returned = Some(ReturnedView {
                    outbox: outbox.clone(),
                    note: note.clone(),
                    artifacts: artifacts.clone(),
                    more: *more,
                });
            }
            Event::Exec { .. } | Event::ExecEnded { .. } => self.learn_aside(event),
            Event::Answered { answer, .. } => self.answer = Some((**answer).clone()),
            Event::Sealing => {
                // Whoever is held still meanwhile goes on afterwards.
                self.touched = !self.execs.is_empty();
                self.seal = None;
                self.judgement = None;
                self.evidence = None;
                (self.seal, self.judgement, self.evidence) = (None, None, None);
                self.overrides.clear();
            }
            Event::Sealed { seal } => self.seal = Some((**seal).clone()),
            Event::Judged { judgement } => self.judgement = Some((**judgement).clone()),
            Event::Recorded { evidence } => self.evidence = Some(evidence.clone()),
            Event::Overridden { gate, reason, by } => {
                self.overrides
                    .push((gate.clone(), reason.clone(), by.clone()));
            }
            Event::Accepted { commit, .. } => self.accepted = Some(commit.clone()),
            Event::Landing { .. } | Event::Landed { .. } => self.learn_landing(event),
            Event::NotLanded { failure } | Event::Failed { failure } => {
                self.failure = Some(failure.clone());
            }
            Event::Stopped { reason, .. }
            | Event::Lost { reason }
            | Event::Discarded { reason } => {
                self.reason = Some(reason.clone());
            }
            Event::Checkout { checkout, .. } => {
                self.checkout = Some(*checkout);
                drop(self.worktree.take_if(|_| *checkout == Checkout::Removed));
            }
            Event::Removed => self.removed = true,
        }
    }

    /// Whether the engine still has something to do here that nobody needs to ask for again.
    pub fn unfinished(&self) -> bool {
        if self.removed {
            return false;
        }
        let to_land = self.spec.merge.is_some() && self.landing.is_none() && self.failure.is_none();
        let to_clean = self.worktree.is_some() && self.spec.cleanup != Cleanup::Never;
        if self.stage == Stage::Accepted {
            to_land
        } else if matches!(self.stage, Stage::Landed | Stage::Empty) {
            to_clean
        } else {
            !self.stage.rests()
        }
    }

    /// The exit code that a command ends with when it waited for this task.
    pub fn exit(&self) -> Exit {
        match self.stage {
            Stage::Accepted if self.failure.is_some() => self
                .failure
                .as_ref()
                .map_or(Exit::Ok, |failure| failure.exit),
            Stage::Accepted | Stage::Landed | Stage::Discarded => Exit::Ok,
            Stage::Rejected => self.rejected_exit(),
            Stage::Empty => Exit::Empty,
            Stage::Failed => self
                .failure
                .as_ref()
                .map_or(Exit::AgentFailed, |failure| failure.exit),
            Stage::Timeout if self.was_idle() => Exit::IdleTimeout,
            Stage::Timeout => Exit::Timeout,
            Stage::OverLimit => Exit::OverLimit,
            Stage::Stopped => Exit::Interrupted,
            Stage::Lost => Exit::Lost,
            Stage::Queued
            | Stage::Preparing
            | Stage::Running
            | Stage::Waiting
            | Stage::Sealing
            | Stage::Gating
            | Stage::Landing => Exit::Conflict,
        }
    }

    fn rejected_exit(&self) -> Exit {
        let verdict = self.judgement.as_ref().map(gates::Judgement::verdict);
        if matches!(verdict, Some(gates::Verdict::CouldNotCheck)) {
            Exit::CouldNotCheck
        } else {
            Exit::GateFailed
        }
    }

    /// One line on what happened.
    pub fn summary(&self) -> String {
        let task = &self.spec.task;
        match self.stage {
            Stage::Landed => {
                let target = self
                    .landing
                    .as_ref()
                    .map_or("", |landing| landing.plan.target.as_str());
                format!("task {task} landed on {target}")
            }
            Stage::Accepted => match &self.failure {
                Some(failure) => format!("task {task} is accepted but did not land: {failure}"),
                None => format!("task {task} is accepted on branch {}", self.spec.branch),
            },
            Stage::Rejected => {
                let red = self.judgement.iter().flat_map(|judgement| &judgement.gates);
                let red: Vec<&str> = red
                    .filter(|run| {
                        matches!(
                            run.finding,
                            gates::Finding::Fail | gates::Finding::CouldNotCheck
                        )
                    })
                    .map(|run| run.gate.name())
                    .collect();
                format!("task {task} was rejected by {}", red.join(", "))
            }
            Stage::Empty => format!("task {task} delivered nothing"),
            Stage::Failed => match (&self.failure, &self.outcome) {
                (Some(failure), _) => format!("task {task} failed: {failure}"),
                (None, Some(outcome)) => format!("the agent of task {task} {}", ended(outcome)),
                (None, None) => format!("task {task} failed"),
            },
            Stage::Timeout if self.was_idle() => {
                let time = self.spec.bounds.idle_ms.map(quantity::show_ms);
                format!("task {task} did nothing for {}", time.unwrap_or_default())
            }
            Stage::Timeout => format!("task {task} ran out of time"),
            Stage::OverLimit => match self.limit() {
                Some(limit) => format!("task {task} passed its limit of {limit}"),
                None => format!("task {task} is {}", self.stage),
            },
            Stage::Stopped | Stage::Lost | Stage::Discarded => format!(
                "task {task} is {}{}",
                self.stage,
                self.reason
                    .as_ref()
                    .map_or_else(String::new, |reason| format!(": {reason}"))
            ),
            Stage::Queued
            | Stage::Preparing
            | Stage::Running
            | Stage::Waiting
            | Stage::Sealing
            | Stage::Gating
            | Stage::Landing => format!("task {task} is {}", self.stage),
        }
    }

    /// Whether it ended because nothing was seen of it any more.
    fn was_idle(&self) -> bool {
        let outcome = self.outcome.as_ref();
        outcome.is_some_and(|outcome| outcome.exit == sandbox::Exit::IdleTimedOut)
    }

    /// The limit that ended it, with its value where there is one.
    pub fn limit(&self) -> Option<String> {
        let sandbox::Exit::OverLimit { limit } = &self.outcome.as_ref()?.exit else {
            return None;
        };
        Some(self.spec.bounds.describe(limit))
    }

    /// The object of `run --json`, `show --json` and `task.json`.
    pub fn object(&self) -> Value {
        let spec = &self.spec;
        let seal = self.seal.as_ref();
        let judgement = self.judgement.as_ref();
        let files = judgement.map_or_else(|| json!([]), |judgement| json!(judgement.files));
        let modified: Vec<&str> = judgement
            .iter()
            .flat_map(|judgement| judgement.files.iter().map(|file| file.path.as_str()))
            .collect();
        json!({
            "schema": 1,
            "task": spec.task,
            "run": spec.run,
            "state": self.stage,
            "exit": self.exit().code(),
            "summary": self.summary(),
            "goal": spec.goal,
            "created": self.created,
            "changed": self.changed,
            "isolation": {
                "mode": spec.isolation,
                "confined": spec.isolation.confined(),
                "net": spec.net,
                "workspace_path": self.workspace,
                "branch": spec.branch,
                "cleanup_status": self.checkout,
            },
            "toolchains": spec.toolchains,
            "limits": spec.bounds,
            "setup": setup::object(spec.setup.as_ref(), self.setup.as_ref()),
            "base": spec.base,
            "commit": seal.and_then(|seal| seal.commit.as_ref()),
            "tree": seal.map(|seal| &seal.tree),
            "modified_files": modified,
            "diff_stat": seal.and_then(|seal| seal.diff_stat.as_ref()),
            "agent": crate::agent_view::object(self),
            "refusals": self.refused,
            "files": files,
            "claims": judgement.map_or_else(|| json!([]), |judgement| json!(judgement.claims)),
            "gates": judgement.map_or_else(|| json!([]), |judgement| json!(judgement.gates)),
            "evidence": self.evidence,
            "merge": self.merge_object(),
            "returned": self.returned,
            "failure": self.failure,
        })
    }

    fn merge_object(&self) -> Value {
        match &self.landing {
            Some(landing) => json!({
                "target": landing.plan.target,
                "result": if landing.landed.is_some() { "landed" } else { "not_landed" },
                "commit": landing.landed,
            }),
            None => Value::Null,
        }
    }
}

/// The name of a job's end.
pub fn cause(exit: &sandbox::Exit) -> &'static str {
    match exit {
        sandbox::Exit::Code(_) => "exited",
        sandbox::Exit::Signal(_) => "signalled",
        sandbox::Exit::TimedOut => "timed_out",
        sandbox::Exit::IdleTimedOut => "idle_timed_out",
        sandbox::Exit::Stopped { .. } => "stopped",
        sandbox::Exit::OverLimit { .. } => "over_limit",
        sandbox::Exit::NotStarted { .. } => "not_started",
        sandbox::Exit::Lost => "lost",
    }
}

/// How a job ended, in words that follow "the agent".
pub fn ended(outcome: &sandbox::Outcome) -> String {
    match &outcome.exit {
        sandbox::Exit::Code(code) => format!("exited with code {code}"),
        sandbox::Exit::Signal(signal) => format!("was ended by signal {signal}"),
        sandbox::Exit::TimedOut => "ran out of time".to_owned(),
        sandbox::Exit::IdleTimedOut => "did nothing for too long".to_owned(),
        sandbox::Exit::Stopped { by, reason } => format!("was stopped by {by}: {reason}"),
        sandbox::Exit::OverLimit { limit } => format!("passed its limit of {limit}"),
        sandbox::Exit::NotStarted { reason } => format!("could not be started: {reason}"),
        sandbox::Exit::Lost => "was lost: its keeper died".to_owned(),
    }
}
