//! Carrying out a landing, step by step, each recorded by the caller before the next begins. A failure before the
//! branch has moved takes everything back.

use std::path::Path;

use super::clean::{Form, dirty, restore};
use super::index::{IndexLock, has, staged};
use super::whereabouts::checkout_of;
use super::write::Checkout;
use super::{JournalError, LandError, LandKind, LandPlan, LandStep, Landing};
use crate::history::{FileChange, plain_changes};
use crate::repository::{ReadError, RefError, Repository, append_reflog};
use crate::shown;
use crate::tree::{Settings, unknown_entry};

/// Where the caller records the steps.
type Journal<'j> = &'j mut dyn FnMut(LandStep) -> Result<(), JournalError>;

impl Repository {
    /// Moves the target to the result of the plan, with the checkout that has it. The target must be where the
    /// plan was made for.
    pub fn land(&self, plan: &LandPlan, journal: Journal<'_>) -> Result<Landing, LandError> {
        let _owner = self.act_as_owner();
        let checkout = checkout_of(self, &plan.target)?;
        self.check_tip(plan)?;
        let mut landing = Landing {
            target: plan.target.clone(),
            commit: plan.result,
            checkout,
            files: 0,
        };
        match landing.checkout.clone() {
            _ if plan.kind == LandKind::AlreadyThere => {}
            None => self.move_branch_alone(plan, journal)?,
            Some(root) => landing.files = self.move_with_checkout(plan, &root, journal)?,
        }
        Ok(landing)
    }

    fn move_branch_alone(&self, plan: &LandPlan, journal: Journal<'_>) -> Result<(), LandError> {
        recorded(plan, LandStep::Starting, journal)?;
        self.move_target(plan)?;
        recorded(plan, LandStep::RefMoved, journal)
    }

    fn move_with_checkout(
        &self,
        plan: &LandPlan,
        root: &Path,
        journal: Journal<'_>,
    ) -> Result<usize, LandError> {
        let repo = self.open_for_reading().map_err(unread(plan))?;
        let settings = self.settings()?;
        let lock = IndexLock::take(self.git_dir(), plan)?;
        // Once more under the lock: a commit in this checkout needs it too.
        self.check_tip(plan)?;
        let changes = plain_changes(&repo, plan.expected, plan.result).map_err(unread(plan))?;
        let mut checkout = Checkout::open(&repo, &settings, root, plan)?;
        self.refuse_local_changes(plan, &lock, &mut checkout, &changes)?;
        recorded(plan, LandStep::Starting, journal)?;
        let done = self.advance(plan, &lock, (&mut checkout, &changes), journal);
        match done {
            Ok(()) => {}
            Err(first) => {
                return match take_back(&lock, (&mut checkout, &changes)) {
                    Ok(()) => Err(first),
                    Err(source) => {
                        // The lock keeps others away from a checkout between two states.
                        lock.abandon();
                        Err(LandError::HalfDone {
                            target: plan.target.clone(),
                            first: full_text(&first),
                            source: Box::new(source),
                        })
                    }
                };
            }
        }
        note_head(self.git_dir(), plan)?;
        recorded(plan, LandStep::RefMoved, journal)?;
        drop(lock);
        Ok(changes.len())
    }

    /// Files, index, branch.
    fn advance(
        &self,
        plan: &LandPlan,
        lock: &IndexLock,
        (checkout, changes): (&mut Checkout<'_>, &[FileChange]),
        journal: Journal<'_>,
    ) -> Result<(), LandError> {
        let entries = checkout
            .write(changes, Form::New)
            .map_err(|failed| checkout.failed(failed))?;
        recorded(plan, LandStep::FilesWritten, journal)?;
        lock.update(changes, &entries)?;
        recorded(plan, LandStep::IndexWritten, journal)?;
        self.move_target(plan)
    }

    fn refuse_local_changes(
        &self,
        plan: &LandPlan,
        lock: &IndexLock,
        checkout: &mut Checkout<'_>,
        changes: &[FileChange],
    ) -> Result<(), LandError> {
        let head = self.tree_entries(plan.expected).map_err(unread(plan))?;
        let paths = staged(&lock.read()?, &head);
        if !paths.is_empty() {
            return Err(LandError::Staged {
                checkout: checkout.root.clone(),
                paths,
            });
        }
        let paths = dirty(checkout, changes).map_err(|failed| checkout.failed(failed))?;
        if !paths.is_empty() {
            return Err(LandError::DirtyTarget {
                checkout: checkout.root.clone(),
                paths: paths.iter().map(|path| shown(path)).collect(),
            });
        }
        Ok(())
    }

    fn check_tip(&self, plan: &LandPlan) -> Result<(), LandError> {
        let found = self.branch_tip(&plan.target).map_err(refused(plan))?;
        if found == Some(plan.expected) {
            return Ok(());
        }
        Err(LandError::Moved {
            target: plan.target.clone(),
            expected: plan.expected,
            found,
        })
    }

    pub(super) fn move_target(&self, plan: &LandPlan) -> Result<(), LandError> {
        let name = format!("refs/heads/{}", plan.target);
        let line = reflog_line(plan);
        match self.move_ref(
            &name,
            plan.result,
            Some(plan.expected),
            Some((&line, plan.when)),
        ) {
            Err(RefError::Moved { found, .. }) => Err(LandError::Moved {
                target: plan.target.clone(),
                expected: plan.expected,
                found,
            }),
            other => other.map_err(refused(plan)),
        }
    }

    pub(super) fn settings(&self) -> Result<Settings, LandError> {
        Settings::load(self).map_err(|source| LandError::Settings {
            path: self.common_dir().to_path_buf(),
            source,
        })
    }
}

/// Files and index as they were. What somebody has changed since is left alone.
pub(super) fn take_back(
    lock: &IndexLock,
    (checkout, changes): (&mut Checkout<'_>, &[FileChange]),
) -> Result<(), LandError> {
    restore(checkout, changes).map_err(|failed| checkout.failed(failed))?;
    if has(&lock.read()?, changes, |change| change.old) {
        return Ok(());
    }
    let before = |change: &FileChange| {
        let side = change.old?;
        Some(unknown_entry(change.path.clone(), (side.mode, side.oid)))
    };
    let entries: Vec<_> = changes.iter().filter_map(before).collect();
    lock.update(changes, &entries)
}

/// git writes the reflog of `HEAD` too when the branch it is on moves.
pub(super) fn note_head(git_dir: &Path, plan: &LandPlan) -> Result<(), LandError> {
    let log = git_dir.join("logs/HEAD");
    let line = reflog_line(plan);
    append_reflog(&log, Some(plan.expected), plan.result, (&line, plan.when)).map_err(refused(plan))
}

fn reflog_line(plan: &LandPlan) -> String {
    format!("airlock: land {}", plan.delivery)
}

fn recorded(plan: &LandPlan, step: LandStep, journal: Journal<'_>) -> Result<(), LandError> {
    journal(step).map_err(|source| LandError::Journal {
        target: plan.target.clone(),
        step,
        source,
    })
}

pub(super) fn refused(plan: &LandPlan) -> impl Fn(RefError) -> LandError {
    let target = plan.target.clone();
    move |source| LandError::Ref {
        target: target.clone(),
        source,
    }
}

pub(super) fn unread(plan: &LandPlan) -> impl Fn(ReadError) -> LandError {
    let target = plan.target.clone();
    move |source| LandError::Read {
        target: target.clone(),
        source,
    }
}

/// The chain of an error on one line, for one that cannot be a cause any more.
fn full_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
