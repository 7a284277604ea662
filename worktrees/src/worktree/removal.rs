//! Removing a worktree whole: registration, branch, checkout, shadow. Each part may be gone already, so that
//! a removal that was cut off is simply done again.

use std::path::Path;

use git2::Oid;

use super::{Worktree, registration};
use crate::repository::{RefError, Repository};
use crate::tree::{Folder, RemoveError, remove_tree};

/// What becomes of the branch of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchFate {
    /// It stays.
    Keep,
    /// It goes if it is where it is known to be; moved by somebody, it stays.
    DeleteIfAt(Oid),
}

/// What a removal found and took away.
#[expect(
    clippy::struct_excessive_bools,
    reason = "four parts, each there or not"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// The checkout was there.
    pub tree: bool,
    /// The shadow git directory was there.
    pub shadow: bool,
    /// The registration was there.
    pub registration: bool,
    /// The branch was deleted.
    pub branch: bool,
}

impl Repository {
    /// Removes everything that a worktree is made of. Idempotent; a registration of another worktree under the
    /// same id is refused.
    pub fn remove_worktree(
        &self,
        worktree: &Worktree,
        branch: BranchFate,
    ) -> Result<Removed, RemoveError> {
        let mut removed = Removed::default();
        let registration = registration::place(self, &worktree.id);
        if registration.exists() {
            match registration::registered_tree(&registration) {
                Some(tree) if same_place(&tree, &worktree.tree) => {}
                _ => {
                    return Err(RemoveError::NotOurs {
                        path: registration,
                        tree: worktree.tree.clone(),
                    });
                }
            }
            let _owner = self.act_as_owner();
            remove_tree(&registration)?;
            self.remove_empty_list();
            removed.registration = true;
        }
        if let BranchFate::DeleteIfAt(at) = branch {
            removed.branch = self.delete_if_at(&worktree.branch, at)?;
        }
        removed.tree = worktree.tree.exists();
        remove_tree(&worktree.tree)?;
        removed.shadow = worktree.shadow.exists();
        remove_tree(&worktree.shadow)?;
        Ok(removed)
    }

    fn delete_if_at(&self, branch: &str, at: Oid) -> Result<bool, RemoveError> {
        match self.delete_ref(&format!("refs/heads/{branch}"), at) {
            Ok(()) => Ok(true),
            Err(RefError::Moved { .. }) => Ok(false),
            Err(source) => Err(RemoveError::Branch {
                branch: branch.to_owned(),
                source,
            }),
        }
    }

    /// git removes `worktrees/` with its last entry, and so do we.
    fn remove_empty_list(&self) {
        if let Ok(common) = Folder::open(self.common_dir()) {
            // It stays when there are other worktrees.
            let _kept = common.remove_folder(b"worktrees");
        }
    }
}

/// The same folder, whether or not it still exists.
fn same_place(left: &Path, right: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    left == right || real(left) == real(right)
}
