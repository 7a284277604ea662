//! Going on: after the supervisor died, or because a person asks to. What a task does next follows
//! from its events and from the files and locks of its last job; nothing is guessed.

use sandbox::Attached;
use worktrees::Recovered;

use super::Life;
use crate::event::{Checkout, Event};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::judging::Judge;
use crate::setup::Setups;
use crate::stage::Stage;

impl Life<'_> {
    /// Takes a task up where an earlier supervisor left it.
    pub(super) fn take_up(&mut self) -> Result<(), Failure> {
        self.release_refs()?;
        match self.view.stage {
            Stage::Queued | Stage::Preparing => {
                // Of a setup that outlived its supervisor.
                let task = self.view.spec.task.as_str();
                sandbox::sweep(&self.shop.folder.locks(), task);
                Setups::of(&self.shop.folder).clear(task)?;
                self.undo_preparation()?;
                let reason =
                    "the supervisor died before the agent was started; nothing had run".to_owned();
                let gone = Event::Checkout {
                    checkout: Checkout::Removed,
                    reason: reason.clone(),
                };
                self.record(vec![gone, Event::Lost { reason }])
            }
            Stage::Running => self.take_up_job(),
            Stage::Gating if self.view.seal.is_some() => {
                // Sealed again it would be another commit, and the branch may name this one already.
                self.judge_seal(Judge::start()?, false)?;
                self.finish()
            }
            Stage::Waiting | Stage::Sealing | Stage::Gating => {
                self.judge_tree(false)?;
                self.finish()
            }
            Stage::Landing => {
                self.recover_landing()?;
                self.finish()
            }
            Stage::Accepted
            | Stage::Rejected
            | Stage::Landed
            | Stage::Empty
            | Stage::Failed
            | Stage::Timeout
            | Stage::OverLimit
            | Stage::Stopped
            | Stage::Lost
            | Stage::Discarded => self.finish(),
        }
    }

    /// Locks of refs that the killed supervisor held.
    fn release_refs(&self) -> Result<(), Failure> {
        let spec = &self.view.spec;
        let of_task = ["rejected", "rescued", "landed"]
            .map(|kind| format!("refs/airlock/{kind}/{}", spec.task));
        let names = of_task.iter().chain([&spec.branch]).chain(&spec.into);
        for name in names.map(String::as_str).chain(["refs/notes/airlock"]) {
            self.repository
                .release_left_behind(name)
                .or_fail(Exit::Conflict)?;
        }
        Ok(())
    }

    fn take_up_job(&mut self) -> Result<(), Failure> {
        let attempt = self.view.attempts;
        let job = self.view.job.clone().unwrap_or_default();
        let task = self.view.spec.task.clone();
        let locks = self.shop.folder.locks();
        match sandbox::attach(&locks, task.as_str(), &job, &self.folder().job(&job)) {
            Attached::Running(keeper) => {
                let network = self.open_network()?;
                self.see_out(keeper, attempt, &job)?;
                drop(network);
            }
            Attached::Ended(outcome) => self.ended(attempt, outcome)?,
            Attached::Lost => return self.lost("the agent's keeper died with the supervisor"),
            Attached::NeverStarted => {
                return self.lost("the supervisor died before the agent was started");
            }
            Attached::Unreadable { path, reason } => {
                let text = format!(
                    "the agent's status {} cannot be read: {reason}",
                    path.display()
                );
                return self.lost(&text);
            }
        }
        if self.delivers() {
            self.judge_tree(false)?;
        }
        self.finish()
    }

    fn lost(&mut self, reason: &str) -> Result<(), Failure> {
        sandbox::sweep(&self.shop.folder.locks(), self.view.spec.task.as_str());
        self.record(vec![Event::Lost {
            reason: reason.to_owned(),
        }])
    }

    fn recover_landing(&mut self) -> Result<(), Failure> {
        let plan = match &self.view.landing {
            Some(landing) => landing.plan.clone(),
            None => return Err(Failure::new(Exit::Internal, "a landing without a plan")),
        };
        match self
            .repository
            .recover_landing(&plan)
            .or_fail(Exit::Conflict)?
        {
            Recovered::Completed => {
                let commit = plan.result.to_string();
                self.record(vec![Event::Landed {
                    target: plan.target,
                    commit,
                }])
            }
            Recovered::RolledBack => {
                let what =
                    "the supervisor died while it landed the delivery; everything was put back";
                let failure = Failure::new(Exit::Lost, what)
                    .advise(format!("`airlock merge {}` lands it", self.view.spec.task));
                self.record(vec![Event::NotLanded { failure }])
            }
        }
    }

    /// `resume`: goes on in the same tree.
    pub(super) fn resume(&mut self) -> Result<(), Failure> {
        let task = self.view.spec.task.clone();
        match self.view.stage {
            Stage::Landed | Stage::Discarded => {
                let what = format!(
                    "task {task} is {}: there is nothing to go on with",
                    self.view.stage
                );
                Err(Failure::new(Exit::Conflict, what)
                    .advise("start a new task with `airlock run`"))
            }
            Stage::Accepted => self.finish(),
            Stage::Rejected
            | Stage::Empty
            | Stage::Failed
            | Stage::Timeout
            | Stage::OverLimit
            | Stage::Stopped
            | Stage::Lost => {
                let variables = self.missing_secrets().into_iter();
                let missing: Vec<String> = variables
                    .map(|name| format!("{name} from your environment"))
                    .chain(self.missing_keys())
                    .collect();
                if !missing.is_empty() {
                    let what = format!("task {task} needs {}", missing.join(", "));
                    return Err(Failure::usage(what)
                        .advise("set them and resume again; they are never stored"));
                }
                if self.view.execs.is_empty() {
                    sandbox::sweep(&self.shop.folder.locks(), task.as_str());
                }
                if self.view.worktree.is_none() && self.view.spec.isolation.has_worktree() {
                    self.prepare()?;
                    return self.begin();
                }
                self.work()
            }
            Stage::Queued
            | Stage::Preparing
            | Stage::Running
            | Stage::Waiting
            | Stage::Sealing
            | Stage::Gating
            | Stage::Landing => self.take_up(),
        }
    }
}
