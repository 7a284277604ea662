//! The index of the target's checkout: held locked throughout a landing, by a lock file whose content proves
//! that it is ours, and replaced whole by a rename.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use git2::{Index, IndexEntry, IndexEntryExtendedFlag};

use super::{LandError, LandPlan};
use crate::history::{FileChange, Side, TreeEntry};
use crate::repository::{lock_path, sync_folder};
use crate::shown;

/// The held `index.lock`.
#[derive(Debug)]
pub(super) struct IndexLock {
    index: PathBuf,
    lock: PathBuf,
    /// Left behind on purpose, for a recovery to find.
    abandoned: bool,
}

impl IndexLock {
    /// How the names of locks begin that are not in place yet.
    pub(super) const DRAFT: &str = "airlock-index-lock.";

    /// Takes the lock. It appears with its content, so that at no time it is there without being ours.
    pub(super) fn take(git_dir: &Path, plan: &LandPlan) -> Result<Self, LandError> {
        let lock = Self::at(git_dir);
        let failed = |path: &Path, source| LandError::File {
            action: "lock",
            path: path.to_path_buf(),
            source,
        };
        let draft = git_dir.join(format!("{}{}", Self::DRAFT, std::process::id()));
        Self::forget(&draft).map_err(|source| failed(&draft, source))?;
        let made = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&draft);
        made.and_then(|mut file| {
            file.write_all(marker(plan).as_bytes())?;
            file.sync_all()
        })
        .map_err(|source| failed(&draft, source))?;
        let linked = fs::hard_link(&draft, &lock.lock);
        Self::forget(&draft).map_err(|source| failed(&draft, source))?;
        match linked {
            Ok(()) => Ok(lock),
            Err(error) => {
                // What stands there is not ours.
                let path = lock.abandon();
                if error.kind() == io::ErrorKind::AlreadyExists {
                    Err(LandError::IndexLocked { path })
                } else {
                    Err(failed(&path, error))
                }
            }
        }
    }

    /// Takes over the lock of the same landing from a process that is gone; `None`: it is not there.
    pub(super) fn inherit(git_dir: &Path, plan: &LandPlan) -> Option<Self> {
        let lock = Self::at(git_dir);
        if Self::is_marked(&lock.lock, plan) {
            Some(lock)
        } else {
            lock.abandon();
            None
        }
    }

    /// Whether a file says that it is the lock of this landing.
    pub(super) fn is_marked(path: &Path, plan: &LandPlan) -> bool {
        let small =
            fs::symlink_metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() < 4096);
        small && fs::read(path).is_ok_and(|bytes| bytes == marker(plan).as_bytes())
    }

    /// Removes what is left of an update that was cut off.
    pub(super) fn sweep_update(&self) {
        let draft = self.index.with_file_name("airlock-index");
        for path in [lock_path(&draft), draft] {
            // The next update removes it before it begins, or says that it cannot.
            let _left = Self::forget(&path);
        }
    }

    fn at(git_dir: &Path) -> Self {
        let index = git_dir.join("index");
        Self {
            lock: lock_path(&index),
            index,
            abandoned: false,
        }
    }

    /// Leaves the lock where it is.
    pub(super) fn abandon(mut self) -> PathBuf {
        self.abandoned = true;
        self.lock.clone()
    }

    /// Reads the index; refuses one with parts that libgit2 or this crate would get wrong.
    pub(super) fn read(&self) -> Result<Index, LandError> {
        let unsupported = |feature: &str| LandError::UnsupportedIndex {
            path: self.index.clone(),
            feature: feature.to_owned(),
        };
        let index = Index::open(&self.index).map_err(|source| {
            let text = source.message();
            match text {
                _ if text.contains("'sdir'") => unsupported("a sparse index"),
                _ if text.contains("'link'") => unsupported("a split index"),
                _ if text.contains("extension") => unsupported(text),
                _ => LandError::Index {
                    action: "read",
                    path: self.index.clone(),
                    source,
                },
            }
        })?;
        let skipped = IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
        if index
            .iter()
            .any(|entry| entry.flags_extended & skipped != 0)
        {
            return Err(unsupported("a sparse checkout"));
        }
        Ok(index)
    }

    /// Replaces the entries of the changed files: by `entries`, or by nothing when a file is gone.
    pub(super) fn update(
        &self,
        changes: &[FileChange],
        entries: &[IndexEntry],
    ) -> Result<(), LandError> {
        let draft = self.index.with_file_name("airlock-index");
        let failed = |source| LandError::File {
            action: "replace",
            path: self.index.clone(),
            source,
        };
        let broken = |source| LandError::Index {
            action: "write",
            path: draft.clone(),
            source,
        };
        Self::forget(&draft).map_err(failed)?;
        Self::forget(&lock_path(&draft)).map_err(failed)?;
        fs::copy(&self.index, &draft).map_err(failed)?;
        let permissions = fs::metadata(&draft).map_err(failed)?.permissions();
        let mut index = Index::open(&draft).map_err(broken)?;
        // What is gone goes first: a file may be where a folder was, or the other way round.
        for change in changes {
            index
                .remove(path_of(&change.path), 0)
                .or_else(missing_is_fine)
                .map_err(broken)?;
        }
        for entry in entries {
            index.add(entry).map_err(broken)?;
        }
        index.write().map_err(broken)?;
        fs::set_permissions(&draft, permissions).map_err(failed)?;
        fs::File::open(&draft)
            .and_then(|file| file.sync_all())
            .map_err(failed)?;
        fs::rename(&draft, &self.index).map_err(failed)?;
        let folder = self.index.parent().unwrap_or(Path::new("/"));
        sync_folder(folder).map_err(failed)
    }

    fn forget(path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        if !self.abandoned {
            // One that stays says by its content whose it is, and a recovery removes it.
            let _left = fs::remove_file(&self.lock);
        }
    }
}

/// The paths where the index differs from a commit: what is staged, or in conflict.
pub(super) fn staged(index: &Index, head: &[TreeEntry]) -> Vec<String> {
    let mut paths = Vec::new();
    let mut expected = head.iter().peekable();
    for entry in index.iter() {
        while let Some(missing) = expected.next_if(|side| side.path < entry.path) {
            paths.push(shown(&missing.path));
        }
        let stage = entry.flags >> 12 & 3;
        let same = expected
            .next_if(|side| side.path == entry.path)
            .is_some_and(|side| side.oid == entry.id && side.mode == entry.mode && stage == 0);
        let intended = entry.flags_extended & IndexEntryExtendedFlag::INTENT_TO_ADD.bits() != 0;
        if !same || intended {
            paths.push(shown(&entry.path));
        }
    }
    paths.extend(expected.map(|side| shown(&side.path)));
    paths.dedup();
    paths
}

/// Whether the index has this side of all changed files.
pub(super) fn has(
    index: &Index,
    changes: &[FileChange],
    side: impl Fn(&FileChange) -> Option<Side>,
) -> bool {
    changes.iter().all(|change| {
        let entry = index.get_path(path_of(&change.path), 0);
        let found = entry.map(|entry| Side {
            oid: entry.id,
            mode: entry.mode,
        });
        found == side(change)
    })
}

fn path_of(path: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(path))
}

fn missing_is_fine(error: git2::Error) -> Result<(), git2::Error> {
    if error.code() == git2::ErrorCode::NotFound {
        Ok(())
    } else {
        Err(error)
    }
}

/// What our lock says. Only the landing that is recovered can have written exactly this.
fn marker(plan: &LandPlan) -> String {
    format!(
        "airlock landing\ntarget {}\nfrom {}\nto {}\n",
        plan.target, plan.expected, plan.result
    )
}
