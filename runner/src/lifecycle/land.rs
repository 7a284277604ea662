//! Landing: the target branch moves to an approved delivery by compare-and-swap. When the target
//! has moved meanwhile, the merged tree is judged first, with evidence of its own.

use std::collections::BTreeSet;

use gates::Verdict;
use worktrees::{LandError, LandPlan, LandRequest, MergeStyle, Oid};

use super::{Life, proof};
use crate::delivery::{self, Input};
use crate::event::Event;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::judging;
use crate::protected::Protected;
use crate::stage::Stage;
use crate::supervisor::now_ms;
use crate::task::Style;

/// A target that moves this often while we judge is left alone.
const ROUNDS: u32 = 8;

impl Life<'_> {
    /// `merge`: lands an accepted delivery.
    pub(super) fn merge(
        &mut self,
        into: Option<&str>,
        style: Style,
        allow_unconfined: bool,
    ) -> Result<(), Failure> {
        let task = self.view.spec.task.clone();
        if self.view.stage != Stage::Accepted {
            let what = format!("task {task} is {}, not accepted", self.view.stage);
            return Err(Failure::new(Exit::Conflict, what)
                .advise(format!("`airlock show {task}` says why")));
        }
        self.said.allow_unconfined = allow_unconfined;
        self.said.into = into.map(str::to_owned);
        self.heed();
        self.land_on_recorded_target(style)?;
        self.settle()
    }

    /// Lands on the target that the task was started with.
    pub(super) fn land_on_recorded_target(&mut self, style: Style) -> Result<(), Failure> {
        let spec = self.view.spec.clone();
        let task = &spec.task;
        let refuse = if !spec.merge_allowed {
            Some(
                Failure::new(
                    Exit::Conflict,
                    format!("task {task} must not be merged: allow_merge_back is false"),
                )
                .advise(format!("the delivery stays on branch {}", spec.branch)),
            )
        } else if spec.into.is_none() {
            Some(
                Failure::usage(format!(
                    "task {task} has no target: HEAD was detached when it was started"
                ))
                .advise(format!("name one: `airlock merge {task} --into BRANCH`")),
            )
        } else if !spec.isolation.confined() && !spec.allow_unconfined {
            Some(
                Failure::new(
                    Exit::Conflict,
                    format!(
                        "task {task} ran unconfined (isolation {})",
                        spec.isolation.as_str()
                    ),
                )
                .advise(format!(
                    "`airlock merge {task} --allow-unconfined` lands it all the same"
                )),
            )
        } else {
            None
        };
        let target = spec.into.unwrap_or_default();
        let landed = match refuse {
            Some(failure) => Err(failure),
            None => self.land(&target, style),
        };
        if let Err(failure) = &landed
            && matches!(self.view.stage, Stage::Accepted | Stage::Landing)
        {
            self.record(vec![Event::NotLanded {
                failure: failure.clone(),
            }])?;
        }
        landed
    }

    fn land(&mut self, target: &str, style: Style) -> Result<(), Failure> {
        let accepted = self.view.accepted.clone().unwrap_or_default();
        let delivery = Oid::from_str(&accepted).or_fail(Exit::Internal)?;
        let base = Oid::from_str(&self.view.spec.base).or_fail(Exit::Internal)?;
        let message = self.merge_message(target);
        for _ in 0..ROUNDS {
            // One landing at a time in a repository: the next one then sees where the target is.
            let lock =
                worktrees::lock(&self.shop.folder.repository_lock()).or_fail(Exit::Internal)?;
            let plan = self
                .repository
                .plan_landing(&LandRequest {
                    target,
                    delivery,
                    base,
                    style: merge_style(style),
                    message: &message,
                    when: i64::try_from(now_ms() / 1000).unwrap_or(i64::MAX),
                })
                .map_err(|error| self.refused(&error))?;
            self.approve_plan(&plan)?;
            let moved = self.carry_out(&plan)?;
            drop(lock);
            if !moved {
                return Ok(());
            }
        }
        Err(Failure::new(
            Exit::Conflict,
            format!("branch {target} moved {ROUNDS} times while the merge was judged"),
        )
        .advise(format!(
            "`airlock merge {}` tries again",
            self.view.spec.task
        )))
    }

    /// The approval that a landing needs: that of the delivery, or of the merged tree.
    fn approve_plan(&mut self, plan: &LandPlan) -> Result<(), Failure> {
        let approval = if plan.judged_as_is {
            self.allowed_proof()?.approve_landing()?
        } else {
            self.judge_merged(plan)?
        };
        if approval.tree() == plan.tree.to_string() {
            Ok(())
        } else {
            Err(Failure::new(
                Exit::Internal,
                "the approved tree is not the tree that would land",
            ))
        }
    }

    /// The evidence of the delivery. Leave to land an unconfined agent's work may come later than the
    /// judgement: it is part of the evidence, which is then written anew.
    fn allowed_proof(&mut self) -> Result<proof::Proof, Failure> {
        let proof = proof::load(self)?;
        let spec = &self.view.spec;
        if spec.isolation.confined() || !spec.allow_unconfined || proof.approve_landing().is_ok() {
            return Ok(proof);
        }
        let delivery = self.delivery()?;
        let proof = proof::of_recorded(self, &delivery)?;
        let evidence = proof.facts.clone();
        self.record(vec![Event::Recorded { evidence }])?;
        Ok(proof)
    }

    fn judge_merged(&mut self, plan: &LandPlan) -> Result<gates::evidence::Approval, Failure> {
        let spec = &self.view.spec;
        // A merge may carry a change to where the target has moved the file meanwhile.
        let protected = Protected {
            settled: self.delivered_paths(plan.delivery)?,
            ..self.protected()
        };
        let delivery = delivery::assemble(
            &self.repository,
            &Input {
                task: Some(spec.task.as_str()),
                run: Some(&spec.run),
                base: plan.expected,
                commit: plan.result,
                problems: &[],
                unconverted: &[],
                shadow: None,
                note: None,
                profile: spec.profile.clone(),
                protected: Some(&protected),
            },
        )?;
        let judgement = judging::judge(&self.repository, &delivery)?;
        let verdict = judgement.verdict();
        let proof = proof::of_merge(self, &delivery, &judgement, &plan.target)?;
        match verdict {
            Verdict::Accepted => proof.approve_landing(),
            Verdict::Rejected | Verdict::CouldNotCheck => Err(Failure {
                exit: if verdict == Verdict::CouldNotCheck {
                    Exit::CouldNotCheck
                } else {
                    Exit::GateFailed
                },
                what: format!(
                    "{} has moved, and a gate refuses the merged tree; nothing was changed",
                    plan.target
                ),
                causes: reasons(&delivery, &judgement),
                next: Some(format!(
                    "start again from the new {}: `airlock run --base {}`",
                    plan.target, plan.target
                )),
            }),
        }
    }

    /// What the delivery touches, all of which was judged or let pass with it.
    fn delivered_paths(&self, delivery: Oid) -> Result<BTreeSet<String>, Failure> {
        let base = Oid::from_str(&self.view.spec.base).or_fail(Exit::Internal)?;
        let changes = self
            .repository
            .changes(base, delivery)
            .or_fail(Exit::Internal)?;
        let paths = changes.iter().map(|change| worktrees::shown(&change.path));
        Ok(paths.collect())
    }

    /// Moves the target; `true` when it had moved under us and the landing must be planned anew.
    fn carry_out(&mut self, plan: &LandPlan) -> Result<bool, Failure> {
        self.record(vec![Event::Landing {
            plan: Box::new(plan.clone()),
        }])?;
        let recorder = self.shop.recorder.clone();
        let task = self.view.spec.task.clone();
        let landed = self.repository.land(plan, &mut |step| {
            recorder
                .record(&task, vec![Event::LandStep { step }])
                .map(|_view| ())
                .map_err(|failure| worktrees::JournalError::new(failure.to_string()))
        });
        match landed {
            Ok(_landing) => {
                let target = plan.target.clone();
                self.record(vec![Event::Landed {
                    target,
                    commit: plan.result.to_string(),
                }])?;
                Ok(false)
            }
            Err(LandError::Moved { .. }) => {
                let failure = Failure::new(
                    Exit::Conflict,
                    format!("branch {} has moved; planning again", plan.target),
                );
                self.record(vec![Event::NotLanded { failure }])?;
                Ok(true)
            }
            Err(error) => Err(self.refused(&error)),
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "whatever else goes wrong leaves the delivery where it is"
    )]
    fn refused(&self, error: &LandError) -> Failure {
        let task = &self.view.spec.task;
        let branch = &self.view.spec.branch;
        let (exit, advice) = match error {
            LandError::Conflict { .. } => (
                Exit::MergeConflict,
                format!(
                    "nothing was changed; the delivery stays on branch {branch}: merge it by hand, or run the task again on the new base"
                ),
            ),
            LandError::DirtyTarget { .. } | LandError::Staged { .. } => (
                Exit::Conflict,
                format!("commit or stash these edits, then `airlock merge {task}`"),
            ),
            LandError::CheckedOutElsewhere { .. } => (
                Exit::Conflict,
                format!(
                    "run `airlock merge {task}` from that checkout, or switch it to another branch"
                ),
            ),
            LandError::Busy { .. } | LandError::IndexLocked { .. } => (
                Exit::Conflict,
                format!("finish or abort that first, then `airlock merge {task}`"),
            ),
            LandError::NotFastForward { .. } => (
                Exit::MergeConflict,
                format!("`airlock merge {task} --style merge` makes a merge commit"),
            ),
            LandError::NoBranch { .. } => (
                Exit::NotFound,
                format!("name another target: `airlock merge {task} --into BRANCH`"),
            ),
            _ => (
                Exit::Conflict,
                format!(
                    "the delivery stays on branch {branch}; `airlock merge {task}` tries again"
                ),
            ),
        };
        Failure::caused(exit, error).advise(advice)
    }

    fn merge_message(&self, target: &str) -> String {
        let spec = &self.view.spec;
        match spec
            .goal
            .as_deref()
            .map(str::trim)
            .filter(|goal| !goal.is_empty())
        {
            Some(goal) => format!("Merge task {} into {target}\n\n{goal}", spec.task),
            None => format!("Merge task {} into {target}", spec.task),
        }
    }
}

/// What refuses, a line each.
fn reasons(delivery: &gates::Delivery, judgement: &gates::Judgement) -> Vec<String> {
    let report = gates::report::Report::of(delivery, judgement);
    let red = report
        .items()
        .filter(|item| matches!(item.level, gates::Level::Fail | gates::Level::CouldNotCheck));
    red.map(|item| {
        format!(
            "{} {}: {}",
            item.gate,
            item.path.unwrap_or_default(),
            item.message
        )
    })
    .collect()
}

fn merge_style(style: Style) -> MergeStyle {
    match style {
        Style::Auto => MergeStyle::Auto,
        Style::Ff => MergeStyle::FastForward,
        Style::Squash => MergeStyle::Squash,
        Style::Rebase => MergeStyle::Rebase,
        Style::Merge => MergeStyle::Merge,
    }
}
