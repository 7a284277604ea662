//! Whether evidence holds: who signed, what it is about, and whether the objects at hand are that.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gates::evidence::{EvidenceError, PublicKey, Verified, verify};
use worktrees::{Oid, Repository};

use super::find::{Found, Own, noted, read};
use crate::config::text_of;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::StateRoot;
use crate::keyring;

/// Evidence that holds.
#[derive(Debug)]
pub(super) struct Checked {
    /// What was signed.
    pub(super) verified: Verified,
    /// Files whose content is what the statement says.
    pub(super) files: usize,
    /// Whether git's note was compared with the task's own file.
    pub(super) note_agrees: Option<bool>,
}

/// The trusted keys: those that are named, else our own.
pub(super) fn keys(files: &[PathBuf], directory: &Path) -> Result<Vec<PublicKey>, Failure> {
    if files.is_empty() {
        let own = keyring::public(&StateRoot::from_env()?)?;
        return own.map(|key| vec![key]).ok_or_else(|| {
            Failure::new(
                Exit::CouldNotCheck,
                "there is no key to check with: nothing was ever signed here",
            )
            .advise("name the signer's public key with --key FILE")
        });
    }
    let read = |file: &PathBuf| {
        let pem = text_of(file, directory)?;
        PublicKey::from_pem(&pem).map_err(|error| Failure {
            what: format!("{}: {error}", file.display()),
            ..Failure::caused(Exit::Usage, &error)
        })
    };
    files.iter().map(read).collect()
}

/// The newest statement that a trusted key signed about what was asked for; else the newest about
/// anything, so that it can be said what it is about. Others may have signed too; what a trusted
/// key signed and somebody changed is never passed over.
pub(super) fn signed(found: &Found, keys: &[PublicKey]) -> Result<Verified, Failure> {
    let mut newest: Option<Verified> = None;
    let mut stranger = None;
    for envelope in &found.envelopes {
        match verify(envelope.as_bytes(), keys) {
            Ok(verified) => {
                let nearer = differs(found, &verified).is_none();
                if nearer
                    || newest
                        .as_ref()
                        .is_none_or(|newest| differs(found, newest).is_some())
                {
                    newest = Some(verified);
                }
            }
            Err(error @ EvidenceError::UnknownKey { .. }) => stranger = Some(error),
            Err(error) => return Err(invalid(found, &error)),
        }
    }
    newest.ok_or_else(|| match stranger {
        Some(error) => invalid(found, &error)
            .advise("name the signer's public key with --key FILE, if you trust it"),
        None => Failure::new(
            Exit::NotFound,
            format!("there is no evidence in {}", found.place),
        ),
    })
}

/// What was asked for and what the statement names instead, where they differ.
fn differs(found: &Found, verified: &Verified) -> Option<(String, String)> {
    let record = verified.record();
    let commit = found
        .commit
        .map(|commit| ("commit", commit.to_string(), record.commit.clone()));
    let tree = found
        .tree
        .map(|tree| ("tree", tree.to_string(), record.tree.clone()));
    let other = commit
        .into_iter()
        .chain(tree)
        .find(|(_, asked, stated)| asked != stated);
    other.map(|(kind, asked, stated)| (format!("{kind} {asked}"), format!("{kind} {stated}")))
}

fn invalid(found: &Found, error: &EvidenceError) -> Failure {
    let mut failure = Failure::caused(Exit::EvidenceInvalid, error);
    failure.causes.insert(0, failure.what);
    failure.what = format!("the evidence in {} does not hold", found.place);
    failure
}

