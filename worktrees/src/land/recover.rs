//! Taking up a landing that was cut off, at whatever point: it is completed if only the branch was left to move,
//! else taken back. A lock of somebody else's is never touched.

use std::fs;
use std::path::Path;

use git2::Oid;

use super::index::{IndexLock, has};
use super::perform::{note_head, refused, take_back, unread};
use super::whereabouts::{folder_of, git_dirs};
use super::write::Checkout;
use super::{LandError, LandPlan, Recovered};
use crate::history::plain_changes;
use crate::repository::Repository;

impl Repository {
    /// Settles a landing after a crash. May be called at any time and again; when nothing was cut off, it says
    /// what is.
    pub fn recover_landing(&self, plan: &LandPlan) -> Result<Recovered, LandError> {
        let _owner = self.act_as_owner();
        for git_dir in git_dirs(self) {
            IndexLock::sweep_drafts(&git_dir, plan);
            if let Some(lock) = IndexLock::inherit(&git_dir, plan) {
                let root = folder_of(self, &git_dir);
                let settled = match root {
                    Some(root) => self.settle(plan, &lock, (&git_dir, &root)),
                    None => self.outcome(plan),
                };
                return match settled {
                    Ok(recovered) => Ok(recovered),
                    Err(error) => {
                        lock.abandon();
                        Err(error)
                    }
                };
            }
        }
        self.outcome(plan)
    }

    fn settle(
        &self,
        plan: &LandPlan,
        lock: &IndexLock,
        (git_dir, root): (&Path, &Path),
    ) -> Result<Recovered, LandError> {
        let repo = self.open_for_reading().map_err(unread(plan))?;
        let settings = self.settings()?;
        let changes = plain_changes(&repo, plan.expected, plan.result).map_err(unread(plan))?;
        let mut checkout = Checkout::open(&repo, &settings, root, plan)?;
        checkout
            .sweep(&changes)
            .map_err(|failed| checkout.failed(failed))?;
        lock.sweep_update();
        let tip = self.branch_tip(&plan.target).map_err(refused(plan))?;
        if self.contains(plan, tip)? {
            return Ok(Recovered::Completed);
        }
        if tip == Some(plan.expected) && has(&lock.read()?, &changes, |change| change.new) {
            self.move_target(plan)?;
            note_head(git_dir, plan)?;
            return Ok(Recovered::Completed);
        }
        take_back(lock, (&mut checkout, &changes))?;
        Ok(Recovered::RolledBack)
    }

    /// Without a lock of ours the branch alone says what happened.
    fn outcome(&self, plan: &LandPlan) -> Result<Recovered, LandError> {
        let tip = self.branch_tip(&plan.target).map_err(refused(plan))?;
        if self.contains(plan, tip)? {
            Ok(Recovered::Completed)
        } else {
            Ok(Recovered::RolledBack)
        }
    }

    fn contains(&self, plan: &LandPlan, tip: Option<Oid>) -> Result<bool, LandError> {
        match tip {
            Some(tip) => self.is_ancestor(plan.result, tip).map_err(unread(plan)),
            None => Ok(false),
        }
    }
}

impl IndexLock {
    /// Removes a lock that was written but never put in place.
    fn sweep_drafts(git_dir: &Path, plan: &LandPlan) {
        let Ok(entries) = fs::read_dir(git_dir) else {
            return;
        };
        for entry in entries.flatten() {
            let draft = entry.file_name().to_string_lossy().starts_with(Self::DRAFT);
            if draft && Self::is_marked(&entry.path(), plan) {
                // Harmless where it is, and tried again next time.
                let _left = fs::remove_file(entry.path());
            }
        }
    }
}
