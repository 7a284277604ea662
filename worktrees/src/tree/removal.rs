//! Removing a folder that a task has written: by descriptor, never through a link, never into another
//! file system, whatever the modes, whatever the depth, and without holding its names in memory.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};
use thiserror::Error;

use super::Folder;
use super::folder::Names;
use crate::shown;

/// Only so many names that could not be removed are listed.
const LISTED: usize = 20;
/// Folders nested below this are moved up first: each level has two descriptors open, and a process is often allowed
/// no more than 1024.
const OPEN_LIMIT: usize = 200;

/// Something that could not be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Shown path below the folder.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// A folder could not be removed whole.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// The path is not a folder, or cannot be opened.
    #[error("cannot open {} to remove it", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Some of what is in it cannot be removed; the rest is gone.
    #[error("{count} entries of {} cannot be removed, first {}: {}", path.display(), first.path, first.reason)]
    Left {
        /// The folder.
        path: PathBuf,
        /// How many.
        count: usize,
        /// The first of them.
        first: Blocked,
        /// The first of them and some more.
        blocked: Vec<Blocked>,
    },
    /// The empty folder itself cannot be removed.
    #[error("cannot remove {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The branch of a worktree cannot be removed.
    #[error("cannot remove the branch {branch}")]
    Branch {
        /// Short name.
        branch: String,
        /// Why.
        #[source]
        source: crate::repository::RefError,
    },
    /// What is registered under the worktree's id is another worktree.
    #[error("{} does not belong to the worktree at {}", path.display(), tree.display())]
    NotOurs {
        /// The registration, or the folder.
        path: PathBuf,
        /// The tree that was to be removed.
        tree: PathBuf,
    },
}

struct Removal {
    device: u64,
    root: Folder,
    count: usize,
    moved: u64,
    blocked: Vec<Blocked>,
}

/// A folder that is being emptied. Its names are read once through, with what is removed on the way; only when that
/// removed something is it read again, since names may be passed over while others go.
struct Level {
    name: Vec<u8>,
    folder: Folder,
    names: Names,
    removed: bool,
    /// Names of this level that stay; they are not tried again.
    stuck: BTreeSet<Vec<u8>>,
}

impl Level {
    fn new(name: Vec<u8>, folder: Folder) -> io::Result<Self> {
        Ok(Self {
            name,
            names: folder.each()?,
            folder,
            removed: false,
            stuck: BTreeSet::new(),
        })
    }

    /// The next name to be removed; `None` when all that can go is gone.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            match self.names.next().transpose()? {
                Some(name) if self.stuck.contains(&name) => {}
                Some(name) => return Ok(Some(name)),
                None if self.removed => {
                    self.removed = false;
                    self.names = self.folder.each()?;
                }
                None => return Ok(None),
            }
        }
    }
}

