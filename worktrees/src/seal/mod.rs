//! Sealing: the files of a worktree become one commit. The tree is read beneath its root by descriptor; no
//! link is followed, no filter or hook runs, no index is used. What cannot be in a commit is named, never
//! dropped in silence, and the rest is sealed all the same.

mod commit;
mod file;
mod frame;
mod problem;
mod walk;

use std::io;
use std::path::PathBuf;

use git2::Oid;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use problem::{ProblemCode, TreeProblem};

use crate::repository::{ReadError, Repository};
use crate::store::{Store, StoreError};
use crate::tree::{Folder, Settings};
use crate::worktree::Worktree;

/// What is to be sealed, and how the commit is to read.
#[derive(Debug, Clone, Copy)]
pub struct SealRequest<'a> {
    /// The worktree; its jobs must be frozen.
    pub worktree: &'a Worktree,
    /// For the trailer `Airlock-Task`.
    pub task: &'a str,
    /// For the trailer `Airlock-Run`.
    pub run: &'a str,
    /// Subject and body of the commit.
    pub message: &'a str,
    /// Unix seconds of the commit: the same request on the same files gives the same commit.
    pub when: i64,
}

/// A sealed tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The tree.
    #[serde(with = "crate::oid_text")]
    pub tree: Oid,
    /// The commit, child of the base; `None` when nothing differs from the base.
    #[serde(with = "crate::oid_text::option")]
    pub commit: Option<Oid>,
    /// What could not be sealed, or should not have been there, in order of path.
    pub problems: Vec<TreeProblem>,
    /// Changed files for which an external filter was asked: stored as they are. Shown paths, in order.
    pub unconverted: Vec<String>,
    /// Files that were looked at.
    pub files: usize,
}

/// A worktree could not be sealed. Problems of single files are not errors: see [`Seal::problems`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SealError {
    /// The checkout itself cannot be opened.
    #[error("cannot open the checkout {}", path.display())]
    Tree {
        /// The checkout.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
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
    /// The base cannot be read.
    #[error("cannot read the base of the worktree at {path}")]
    Base {
        /// Shown path; empty for the root.
        path: String,
        /// Why.
        #[source]
        source: ReadError,
    },
    /// An object cannot be written.
    #[error("cannot store {path}")]
    Store {
        /// Shown path; empty for the root and the commit.
        path: String,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// The commit cannot be composed.
    #[error("cannot make a commit of the tree {tree}")]
    Commit {
        /// The sealed tree.
        tree: Oid,
        /// Why.
        #[source]
        source: git2::Error,
    },
}

impl Repository {
    /// Reads the worktree and makes a commit of it, or finds that nothing differs from the base. Moves no ref.
    /// The objects are on the disk when this returns.
    pub fn seal(&self, request: &SealRequest<'_>) -> Result<Seal, SealError> {
        let settings = Settings::load(self).map_err(|source| SealError::Settings {
            path: self.common_dir().to_path_buf(),
            source,
        })?;
        let repo = self.open().map_err(|source| SealError::Settings {
            path: self.common_dir().to_path_buf(),
            source,
        })?;
        let tree = &request.worktree.tree;
        let root = Folder::open(tree).map_err(|source| SealError::Tree {
            path: tree.clone(),
            source,
        })?;
        let store = Store::open(self, &repo).map_err(stored(b""))?;
        let mut walk = walk::Walk::new(&repo, store, &settings, root);
        let (sealed, base) = walk.run(request.worktree.base)?;
        let mut commit = None;
        if sealed != base {
            let made =
                commit::compose(&repo, request, sealed).map_err(|source| SealError::Commit {
                    tree: sealed,
                    source,
                })?;
            commit = Some(
                walk.store
                    .add(git2::ObjectType::Commit, &made)
                    .map_err(stored(b""))?,
            );
        }
        walk.store.sync().map_err(stored(b""))?;
        Ok(walk.into_seal(sealed, commit))
    }
}

fn stored(path: &[u8]) -> impl Fn(StoreError) -> SealError {
    let path = crate::shown(path);
    move |source| SealError::Store {
        path: path.clone(),
        source,
    }
}
