//! Reading immutable objects: trees, blobs, commits, and what differs between two of them.
//! Decided by object ids alone: no attribute, no configuration and no file of a checkout has a say.

mod changes;
mod patch;
mod read;

pub(crate) use changes::plain_changes;
pub use changes::{ChangeKind, FileChange, Side};
pub use patch::DiffStat;
pub use read::{CommitFacts, Objects, TreeEntry};
pub(crate) use read::{DEPTH_LIMIT, peel_tree, plain_mode, unreadable};
