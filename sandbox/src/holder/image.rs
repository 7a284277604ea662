//! The room's file tree while it grows on a fresh root: places for mounts, and mounts for places.
//!
//! Must never make a mount point on a file system of the host, and must never go through a link.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags};

use super::take::{self, Show};
use crate::error::Fault;

/// The kind of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
}

impl Kind {
    pub(super) fn of(is_folder: bool) -> Self {
        if is_folder { Self::Folder } else { Self::File }
    }
}

/// A private memory file system of the room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tmpfs {
    pub(super) bytes: u64,
    pub(super) mode: &'static str,
}

/// The tree and which of its file systems are the room's own.
#[derive(Debug)]
pub(super) struct Image {
    /// Devices on which mount points may be made.
    own: BTreeSet<u64>,
    /// Those of them that jobs can write: a folder there has to be pinned, or it could be renamed.
    loose: BTreeSet<u64>,
}

impl Image {
    /// Starts with an empty root and leaves the host's behind for good.
    pub(super) fn new() -> Result<Self, Fault> {
        let fault = |error: rustix::io::Errno| Fault::step("make the room's root", error);
        let private = rustix::mount::MountPropagationFlags::REC
            | rustix::mount::MountPropagationFlags::PRIVATE;
        rustix::mount::mount_change("/", private).map_err(fault)?;
        let root = tmpfs(Tmpfs {
            bytes: 512 << 20,
            mode: "0755",
        })
        .map_err(fault)?;
        // Any folder does for a moment: all that the room shows has been taken before.
        let spot = open_folder(Path::new("/usr")).map_err(fault)?;
        attach(&root, &spot).map_err(fault)?;
        rustix::process::fchdir(&root).map_err(fault)?;
        rustix::process::pivot_root(".", ".").map_err(fault)?;
        // The old root lies on top of the new one at this place; away with it and all below.
        rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(fault)?;
        rustix::process::chdir("/").map_err(fault)?;
        let mut image = Self {
            own: BTreeSet::new(),
            loose: BTreeSet::new(),
        };
        image.own.insert(device(&root).map_err(fault)?);
        Ok(image)
    }

    /// Puts `mount` at `path`.
    pub(super) fn mount(&self, mount: &OwnedFd, path: &Path, kind: Kind) -> Result<(), Fault> {
        let spot = self.place(path, kind)?;
        attach(mount, &spot).map_err(|error| Fault::at("mount in the room", path, error))
    }

    /// Puts a fresh memory file system at `path`; jobs may write it when `loose`.
    pub(super) fn mount_tmpfs(
        &mut self,
        shape: Tmpfs,
        path: &Path,
        loose: bool,
    ) -> Result<OwnedFd, Fault> {
        let fault = |error: rustix::io::Errno| Fault::at("mount memory in the room", path, error);
        let mount = tmpfs(shape).map_err(fault)?;
        let device = device(&mount).map_err(fault)?;
        self.own.insert(device);
        if loose {
            self.loose.insert(device);
        }
        self.mount(&mount, path, Kind::Folder)?;
        Ok(mount)
    }

