//! A job that is kept, seen by a supervisor: the one that started it, or a later one.
//!
//! Must never trust a pid, and must never take a broken file for an absent one.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use crate::identity::Identity;
use crate::keeper;
use crate::lock::HeldLock;
use crate::meta::{JobState, Meta, now_ms};
use crate::outcome::{Exit, Outcome};
use crate::room::wait_for_end;
use crate::spec::JobSpec;

/// Rounds of waiting for a keeper that has its lock and not yet written who it is.
const ROUNDS: u32 = 100;
const ROUND: Duration = Duration::from_millis(2);

/// The keeper of one job.
#[derive(Debug)]
pub struct Keeper {
    pid: u32,
    pidfd: Option<OwnedFd>,
    child: Option<Child>,
    lock: PathBuf,
    dir: PathBuf,
}

/// What was found where a job may be.
#[derive(Debug)]
pub enum Attached {
    /// Its keeper lives.
    Running(Keeper),
    /// It is over.
    Ended(Outcome),
    /// Its keeper died before the end; `meta.json` says so now.
    Lost,
    /// Its files are there and cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// There is nothing.
    NeverStarted,
}

impl Keeper {
    pub(crate) fn of_child(child: Child, locks: &Path, task: &str, job: &JobSpec) -> Self {
        Self {
            pid: child.id(),
            // Beside the child: where the end of children is ignored, waiting for it tells nothing.
            pidfd: Identity::of(child.id())
                .ok()
                .and_then(|identity| identity.open()),
            child: Some(child),
            lock: locks.join(keeper::file_name(task, &job.job, "lock")),
            dir: job.dir.clone(),
        }
    }

    /// The keeper's process id, for people; it is a child of whoever started the job.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the job is over. Blocks.
    pub fn wait(mut self) -> Outcome {
        if let Some(pidfd) = &self.pidfd {
            wait_for_end(pidfd);
        }
        if let Some(child) = &mut self.child {
            drop(child.wait());
        }
        match settle(&self.lock, &self.dir) {
            Attached::Ended(outcome) => outcome,
            // Marked as lost by now, with what was known of it before.
            Attached::Lost => match read(&self.dir).map(|meta| meta.outcome()) {
                Ok(Some(outcome)) => outcome,
                Ok(None) | Err(_) => Outcome::lost(),
            },
            Attached::Running(_) | Attached::Unreadable { .. } | Attached::NeverStarted => {
                Outcome::lost()
            }
        }
    }
}

/// Looks for the job `job` of `task` whose folder is `dir`, whoever started it.
pub fn attach(locks: &Path, task: &str, job: &str, dir: &Path) -> Attached {
    let lock = locks.join(keeper::file_name(task, job, "lock"));
    for _ in 0..ROUNDS {
        if !HeldLock::is_held(&lock) {
            return settle(&lock, dir);
        }
        // Held: by a keeper, or for a moment by somebody who looks as we do.
        if let Some((identity, pidfd)) = holder_of(&lock) {
            return Attached::Running(Keeper {
                pid: identity.pid,
                pidfd: Some(pidfd),
                child: None,
                lock,
                dir: dir.to_owned(),
            });
        }
        std::thread::sleep(ROUND);
    }
    Attached::Unreadable {
        path: lock,
        reason: "it is locked, and does not say by whom".into(),
    }
}

/// Who holds a job's lock, proven.
pub(crate) fn holder_of(lock: &Path) -> Option<(Identity, OwnedFd)> {
    let identity: Identity = serde_json::from_slice(&std::fs::read(lock).ok()?).ok()?;
    let pidfd = identity.open()?;
    Some((identity, pidfd))
}

/// The end of a job that nobody keeps any more. One whose keeper died is marked as lost, under its lock.
fn settle(lock: &Path, dir: &Path) -> Attached {
    let meta = match read(dir) {
        Ok(meta) => meta,
        Err(unreadable) => return unreadable,
    };
    if let Some(outcome) = meta.outcome() {
        return Attached::Ended(outcome);
    }
    match HeldLock::try_acquire(lock) {
        Ok(Some(lock)) => {
            // Under the lock once more: it may have ended between the two looks.
            let found = match read(dir) {
                Ok(meta) => match meta.outcome() {
                    Some(outcome) => Attached::Ended(outcome),
                    None => mark_lost(meta, dir),
                },
                Err(unreadable) => unreadable,
            };
            drop(lock.remove());
            found
        }
        Ok(None) | Err(_) => Attached::Lost,
    }
}

fn read(dir: &Path) -> Result<Meta, Attached> {
    match Meta::read(dir) {
        Ok(Some(meta)) => Ok(meta),
        Ok(None) => Err(Attached::NeverStarted),
        Err(error) => {
            let reason =
                std::error::Error::source(&error).map_or_else(String::new, ToString::to_string);
            Err(Attached::Unreadable {
                path: dir.join("meta.json"),
                reason,
            })
        }
    }
}

fn mark_lost(mut meta: Meta, dir: &Path) -> Attached {
    meta.state = JobState::Lost;
    meta.exit = Some(Exit::Lost);
    meta.ended_ms = Some(now_ms());
    // What cannot be written is found lost again next time.
    drop(meta.write(dir));
    Attached::Lost
}
