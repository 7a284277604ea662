//! The entry of a worktree below the repository's `worktrees/`: it is what `git worktree list` shows, and it
//! is locked, so that the user's own `git worktree prune` keeps it. Published by one rename.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use git2::IndexEntry;

use super::WorktreeRequest;
use super::create::{CreateError, line, write_index, write_new};
use crate::repository::{Repository, full_name, path_of};
use crate::tree::remove_tree;

/// Where the registration of a worktree is.
pub(super) fn place(repository: &Repository, id: &str) -> PathBuf {
    repository.common_dir().join("worktrees").join(id)
}

/// The checkout that is registered under an id; `None`: there is no registration that can be read.
pub(super) fn registered_tree(registration: &Path) -> Option<PathBuf> {
    let bytes = fs::read(registration.join("gitdir")).ok()?;
    path_of(&bytes).parent().map(Path::to_path_buf)
}

/// Makes the registration and the `.git` file that leads to it. `made` is set as soon as there is something
/// to take back.
pub(super) fn create(
    repository: &Repository,
    request: &WorktreeRequest<'_>,
    entries: &[IndexEntry],
    made: &mut Option<PathBuf>,
) -> Result<(), CreateError> {
    let target = place(repository, request.id);
    write_new(request.tree, ".git", &line("gitdir: ", &target))?;
    let written = |path: &Path, source| CreateError::Write {
        path: path.to_path_buf(),
        source,
    };
    let _owner = repository.act_as_owner();
    // Beside `worktrees/`, not in it: git would list and prune what is half made.
    let draft = repository
        .common_dir()
        .join(format!("airlock-{}.new", request.id));
    // A draft is made only under the lock, so an old one belongs to nobody.
    if let Err(error) = remove_tree(&draft) {
        return Err(written(&draft, io::Error::other(error)));
    }
    fs::create_dir(&draft).map_err(|source| written(&draft, source))?;
    *made = Some(draft.clone());
    let name = full_name(request.branch).map_err(|source| CreateError::Branch {
        branch: request.branch.to_owned(),
        source,
    })?;
    let head = format!("ref: {name}\n");
    let reason = format!("airlock task {}\n", request.id);
    write_new(&draft, "HEAD", head.as_bytes())?;
    write_new(&draft, "commondir", b"../..\n")?;
    write_new(&draft, "gitdir", &line("", &request.tree.join(".git")))?;
    write_new(&draft, "locked", reason.as_bytes())?;
    write_index(&draft.join("index"), entries)?;
    publish(&draft, &target).map_err(|source| written(&target, source))?;
    *made = Some(target);
    Ok(())
}

/// The list is removed with its last entry, perhaps between our making and using it.
fn publish(draft: &Path, target: &Path) -> io::Result<()> {
    let list = target.parent().unwrap_or(target);
    let mut attempts = 10;
    loop {
        attempts -= 1;
        match fs::create_dir(list) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        match fs::rename(draft, target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempts > 0 => {}
            done => return done,
        }
    }
}
