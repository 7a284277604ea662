//! What the other jobs of the task hold: each keeper tells its own number in a file of the lock folder.
//!
//! Must never count a job whose keeper is gone.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::keeper::file_name;
use crate::lock::HeldLock;

/// Ending of the files.
pub(crate) const USE: &str = "use";
/// A change below this is not told.
const STEP: u64 = 1 << 20;
/// Between two looks at the others.
const LOOK: Duration = Duration::from_millis(200);

/// One job's part in what its task uses.
#[derive(Debug)]
pub(super) struct Share {
    locks: PathBuf,
    task: String,
    own: String,
    file: Option<File>,
    told: u64,
    others: Vec<u64>,
    look_at: Option<Instant>,
}

impl Share {
    pub(super) fn new(locks: &Path, task: &str, job: &str) -> Self {
        Self {
            locks: locks.to_owned(),
            task: task.to_owned(),
            own: file_name(task, job, USE),
            file: None,
            told: 0,
            others: Vec::new(),
            look_at: None,
        }
    }

    /// Tells the others what this job holds.
    pub(super) fn tell(&mut self, bytes: u64) {
        if bytes.abs_diff(self.told) < STEP {
            return;
        }
        if self.file.is_none() {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600);
            options.custom_flags(nix::libc::O_NOFOLLOW);
            self.file = options.open(self.locks.join(&self.own)).ok();
        }
        // What cannot be told is missing in the others' sums; each still counts its own.
        if let Some(file) = &self.file
            && file.write_all_at(&bytes.to_le_bytes(), 0).is_ok()
        {
            self.told = bytes;
        }
    }

    /// What each other living job of the task holds.
    pub(super) fn others(&mut self, now: Instant) -> &[u64] {
        if self.look_at.is_none_or(|at| now >= at) {
            self.look_at = Some(now + LOOK);
            self.others = self.look();
        }
        &self.others
    }

    fn look(&self) -> Vec<u64> {
        let Ok(entries) = std::fs::read_dir(&self.locks) else {
            return Vec::new();
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names
            .filter(|name| *name != self.own)
            .filter_map(|name| {
                let rest = name.strip_prefix(&self.task)?.strip_prefix('.')?;
                let job = rest.strip_suffix(USE)?.strip_suffix('.')?;
                self.of(&name, job)
            })
            .collect()
    }

    fn of(&self, name: &str, job: &str) -> Option<u64> {
        let mut bytes = [0; 8];
        let file = File::open(self.locks.join(name)).ok()?;
        file.read_exact_at(&mut bytes, 0).ok()?;
        let lock = self.locks.join(file_name(&self.task, job, "lock"));
        HeldLock::is_held(&lock).then_some(u64::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_living_jobs_of_the_same_task_count() {
        let folder = tempfile::tempdir().unwrap();
        let locks = folder.path();
        let now = Instant::now();
        let tell = |task: &str, job: &str, bytes| {
            let mut share = Share::new(locks, task, job);
            share.tell(bytes);
        };
        tell("t1", "a", 5 << 20);
        tell("t1", "dead", 7 << 20);
        tell("t10", "a", 9 << 20);
        let _alive = HeldLock::acquire(&locks.join("t1.a.lock")).unwrap();
        let _other = HeldLock::acquire(&locks.join("t10.a.lock")).unwrap();
        let mut own = Share::new(locks, "t1", "b");
        own.tell(1 << 20);
        assert_eq!(own.others(now), [5 << 20]);
    }
}
