//! git's own lock of a ref, held by us. The lock file is made by hard link, with our mark in it and a file
//! lock on it: one that a killed process left behind is told from one that somebody's git holds, and is
//! taken away. A lock that is not provably ours is never touched.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use git2::Oid;
use nix::fcntl::OFlag;

use super::refs::{lock_path, sync_folder};
use super::{RefError, Repository};

/// What our lock files hold. The value of the ref is written elsewhere and renamed into place.
const MARK: &[u8] = b"locked by airlock\n";

/// Drafts that this process has begun, for names that nobody else has.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// A ref that is locked by us: nobody else moves it until this is dropped or published.
#[derive(Debug)]
pub(crate) struct LockedRef {
    name: String,
    path: PathBuf,
    lock: PathBuf,
    common: PathBuf,
    current: Option<Oid>,
    /// Its file lock says that we live.
    _held: File,
}

impl Repository {
    /// Takes git's own lock of a ref, and reads the ref beneath it.
    pub(crate) fn lock_ref(&self, name: &str) -> Result<LockedRef, RefError> {
        self.refuse_clash(name)?;
        let path = self.common_dir().join(name);
        let lock = lock_path(&path);
        let held = take(name, &lock, self.common_dir())?;
        let mut locked = LockedRef {
            name: name.to_owned(),
            path,
            lock,
            common: self.common_dir().to_path_buf(),
            current: None,
            _held: held,
        };
        // A failure from here on drops the lock file with the value.
        locked.current = self.ref_target(name)?;
        Ok(locked)
    }

    /// Takes away the lock of a ref (full or short name) that a killed process of ours left behind. A lock of
    /// anybody else, or of a process that lives, stays.
    pub fn release_left_behind(&self, name: &str) -> Result<(), RefError> {
        let name = super::full_name(name)?;
        let lock = lock_path(&self.common_dir().join(&name));
        let _owner = self.act_as_owner();
        release(&lock).map_err(|source| RefError::File {
            action: "release",
            path: lock.clone(),
            source,
        })
    }
}

impl LockedRef {
    /// Where the ref is, read under the lock; `None`: it does not exist.
    pub(crate) fn current(&self) -> Option<Oid> {
        self.current
    }

    /// Writes the new value and gives the lock back.
    pub(crate) fn publish(self, new: Oid) -> Result<(), RefError> {
        let failed = |action, path: &Path, source| RefError::File {
            action,
            path: path.to_path_buf(),
            source,
        };
        let draft = draft(&self.common);
        let written = create(&draft).and_then(|mut file| {
            file.write_all(format!("{new}\n").as_bytes())?;
            file.sync_all()
        });
        written.map_err(|source| failed("write", &draft, source))?;
        if self.path.is_dir() {
            remove_empty_folders(&self.path);
        }
        if let Err(source) = fs::rename(&draft, &self.path) {
            // Of no use to anybody; the error that is told is the other one.
            let _left = fs::remove_file(&draft);
            return Err(failed("replace", &self.path, source));
        }
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        sync_folder(folder).map_err(|source| failed("sync", folder, source))
    }

    /// Deletes the loose ref if it is at `expected`, its reflog with it, and the folders that are empty then.
    pub(crate) fn delete(self, expected: Oid) -> Result<(), RefError> {
        if self.current != Some(expected) {
            return Err(RefError::Moved {
                name: self.name.clone(),
                expected: Some(expected),
                found: self.current,
            });
        }
        fs::remove_file(&self.path).map_err(|source| RefError::File {
            action: "delete",
            path: self.path.clone(),
            source,
        })?;
        let log = self.common.join("logs").join(&self.name);
        // Most refs of ours have no reflog.
        let _absent = fs::remove_file(&log);
        let (path, common) = (self.path.clone(), self.common.clone());
        drop(self);
        for (leaf, root) in [(path, common.join("refs")), (log, common.join("logs/refs"))] {
            // `refs/heads` and its like stay, as git keeps them.
            for folder in leaf.ancestors().skip(1) {
                let kind = folder.parent() == Some(root.as_path());
                if kind || !folder.starts_with(&root) || fs::remove_dir(folder).is_err() {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Drop for LockedRef {
    fn drop(&mut self) {
        // A lock that stays is taken away by the next one who wants the ref, once we are gone.
        let _gone = fs::remove_file(&self.lock);
    }
}

/// Makes the lock file, which then is ours until it is removed or the process ends.
fn take(name: &str, lock: &Path, common: &Path) -> Result<File, RefError> {
    let failed = |action, path: &Path, source| RefError::File {
        action,
        path: path.to_path_buf(),
        source,
    };
    let draft = draft(common);
    let marked = create(&draft).and_then(|mut file| {
        file.write_all(MARK)?;
        file.lock()?;
        Ok(file)
    });
    let file = marked.map_err(|source| failed("write", &draft, source))?;
    let folder = lock.parent().unwrap_or(Path::new("/"));
    // git removes folders of refs when they are empty, perhaps between our making and using one.
    let mut attempts = 4;
    let outcome = loop {
        attempts -= 1;
        let linked = fs::create_dir_all(folder).and_then(|()| fs::hard_link(&draft, lock));
        match linked {
            Ok(()) => break Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempts > 0 => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let released = attempts > 0 && release(lock).is_ok();
                if !released || fs::symlink_metadata(lock).is_ok() {
                    break Err(RefError::Locked {
                        name: name.to_owned(),
                        path: lock.to_path_buf(),
                    });
                }
            }
            Err(source) => break Err(failed("lock", lock, source)),
        }
    };
    // The lock file is the other name of the same file.
    let _left = fs::remove_file(&draft);
    outcome
}

/// Removes a lock file that has our mark and no living holder.
fn release(lock: &Path) -> io::Result<()> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(lock);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let facts = file.metadata()?;
    let ours = facts.is_file() && facts.len() == MARK.len() as u64 && fs::read(lock)? == MARK;
    if !ours || file.try_lock().is_err() {
        return Ok(());
    }
    // Whoever removes it holds the file lock: if the name still leads here, nobody else can be at it.
    let now = fs::symlink_metadata(lock);
    if now.is_ok_and(|now| (now.dev(), now.ino()) == (facts.dev(), facts.ino())) {
        fs::remove_file(lock)?;
    }
    Ok(())
}

fn draft(common: &Path) -> PathBuf {
    common.join(format!(
        "airlock-draft-{}-{}",
        std::process::id(),
        DRAFTS.fetch_add(1, Ordering::Relaxed)
    ))
}

fn create(path: &Path) -> io::Result<File> {
    // One that a killed process with our number left behind.
    let _left = fs::remove_file(path);
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Folders of refs stay behind when the refs go; a ref of that name needs them gone.
fn remove_empty_folders(folder: &Path) {
    if let Ok(entries) = fs::read_dir(folder) {
        for entry in entries.flatten() {
            remove_empty_folders(&entry.path());
        }
    }
    // A folder with something in it stays, and the rename after this says so.
    let _kept = fs::remove_dir(folder);
}
