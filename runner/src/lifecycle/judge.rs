//! Seal and gates: from a tree that nobody writes any more to a judgement with evidence. From the
//! seal on only object ids count.

use std::collections::BTreeSet;
use std::path::Path;

use gates::Verdict;
use worktrees::{Oid, SealRequest, Worktree};

use super::outbox::read_beneath;
use super::room::feedback_name;
use super::{Life, proof};
use crate::delivery::{self, Input};
use crate::durable;
use crate::event::{Event, SealFacts};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::judging::Judge;
use crate::protected::Protected;
use crate::stage::Stage;
use crate::supervisor::now_ms;

impl Life<'_> {
    /// Seals, judges, and records the verdict. `again`: the agent has another attempt.
    pub(super) fn judge_tree(&mut self, again: bool) -> Result<(), Failure> {
        let Some(worktree) = self.view.worktree.clone() else {
            return self.take_what_came_back();
        };
        if self.view.stage != Stage::Sealing {
            self.record(vec![Event::Sealing])?;
        }
        // From here on no command can be started in the room; those that run stand still until the tree is read.
        let still = self.hold_still()?;
        // Started now, the judge is up by the time that the seal is done.
        let judge = Judge::start()?;
        let seal = self.seal(&worktree)?;
        drop(still);
        self.sealed_now = true;
        let nothing = seal.commit.is_none() && seal.problems.is_empty();
        let sealed = Event::Sealed {
            seal: Box::new(seal),
        };
        if nothing {
            return self.record(vec![sealed, Event::Empty]);
        }
        self.record(vec![sealed, Event::Gating])?;
        self.judge_seal(judge, again)
    }

    /// One commit of the tree as it stands, and what the agent left in its git dir.
    pub(super) fn seal(&self, worktree: &Worktree) -> Result<SealFacts, Failure> {
        let repository = &self.repository;
        let spec = &self.view.spec;
        let message = self.commit_message();
        let seal = repository
            .seal(&SealRequest {
                worktree,
                task: spec.task.as_str(),
                run: &spec.run,
                message: &message,
                when: i64::try_from(now_ms() / 1000).unwrap_or(i64::MAX),
            })
            .or_fail(Exit::Internal)?;
        let diff_stat = match seal.commit {
            Some(commit) => Some(
                repository
                    .diff_stat(worktree.base, commit)
                    .or_fail(Exit::Internal)?,
            ),
            None => None,
        };
        Ok(SealFacts {
            commit: seal.commit.map(|oid| oid.to_string()),
            tree: seal.tree.to_string(),
            files: seal.files,
            problems: seal.problems,
            unconverted: seal.unconverted,
            shadow: Some(repository.survey_shadow(&worktree.shadow, worktree.base)),
            diff_stat,
        })
    }

    fn commit_message(&self) -> String {
        let spec = &self.view.spec;
        let goal = spec
            .goal
            .as_deref()
            .map(str::trim)
            .filter(|goal| !goal.is_empty());
        goal.map_or_else(|| format!("Deliver task {}", spec.task), str::to_owned)
    }

    /// Judges what was sealed last.
    pub(super) fn judge_seal(&mut self, judge: Judge, again: bool) -> Result<(), Failure> {
        let started = now_ms();
        let delivery = self.delivery()?;
        let judgement = judge.judge(&self.repository, &delivery)?;
        let verdict = judgement.verdict();
        let proof = proof::of_delivery(self, &delivery, &judgement, started)?;
        self.record(vec![
            Event::Judged {
                judgement: Box::new(judgement),
            },
            Event::Recorded {
                evidence: proof.facts.clone(),
            },
        ])?;
        match verdict {
            Verdict::Accepted => self.accept_delivery(&proof),
            Verdict::Rejected | Verdict::CouldNotCheck => {
                self.keep_refused(&delivery.commit)?;
                if again {
                    self.write_feedback(&delivery)?;
                }
                self.record(vec![Event::Rejected { again }])
            }
        }
    }

    /// What the gates judge, from the last seal.
    pub(super) fn delivery(&self) -> Result<gates::Delivery, Failure> {
        let spec = &self.view.spec;
        let unsealed = || Failure::new(Exit::Internal, "the task was never sealed");
        let seal = self.view.seal.as_ref().ok_or_else(unsealed)?;
        let base = Oid::from_str(&spec.base).or_fail(Exit::Internal)?;
        // Only problems and no change: the base is judged with them.
        let commit = seal
            .commit
            .as_deref()
            .map_or(Ok(base), Oid::from_str)
            .or_fail(Exit::Internal)?;
        let protected = self.protected();
        delivery::assemble(
            &self.repository,
            &Input {
                task: Some(spec.task.as_str()),
                run: Some(&spec.run),
                base,
                commit,
                problems: &seal.problems,
                unconverted: &seal.unconverted,
                shadow: seal.shadow.as_ref(),
                note: self.note(),
                profile: spec.profile.clone(),
                protected: Some(&protected),
            },
        )
    }

    /// What the task must not touch.
    pub(super) fn protected(&self) -> Protected {
        Protected {
            patterns: self.view.spec.protect.clone(),
            allowed: self.view.spec.allow.clone(),
            settled: BTreeSet::new(),
        }
    }

    /// The agent's note: given with the task, or left in the outbox, or a file of the tree.
    fn note(&self) -> Option<String> {
        let spec = &self.view.spec;
        let named = || {
            spec.note_file
                .as_ref()
                .and_then(|name| read_beneath(&self.folder().tree(), Path::new(name)))
        };
        spec.note
            .clone()
            .or_else(|| self.left_note())
            .or_else(named)
    }

    /// A refused commit stays reachable, so that a person can look at it and nothing collects it.
    fn keep_refused(&self, commit: &str) -> Result<(), Failure> {
        if commit == self.view.spec.base {
            return Ok(());
        }
        let commit = Oid::from_str(commit).or_fail(Exit::Internal)?;
        self.keep(&self.refused_ref(), commit)
    }

    /// Points one of our own refs at a commit.
    pub(super) fn keep(&self, name: &str, commit: Oid) -> Result<(), Failure> {
        let repository = &self.repository;
        let before = repository.branch_tip(name).or_fail(Exit::Internal)?;
        if before == Some(commit) {
            return Ok(());
        }
        repository
            .set_branch(name, commit, before)
            .or_fail(Exit::Internal)
    }

    /// Where refused deliveries of this task are kept.
    pub(super) fn refused_ref(&self) -> String {
        format!("refs/airlock/rejected/{}", self.view.spec.task)
    }

    /// The gates' text for the agent's next attempt.
    fn write_feedback(&self, delivery: &gates::Delivery) -> Result<(), Failure> {
        let Some(judgement) = &self.view.judgement else {
            return Ok(());
        };
        let report =
            gates::report::Report::of(delivery, judgement).render(gates::report::Format::Text);
        let text = format!(
            "Your delivery was refused. Mend what is named below and deliver again.\n\n{report}"
        );
        let file = self
            .folder()
            .feedback()
            .join(feedback_name(self.view.attempts));
        durable::write(&file, text.as_bytes(), 0o644).or_fail(Exit::Internal)
    }

    /// `deliver`: seal and judge what is there now.
    pub(super) fn deliver(&mut self, note: Option<String>) -> Result<(), Failure> {
        let stage = self.view.stage;
        let worktree = self.view.worktree.as_ref();
        let there = worktree.is_some_and(|worktree| worktree.tree.is_dir());
        if matches!(stage, Stage::Landed | Stage::Discarded) || !there {
            let what = format!(
                "task {} is {stage} and has no tree to deliver from",
                self.view.spec.task
            );
            return Err(
                Failure::new(Exit::Conflict, what).advise("start a new task with `airlock run`")
            );
        }
        self.said.note = note;
        self.heed();
        self.judge_tree(false)
    }
}
