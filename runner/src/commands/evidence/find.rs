//! Where the envelopes of something are: a file, a task's folder, or the notes of a commit or tree.
//! Finds bytes; believes none of them.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use worktrees::{Oid, OpenError, Repository};

use crate::cli::Globals;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::place::Place;

/// More is no evidence of ours.
const LARGEST: u64 = 64 << 20;

/// Envelopes, and what they should be about.
#[derive(Debug)]
pub(super) struct Found {
    /// The repository around, for the objects; none outside of one.
    pub(super) repository: Option<Repository>,
    /// Where they were, for people.
    pub(super) place: String,
    /// JSON texts, oldest first; never empty.
    pub(super) envelopes: Vec<String>,
    /// The commit that was asked about.
    pub(super) commit: Option<Oid>,
    /// The tree that was asked about.
    pub(super) tree: Option<Oid>,
    /// The envelopes are a task's own file: what was recorded of it, and git's note, should say the same.
    pub(super) of_task: Option<Own>,
}

/// What a task's own evidence must agree with.
#[derive(Debug)]
pub(super) struct Own {
    /// The digest that the task's events name; none when nothing was recorded.
    pub(super) recorded: Option<String>,
    /// The statement in plain text, for people.
    pub(super) statement: PathBuf,
}

/// Finds the envelopes of a file, a task, a commit or a tree.
pub(super) fn find(globals: &Globals, directory: &Path, of: &str) -> Result<Found, Failure> {
    let repository = match Repository::discover(directory) {
        Ok(repository) => Some(repository),
        Err(OpenError::NotARepository { .. }) => None,
        Err(error) => return Err(Failure::caused(Exit::Usage, &error)),
    };
    let file = Some(directory.join(of)).filter(|file| file.is_file());
    let Some(repository) = repository else {
        return match file {
            Some(file) => in_file(None, &file),
            None => Err(Failure::usage(format!(
                "{of:?} is no file, and there is no git repository here to look in"
            ))
            .advise("name a file with envelopes, or run it in the repository")),
        };
    };
    // A verifier without any state of ours still has the notes.
    let place = Place::find(globals).ok();
    let exact = |place: &&Place| {
        place
            .task(of)
            .is_ok_and(|view| view.spec.task.as_str() == of)
    };
    if let Some(place) = place.as_ref().filter(exact) {
        return in_task(repository, place, of);
    }
    match (repository.resolve(of), file, place) {
        (Ok(commit), _, _) => of_commit(repository, commit),
        (Err(_unknown), Some(file), _) => in_file(Some(repository), &file),
        (Err(_unknown), None, Some(place)) if place.task(of).is_ok() => {
            in_task(repository, &place, of)
        }
        (Err(unknown), None, _) => of_tree(repository, of, &unknown),
    }
}

fn none_for(what: &str) -> Failure {
    Failure::new(Exit::NotFound, format!("there is no evidence for {what}")).advise(
        "notes do not travel by themselves: git fetch origin refs/notes/airlock:refs/notes/airlock",
    )
}

fn in_file(repository: Option<Repository>, file: &Path) -> Result<Found, Failure> {
    let place = file.display().to_string();
    let envelopes = envelopes(&read(file)?);
    if envelopes.is_empty() {
        return Err(Failure::new(
            Exit::EvidenceInvalid,
            format!("{place} holds no envelope"),
        ));
    }
    Ok(Found {
        repository,
        place,
        envelopes,
        commit: None,
        tree: None,
        of_task: None,
    })
}

fn in_task(repository: Repository, place: &Place, of: &str) -> Result<Found, Failure> {
    let view = place.task(of)?;
    let task = view.spec.task;
    let folder = place.folder.task(task.as_str()).evidence();
    let file = folder.join("envelope.json");
    if !file.is_file() {
        return Err(Failure::new(
            Exit::NotFound,
            format!("there is no evidence for task {task}"),
        )
        .advise("nothing was judged yet, or the task was removed; its commit may have a note"));
    }
    let found = in_file(Some(repository), &file)?;
    Ok(Found {
        place: format!("task {task}"),
        of_task: Some(Own {
            recorded: view.evidence.map(|facts| facts.digest),
            statement: folder.join("statement.json"),
        }),
        ..found
    })
}

fn of_commit(repository: Repository, commit: Oid) -> Result<Found, Failure> {
    let tree = repository.commit_facts(commit).or_fail(Exit::Usage)?.tree;
    // A squash makes another commit of the same tree; its evidence is the tree's.
    for (object, what) in [(commit, "commit"), (tree, "tree")] {
        let envelopes = noted(&repository, object)?;
        if !envelopes.is_empty() {
            let commit = (object == commit).then_some(commit);
            let place = format!("the note of {what} {object}");
            let repository = Some(repository);
            return Ok(Found {
                repository,
                place,
                envelopes,
                commit,
                tree: Some(tree),
                of_task: None,
            });
        }
    }
    Err(none_for(&format!("commit {commit}")))
}

fn of_tree(
    repository: Repository,
    of: &str,
    unknown: &worktrees::RefError,
) -> Result<Found, Failure> {
    let full = of.len() == 40 && of.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some(tree) = Oid::from_str(of).ok().filter(|_| full) else {
        return Err(Failure::caused(Exit::NotFound, unknown)
            .advise("name a commit, a tree's full id, a task, or a file with envelopes"));
    };
    let envelopes = noted(&repository, tree)?;
    if envelopes.is_empty() {
        return Err(none_for(of));
    }
    let place = format!("the note of {tree}");
    Ok(Found {
        repository: Some(repository),
        place,
        envelopes,
        commit: None,
        tree: Some(tree),
        of_task: None,
    })
}

/// The envelopes in the note of an object.
pub(super) fn noted(repository: &Repository, object: Oid) -> Result<Vec<String>, Failure> {
    let note = repository.read_note(object).or_fail(Exit::CouldNotCheck)?;
    Ok(note.map(|note| envelopes(&note)).unwrap_or_default())
}

/// One JSON text, or one on each line.
fn envelopes(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
        return vec![text.trim().to_owned()];
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

pub(super) fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    read.map_err(|error| Failure {
        causes: vec![error.to_string()],
        ..Failure::new(
            Exit::CouldNotCheck,
            format!("cannot read {}", file.display()),
        )
    })?;
    if bytes.len() as u64 > LARGEST {
        return Err(Failure::new(
            Exit::EvidenceInvalid,
            format!("{} is too large to be evidence", file.display()),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_stand_alone_or_on_lines() {
        assert_eq!(envelopes(b"{\n \"a\": 1\n}\n"), ["{\n \"a\": 1\n}"]);
        assert_eq!(
            envelopes(b"{\"a\":1}\n\n{\"b\":2}\n"),
            ["{\"a\":1}", "{\"b\":2}"]
        );
        assert!(envelopes(b"\n").is_empty());
    }
}
