//! Airlock: repositories, task worktrees, sealing and landing.
//!
//! A worktree's life: [`Repository::discover`] finds the repository, [`Repository::create_worktree`] makes a
//! checkout of a fixed base with a private (shadow) git directory, an agent works there, [`Repository::seal`]
//! reads the files without following a link or running a program and makes one commit of them,
//! [`Repository::plan_landing`] and [`Repository::land`] move the target branch by compare-and-swap, and
//! [`Repository::remove_worktree`] leaves nothing behind.
//!
//! Nothing here starts a process, opens the agent's git directory as a repository, or writes the
//! repository's configuration.

mod history;
mod identity;
mod kept;
mod land;
mod lock;
mod notes;
mod oid_text;
mod owner;
mod repository;
mod seal;
mod shown;
mod store;
mod survey;
mod tree;
mod worktree;

pub use git2::Oid;

pub use history::{ChangeKind, CommitFacts, DiffStat, FileChange, Objects, Side, TreeEntry};
pub use identity::{EMAIL, NAME};
pub use kept::{Keepable, KeptError, KeptLimit, KeptSize, take_kept};
pub use land::{
    JournalError, LandError, LandKind, LandPlan, LandRequest, LandStep, Landing, MergeStyle,
    Recovered,
};
pub use lock::{LockError, RepoLock, lock};
pub use notes::NoteError;
pub use repository::{OpenError, POINTER, ReadError, RefError, Repository, object_mount};
pub use seal::{ProblemCode, Seal, SealError, SealRequest, TreeProblem};
pub use shown::shown;
pub use store::StoreError;
pub use survey::{ShadowCommit, ShadowRef, ShadowSurvey};
pub use tree::{
    Blocked, CheckoutError, DisarmError, Disarmament, Disarmed, RemoveError, disarm, remove_tree,
};
pub use worktree::{BranchFate, CreateError, History, Removed, Worktree, WorktreeRequest};
