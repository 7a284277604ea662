//! Making a kept tree harmless for the tools of the host: git would run what a repository inside it configures,
//! a read of a FIFO would hang, a set-id file would run as somebody else. Done after sealing, before the path of
//! the tree is shown to anybody. Nothing is followed; what is changed is renamed, not lost, where that is possible.

use std::io;
use std::path::{Path, PathBuf};

use nix::libc::{S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};
use thiserror::Error;

use super::names::looks_like_git;
use super::{Chain, Folder};
use crate::shown;

/// Put behind the name of what git could take for a repository.
const SUFFIX: &[u8] = b".airlock-disarmed";

/// What was done to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disarmament {
    /// A repository, or the `HEAD` of a bare one, has another name now.
    Renamed,
    /// A FIFO, socket or device is gone.
    Removed,
    /// A file runs as nobody else any more.
    Demoted,
}

/// An entry that was dangerous to tools of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disarmed {
    /// Shown path that it had.
    pub path: String,
    /// What was done.
    pub what: Disarmament,
}

/// An entry could not be looked at or changed: the tree must not be shown as harmless.
#[derive(Debug, Error)]
#[error("cannot make {path} in {} harmless", tree.display())]
pub struct DisarmError {
    /// The tree.
    pub tree: PathBuf,
    /// Shown path.
    pub path: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Disarms a tree whose jobs have ended. Its own `.git` pointer stays. Sorted by folder; idempotent.
pub fn disarm(tree: &Path) -> Result<Vec<Disarmed>, DisarmError> {
    let failed = |path: &[u8], source| DisarmError {
        tree: tree.to_path_buf(),
        path: shown(path),
        source,
    };
    let root = match Folder::open(tree) {
        Ok(root) => root,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(b"", error)),
    };
    let mut chain = Chain::new(root);
    let mut found = Vec::new();
    let mut pending = vec![Vec::new()];
    while let Some(path) = pending.pop() {
        let names = chain
            .enter(&path)
            .and_then(Folder::names)
            .map_err(|error| failed(&path, error))?;
        let bare = is_bare(&names);
        for name in names {
            let inner = [path.as_slice(), &name].concat();
            if path.is_empty() && name == b".git" {
                continue;
            }
            let folder = chain.enter(&path).map_err(|error| failed(&inner, error))?;
            let outcome = settle(folder, &name, bare).map_err(|error| failed(&inner, error))?;
            found.extend(outcome.what.map(|what| Disarmed {
                path: shown(&inner),
                what,
            }));
            if outcome.folder {
                // Also into what was renamed: a git directory is a bare repository under any name.
                pending.push([path.as_slice(), &outcome.name, b"/"].concat());
            }
        }
    }
    Ok(found)
}

struct Outcome {
    /// As it is called now.
    name: Vec<u8>,
    folder: bool,
    what: Option<Disarmament>,
}

fn settle(folder: &Folder, name: &[u8], bare: bool) -> io::Result<Outcome> {
    let facts = folder.stat(name)?;
    let kind = facts.st_mode & S_IFMT;
    let mut now = name.to_vec();
    let what = if looks_like_git(name) || (bare && name == b"HEAD") {
        now = free_name(folder, name)?;
        folder.rename(name, &now)?;
        Some(Disarmament::Renamed)
    } else if kind == S_IFREG && facts.st_mode & 0o6000 != 0 {
        let mode = Mode::from_bits_truncate(facts.st_mode & 0o1777);
        fchmodat(folder, name, mode, FchmodatFlags::NoFollowSymlink)?;
        Some(Disarmament::Demoted)
    } else if matches!(kind, S_IFREG | S_IFDIR | S_IFLNK) {
        None
    } else {
        folder.remove_file(name)?;
        Some(Disarmament::Removed)
    };
    Ok(Outcome {
        name: now,
        folder: kind == S_IFDIR,
        what,
    })
}

/// What git takes for a bare repository when somebody stands in it.
fn is_bare(names: &[Vec<u8>]) -> bool {
    let has = |wanted: &[u8]| names.iter().any(|name| name == wanted);
    has(b"HEAD") && (has(b"commondir") || (has(b"objects") && has(b"refs")))
}

fn free_name(folder: &Folder, name: &[u8]) -> io::Result<Vec<u8>> {
    let mut number = 0_u32;
    loop {
        // A name of the greatest length has no room for an ending.
        let stem = name.get(..name.len().min(200)).unwrap_or(name);
        let tail = if number == 0 {
            String::new()
        } else {
            number.to_string()
        };
        let free = [stem, SUFFIX, tail.as_bytes()].concat();
        if !folder.has(&free)? {
            return Ok(free);
        }
        number += 1;
    }
}
