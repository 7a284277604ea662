//! Gives a fresh tree of root's to the room's user, by descriptor.
//!
//! Must never follow a link, leave the tree's device, or hand over a file that has a second name elsewhere.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::process::{Gid, Uid};

use crate::account::Account;
use crate::error::Fault;

/// Makes `root` and all below it `account`'s. Done already when `root` itself is: it is changed last.
pub(super) fn hand_over(root: &Path, account: Account) -> Result<(), Fault> {
    let fault =
        |error: rustix::io::Errno| Fault::at("hand a folder to the room's user", root, error);
    let folder = rustix::fs::open(root, folder_flags(), Mode::empty()).map_err(fault)?;
    let facts = rustix::fs::fstat(&folder).map_err(fault)?;
    if facts.st_uid == account.uid {
        return Ok(());
    }
    descend(&folder, &facts, account).map_err(fault)?;
    let (uid, gid) = ids(account);
    rustix::fs::fchown(&folder, Some(uid), Some(gid)).map_err(fault)
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn ids(account: Account) -> (Uid, Gid) {
    (Uid::from_raw(account.uid), Gid::from_raw(account.gid))
}

fn descend(folder: &OwnedFd, above: &Stat, account: Account) -> rustix::io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let facts = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if facts.st_dev != above.st_dev {
            continue;
        }
        let kind = FileType::from_raw_mode(facts.st_mode);
        if kind == FileType::Directory {
            let inner = rustix::fs::openat(folder, name, folder_flags(), Mode::empty())?;
            descend(&inner, &facts, account)?;
        }
        let shared = kind == FileType::RegularFile && facts.st_nlink > 1;
        if facts.st_uid != account.uid && !shared {
            change(folder.as_fd(), name, account)?;
        }
    }
    Ok(())
}

fn change(folder: impl AsFd, name: &OsStr, account: Account) -> rustix::io::Result<()> {
    let (uid, gid) = ids(account);
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::chownat(folder, name, Some(uid), Some(gid), flags)
}

/// Whose a taken file or folder is: uid and gid.
pub(super) fn owner_of(taken: &OwnedFd) -> rustix::io::Result<(u32, u32)> {
    let facts = rustix::fs::fstat(taken)?;
    Ok((facts.st_uid, facts.st_gid))
}

/// What stands at `name` in `folder`, without following it.
pub(super) fn kind_of(folder: impl AsFd, name: &str) -> rustix::io::Result<Option<FileType>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(facts) => Ok(Some(FileType::from_raw_mode(facts.st_mode))),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}
