//! What the checkout has at the paths of a landing: the old form, the new form, or something of the user's own,
//! which is never overwritten. Only reads, beneath the checkout, without following links.

use std::collections::BTreeSet;
use std::io;

use git2::Oid;
use nix::libc::{S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};

use super::write::Checkout;
use crate::history::{FileChange, Side};
use crate::tree::{Folder, Traits, to_git_with, to_worktree};

const LINK: u32 = 0o120_000;
const SUBMODULE: u32 = 0o160_000;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Folder,
    /// A file or link: its bytes, and whether it may be executed.
    File {
        link: bool,
        bytes: Vec<u8>,
        executable: bool,
    },
    /// Something that is no work of git's, or cannot be read.
    Other,
}

/// Looks at a path. A folder on the way that is missing or no folder means that nothing is there.
pub(super) fn look(checkout: &mut Checkout<'_>, path: &[u8]) -> io::Result<Found> {
    let (folder, name) = split(path);
    let parent = match checkout.chain.enter(folder) {
        Ok(parent) => parent,
        Err(error) if is_gone(&error) => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let facts = match parent.stat(name) {
        Ok(facts) => facts,
        Err(error) if is_gone(&error) => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    Ok(match facts.st_mode & S_IFMT {
        S_IFDIR => Found::Folder,
        S_IFLNK => Found::File {
            link: true,
            bytes: parent.read_link(name)?,
            executable: false,
        },
        S_IFREG => match parent.read(name, u64::MAX - 1)? {
            Some((bytes, facts)) => Found::File {
                link: false,
                bytes,
                executable: facts.st_mode & 0o100 != 0,
            },
            None => Found::Other,
        },
        _ => Found::Other,
    })
}

/// The paths of a landing where the checkout is not as the index has it.
pub(super) fn dirty(
    checkout: &mut Checkout<'_>,
    changes: &[FileChange],
) -> Result<Vec<Vec<u8>>, Failed> {
    let removed: BTreeSet<&[u8]> = changes
        .iter()
        .filter(|change| change.old.is_some_and(|side| side.mode != SUBMODULE))
        .map(|change| change.path.as_slice())
        .collect();
    let mut dirty = Vec::new();
    for change in changes {
        let clean = match change.old {
            // A submodule has its own checkout, which a landing leaves alone.
            Some(side) if side.mode == SUBMODULE => true,
            Some(side) => is(checkout, &change.path, Form::Old, side)?,
            None => is_free(checkout, change, &removed)?,
        };
        if !clean {
            dirty.push(change.path.clone());
        }
    }
    Ok(dirty)
}

/// Which side of the landing decides how a blob looks in the checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Old,
    New,
}

/// Something could not be read on the way.
#[derive(Debug)]
pub(super) enum Failed {
    File(Vec<u8>, io::Error),
    Object(crate::repository::ReadError),
}

/// Whether the checkout has one side of a change at the path.
pub(super) fn is(
    checkout: &mut Checkout<'_>,
    path: &[u8],
    form: Form,
    side: Side,
) -> Result<bool, Failed> {
    let found = look(checkout, path).map_err(|error| Failed::File(path.to_vec(), error))?;
    let Found::File {
        link,
        bytes,
        executable,
    } = found
    else {
        return Ok(side.mode == SUBMODULE && found == Found::Folder);
    };
    let settings = checkout.settings;
    if side.mode == LINK && settings.symlinks {
        return Ok(link && hash(&bytes) == side.oid);
    }
    if link || side.mode == SUBMODULE {
        return Ok(false);
    }
    let mode = executable == (side.mode == 0o100_755) || !settings.file_mode || side.mode == LINK;
    if !mode {
        return Ok(false);
    }
    let traits = checkout.traits(path, form).map_err(Failed::Object)?;
    same_content(checkout, &bytes, &traits, side.oid).map_err(Failed::Object)
}

/// As git sees it: the bytes become the blob, or the blob becomes the bytes.
fn same_content(
    checkout: &Checkout<'_>,
    bytes: &[u8],
    traits: &Traits,
    oid: Oid,
) -> Result<bool, crate::repository::ReadError> {
    if hash(bytes) == oid {
        return Ok(true);
    }
    let blob = checkout.blob(oid)?;
    if to_worktree(&blob, traits, checkout.settings) == bytes {
        return Ok(true);
    }
    let text = to_git_with(bytes, traits, checkout.settings, Some(blob));
    Ok(hash(&text) == oid)
}

/// Whether a new file has its place to itself. What the landing removes is not in the way.
fn is_free(
    checkout: &mut Checkout<'_>,
    change: &FileChange,
    removed: &BTreeSet<&[u8]>,
) -> Result<bool, Failed> {
    let failed = |error| Failed::File(change.path.clone(), error);
    // A parent that is a file or link of the user's own. From the root down: below one that is missing, all is free.
    for (slash, _) in change
        .path
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
    {
        let upper = change.path.get(..slash).unwrap_or_default();
        match look(checkout, upper).map_err(failed)? {
            Found::Folder => {}
            Found::Nothing => return Ok(true),
            Found::File { .. } if removed.contains(upper) => return Ok(true),
            Found::File { .. } | Found::Other => return Ok(false),
        }
    }
    match look(checkout, &change.path).map_err(failed)? {
        Found::Nothing => Ok(true),
        Found::Folder if change.new.is_some_and(|side| side.mode == SUBMODULE) => Ok(true),
        Found::Folder => only_removed(checkout, &change.path, removed).map_err(failed),
        Found::File { .. } | Found::Other => Ok(false),
    }
}

/// Whether all that is in a folder is removed by the landing.
fn only_removed(
    checkout: &mut Checkout<'_>,
    path: &[u8],
    removed: &BTreeSet<&[u8]>,
) -> io::Result<bool> {
    let mut pending = vec![path.to_vec()];
    while let Some(path) = pending.pop() {
        for name in checkout.chain.enter(&path).and_then(Folder::names)? {
            let inner = [path.as_slice(), b"/", &name].concat();
            match look(checkout, &inner)? {
                Found::Folder => pending.push(inner),
                Found::Nothing | Found::File { .. } | Found::Other
                    if removed.contains(inner.as_slice()) => {}
                Found::Nothing | Found::File { .. } | Found::Other => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// Gives the old form back to the files of a landing that have the new one, or are gone.
pub(super) fn restore(checkout: &mut Checkout<'_>, changes: &[FileChange]) -> Result<(), Failed> {
    let mut ours = Vec::new();
    for change in changes {
        let found = look(checkout, &change.path)
            .map_err(|error| Failed::File(change.path.clone(), error))?;
        let taken = match (&found, change.new) {
            (Found::Nothing, _) => change.old.is_some(),
            (_, Some(side)) => is(checkout, &change.path, Form::New, side)?,
            // The landing removes it: a folder there may hold what the landing adds.
            (Found::Folder, None) => true,
            (_, None) => false,
        };
        if taken {
            ours.push(change.clone());
        }
    }
    checkout.write(&ours, Form::Old).map(drop)
}

/// The folder of a path (without the last `/`), and its name.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (
            path.get(..slash).unwrap_or_default(),
            path.get(slash + 1..).unwrap_or_default(),
        ),
        None => (b"", path),
    }
}

/// Missing, or behind something that is no folder: a file, or a link, which is never followed.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    ) || error.raw_os_error() == Some(nix::libc::ELOOP)
}

fn hash(bytes: &[u8]) -> Oid {
    Oid::hash_object(git2::ObjectType::Blob, bytes).expect("hashing bytes in memory cannot fail")
}
