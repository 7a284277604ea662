//! Why a delivery does not land. Each says what is in the way and where; unless it says otherwise, nothing has
//! changed.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use git2::Oid;
use thiserror::Error;

use super::LandStep;
use crate::repository::{ReadError, RefError};
use crate::store::StoreError;

/// The caller could not record a step.
#[derive(Debug, Error)]
#[error("the step cannot be recorded")]
pub struct JournalError {
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

impl JournalError {
    /// Wraps what went wrong in the caller's journal.
    pub fn new(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            source: source.into(),
        }
    }
}

/// A landing was refused or failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LandError {
    /// Target and delivery change the same places.
    #[error(
        "the delivery and the target change the same places of {}",
        list(paths)
    )]
    Conflict {
        /// Shown paths, sorted.
        paths: Vec<String>,
    },
    /// The target is not where the plan was made for.
    #[error("{target} is at {}, planned for {expected}", found.map_or_else(|| "nothing".to_owned(), |oid| oid.to_string()))]
    Moved {
        /// Short branch name.
        target: String,
        /// Where it should be.
        expected: Oid,
        /// Where it is.
        found: Option<Oid>,
    },
    /// Files that the landing would write have local changes, or stand in the way untracked.
    #[error("local changes in {} would be overwritten: {}", checkout.display(), list(paths))]
    DirtyTarget {
        /// The checkout.
        checkout: PathBuf,
        /// Shown paths, sorted.
        paths: Vec<String>,
    },
    /// Changes are staged in the target's checkout.
    #[error("changes are staged in {}: {}", checkout.display(), list(paths))]
    Staged {
        /// The checkout.
        checkout: PathBuf,
        /// Shown paths, sorted.
        paths: Vec<String>,
    },
    /// Another checkout has the target.
    #[error("{target} is checked out at {}", path.display())]
    CheckedOutElsewhere {
        /// Short branch name.
        target: String,
        /// That checkout.
        path: PathBuf,
    },
    /// The checkout is in the middle of something.
    #[error("a {state} is under way in {}", path.display())]
    Busy {
        /// `rebase`, `merge`, `cherry-pick`, `revert`, `bisect` or `am`.
        state: &'static str,
        /// The checkout.
        path: PathBuf,
    },
    /// Somebody holds the index.
    #[error("the index is locked by {}", path.display())]
    IndexLocked {
        /// The lock file.
        path: PathBuf,
    },
    /// The index uses a feature that cannot be handled without getting something silently wrong.
    #[error("the index {} uses {feature}, which is not supported", path.display())]
    UnsupportedIndex {
        /// The index.
        path: PathBuf,
        /// Name of the feature.
        feature: String,
    },
    /// There is no such branch.
    #[error("there is no branch {target}")]
    NoBranch {
        /// Short branch name.
        target: String,
    },
    /// Only a fast-forward was asked for, and the target has moved on.
    #[error("{target} is at {tip} and cannot be fast-forwarded to {delivery}")]
    NotFastForward {
        /// Short branch name.
        target: String,
        /// Where it is.
        tip: Oid,
        /// The delivery.
        delivery: Oid,
    },
    /// Joining the histories would bring commits of the base along that nobody judged for this target.
    #[error("the base {base} of the delivery is not in {target}")]
    BaseNotInTarget {
        /// Short branch name.
        target: String,
        /// The base.
        base: Oid,
    },
    /// A ref cannot be read or moved.
    #[error("cannot move {target}")]
    Ref {
        /// Short branch name.
        target: String,
        /// Why.
        #[source]
        source: RefError,
    },
    /// Objects cannot be read.
    #[error("cannot read what is to land on {target}")]
    Read {
        /// Short branch name.
        target: String,
        /// Why.
        #[source]
        source: ReadError,
    },
    /// libgit2 cannot merge the trees or make the commit.
    #[error("cannot merge {delivery} into {target}")]
    Merge {
        /// Short branch name.
        target: String,
        /// The delivery.
        delivery: Oid,
        /// Why.
        #[source]
        source: git2::Error,
    },
    /// The merge cannot be stored.
    #[error("cannot store the merge into {target}")]
    Store {
        /// Short branch name.
        target: String,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// The configuration cannot be read.
    #[error("cannot read the configuration of {}", path.display())]
    Settings {
        /// The git directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: git2::Error,
    },
    /// The index cannot be read or written.
    #[error("cannot {action} the index {}", path.display())]
    Index {
        /// `read` or `write`.
        action: &'static str,
        /// The index.
        path: PathBuf,
        /// Why.
        #[source]
        source: git2::Error,
    },
    /// A file of the git directory cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// `lock`, `replace`, ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file of the checkout cannot be read or written.
    #[error("cannot update {path} in {}", checkout.display())]
    Checkout {
        /// The checkout.
        checkout: PathBuf,
        /// Shown path.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The caller could not record a step. What was done up to there is taken back; after `RefMoved` the
    /// landing is complete.
    #[error("the landing on {target} stopped at {step:?}")]
    Journal {
        /// Short branch name.
        target: String,
        /// The step.
        step: LandStep,
        /// Why.
        #[source]
        source: JournalError,
    },
    /// The landing failed, and so did taking it back: the checkout is between two states, and its index stays
    /// locked until the landing is recovered.
    #[error("the landing on {target} is half done and could not be taken back: {first}")]
    HalfDone {
        /// Short branch name.
        target: String,
        /// What stopped the landing, in full.
        first: String,
        /// What stopped it from being taken back.
        #[source]
        source: Box<Self>,
    },
}

/// The first names, so that a message stays readable; the field has them all.
fn list(paths: &[String]) -> String {
    const NAMED: usize = 5;
    let mut text = paths
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if paths.len() > NAMED {
        text.push_str(", ...");
    }
    text
}
