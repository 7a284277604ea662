//! A task's worktree: its own checkout of a fixed base, and the shadow git directory that its agent uses.
//! The repository's configuration is never written, and no hook runs.

mod create;
mod registration;
mod removal;
mod shadow;

use std::path::{Path, PathBuf};

use git2::Oid;
use serde::{Deserialize, Serialize};

pub use create::CreateError;
pub use removal::{BranchFate, Removed};

use crate::repository::Repository;

/// What a worktree is made of.
#[derive(Debug, Clone, Copy)]
pub struct WorktreeRequest<'a> {
    /// Id of the task: letters, digits, `-`, `_` and `.`, not beginning with a dot.
    pub id: &'a str,
    /// Short name of a branch that does not exist yet.
    pub branch: &'a str,
    /// The commit to begin at.
    pub base: Oid,
    /// Where the checkout is made; the folder above exists, this does not.
    pub tree: &'a Path,
    /// Where the shadow git directory is made; likewise.
    pub shadow: &'a Path,
    /// The lock file of the repository.
    pub lock: &'a Path,
    /// How much of the past the agent sees.
    pub history: History,
}

/// How much of the past the git commands in a room show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// The commits below the base, and the tags (builds read their version from them).
    #[default]
    Full,
    /// The base alone. Its objects lie beside all others in a read-only store: this hides nothing on purpose.
    None,
}

/// A task's worktree, as it can be stored and taken up again after a crash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// Id of the task, and name of the registration below `worktrees/`.
    pub id: String,
    /// Short name of its branch.
    pub branch: String,
    /// The commit it began at.
    #[serde(with = "crate::oid_text")]
    pub base: Oid,
    /// The checkout.
    pub tree: PathBuf,
    /// The shadow git directory.
    pub shadow: PathBuf,
}

impl Repository {
    /// The worktree that a request makes or has made, without looking whether it is there.
    pub fn worktree_at(&self, request: &WorktreeRequest<'_>) -> Worktree {
        Worktree {
            id: request.id.to_owned(),
            branch: request.branch.to_owned(),
            base: request.base,
            tree: request.tree.to_path_buf(),
            shadow: request.shadow.to_path_buf(),
        }
    }
}
