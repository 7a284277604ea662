//! A repository as a description: where it is, whose it is, which checkout the user stands in.
//! git2 is opened afresh per call. Environment variables of git are never read, and nothing here writes.

mod discover;
mod error;
mod format;
mod objects;
mod ref_lock;
mod refs;
mod unsupported;

use std::path::{Path, PathBuf};

pub(crate) use discover::{linked_checkout, path_of};
pub use error::{OpenError, ReadError, RefError};
pub(crate) use format::Format;
pub use objects::{POINTER, object_mount};
pub(crate) use refs::{
    Head, append_reflog, full_name, lock_path, patiently, read_head, sync_folder,
};
pub(crate) use unsupported::RESERVED;

use crate::owner::{ActingAsOwner, ActingAsSelf};

/// A repository found on disk. Cheap to clone, may go to other threads.
#[derive(Debug, Clone)]
pub struct Repository {
    common: PathBuf,
    git_dir: PathBuf,
    checkout: Option<PathBuf>,
    name: String,
    owner: (u32, u32),
}

impl Repository {
    /// The git directory that all worktrees share, canonical.
    pub fn common_dir(&self) -> &Path {
        &self.common
    }

    /// The git directory of the checkout that the user stands in: the common one, or one of `worktrees/`.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The canonical top level of the checkout that the user stands in; `None` in a bare repository.
    pub fn checkout(&self) -> Option<&Path> {
        self.checkout.as_deref()
    }

    /// A short name for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where a worktree appears inside the room: the checkout's own path, or `/workspace/<name>` when bare.
    pub fn room_path(&self) -> PathBuf {
        match &self.checkout {
            Some(checkout) => checkout.clone(),
            None => Path::new("/workspace").join(&self.name),
        }
    }

    /// The user and group that own the git directory.
    pub fn owner(&self) -> (u32, u32) {
        self.owner
    }

    /// Opens the shared git directory.
    ///
    /// Opened as a bare one on purpose: libgit2 then has no work tree to touch, and does not repeat with other
    /// rules (it refuses root) the check of the owner that `discover` has made.
    pub(crate) fn open(&self) -> Result<git2::Repository, git2::Error> {
        // libgit2 reads the user's own configuration here, too.
        let _own = ActingAsSelf::begin();
        git2::Repository::open_bare(&self.common)
    }

    /// From here on this thread touches files as the owner of the repository, until the value is dropped.
    pub(crate) fn act_as_owner(&self) -> ActingAsOwner {
        ActingAsOwner::begin(self.owner, &self.common)
    }
}
