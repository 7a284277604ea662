//! `rm`: forgetting a task. Work that is nowhere else is refused by name unless it is given up
//! explicitly.

use worktrees::{BranchFate, Oid, Worktree};

use super::Life;
use crate::event::{Checkout, Event};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::stage::Stage;

impl Life<'_> {
    /// Removes a task that rests.
    pub(super) fn remove(&mut self, discard: bool) -> Result<(), Failure> {
        let _closed = self.close_room()?;
        if discard {
            self.clear_room("the task is removed")?;
        } else if self.in_use()? {
            let task = &self.view.spec.task;
            let what = format!("somebody runs a command in the room of task {task}");
            return Err(Failure::new(Exit::Conflict, what).advise(format!(
                "`airlock stop {task}` ends it; what it made counts as work"
            )));
        }
        sandbox::sweep(&self.shop.folder.locks(), self.view.spec.task.as_str());
        let mut events = Vec::new();
        if let Some(worktree) = self.view.worktree.clone() {
            let reason = self.proof_of_safety(&worktree, discard)?;
            if discard && self.view.stage != Stage::Landed {
                self.discard_refs(&worktree)?;
                self.repository
                    .remove_worktree(
                        &worktree,
                        BranchFate::DeleteIfAt(self.branch_end(&worktree)?),
                    )
                    .or_fail(Exit::Internal)?;
                events.push(Event::Discarded {
                    reason: "discarded by rm --discard".to_owned(),
                });
            } else {
                self.remove_checkout(&worktree)?;
            }
            events.push(Event::Checkout {
                checkout: Checkout::Removed,
                reason,
            });
        } else if self.view.stage == Stage::Lost {
            self.undo_preparation()?;
        }
        events.push(Event::Removed);
        self.record(events)?;
        self.remove_files()
    }

    /// Why nothing is lost by removing the tree, or a refusal that names what would be.
    fn proof_of_safety(&self, worktree: &Worktree, discard: bool) -> Result<String, Failure> {
        if discard {
            return Ok("discarded by demand".to_owned());
        }
        let task = &self.view.spec.task;
        let Some(seal) = self.look_again(worktree)? else {
            return Ok("somebody had removed the tree already".to_owned());
        };
        let sealed = match &seal.commit {
            None if seal.problems.is_empty() => return Ok("the tree is as its base".to_owned()),
            None => self.view.spec.base.clone(),
            Some(commit) => commit.clone(),
        };
        if let (Some(accepted), true) = (&self.view.accepted, seal.problems.is_empty()) {
            let accepted = Oid::from_str(accepted).or_fail(Exit::Internal)?;
            let facts = self
                .repository
                .commit_facts(accepted)
                .or_fail(Exit::Internal)?;
            if facts.tree.to_string() == seal.tree {
                return Ok(format!("the work is commit {accepted}"));
            }
        }
        let base = worktree.base;
        let sealed = Oid::from_str(&sealed).or_fail(Exit::Internal)?;
        let changes = self
            .repository
            .changes(base, sealed)
            .or_fail(Exit::Internal)?;
        let mut at_stake: Vec<String> = changes
            .iter()
            .map(|change| worktrees::shown(&change.path))
            .collect();
        at_stake.extend(seal.problems.iter().map(|problem| problem.path.clone()));
        let more = at_stake.len().saturating_sub(8);
        at_stake.truncate(8);
        let rest = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let keep = if self.view.stage == Stage::Rejected {
            format!("`airlock diff {task}` shows it")
        } else {
            format!("`airlock deliver {task}` seals it")
        };
        Err(Failure::new(
            Exit::Conflict,
            format!(
                "task {task} has work that is nowhere else: {}{rest}",
                at_stake.join(", ")
            ),
        )
        .advise(format!(
            "{keep}, `airlock rm {task} --discard` throws it away"
        )))
    }

    fn discard_refs(&self, worktree: &Worktree) -> Result<(), Failure> {
        let repository = &self.repository;
        for kind in ["rejected", "rescued"] {
            let name = format!("refs/airlock/{kind}/{}", worktree.id);
            if let Some(tip) = repository.branch_tip(&name).or_fail(Exit::Internal)? {
                repository.delete_ref(&name, tip).or_fail(Exit::Internal)?;
            }
        }
        Ok(())
    }

    /// Where the branch must be for us to delete it: where we put it.
    fn branch_end(&self, worktree: &Worktree) -> Result<Oid, Failure> {
        let sealed = self
            .view
            .seal
            .as_ref()
            .and_then(|seal| seal.commit.as_ref());
        let ours = [self.view.accepted.as_ref(), sealed];
        let tip = self
            .repository
            .branch_tip(&worktree.branch)
            .or_fail(Exit::Internal)?;
        let put = ours
            .into_iter()
            .flatten()
            .filter_map(|oid| Oid::from_str(oid).ok());
        Ok(put
            .into_iter()
            .find(|oid| tip == Some(*oid))
            .unwrap_or(worktree.base))
    }

    /// Logs and feedback go; evidence and the last state stay.
    fn remove_files(&self) -> Result<(), Failure> {
        let folder = self.folder();
        for path in [
            folder.tree(),
            folder.shadow(),
            folder.jobs(),
            folder.subagents(),
            folder.feedback(),
            folder.outbox(),
            folder.proxy(),
        ] {
            worktrees::remove_tree(&path).or_fail(Exit::Internal)?;
        }
        Ok(())
    }
}
