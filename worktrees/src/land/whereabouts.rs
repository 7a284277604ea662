//! Which checkout has a branch, and whether a checkout is in the middle of something. Only reads.

use std::fs;
use std::path::{Path, PathBuf};

use super::LandError;
use crate::repository::{Format, Head, Repository, linked_checkout, read_head};

/// Files and folders of a git directory that mean unfinished work.
const UNFINISHED: [(&str, &str); 7] = [
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
];

/// The checkout of the user, if it has the branch; `None`: no checkout has it. Refuses when another one does,
/// or when one is in the middle of work on it.
pub(super) fn checkout_of(
    repository: &Repository,
    target: &str,
) -> Result<Option<PathBuf>, LandError> {
    let name = format!("refs/heads/{target}");
    let mut own = None;
    for git_dir in git_dirs(repository) {
        let Some(folder) = folder_of(repository, &git_dir) else {
            continue;
        };
        let held = read_head(&git_dir).is_ok_and(|head| head == Head::Branch(name.clone()));
        let state = unfinished(&git_dir);
        if let Some(state) = state
            && (held || works_on(&git_dir, target, &name))
        {
            return Err(LandError::Busy {
                state,
                path: folder,
            });
        }
        if held && git_dir != repository.git_dir() {
            return Err(LandError::CheckedOutElsewhere {
                target: target.to_owned(),
                path: folder,
            });
        }
        if held {
            own = Some(folder);
        }
    }
    Ok(own)
}

/// The main git directory and those of linked worktrees.
pub(super) fn git_dirs(repository: &Repository) -> Vec<PathBuf> {
    let mut found = vec![repository.common_dir().to_path_buf()];
    if let Ok(entries) = fs::read_dir(repository.common_dir().join("worktrees")) {
        found.extend(entries.flatten().map(|entry| entry.path()));
    }
    found
}

/// Where the checkout of a git directory is. A worktree whose folder is gone for the moment still has its branch.
pub(super) fn folder_of(repository: &Repository, git_dir: &Path) -> Option<PathBuf> {
    if git_dir == repository.git_dir() {
        return repository.checkout().map(Path::to_path_buf);
    }
    if git_dir == repository.common_dir() {
        let bare = Format::read(git_dir).is_ok_and(|format| format.bare == Some(true));
        return git_dir.parent().filter(|_| !bare).map(Path::to_path_buf);
    }
    Some(linked_checkout(git_dir).unwrap_or_else(|| git_dir.to_path_buf()))
}

fn unfinished(git_dir: &Path) -> Option<&'static str> {
    let found = UNFINISHED
        .iter()
        .find(|(name, _)| git_dir.join(name).exists());
    found.map(|(_, state)| *state)
}

/// A rebase or bisect has left the branch for a while and will come back to it.
fn works_on(git_dir: &Path, target: &str, name: &str) -> bool {
    let says = |file: &str, text: &str| {
        fs::read_to_string(git_dir.join(file)).is_ok_and(|content| content.trim_end() == text)
    };
    says("rebase-merge/head-name", name)
        || says("rebase-apply/head-name", name)
        || says("BISECT_START", target)
}
