//! Files on disk and how git turns them into blobs and back: folders held by descriptor, settings,
//! attributes, ignore rules and conversions. No link is followed and no program is run anywhere here.

mod attributes;
mod checkout;
mod convert;
mod disarm;
mod folder;
mod ignore;
mod names;
mod removal;
mod rules;
mod settings;

pub(crate) use attributes::{Attributes, Traits};
pub use checkout::CheckoutError;
pub(crate) use checkout::{Source, check_out, index_entry, unknown_entry};
pub(crate) use convert::{to_git, to_git_with, to_worktree};
pub use disarm::{DisarmError, Disarmament, Disarmed, disarm};
pub(crate) use folder::{Chain, Folder};
pub(crate) use ignore::IgnoreRules;
pub(crate) use names::{is_safe, looks_like_git};
pub use removal::{Blocked, RemoveError, remove_tree};
pub(crate) use rules::TreeRules;
pub(crate) use settings::Settings;

/// Longest `.gitignore` or `.gitattributes` that is read; git ignores larger ones too.
pub(crate) const RULES_LIMIT: u64 = 100 * 1024 * 1024;
