//! Covers files that usually hold tokens, where a room shows the folder of a tool as a whole: the one list of such
//! files, and the places of them in a tool's folder.
//!
//! Must never make anything on the host, open a file for reading, or cover what a person shows by name: it works in
//! the finished part of the room, by descriptor, and mounts an empty file over a file.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::image::{Image, Kind, attach, mount_id};
use super::take::{self, Show};
use crate::error::Fault;

/// The empty file that is mounted over others.
const BLANK: &str = "/run/airlock/blank";

/// Files that hold tokens, passwords, or addresses with either in them.
const NAMES: &[&str] = &[
    ".condarc",
    ".credentials.json",
    ".env",
    ".gemrc",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".yarnrc",
    ".yarnrc.yml",
    ".bunfig.toml",
    "_netrc",
    "auth.json",
    "auth.toml",
    "bunfig.toml",
    "condarc",
    "config",
    "config.toml",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "gemrc",
    "gradle.properties",
    "hosts.yaml",
    "hosts.yml",
    "npmrc",
    "pip.conf",
    "pip.ini",
    "pipx_metadata.json",
    "settings.xml",
    "uv-receipt.toml",
    "uv.toml",
];

/// Folders of a tool that are installations of their own; `*` is any folder.
const INSTALLATIONS: &[&str] = &[
    "",
    "*",
    "versions/*",
    "versions/*/*",
    "versions/*/envs/*",
    "installs/*/*",
    "venvs/*",
    "envs/*",
    "plugins/*",
    "tools/*",
    "tools/image/*/*",
    "node-versions/*/installation",
    "nodejs/*",
    "global/*",
    "install/global",
];

/// Folders of an installation in which settings lie.
const SETTINGS: &[&str] = &["", "etc", "conf", ".git", "lib/node_modules/npm"];

/// Folders that `*` does not stand for: of programs and packages, and possibly very large.
const NO_INSTALLATIONS: &[&str] = &[
    ".git", "bin", "sbin", "include", "lib", "lib32", "lib64", "libexec", "share",
];

/// Folders with one folder for each package: `*` stands for nothing in them.
const PACKAGES: &[&str] = &["node_modules", "site-packages", "nix/store"];

/// Makes the empty file.
pub(super) fn prepare(image: &Image) -> Result<(), Fault> {
    use std::os::unix::fs::PermissionsExt as _;
    drop(image.place(Path::new(BLANK), Kind::File)?);
    std::fs::set_permissions(BLANK, std::fs::Permissions::from_mode(0o444))
        .map_err(|error| Fault::at("make an empty file", BLANK, error))
}

/// Covers such files in what every room shows of the system: programs that were installed beside its own.
pub(super) fn system() -> Result<(), Fault> {
    let local = Path::new("/usr/local");
    tool(Path::new("/usr"))?;
    tool(local)?;
    let fault = |error: Errno| Fault::at("look for files to cover", local, error);
    let Some(folder) = opened(local).map_err(fault)? else {
        return Ok(());
    };
    for name in children(&folder, local).map_err(fault)? {
        tool(&local.join(name))?;
    }
    Ok(())
}

/// Covers such files in the tool's folder that the room has at `root`. A file there is left alone.
pub(super) fn tool(root: &Path) -> Result<(), Fault> {
    let fault = |error: Errno| Fault::at("cover files that hold tokens", root, error);
    let Some(top) = opened(root).map_err(fault)? else {
        return Ok(());
    };
    let blank = rustix::fs::stat(BLANK).map_err(fault)?;
    let mount = mount_id(&top).map_err(fault)?;
    let tool = Tool { root, mount, blank };
    for pattern in INSTALLATIONS {
        let start = clone(&top).map_err(fault)?;
        for installation in tool.folders(start, pattern).map_err(fault)? {
            for settings in SETTINGS {
                let start = clone(&installation).map_err(fault)?;
                for folder in tool.folders(start, settings).map_err(fault)? {
                    tool.cover_in(&folder)?;
                }
            }
        }
    }
    Ok(())
}

/// A folder of the room and what is known of it.
struct Tool<'t> {
    root: &'t Path,
    /// The mount of its top.
    mount: u64,
    blank: Stat,
}

impl Tool<'_> {
    fn cover_in(&self, folder: &OwnedFd) -> Result<(), Fault> {
        for name in NAMES {
            let fault = |error: Errno| Fault::at("cover a file", self.root.join(name), error);
            let Some(found) = self.enter(folder, OsStr::new(name)).map_err(fault)? else {
                continue;
            };
            let facts = rustix::fs::fstat(&found).map_err(fault)?;
            let covered = (facts.st_dev, facts.st_ino) == (self.blank.st_dev, self.blank.st_ino);
            if !covered && FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile {
                let blank = take::take(Path::new(BLANK), Show::ReadOnly)?;
                attach(&blank.mount, &found).map_err(fault)?;
            }
        }
        Ok(())
    }

    /// The folders that `pattern` stands for, from `start`.
    fn folders(&self, start: OwnedFd, pattern: &str) -> rustix::io::Result<Vec<OwnedFd>> {
        let mut found = vec![start];
        for word in pattern.split('/').filter(|word| !word.is_empty()) {
            let mut deeper = Vec::new();
            for folder in &found {
                let names = if word == "*" {
                    children(folder, self.root)?
                } else {
                    vec![word.into()]
                };
                for name in names {
                    deeper.extend(self.enter(folder, &name)?.filter(is_folder));
                }
            }
            found = deeper;
        }
        Ok(found)
    }

    /// An entry of a folder. A link is followed as the room will follow it, but not out of the tool's own mount.
    fn enter(&self, at: &OwnedFd, name: &OsStr) -> rustix::io::Result<Option<OwnedFd>> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let plain = rustix::fs::openat(at, name, flags | OFlags::NOFOLLOW, Mode::empty());
        let Some(found) = out_of_reach(plain)? else {
            return Ok(None);
        };
        let facts = rustix::fs::fstat(&found)?;
        if FileType::from_raw_mode(facts.st_mode) != FileType::Symlink {
            return Ok(Some(found));
        }
        let resolve = ResolveFlags::NO_MAGICLINKS;
        let led = rustix::fs::openat2(at, name, flags, Mode::empty(), resolve);
        match out_of_reach(led)? {
            Some(led) if mount_id(&led)? == self.mount => Ok(Some(led)),
            Some(_) | None => Ok(None),
        }
    }
}

/// The folder at `path`; none if it is none, or not there.
fn opened(path: &Path) -> rustix::io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    out_of_reach(rustix::fs::open(path, flags, Mode::empty()))
}

/// The entries that `*` stands for.
fn children(folder: &OwnedFd, root: &Path) -> rustix::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    if PACKAGES.iter().any(|name| root.ends_with(name)) {
        return Ok(names);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Some(folder) = out_of_reach(rustix::fs::openat(folder, ".", flags, Mode::empty()))? else {
        return Ok(names);
    };
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let may_be_folder = matches!(
            entry.file_type(),
            FileType::Directory | FileType::Symlink | FileType::Unknown
        );
        let left_out = name == "."
            || name == ".."
            || NO_INSTALLATIONS.iter().any(|other| name == *other)
            || PACKAGES.iter().any(|other| name == *other);
        if may_be_folder && !left_out {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// What is not there, or what this process cannot reach, is not there for the room either: it has no more rights.
fn out_of_reach(found: rustix::io::Result<OwnedFd>) -> rustix::io::Result<Option<OwnedFd>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_folder(fd: &OwnedFd) -> bool {
    rustix::fs::fstat(fd)
        .is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::Directory)
}

fn clone(fd: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(fd, 3)
}