/// Checks everything that can be checked here.
pub(super) fn check(found: &Found, keys: &[PublicKey]) -> Result<Checked, Failure> {
    let verified = signed(found, keys)?;
    if let Some((asked, stated)) = differs(found, &verified) {
        let what = format!(
            "the evidence in {} is about {stated}, not about {asked}",
            found.place
        );
        return Err(Failure::new(Exit::EvidenceInvalid, what));
    }
    if let Some(own) = &found.of_task {
        agrees(own, found, &verified)?;
    }
    let Some(repository) = &found.repository else {
        return Err(Failure::new(
            Exit::CouldNotCheck,
            "the signature holds, and there is no repository here with the objects",
        )
        .advise("run it in a clone that has the commit"));
    };
    let files = objects(repository, found, &verified)?;
    let note_agrees = if found.of_task.is_some() {
        note(repository, found, &verified, keys)?
    } else {
        None
    };
    Ok(Checked {
        verified,
        files,
        note_agrees,
    })
}

/// A task's own files: the envelope is the one that was recorded, and the plain statement is what was signed.
fn agrees(own: &Own, found: &Found, verified: &Verified) -> Result<(), Failure> {
    if let Some(recorded) = own.recorded.as_ref().filter(|it| **it != verified.digest) {
        let what = format!(
            "the evidence in {} is {}, and {recorded} was recorded",
            found.place, verified.digest
        );
        return Err(Failure::new(Exit::EvidenceInvalid, what));
    }
    let statement = read(&own.statement)?;
    if statement.trim_ascii_end() == verified.evidence.bytes().trim_ascii_end() {
        return Ok(());
    }
    let what = format!("{} is not what was signed", own.statement.display());
    Err(Failure::new(Exit::EvidenceInvalid, what)
        .advise("`airlock evidence show` prints what was signed"))
}

/// Compares subjects with the objects; says how many files were compared.
fn objects(repository: &Repository, found: &Found, verified: &Verified) -> Result<usize, Failure> {
    let record = verified.record();
    let oid = |text: &str| Oid::from_str(text).or_fail(Exit::EvidenceInvalid);
    let tree = if found.commit.is_none() && found.tree.is_some() {
        oid(&record.tree)?
    } else {
        let facts = repository
            .commit_facts(oid(&record.commit)?)
            .map_err(|error| absent(&record.commit, &error))?;
        verified
            .is_about(&record.commit, &facts.tree.to_string())
            .map_err(|error| invalid(found, &error))?;
        facts.tree
    };
    let entries = repository
        .tree_entries(tree)
        .map_err(|error| absent(&record.tree, &error))?;
    let blobs: HashMap<String, String> = entries
        .into_iter()
        .map(|entry| (worktrees::shown(&entry.path), entry.oid.to_string()))
        .collect();
    let mut compared = 0;
    for subject in &verified.evidence.statement().subject {
        let Some(path) = subject.name.strip_prefix("file:") else {
            continue;
        };
        let blob = blobs.get(path).map_or("no such file", String::as_str);
        verified
            .names_file(path, blob)
            .map_err(|error| invalid(found, &error))?;
        compared += 1;
    }
    Ok(compared)
}

fn absent(object: &str, error: &worktrees::ReadError) -> Failure {
    let mut failure = Failure::caused(Exit::CouldNotCheck, error);
    failure.causes.insert(0, failure.what);
    failure.what = format!("the signature holds, and {object} cannot be read here");
    failure.advise("fetch the commit that the evidence is about")
}

/// Whether the note of the commit carries the statement of the task's own file; `None`: no note.
fn note(
    repository: &Repository,
    found: &Found,
    verified: &Verified,
    keys: &[PublicKey],
) -> Result<Option<bool>, Failure> {
    let commit = Oid::from_str(&verified.record().commit).or_fail(Exit::EvidenceInvalid)?;
    let envelopes = noted(repository, commit)?;
    if envelopes.is_empty() {
        return Ok(None);
    }
    let same = |envelope: &String| {
        verify(envelope.as_bytes(), keys).is_ok_and(|noted| noted.digest == verified.digest)
    };
    if envelopes.iter().any(same) {
        return Ok(Some(true));
    }
    let what = format!(
        "the note of commit {commit} does not carry the statement in {}",
        found.place
    );
    Err(Failure::new(Exit::EvidenceInvalid, what)
        .advise("one of the two was changed; look at both with `airlock evidence show`"))
}
