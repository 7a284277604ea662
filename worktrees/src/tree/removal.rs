//! Removing a folder that a task has written: by descriptor, never through a link, never into another
//! file system, whatever the modes, whatever the depth, and without holding its names in memory.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};
use thiserror::Error;

use super::Folder;
use crate::shown;

/// Only so many names that could not be removed are listed.
const LISTED: usize = 20;
/// Folders nested below this are moved up first, so that only so many descriptors are open.
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

struct Level {
    name: Vec<u8>,
    folder: Folder,
    /// Names of this level that stay; they are not tried again.
    stuck: Vec<Vec<u8>>,
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
    /// Goes down into the first folder it meets, removes files on the way, and comes back up.
    fn empty(&mut self, root: Folder) {
        let mut levels = vec![Level {
            name: Vec::new(),
            folder: root,
            stuck: Vec::new(),
        }];
        while let Some(level) = levels.last_mut() {
            let pass = clear(&level.folder, &level.stuck, self.device);
            level
                .stuck
                .extend(pass.stuck.iter().map(|(name, _)| name.clone()));
            for (name, reason) in pass.stuck {
                self.report(&levels, &name, reason);
            }
            match pass.next {
                Some((name, folder)) if levels.len() < OPEN_LIMIT => levels.push(Level {
                    name,
                    folder,
                    stuck: Vec::new(),
                }),
                Some((name, _)) => self.lift(&mut levels, &name),
                // Names may be passed over while others are removed: only a pass that removes nothing is the last.
                None if pass.removed => {}
                None => self.leave(&mut levels),
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
            above.stuck.push(done.name);
            return;
        }
        if let Err(error) = above.folder.remove_folder(&done.name) {
            above.stuck.push(done.name.clone());
            self.report(levels, &done.name, error.to_string());
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
            let moved = nix::fcntl::renameat(&level.folder, name, &self.root, above.as_str());
            if let Err(error) = moved {
                level.stuck.push(name.to_vec());
                let reason = error.to_string();
                self.report(levels, name, reason);
            }
            return;
        }
    }

    fn report(&mut self, levels: &[Level], name: &[u8], reason: String) {
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
                reason,
            });
        }
    }
}

/// What one reading of a folder came to.
#[derive(Default)]
struct Pass {
    removed: bool,
    /// Names that must stay, and why.
    stuck: Vec<(Vec<u8>, String)>,
    next: Option<(Vec<u8>, Folder)>,
}

/// Removes the files of a folder until it meets a folder, which it opens.
fn clear(folder: &Folder, known: &[Vec<u8>], device: u64) -> Pass {
    let mut pass = Pass::default();
    let read = folder.each_name(|name| {
        if pass.next.is_some() || known.iter().any(|stuck| stuck == name) {
            return Ok(());
        }
        match remove_or_open(folder, name, device) {
            Ok(Some(inner)) => pass.next = Some((name.to_vec(), inner)),
            Ok(None) => pass.removed = true,
            Err(error) => pass.stuck.push((name.to_vec(), error.to_string())),
        }
        Ok(())
    });
    if let Err(error) = read {
        pass.removed = false;
        pass.stuck.push((b".".to_vec(), error.to_string()));
    }
    pass
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
