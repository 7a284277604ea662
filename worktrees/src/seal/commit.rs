//! The bytes of the commit that a seal makes: the engine's identity, one parent, trailers for task and run.

use git2::Oid;

use super::SealRequest;
use crate::identity::signature;

/// The commit object for a sealed tree, not yet stored.
pub(super) fn compose(
    repo: &git2::Repository,
    request: &SealRequest<'_>,
    tree: Oid,
) -> Result<Vec<u8>, git2::Error> {
    let who = signature(request.when);
    let tree = repo.find_tree(tree)?;
    let parent = repo.find_commit(request.worktree.base)?;
    let text = message(request);
    let buffer = repo.commit_create_buffer(&who, &who, &text, &tree, &[&parent])?;
    Ok(buffer.to_vec())
}

fn message(request: &SealRequest<'_>) -> String {
    // A NUL would end the message for git.
    let text: String = request
        .message
        .chars()
        .filter(|letter| *letter != '\0')
        .collect();
    let text = text.trim();
    let gap = if text.is_empty() { "" } else { "\n\n" };
    format!(
        "{text}{gap}Airlock-Task: {}\nAirlock-Run: {}\n",
        one_line(request.task),
        one_line(request.run)
    )
}

/// A trailer is one line: nobody adds another one through an id.
fn one_line(value: &str) -> String {
    value
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}