    /// The place `path`, made if that leaves nothing on a file system of the host.
    pub(super) fn place(&self, path: &Path, kind: Kind) -> Result<OwnedFd, Fault> {
        let fault = |error: rustix::io::Errno| Fault::at("find a place in the room", path, error);
        let mut at = open_folder(Path::new("/")).map_err(fault)?;
        let names: Vec<&OsStr> = path
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name),
                Component::RootDir
                | Component::CurDir
                | Component::ParentDir
                | Component::Prefix(_) => None,
            })
            .collect();
        for (index, name) in names.iter().enumerate() {
            let last = (index + 1 == names.len()).then_some(kind);
            at = self.step(&at, name, last, path)?;
        }
        Ok(at)
    }

    /// One folder further, or to the place itself when `last` says of which kind it is.
    fn step(
        &self,
        at: &OwnedFd,
        name: &OsStr,
        last: Option<Kind>,
        path: &Path,
    ) -> Result<OwnedFd, Fault> {
        let wanted = last.unwrap_or(Kind::Folder);
        let fault = |error: rustix::io::Errno| Fault::at("find a place in the room", path, error);
        if let Some(found) = enter(at, name).map_err(fault)? {
            return fits(found, wanted, path);
        }
        let here = device(at).map_err(fault)?;
        if !self.own.contains(&here) {
            let reason = "nothing is there, and a mount point would be left on the host";
            return Err(Fault::Refused {
                path: path.to_owned(),
                reason: reason.to_owned(),
            });
        }
        match wanted {
            Kind::Folder => {
                rustix::fs::mkdirat(at, name, Mode::from_raw_mode(0o755)).map_err(fault)?;
            }
            Kind::File => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                drop(
                    rustix::fs::openat(at, name, flags, Mode::from_raw_mode(0o644))
                        .map_err(fault)?,
                );
            }
        }
        let made = enter(at, name)
            .map_err(fault)?
            .ok_or_else(|| fault(rustix::io::Errno::NOENT))?;
        if last.is_none() && self.loose.contains(&here) {
            pin(&made).map_err(fault)?;
            return enter(at, name)
                .map_err(fault)?
                .ok_or_else(|| fault(rustix::io::Errno::NOENT));
        }
        Ok(made)
    }

    /// Keeps `inner` of the tree at `tree` from being written, and every folder on the way from being renamed.
    pub(super) fn protect(&self, tree: &Path, inner: &Path) -> Result<(), Fault> {
        let path = tree.join(inner);
        let doing = "protect a path of the worktree";
        let fault = |error: rustix::io::Errno| Fault::at(doing, &path, error);
        self.pin_way(tree, &path)?;
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(fault(rustix::io::Errno::INVAL));
        };
        let folder = self.place(folder, Kind::Folder)?;
        let Some(found) = enter(&folder, name).map_err(fault)? else {
            return Err(absent(path));
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&found).map_err(fault)?.st_mode);
        if !matches!(kind, FileType::Directory | FileType::RegularFile) {
            let found = "neither a folder nor a regular file".to_owned();
            return Err(Fault::Planted { path, found });
        }
        let mount = take::clone(&found, true).map_err(fault)?;
        take::restrict(&mount, Show::ReadOnly, true)
            .map_err(|error| Fault::at(doing, &path, error))?;
        attach(&mount, &found).map_err(fault)
    }

    /// Pins every folder between `outer`, which jobs can write, and `inner`: a mount point whose parent could be
    /// renamed would let something else take its place.
    pub(super) fn pin_way(&self, outer: &Path, inner: &Path) -> Result<(), Fault> {
        let Some(between) = inner
            .parent()
            .and_then(|folder| folder.strip_prefix(outer).ok())
        else {
            return Ok(());
        };
        let mut path = outer.to_owned();
        let fault = |error: rustix::io::Errno| Fault::at("pin a folder", inner, error);
        let mut above = self.place(outer, Kind::Folder)?;
        for name in between {
            path.push(name);
            let Some(found) = enter(&above, name).map_err(fault)? else {
                return Err(absent(inner.to_owned()));
            };
            let found = fits(found, Kind::Folder, &path)?;
            if mount_id(&found).map_err(fault)? == mount_id(&above).map_err(fault)? {
                pin(&found).map_err(fault)?;
            }
            above = self.place(&path, Kind::Folder)?;
        }
        Ok(())
    }
}

fn absent(path: std::path::PathBuf) -> Fault {
    let reason = "it is not there, and a mount point would be left behind".to_owned();
    Fault::Refused { path, reason }
}

fn fits(found: OwnedFd, wanted: Kind, path: &Path) -> Result<OwnedFd, Fault> {
    let facts = rustix::fs::fstat(&found)
        .map_err(|error| Fault::at("find a place in the room", path, error))?;
    let kind = FileType::from_raw_mode(facts.st_mode);
    let fitting = match wanted {
        Kind::Folder => kind == FileType::Directory,
        Kind::File => kind == FileType::RegularFile,
    };
    if fitting {
        return Ok(found);
    }
    Err(Fault::Planted {
        path: path.to_owned(),
        found: format!("on the way through {kind:?}, not where a mount can be placed"),
    })
}

/// The entry `name`, mounted over or not, without following a link.
fn enter(at: &OwnedFd, name: &OsStr) -> rustix::io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(at, name, flags, Mode::empty()) {
        Ok(found) => Ok(Some(found)),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Mounts a folder on itself: a mount point cannot be renamed or removed.
fn pin(folder: &OwnedFd) -> rustix::io::Result<()> {
    let mount = take::clone(folder, true)?;
    attach(&mount, folder)
}

/// Puts `mount` over `spot`.
pub(super) fn attach(mount: &OwnedFd, spot: &OwnedFd) -> rustix::io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(mount, "", spot, "", flags)
}

fn tmpfs(shape: Tmpfs) -> rustix::io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let context = &context;
    rustix::mount::fsconfig_set_string(context, "source", "airlock")?;
    rustix::mount::fsconfig_set_string(context, "mode", shape.mode)?;
    rustix::mount::fsconfig_set_string(context, "size", shape.bytes.to_string())?;
    // An inode costs memory that `size` does not count.
    let inodes = (shape.bytes / 4096).clamp(4096, 262_144);
    rustix::mount::fsconfig_set_string(context, "nr_inodes", inodes.to_string())?;
    rustix::mount::fsconfig_create(context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    rustix::mount::fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// A private set of pseudo terminals.
pub(super) fn terminals() -> rustix::io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let context = &context;
    rustix::mount::fsconfig_set_flag(context, "newinstance")?;
    rustix::mount::fsconfig_set_string(context, "ptmxmode", "0666")?;
    rustix::mount::fsconfig_set_string(context, "mode", "0620")?;
    rustix::mount::fsconfig_create(context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    rustix::mount::fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn open_folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

fn device(fd: &OwnedFd) -> rustix::io::Result<u64> {
    Ok(rustix::fs::fstat(fd)?.st_dev)
}

/// Which mount a descriptor is in.
pub(super) fn mount_id(fd: &OwnedFd) -> rustix::io::Result<u64> {
    let facts = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    Ok(facts.stx_mnt_id)
}
