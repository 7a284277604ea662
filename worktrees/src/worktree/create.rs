//! Making a worktree. Everything that can be refused is refused before anything is touched, and whatever
//! fails later takes back what was made.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{IndexEntry, Oid};
use thiserror::Error;

use super::{Worktree, WorktreeRequest, registration, shadow};
use crate::lock::{LockError, lock};
use crate::owner::must_hand_over;
use crate::repository::{
    OpenError, POINTER, RefError, Repository, full_name, lock_path, patiently,
};
use crate::tree::{CheckoutError, Folder, Settings, Source, check_out, remove_tree};

/// A worktree could not be made. Nothing of it is left.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The id would not be a safe folder name.
    #[error("{id:?} cannot be the id of a worktree")]
    InvalidId {
        /// The id.
        id: String,
    },
    /// The base cannot be used.
    #[error("cannot use the base commit {base}")]
    Base {
        /// The base commit.
        base: Oid,
        /// Why.
        #[source]
        source: OpenError,
    },
    /// There is a branch of that name already.
    #[error("the branch {branch} exists already, at {at}")]
    BranchExists {
        /// Short name.
        branch: String,
        /// Where it is.
        at: Oid,
    },
    /// The branch cannot be made: a name that clashes, a held lock.
    #[error("cannot make the branch {branch}")]
    Branch {
        /// Short name.
        branch: String,
        /// Why.
        #[source]
        source: RefError,
    },
    /// Something is where the worktree was to be made.
    #[error("{} exists already", path.display())]
    Occupied {
        /// What is there.
        path: PathBuf,
    },
    /// The lock of the repository cannot be had.
    #[error("cannot make the worktree {id}")]
    Lock {
        /// Id of the worktree.
        id: String,
        /// Why.
        #[source]
        source: LockError,
    },
    /// The settings of the repository cannot be read.
    #[error("cannot read the configuration of {}", path.display())]
    Settings {
        /// The git directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: git2::Error,
    },
    /// The files of the base cannot be written out.
    #[error("cannot check out {base} into {}", path.display())]
    Checkout {
        /// The base commit.
        base: Oid,
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<CheckoutError>,
    },
    /// A file or folder of the worktree cannot be made.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The index cannot be written.
    #[error("cannot write the index {}", path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: git2::Error,
    },
}

impl Repository {
    /// Makes the checkout, the shadow git directory, the branch at the base, and the registration that
    /// `git worktree list` shows. Any number of processes may do so at once.
    pub fn create_worktree(&self, request: &WorktreeRequest<'_>) -> Result<Worktree, CreateError> {
        self.check_request(request)?;
        let mut made = Made::nothing(self);
        let entries = self.fill(request, &mut made)?;
        // Only the bookkeeping of git is not made for many at once: the long part needs no lock.
        let held = lock(request.lock).map_err(|source| CreateError::Lock {
            id: request.id.to_owned(),
            source,
        })?;
        self.check_branch(request.branch)?;
        registration::create(self, request, &entries, &mut made.registration)?;
        self.set_branch(request.branch, request.base, None)
            .map_err(|source| refused(request.branch, source))?;
        drop(held);
        made.kept = true;
        Ok(self.worktree_at(request))
    }

    /// Makes a checkout and its shadow git directory alone: no branch, no registration, nothing that the repository
    /// would show. For what runs before a task, and is thrown away with its folders.
    pub fn create_unregistered(&self, request: &WorktreeRequest<'_>) -> Result<(), CreateError> {
        for path in [request.tree, request.shadow] {
            if fs::symlink_metadata(path).is_ok() {
                return Err(CreateError::Occupied {
                    path: path.to_path_buf(),
                });
            }
        }
        let mut made = Made::nothing(self);
        self.fill(request, &mut made)?;
        // What a room finds at this place is a pointer of its own; there has to be something to cover.
        write_new(request.tree, ".git", POINTER.as_bytes())?;
        made.kept = true;
        Ok(())
    }

    fn check_request(&self, request: &WorktreeRequest<'_>) -> Result<(), CreateError> {
        let id = request.id;
        let usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if id.is_empty() || id.len() > 200 || id.starts_with('.') || !id.bytes().all(usual) {
            return Err(CreateError::InvalidId { id: id.to_owned() });
        }
        let registered = registration::place(self, id);
        for path in [request.tree, request.shadow, &registered] {
            if fs::symlink_metadata(path).is_ok() {
                return Err(CreateError::Occupied {
                    path: path.to_path_buf(),
                });
            }
        }
        self.check_branch(request.branch)?;
        self.refuse_unsupported(request.base)
            .map_err(|source| CreateError::Base {
                base: request.base,
                source,
            })
    }