/// Removes a folder and everything in it. One that is missing is removed already.
pub fn remove_tree(path: &Path) -> Result<(), RemoveError> {
    let failed = |source| RemoveError::Open {
        path: path.to_path_buf(),
        source,
    };
    let parent = path
        .parent()
        .ok_or_else(|| failed(io::Error::from(io::ErrorKind::InvalidInput)))?;
    let name = path
        .file_name()
        .ok_or_else(|| failed(io::Error::from(io::ErrorKind::InvalidInput)))?;
    let parent = match Folder::open(parent) {
        Ok(parent) => parent,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let root = match open_forced(&parent, name.as_bytes()) {
        Ok(root) => root,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let mut removal = Removal {
        device: root.own_stat().map_err(failed)?.st_dev,
        root: root.again().map_err(failed)?,
        count: 0,
        moved: 0,
        blocked: Vec::new(),
    };
    removal.empty(root);
    if let Some(first) = removal.blocked.first() {
        return Err(RemoveError::Left {
            path: path.to_path_buf(),
            count: removal.count,
            first: first.clone(),
            blocked: removal.blocked,
        });
    }
    match parent.remove_folder(name.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(RemoveError::Folder {
            path: path.to_path_buf(),
            source: error,
        }),
        _ => Ok(()),
    }
}

impl Removal {
    /// Goes down into each folder it meets, removes files on the way, and comes back up.
    fn empty(&mut self, root: Folder) {
        let mut levels = Vec::new();
        self.enter(&mut levels, b"", root);
        loop {
            let depth = levels.len();
            let Some(level) = levels.last_mut() else {
                return;
            };
            let name = match level.next() {
                Ok(Some(name)) => name,
                Ok(None) => {
                    self.leave(&mut levels);
                    continue;
                }
                Err(error) => {
                    // What of it cannot be read cannot be removed; the rest of the tree still can.
                    level.stuck.insert(b".".to_vec());
                    self.report(&levels, b".", &error);
                    self.leave(&mut levels);
                    continue;
                }
            };
            match remove_or_open(&level.folder, &name, self.device) {
                Ok(None) => level.removed = true,
                Ok(Some(folder)) if depth < OPEN_LIMIT => {
                    self.enter(&mut levels, &name, folder);
                }
                Ok(Some(_)) => self.lift(&mut levels, &name),
                Err(error) => {
                    level.stuck.insert(name.clone());
                    self.report(&levels, &name, &error);
                }
            }
        }
    }

    fn enter(&mut self, levels: &mut Vec<Level>, name: &[u8], folder: Folder) {
        match Level::new(name.to_vec(), folder) {
            Ok(level) => levels.push(level),
            Err(error) => {
                if let Some(above) = levels.last_mut() {
                    above.stuck.insert(name.to_vec());
                }
                self.report(levels, name, &error);
            }
        }
    }

    /// A level is done: its folder is removed from the one above.
    fn leave(&mut self, levels: &mut Vec<Level>) {
        let Some(done) = levels.pop() else { return };
        let Some(above) = levels.last_mut() else {
            return;
        };
        if !done.stuck.is_empty() {
            above.stuck.insert(done.name);
            return;
        }
        match above.folder.remove_folder(&done.name) {
            Ok(()) => above.removed = true,
            Err(error) => {
                above.stuck.insert(done.name.clone());
                self.report(levels, &done.name, &error);
            }
        }
    }

    /// Moves a folder that lies too deep up to the root, where it is met again later.
    fn lift(&mut self, levels: &mut [Level], name: &[u8]) {
        let Some(level) = levels.last_mut() else {
            return;
        };
        loop {
            self.moved += 1;
            let above = format!(".airlock-removing-{}", self.moved);
            if self.root.has(above.as_bytes()).unwrap_or(false) {
                continue;
            }
            match nix::fcntl::renameat(&level.folder, name, &self.root, above.as_str()) {
                Ok(()) => {
                    level.removed = true;
                    // It may have been read past already up there.
                    if let Some(top) = levels.first_mut() {
                        top.removed = true;
                    }
                }
                Err(error) => {
                    level.stuck.insert(name.to_vec());
                    self.report(levels, name, &error.into());
                }
            }
            return;
        }
    }

    fn report(&mut self, levels: &[Level], name: &[u8], reason: &io::Error) {
        self.count += 1;
        if self.blocked.len() < LISTED {
            let mut path = Vec::new();
            for level in levels.iter().skip(1) {
                path.extend_from_slice(&level.name);
                path.push(b'/');
            }
            path.extend_from_slice(name);
            self.blocked.push(Blocked {
                path: shown(&path),
                reason: reason.to_string(),
            });
        }
    }
}

/// `None`: the name is gone. A folder is opened instead.
fn remove_or_open(folder: &Folder, name: &[u8], device: u64) -> io::Result<Option<Folder>> {
    match folder.remove_file(name) {
        Ok(()) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let facts = folder.stat(name)?;
            if facts.st_mode & nix::libc::S_IFMT != nix::libc::S_IFDIR {
                return Err(error);
            }
            if facts.st_dev != device {
                return Err(io::Error::other("it is on another file system"));
            }
        }
    }
    let inner = open_forced(folder, name)?;
    if inner.own_stat()?.st_dev != device {
        return Err(io::Error::other("it is on another file system"));
    }
    Ok(Some(inner))
}

/// Opens a folder and takes the right to read and change it, where the mode withholds that.
fn open_forced(parent: &Folder, name: &[u8]) -> io::Result<Folder> {
    let usable = |mode: u32| mode & 0o700 == 0o700;
    let facts = parent.stat(name)?;
    if facts.st_mode & nix::libc::S_IFMT != nix::libc::S_IFDIR {
        return Err(io::Error::from(io::ErrorKind::NotADirectory));
    }
    if !usable(facts.st_mode) {
        // The kernel and libc here refuse to change the mode of a link: nothing behind one can be hit.
        let mode = Mode::from_bits_truncate((facts.st_mode & 0o777) | 0o700);
        fchmodat(parent, name, mode, FchmodatFlags::NoFollowSymlink)?;
    }
    parent.child(name)
}
