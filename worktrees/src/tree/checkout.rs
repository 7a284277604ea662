//! Writing the files of a tree into an empty folder, in the form that git would check them out in, but with
//! no external filter and no hook. Never opens a file that exists, never goes through a link.

use std::fs::File;
use std::io::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use git2::{IndexEntry, IndexTime, Oid};
use nix::sys::stat::{FileStat, fstat, futimens};
use nix::sys::time::TimeSpec;
use thiserror::Error;

use super::names::{is_safe, looks_like_git};
use super::{Attributes, Chain, Folder, Settings, to_worktree};
use crate::history::DEPTH_LIMIT;
use crate::history::{peel_tree, plain_mode, unreadable};
use crate::repository::ReadError;
use crate::shown;

/// A tree could not be written out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckoutError {
    /// An object is missing or damaged.
    #[error("cannot read what {path} holds")]
    Read {
        /// Shown path; empty for the root.
        path: String,
        /// Why.
        #[source]
        source: ReadError,
    },
    /// A name that no safe checkout has, such as `..` or `.git`.
    #[error("the tree holds {path}, which cannot be checked out")]
    UnsafeName {
        /// Shown path.
        path: String,
    },
    /// Folders are nested too deep.
    #[error("{path} is nested deeper than {limit} folders")]
    TooDeep {
        /// Shown path.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// A file or folder cannot be made.
    #[error("cannot write {path}")]
    Write {
        /// Shown path.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What a checkout is made from.
pub(crate) struct Source<'a> {
    pub(crate) repo: &'a git2::Repository,
    pub(crate) settings: &'a Settings,
    /// Who gets the files; `None`: whoever makes them.
    pub(crate) owner: Option<(u32, u32)>,
}

/// Writes the tree `root` below `into` and returns index entries with the facts of the files, sorted by path.
pub(crate) fn check_out(
    source: &Source<'_>,
    root: Oid,
    into: Folder,
) -> Result<Vec<IndexEntry>, CheckoutError> {
    let mut run = Run {
        source,
        chain: Chain::new(into),
        attributes: Attributes::new(source.settings),
        stamp: stamp(),
        entries: Vec::new(),
        pending: vec![Step::Enter(Vec::new(), root)],
    };
    while let Some(step) = run.pending.pop() {
        match step {
            Step::Enter(folder, oid) => run.folder(&folder, oid)?,
            Step::Leave => run.attributes.pop(),
        }
    }
    run.entries
        .sort_unstable_by(|left, right| left.path.cmp(&right.path));
    Ok(run.entries)
}

enum Step {
    /// Folder (ends in `/`, empty for the root) and its tree.
    Enter(Vec<u8>, Oid),
    Leave,
}

struct Run<'a> {
    source: &'a Source<'a>,
    chain: Chain,
    attributes: Attributes,
    stamp: TimeSpec,
    entries: Vec<IndexEntry>,
    pending: Vec<Step>,
}