    fn check_branch(&self, branch: &str) -> Result<(), CreateError> {
        let failed = |source| refused(branch, source);
        let name = full_name(branch).map_err(failed)?;
        if !name.starts_with("refs/heads/") {
            return Err(failed(RefError::InvalidName { name }));
        }
        if let Some(at) = self.ref_target(&name).map_err(failed)? {
            return Err(CreateError::BranchExists {
                branch: branch.to_owned(),
                at,
            });
        }
        self.refuse_clash(&name).map_err(failed)?;
        patiently(|| self.check_locks(&name)).map_err(failed)
    }

    fn check_locks(&self, name: &str) -> Result<(), RefError> {
        self.release_left_behind(name)?;
        for path in [name, "packed-refs"] {
            let path = lock_path(&self.common_dir().join(path));
            if fs::symlink_metadata(&path).is_ok() {
                let name = name.to_owned();
                return Err(RefError::Locked { name, path });
            }
        }
        Ok(())
    }

    /// Checkout and shadow git directory.
    fn fill(
        &self,
        request: &WorktreeRequest<'_>,
        made: &mut Made<'_>,
    ) -> Result<Vec<IndexEntry>, CreateError> {
        let settings = Settings::load(self).map_err(|source| CreateError::Settings {
            path: self.common_dir().to_path_buf(),
            source,
        })?;
        let entries = self.fill_tree(request, &settings, made)?;
        made.folders.push(request.shadow.to_path_buf());
        shadow::create(self, request, &settings, &entries)?;
        Ok(entries)
    }

    fn fill_tree(
        &self,
        request: &WorktreeRequest<'_>,
        settings: &Settings,
        made: &mut Made<'_>,
    ) -> Result<Vec<IndexEntry>, CreateError> {
        let tree = request.tree;
        let written = |source| CreateError::Write {
            path: tree.to_path_buf(),
            source,
        };
        fs::create_dir(tree).map_err(written)?;
        made.folders.push(tree.to_path_buf());
        let owner = must_hand_over(self.owner()).then(|| self.owner());
        let folder = Folder::open(tree).map_err(written)?;
        if let Some((user, group)) = owner {
            nix::unistd::fchown(&folder, Some(user.into()), Some(group.into()))
                .map_err(|error| written(error.into()))?;
        }
        let repo = self.open().map_err(|source| CreateError::Settings {
            path: self.common_dir().to_path_buf(),
            source,
        })?;
        let source = Source {
            repo: &repo,
            settings,
            owner,
        };
        check_out(&source, request.base, folder).map_err(|source| CreateError::Checkout {
            base: request.base,
            path: tree.to_path_buf(),
            source: Box::new(source),
        })
    }
}

/// What was made so far; taken back when it is dropped before it is kept.
#[derive(Debug)]
struct Made<'r> {
    repository: &'r Repository,
    folders: Vec<PathBuf>,
    registration: Option<PathBuf>,
    kept: bool,
}

impl<'r> Made<'r> {
    fn nothing(repository: &'r Repository) -> Self {
        Self {
            repository,
            folders: Vec::new(),
            registration: None,
            kept: false,
        }
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // The error that led here is what the caller hears; what could not be taken back, `prune` finds again.
        if let Some(registration) = &self.registration {
            let _owner = self.repository.act_as_owner();
            let _left = remove_tree(registration);
        }
        for folder in &self.folders {
            let _left = remove_tree(folder);
        }
    }
}

fn refused(branch: &str, source: RefError) -> CreateError {
    CreateError::Branch {
        branch: branch.to_owned(),
        source,
    }
}

/// Writes a new index file with these entries, sorted by path.
pub(super) fn write_index(path: &Path, entries: &[IndexEntry]) -> Result<(), CreateError> {
    let failed = |source| CreateError::Index {
        path: path.to_path_buf(),
        source,
    };
    let mut index = git2::Index::open(path).map_err(failed)?;
    for entry in entries {
        index.add(entry).map_err(failed)?;
    }
    index.write().map_err(failed)
}

/// Writes a file that must not exist.
pub(super) fn write_new(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), CreateError> {
    let path = folder.join(name);
    let made = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path);
    made.and_then(|mut file| io::Write::write_all(&mut file, bytes))
        .map_err(|source| CreateError::Write { path, source })
}

/// A path as one line of a git file.
pub(super) fn line(prefix: &str, path: &Path) -> Vec<u8> {
    [prefix.as_bytes(), path.as_os_str().as_bytes(), b"\n"].concat()
}
