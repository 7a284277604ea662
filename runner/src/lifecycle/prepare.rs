//! Folder and worktree of a task. Checks first, side effects later; what fails leaves nothing.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;

use worktrees::{BranchFate, CreateError, History, Oid, Worktree, WorktreeRequest};

use super::Life;
use super::room::PROMPT;
use crate::durable;
use crate::event::Event;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::TaskFolder;
use crate::stage::Stage;
use crate::task::{Isolation, TaskId};

/// Makes the task's folder; its existence is what makes an id taken.
pub(super) fn claim_folder(folder: &TaskFolder, task: &TaskId) -> Result<(), Failure> {
    match fs::DirBuilder::new().mode(0o700).create(folder.path()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Failure::new(
            Exit::Conflict,
            format!("there is already a task {task}"),
        )
        .advise("give another id, or none: one is made up")),
        Err(error) => Err(Failure::caused(Exit::Internal, &error)),
    }
}

impl Life<'_> {
    /// From a recorded wish to a worktree that an agent can be let into.
    pub(super) fn prepare(&mut self) -> Result<(), Failure> {
        if self.view.stage != Stage::Preparing {
            self.record(vec![Event::Preparing])?;
        }
        let made = self.make_folders();
        // Its log is for a person: a setup that fails leaves the task to be looked at.
        let ready = match &made {
            Ok(()) => match self.set_up() {
                // Somebody wished it so.
                Err(_stopped) if self.view.stage == Stage::Stopped => return Ok(()),
                ready => ready?,
            },
            Err(_) => None,
        };
        let made = made.and_then(|()| self.make_worktree());
        let prepared = made.and_then(|event| match &ready {
            None => Ok(vec![event]),
            Some(ready) => match self.furnish(ready) {
                Ok(set_up) => Ok(vec![set_up, event]),
                Err(failure) => self.undo_preparation().and(Err(failure)),
            },
        });
        match prepared {
            Ok(events) => self.record(events),
            Err(failure) => {
                // Nothing was made, or what was made is undone: there is nothing to list.
                self.record(vec![
                    Event::Failed {
                        failure: failure.clone(),
                    },
                    Event::Removed,
                ])?;
                worktrees::remove_tree(self.folder().path()).or_fail(Exit::Internal)?;
                Err(failure)
            }
        }
    }

    fn make_folders(&self) -> Result<(), Failure> {
        let folder = self.folder();
        let make = |path, mode| {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(mode)
                .create(path)
                .or_fail(Exit::Internal)
        };
        // Shown in the room, where another uid may look; on the host the task's folder is private.
        for path in [
            folder.jobs(),
            folder.subagents(),
            folder.feedback(),
            folder.proxy(),
        ] {
            make(path, 0o755)?;
        }
        make(folder.outbox(), 0o700)?;
        make(folder.evidence(), 0o700)?;
        if let Some(goal) = &self.view.spec.goal {
            let file = folder.feedback().join(PROMPT);
            durable::replace(&file, goal.as_bytes(), 0o644).or_fail(Exit::Internal)?;
        }
        Ok(())
    }

    fn make_worktree(&self) -> Result<Event, Failure> {
        let repository = &self.repository;
        let spec = &self.view.spec;
        if !spec.isolation.has_worktree() {
            let workspace = repository
                .checkout()
                .ok_or_else(|| no_checkout(spec.isolation))?;
            return Ok(Event::Prepared {
                worktree: None,
                workspace: workspace.to_owned(),
            });
        }
        let base = Oid::from_str(&spec.base).or_fail(Exit::Internal)?;
        repository.refuse_unsupported(base).map_err(|error| {
            Failure::caused(Exit::Usage, &error)
                .advise("nothing was made; `airlock doctor` lists what is supported")
        })?;
        let folder = self.folder();
        let worktree = repository
            .create_worktree(&WorktreeRequest {
                id: spec.task.as_str(),
                branch: &spec.branch,
                base,
                tree: &folder.tree(),
                shadow: &folder.shadow(),
                lock: &self.shop.folder.repository_lock(),
                history: History::Full,
            })
            .map_err(|error| refused(&error))?;
        let workspace = folder.tree();
        Ok(Event::Prepared {
            worktree: Some(worktree),
            workspace,
        })
    }

    /// Without a room nothing has run: nothing is left either.
    pub(super) fn take_back(&mut self, failure: Failure) -> Result<(), Failure> {
        self.undo_preparation()?;
        let event = Event::Failed {
            failure: failure.clone(),
        };
        self.record(vec![event, Event::Removed])?;
        worktrees::remove_tree(self.folder().path()).or_fail(Exit::Internal)?;
        Err(failure)
    }

    /// Removes whatever an interrupted preparation left.
    pub(super) fn undo_preparation(&self) -> Result<(), Failure> {
        let spec = &self.view.spec;
        let base = Oid::from_str(&spec.base).or_fail(Exit::Internal)?;
        let folder = self.folder();
        let worktree = Worktree {
            id: spec.task.as_str().to_owned(),
            branch: spec.branch.clone(),
            base,
            tree: folder.tree(),
            shadow: folder.shadow(),
        };
        self.repository
            .remove_worktree(&worktree, BranchFate::DeleteIfAt(base))
            .or_fail(Exit::Internal)?;
        Ok(())
    }
}

fn no_checkout(isolation: Isolation) -> Failure {
    Failure::usage(format!(
        "isolation mode {} needs a checkout, and this repository is bare",
        isolation.as_str()
    ))
    .advise("start it in a linked worktree, or use --isolation sandbox")
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever else goes wrong is the engine's own failure"
)]
fn refused(error: &CreateError) -> Failure {
    let exit = match error {
        CreateError::Branch { .. }
        | CreateError::BranchExists { .. }
        | CreateError::Occupied { .. } => Exit::Conflict,
        CreateError::Base { .. } => Exit::Usage,
        _ => Exit::Internal,
    };
    let advice = if exit == Exit::Conflict {
        "nothing was made; choose another branch with [task] branch, or remove what is in the way"
    } else {
        "nothing was made"
    };
    Failure::caused(exit, error).advise(advice)
}
