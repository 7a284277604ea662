//! Clean-up by proof: a checkout goes when its work has landed, was empty, or was given up by
//! demand. "Could not check" is never "clean".

use std::{fs, io};

use worktrees::{BranchFate, Oid, Worktree};

use super::Life;
use crate::event::{Checkout, Event, SealFacts};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::stage::Stage;
use crate::task::Cleanup;

impl Life<'_> {
    /// Removes the checkout where policy and proof allow it; says which.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        let Some(worktree) = self.view.worktree.clone() else {
            return Ok(());
        };
        // From here to the end nobody begins a command in the tree that is looked at.
        let _closed = self.close_room()?;
        if self.view.spec.cleanup == Cleanup::Always {
            self.clear_room("the checkout is removed")?;
        }
        let in_use = self.in_use()?;
        let landed = self.view.stage == Stage::Landed;
        let empty = self.view.stage == Stage::Empty;
        let edited = (landed || empty) && !in_use && self.edited_since_judged(&worktree)?;
        let proof = if landed {
            (!edited).then_some("landed")
        } else {
            (empty && !edited).then_some("nothing was delivered")
        };
        let (checkout, reason) = match (self.view.spec.cleanup, proof) {
            (Cleanup::Never, _) => (Checkout::Kept, "cleanup is never".to_owned()),
            (Cleanup::OnSuccess, Some(_)) if in_use => {
                let reason = "somebody runs a command in it";
                (Checkout::Kept, reason.to_owned())
            }
            (Cleanup::OnSuccess | Cleanup::Always, Some(proof)) => {
                (Checkout::Removed, proof.to_owned())
            }
            (Cleanup::OnSuccess, None) if edited => {
                let reason = "somebody has edited it since it was judged";
                (Checkout::Kept, reason.to_owned())
            }
            (Cleanup::OnSuccess, None) => {
                (Checkout::Kept, format!("the task is {}", self.view.stage))
            }
            (Cleanup::Always, None) => {
                let kept = self.rescue(&worktree)?;
                (Checkout::Removed, format!("cleanup is always; {kept}"))
            }
        };
        let reason = match checkout {
            Checkout::Removed => {
                self.remove_checkout(&worktree)?;
                reason
            }
            Checkout::Kept => reason + &made_harmless(&worktree),
        };
        self.record(vec![Event::Checkout { checkout, reason }])
    }

    /// What a seal of the tree gives now; none when somebody has removed it.
    pub(super) fn look_again(&self, worktree: &Worktree) -> Result<Option<SealFacts>, Failure> {
        match fs::symlink_metadata(&worktree.tree) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Ok(_) | Err(_) => self.seal(worktree).map(Some),
        }
    }

    /// Whether the tree holds anything that was not there when it was judged. A tree that was sealed by this very
    /// command has had no time to change, unless somebody else works in it: its own jobs have ended.
    pub(super) fn edited_since_judged(&self, worktree: &Worktree) -> Result<bool, Failure> {
        let untouched = self.sealed_now && !self.view.touched;
        let (Some(judged), false) = (&self.view.seal, untouched) else {
            return Ok(false);
        };
        let Some(now) = self.look_again(worktree)? else {
            return Ok(false);
        };
        let known = |problem| judged.problems.contains(problem);
        Ok(now.tree != judged.tree || !now.problems.iter().all(known))
    }

    /// Makes sure that the tree's content is in a commit that something names.
    fn rescue(&self, worktree: &Worktree) -> Result<String, Failure> {
        let Some(seal) = self.look_again(worktree)? else {
            return Ok("somebody had removed it already".to_owned());
        };
        if let Some(problem) = seal.problems.first() {
            let what = format!(
                "the tree holds what cannot be sealed: {} ({})",
                problem.path, problem.message
            );
            return Err(Failure::new(Exit::Conflict, what).advise(format!(
                "look at {}, then `airlock rm {} --discard`",
                worktree.tree.display(),
                worktree.id
            )));
        }
        let Some(commit) = seal.commit else {
            return Ok("the tree was as its base".to_owned());
        };
        let sealed = Oid::from_str(&commit).or_fail(Exit::Internal)?;
        let accepted = self
            .view
            .accepted
            .as_deref()
            .and_then(|accepted| Oid::from_str(accepted).ok());
        if let Some(accepted) = accepted {
            let before = self
                .repository
                .commit_facts(accepted)
                .or_fail(Exit::Internal)?;
            if before.tree.to_string() == seal.tree {
                return Ok(format!("the work is commit {accepted}"));
            }
        }
        let name = format!("refs/airlock/rescued/{}", self.view.spec.task);
        self.keep(&name, sealed)?;
        Ok(format!("the work is kept as {name}"))
    }

    /// Removes tree, shadow git dir and registration; the branch only when it says nothing new.
    pub(super) fn remove_checkout(&self, worktree: &Worktree) -> Result<(), Failure> {
        let repository = &self.repository;
        let landed = self
            .view
            .landing
            .as_ref()
            .and_then(|landing| landing.landed.as_deref());
        let fate = match (landed, self.view.accepted.as_deref()) {
            (Some(landed), Some(accepted)) => {
                let landed = Oid::from_str(landed).or_fail(Exit::Internal)?;
                let accepted = Oid::from_str(accepted).or_fail(Exit::Internal)?;
                if !repository
                    .is_ancestor(accepted, landed)
                    .or_fail(Exit::Internal)?
                {
                    // Squashed or rebased: the evidence names a commit that nothing else keeps.
                    self.keep(
                        &format!("refs/airlock/landed/{}", self.view.spec.task),
                        accepted,
                    )?;
                }
                BranchFate::DeleteIfAt(accepted)
            }
            (None, Some(_accepted)) => BranchFate::Keep,
            (_, None) => BranchFate::DeleteIfAt(worktree.base),
        };
        repository
            .remove_worktree(worktree, fate)
            .or_fail(Exit::Internal)?;
        Ok(())
    }
}

/// A kept tree will be looked at with the host's tools: nothing in it may make them run or hang.
fn made_harmless(worktree: &Worktree) -> String {
    match worktrees::disarm(&worktree.tree) {
        Ok(changed) if changed.is_empty() => String::new(),
        Ok(changed) => {
            let paths: Vec<&str> = changed.iter().map(|entry| entry.path.as_str()).collect();
            format!("; made harmless: {}", paths.join(", "))
        }
        Err(error) => format!(
            "; look at it with care: {}",
            Failure::caused(Exit::Internal, &error)
        ),
    }
}
