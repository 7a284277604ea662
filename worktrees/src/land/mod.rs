//! Landing: a target branch moves to an accepted delivery, by compare-and-swap, together with the checkout that
//! has the branch. Local edits in other files survive; whatever would be overwritten refuses the landing by name.
//! No hook, filter or merge driver runs, and nothing is ever forced.

mod clean;
mod error;
mod index;
mod perform;
mod plan;
mod recover;
mod whereabouts;
mod write;

use std::path::PathBuf;

use git2::Oid;
use serde::{Deserialize, Serialize};

pub use error::{JournalError, LandError};

/// What is to land where.
#[derive(Debug, Clone, Copy)]
pub struct LandRequest<'a> {
    /// Short name of the branch.
    pub target: &'a str,
    /// The sealed commit.
    pub delivery: Oid,
    /// The commit that the delivery began at.
    pub base: Oid,
    /// How.
    pub style: MergeStyle,
    /// Message of a merge or squash commit, should there be one.
    pub message: &'a str,
    /// Unix seconds of such a commit.
    pub when: i64,
}

/// How a delivery is joined to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeStyle {
    /// Fast-forward when the target has not moved, else a merge commit.
    #[default]
    Auto,
    /// Fast-forward or nothing.
    FastForward,
    /// One new commit on the target.
    Squash,
    /// Always a merge commit.
    Merge,
    /// The delivery's commit on top of the target.
    Rebase,
}

/// What the result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandKind {
    /// The target has the delivery already.
    AlreadyThere,
    /// The delivery itself.
    FastForward,
    /// One new commit.
    Squash,
    /// A merge commit.
    Merge,
    /// The delivery's commit with another parent.
    Rebase,
}

/// A landing that can be judged, carried out, and taken up again after a crash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandPlan {
    /// Short name of the branch.
    pub target: String,
    /// Where the branch was when the plan was made: it moves only from there.
    #[serde(with = "crate::oid_text")]
    pub expected: Oid,
    /// The commit that the branch will be at.
    #[serde(with = "crate::oid_text")]
    pub result: Oid,
    /// The tree of that commit.
    #[serde(with = "crate::oid_text")]
    pub tree: Oid,
    /// What the result is.
    pub kind: LandKind,
    /// The tree is the delivery's own, so that the delivery's judgement holds for it.
    pub judged_as_is: bool,
    /// The delivery.
    #[serde(with = "crate::oid_text")]
    pub delivery: Oid,
    /// Unix seconds for the reflog.
    pub when: i64,
}

/// How far a landing is. Recorded by the caller before the next step begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandStep {
    /// Everything was checked and the index is locked; files come next.
    Starting,
    /// The checkout has the new files; the index comes next.
    FilesWritten,
    /// The index has them too; the branch comes next.
    IndexWritten,
    /// The branch has moved; only the lock is left to be given back.
    RefMoved,
}

/// A landing that is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landing {
    /// Short name of the branch.
    pub target: String,
    /// Where it is now.
    #[serde(with = "crate::oid_text")]
    pub commit: Oid,
    /// The checkout that was brought along; `None`: the branch is checked out nowhere.
    pub checkout: Option<PathBuf>,
    /// Files that were changed in it.
    pub files: usize,
}

/// What became of a landing that was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovered {
    /// The branch and the checkout are at the result.
    Completed,
    /// Nothing of it is left; it may be tried again.
    RolledBack,
}
