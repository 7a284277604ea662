//! Held file locks: the only proof that a process of ours is alive.
//!
//! Must never be placed where a room can see the file: a read-only bind is enough to lock it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anybody looks at a lock.
const GLANCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);

/// An exclusive lock on a file, released when dropped or when the process ends. Close-on-exec, so that no child keeps it.
#[derive(Debug)]
pub struct HeldLock {
    file: File,
    path: PathBuf,
}

/// Why a lock could not be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot lock {path}")]
pub struct LockError {
    /// The lock file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl HeldLock {
    /// Waits for the lock on `path`, making the file when it is absent.
    pub fn acquire(path: &Path) -> Result<Self, LockError> {
        let fault = |source| LockError {
            path: path.to_owned(),
            source,
        };
        loop {
            let file = open(path).map_err(fault)?;
            file.lock().map_err(fault)?;
            if same(&file, path).map_err(fault)? {
                return Ok(Self {
                    file,
                    path: path.to_owned(),
                });
            }
        }
    }

    /// Takes the lock on `path` if nobody holds it; `None` if somebody does.
    pub fn try_acquire(path: &Path) -> Result<Option<Self>, LockError> {
        let fault = |source| LockError {
            path: path.to_owned(),
            source,
        };
        loop {
            let file = open(path).map_err(fault)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(source)) => return Err(fault(source)),
            }
            if same(&file, path).map_err(fault)? {
                return Ok(Some(Self {
                    file,
                    path: path.to_owned(),
                }));
            }
        }
    }

    /// The same, for a lock that may be looked at just now: whoever looks whether it is held holds it for a moment, and
    /// so does a child that is forked in that moment until it is another program.
    pub(crate) fn acquire_soon(path: &Path) -> Result<Option<Self>, LockError> {
        let until = Instant::now() + GLANCE;
        loop {
            let lock = Self::try_acquire(path)?;
            if lock.is_some() || Instant::now() >= until {
                return Ok(lock);
            }
            thread::sleep(LOOK);
        }
    }

    /// Whether somebody holds the lock on `path`, and not only in passing.
    pub(crate) fn stays_held(path: &Path) -> bool {
        let until = Instant::now() + GLANCE;
        while Self::is_held(path) {
            if Instant::now() >= until {
                return true;
            }
            thread::sleep(LOOK);
        }
        false
    }

    /// Whether somebody holds the lock on `path`. A file that is absent or cannot be opened is not held.
    pub fn is_held(path: &Path) -> bool {
        let Ok(file) = File::open(path) else {
            return false;
        };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// The lock file, to write the holder's identity into.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Removes the file, then lets go. Others who wait for it notice that it is gone and make a new one.
    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path)
}

/// Whether `path` still names `file`: its last holder may have removed it while we waited.
fn same(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(named) => Ok(named.dev() == held.dev() && named.ino() == held.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passing_look_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        drop(HeldLock::acquire(&path).unwrap());
        let looks = File::open(&path).unwrap();
        looks.try_lock_shared().unwrap();
        assert!(HeldLock::try_acquire(&path).unwrap().is_none());
        let passes = thread::spawn(move || {
            thread::sleep(LOOK * 20);
            drop(looks);
        });
        let lock = HeldLock::acquire_soon(&path).unwrap();
        passes.join().unwrap();
        assert!(lock.is_some());
        assert!(HeldLock::stays_held(&path));
        drop(lock);
        assert!(!HeldLock::stays_held(&path));
    }

    #[test]
    fn held_until_dropped_and_safe_to_remove() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        assert!(!HeldLock::is_held(&path));
        let lock = HeldLock::acquire(&path).unwrap();
        assert!(HeldLock::is_held(&path));
        assert!(HeldLock::try_acquire(&path).unwrap().is_none());
        lock.remove().unwrap();
        assert!(!HeldLock::is_held(&path));
        let again = HeldLock::try_acquire(&path).unwrap();
        assert!(again.is_some() && HeldLock::is_held(&path));
    }
}
