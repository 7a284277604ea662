//! The lock that makes starts, removals and landings of one repository wait for each other.
//! Liveness is the held lock itself: nothing is ever written into the file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The lock file could not be opened or locked.
#[derive(Debug, Error)]
#[error("cannot lock {}", path.display())]
pub struct LockError {
    /// The lock file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// A held exclusive lock; released when dropped. The descriptor is close-on-exec, so a child never keeps it.
#[derive(Debug)]
pub struct RepoLock {
    _file: File,
}

/// Waits for the lock at `path`, which is made when it is missing.
///
/// The file is opened afresh each time, so that threads of one process wait for each other as processes do.
pub fn lock(path: &Path) -> Result<RepoLock, LockError> {
    let failed = |source| LockError {
        path: path.to_path_buf(),
        source,
    };
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .read(true)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path)
        .map_err(failed)?;
    file.lock().map_err(failed)?;
    Ok(RepoLock { _file: file })
}
