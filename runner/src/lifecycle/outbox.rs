//! The outbox: what an agent leaves to come back beside its tree, a note and files. For modes without
//! a worktree it is all that comes back. Written by the agent, so read beneath its folder, without
//! following links, and within bounds.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{Mode, SFlag, fstatat};

use super::Life;
use crate::event::{Artifact, Event};
use crate::exit::{Exit, Failure, OrFail as _};

/// The file in which an agent may leave its note.
pub(super) const NOTE: &str = "NOTE.md";

/// A note longer than this is cut; nobody claims that much.
const LONGEST_NOTE: u64 = 1 << 20;

/// Files that are listed; the rest is there, and said to be more.
const LISTED: usize = 1000;

/// Folders in folders that are looked into.
const DEPTH: usize = 16;

impl Life<'_> {
    /// The note in the outbox.
    pub(super) fn left_note(&self) -> Option<String> {
        read_beneath(&self.folder().outbox(), Path::new(NOTE))
    }

    /// The end of a task without a worktree: its note and files are recorded, there is nothing to judge.
    pub(super) fn take_what_came_back(&mut self) -> Result<(), Failure> {
        let _still = self.hold_still()?;
        let outbox = self.folder().outbox();
        // What is left here will be looked at with the host's tools.
        worktrees::disarm(&outbox).or_fail(Exit::Internal)?;
        let (artifacts, more) = list(&outbox).or_fail(Exit::Internal)?;
        let note = self.view.spec.note.clone().or_else(|| self.left_note());
        let mode = self.view.spec.isolation.as_str();
        let reason = format!("isolation mode {mode} delivers no tree");
        self.record(vec![
            Event::Returned {
                outbox,
                note,
                artifacts,
                more,
            },
            Event::Discarded { reason },
        ])
    }
}

/// The regular files below a folder, sorted by path, and whether there are more than are listed.
fn list(root: &Path) -> nix::Result<(Vec<Artifact>, bool)> {
    let mut found = Vec::new();
    let mut more = false;
    let mut waiting: Vec<(OwnedFd, PathBuf)> =
        vec![(open(root, folder_flags(), Mode::empty())?, PathBuf::new())];
    while let Some((folder, path)) = waiting.pop() {
        let entries = nix::dir::Dir::from_fd(
            folder
                .try_clone()
                .map_err(|_exhausted| nix::Error::EMFILE)?,
        )?;
        for entry in entries {
            let entry = entry?;
            let name = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if found.len() == LISTED {
                return Ok((sorted(found), true));
            }
            let facts = match fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(facts) => facts,
                Err(nix::Error::ENOENT) => continue,
                Err(error) => return Err(error),
            };
            let inner = path.join(name);
            match SFlag::from_bits_truncate(facts.st_mode & SFlag::S_IFMT.bits()) {
                SFlag::S_IFDIR if path.components().count() >= DEPTH => more = true,
                SFlag::S_IFDIR => match openat(&folder, name, folder_flags(), Mode::empty()) {
                    Ok(opened) => waiting.push((opened, inner)),
                    // Closed by its maker: it is there, and not listed.
                    Err(_closed) => more = true,
                },
                SFlag::S_IFREG if inner.as_os_str() != NOTE => found.push(Artifact {
                    path: worktrees::shown(inner.as_os_str().as_bytes()),
                    bytes: facts.st_size.unsigned_abs(),
                }),
                _ => {}
            }
        }
    }
    Ok((sorted(found), more))
}

fn sorted(mut found: Vec<Artifact>) -> Vec<Artifact> {
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn folder_flags() -> OFlag {
    OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

/// A small text file beneath a folder that an agent can write: no links, nothing that blocks.
pub(super) fn read_beneath(folder: &Path, name: &Path) -> Option<String> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut at = open(folder, folder_flags(), Mode::empty()).ok()?;
    let mut parts = name.components().peekable();
    while let Some(part) = parts.next() {
        let std::path::Component::Normal(part) = part else {
            return None;
        };
        let kind = if parts.peek().is_some() {
            OFlag::O_DIRECTORY
        } else {
            OFlag::O_NONBLOCK
        };
        at = openat(&at, part, flags | kind, Mode::empty()).ok()?;
    }
    let file = File::from(at);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LONGEST_NOTE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_listed_and_links_are_not_followed() {
        let outbox = tempfile::tempdir().unwrap();
        let at = |name: &str| outbox.path().join(name);
        fs::create_dir(at("plots")).unwrap();
        fs::write(at("plots/b.txt"), "four").unwrap();
        fs::write(at("a.txt"), "").unwrap();
        fs::write(at(NOTE), "the note is not an artifact").unwrap();
        symlink("/etc", at("etc")).unwrap();
        symlink("/etc/passwd", at("passwd")).unwrap();
        let (artifacts, more) = list(outbox.path()).unwrap();
        let told: Vec<_> = artifacts
            .iter()
            .map(|artifact| (artifact.path.as_str(), artifact.bytes))
            .collect();
        assert_eq!(
            (told.as_slice(), more),
            ([("a.txt", 0), ("plots/b.txt", 4)].as_slice(), false)
        );
        assert_eq!(read_beneath(outbox.path(), Path::new("passwd")), None);
    }

    #[test]
    fn a_flood_of_files_is_cut_and_said() {
        let outbox = tempfile::tempdir().unwrap();
        for index in 0..=LISTED {
            fs::write(outbox.path().join(index.to_string()), "").unwrap();
        }
        let (artifacts, more) = list(outbox.path()).unwrap();
        assert_eq!((artifacts.len(), more), (LISTED, true));
    }
}