impl Run<'_> {
    fn folder(&mut self, folder: &[u8], oid: Oid) -> Result<(), CheckoutError> {
        let depth = folder.split(|byte| *byte == b'/').count() - 1;
        if depth > DEPTH_LIMIT {
            return Err(CheckoutError::TooDeep {
                path: shown(folder),
                limit: DEPTH_LIMIT,
            });
        }
        let unread = |source| CheckoutError::Read {
            path: shown(folder),
            source,
        };
        let repo = self.source.repo;
        let tree = peel_tree(repo, oid).map_err(unread)?;
        if let Some(rules) = tree.get_name(".gitattributes")
            && rules.filemode_raw() & 0o170_000 == 0o100_000
        {
            let blob = repo
                .find_blob(rules.id())
                .map_err(unreadable("blob", rules.id()))
                .map_err(unread)?;
            self.attributes.push(folder, blob.content());
            self.pending.push(Step::Leave);
        }
        for entry in &tree {
            let name = entry.name_bytes();
            let mut path = folder.to_vec();
            path.extend_from_slice(name);
            if !is_safe(name) || looks_like_git(name) {
                return Err(CheckoutError::UnsafeName { path: shown(&path) });
            }
            let mode = plain_mode(entry.filemode_raw());
            let written = |source| CheckoutError::Write {
                path: shown(&path),
                source,
            };
            if mode == 0o040_000 {
                self.make_folder(folder, name).map_err(written)?;
                path.push(b'/');
                self.pending.push(Step::Enter(path, entry.id()));
            } else {
                self.file(folder, name, (mode, entry.id()))?;
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        folder: &[u8],
        name: &[u8],
        (mode, oid): (u32, Oid),
    ) -> Result<(), CheckoutError> {
        let mut path = folder.to_vec();
        path.extend_from_slice(name);
        let written = |source| CheckoutError::Write {
            path: shown(&path),
            source,
        };
        if mode == 0o160_000 {
            self.make_folder(folder, name).map_err(written)?;
            self.entries.push(unknown_entry(path, (mode, oid)));
            return Ok(());
        }
        let repo = self.source.repo;
        let blob = repo.find_blob(oid).map_err(|source| CheckoutError::Read {
            path: shown(&path),
            source: unreadable("blob", oid)(source),
        })?;
        let owner = self.source.owner;
        let facts = if mode == 0o120_000 && self.source.settings.symlinks {
            let parent = self.chain.enter(folder).map_err(written)?;
            parent.make_link(blob.content(), name).map_err(written)?;
            if let Some(owner) = owner {
                parent.give(name, owner).map_err(written)?;
            }
            parent.stat(name).map_err(written)?
        } else {
            let traits = self.attributes.of(&path, self.source.settings);
            let bytes = to_worktree(blob.content(), &traits, self.source.settings);
            let permissions = if mode == 0o100_755 { 0o777 } else { 0o666 };
            let parent = self.chain.enter(folder).map_err(written)?;
            let file = parent.create(name, permissions).map_err(written)?;
            finish(file, &bytes, self.stamp, owner).map_err(written)?
        };
        self.entries.push(index_entry(path, (mode, oid), &facts));
        Ok(())
    }

    fn make_folder(&mut self, folder: &[u8], name: &[u8]) -> io::Result<()> {
        let parent = self.chain.enter(folder)?;
        parent.make_folder(name, 0o777)?;
        match self.source.owner {
            Some(owner) => parent.give(name, owner),
            None => Ok(()),
        }
    }
}

fn finish(
    mut file: File,
    bytes: &[u8],
    stamp: TimeSpec,
    owner: Option<(u32, u32)>,
) -> io::Result<FileStat> {
    file.write_all(bytes)?;
    if let Some((user, group)) = owner {
        nix::unistd::fchown(&file, Some(user.into()), Some(group.into()))?;
    }
    futimens(&file, &stamp, &stamp)?;
    Ok(fstat(&file)?)
}

/// Some whole seconds ago: git takes a file that is not older than its index for possibly changed and reads it
/// again, and an edit in the second of the checkout must not look untouched.
fn stamp() -> TimeSpec {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    TimeSpec::from(Duration::from_secs(now.as_secs().saturating_sub(2)))
}

/// An index entry of a file that is known to hold the blob. The index keeps the low 32 bits of large numbers.
pub(crate) fn index_entry(path: Vec<u8>, (mode, oid): (u32, Oid), facts: &FileStat) -> IndexEntry {
    IndexEntry {
        ctime: IndexTime::new(low_signed(facts.st_ctime), low(facts.st_ctime_nsec)),
        mtime: IndexTime::new(low_signed(facts.st_mtime), low(facts.st_mtime_nsec)),
        dev: low(facts.st_dev),
        ino: low(facts.st_ino),
        mode,
        uid: facts.st_uid,
        gid: facts.st_gid,
        file_size: low(facts.st_size),
        id: oid,
        flags: 0,
        flags_extended: 0,
        path,
    }
}

/// An index entry that says nothing about the file, so that git looks at it.
pub(crate) fn unknown_entry(path: Vec<u8>, (mode, oid): (u32, Oid)) -> IndexEntry {
    IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: oid,
        flags: 0,
        flags_extended: 0,
        path,
    }
}

fn low<N: TryInto<i128>>(number: N) -> u32 {
    let wide: i128 = number.try_into().unwrap_or_default();
    u32::try_from(wide & i128::from(u32::MAX)).unwrap_or_default()
}

fn low_signed(seconds: i64) -> i32 {
    i32::from_ne_bytes(low(seconds).to_ne_bytes())
}
