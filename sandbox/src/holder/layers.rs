//! HOME, and what a room shows of the host below it: caches and toolchains, with a layer of the room's own over
//! those that jobs may write.
//!
//! An overlay in the room's own user namespace, not a copy: a cache has gigabytes, and this costs about a millisecond
//! of processor time for the first layer (with the idmapped mount that root needs) and half of one for each further.
//! A room without layers has none of it. The writable half lies in the memory of HOME, so that HOME's size and the
//! limit on memory count it.
//!
//! Must never let a write reach the host: what lies below a layer is mounted read-only, and so is all of it where
//! the kernel has no overlays.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags};

use super::image::{Image, Kind, Tmpfs};
use super::take::{self, Show, Taken};
use super::{idmap, own};
use crate::account::Account;
use crate::environment::HOME;
use crate::error::Fault;
use crate::spec::Layer;

/// Where layers are put together; nothing stays mounted there.
const WORKSHOP: &str = "/run/airlock/layers";

/// Takes what lies below the layers. As root also makes it look like the room's user's where that can be had: then
/// what the host's owner may read can be read in the room, and a folder of the cache can be added to.
pub(super) fn take_all(layers: &[Layer], account: Account) -> Result<Vec<(Layer, Taken)>, Fault> {
    let mut views = BTreeMap::new();
    let mut all = Vec::new();
    for layer in layers {
        let taken = take::take(&layer.from, Show::ReadOnly)?;
        if account.drop_root {
            let owner = own::owner_of(&taken.mount)
                .map_err(|error| Fault::at("look at a folder", &layer.from, error))?;
            let view = views
                .entry(owner)
                .or_insert_with(|| idmap::view(owner, account).ok());
            if let Some(view) = view {
                // A file system that cannot do this shows its files as they are: less can be read, nothing more.
                drop(take::look_as(&taken.mount, view));
            }
        }
        all.push((layer.clone(), taken));
    }
    Ok(all)
}

/// Puts a private HOME in its place, and the layers into it.
pub(super) fn home(
    image: &mut Image,
    shape: Tmpfs,
    layers: &[(Layer, Taken)],
) -> Result<(), Fault> {
    if layers.is_empty() {
        return image.mount_tmpfs(shape, Path::new(HOME), true).map(drop);
    }
    // One memory for both, so that one size bounds them; jobs see no more of it than the folder of their HOME.
    let workshop = Path::new(WORKSHOP);
    drop(image.mount_tmpfs(shape, workshop, true)?);
    let home = made(&workshop.join("home"), 0o700)?;
    let home = take::clone(&home, false)
        .map_err(|error| Fault::at("make the room's HOME", HOME, error))?;
    image.mount(&home, Path::new(HOME), Kind::Folder)?;
    for (index, (layer, taken)) in layers.iter().enumerate() {
        if layer.writable && taken.is_folder {
            let mount = cover(image, &workshop.join(index.to_string()), taken)?;
            image.mount(&mount, &layer.at, Kind::Folder)?;
        } else {
            image.mount(&taken.mount, &layer.at, Kind::of(taken.is_folder))?;
        }
    }
    let fault = |error: rustix::io::Errno| Fault::at("clear up the layers", workshop, error);
    rustix::mount::unmount(workshop, UnmountFlags::DETACH).map_err(fault)?;
    rustix::fs::rmdir(workshop).map_err(fault)
}

/// The folder with a writable layer over it, or as it is where the kernel makes none.
fn cover(image: &Image, folder: &Path, taken: &Taken) -> Result<OwnedFd, Fault> {
    drop(made(folder, 0o700)?);
    let [low, up, work] = ["low", "up", "work"].map(|name| folder.join(name));
    for folder in [&low, &up, &work] {
        drop(made(folder, 0o755)?);
    }
    // An overlay is made of what is mounted.
    image.mount(&taken.mount, &low, Kind::Folder)?;
    let fault = |error: rustix::io::Errno| Fault::at("copy a mount", folder, error);
    overlay(&low, &up, &work)
        .or_else(|_no_overlays_here| take::clone(&opened(&low)?, true))
        .map_err(fault)
}

fn overlay(low: &Path, up: &Path, work: &Path) -> rustix::io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let context = &context;
    rustix::mount::fsconfig_set_string(context, "source", "airlock")?;
    rustix::mount::fsconfig_set_string(context, "lowerdir", low)?;
    rustix::mount::fsconfig_set_string(context, "upperdir", up)?;
    rustix::mount::fsconfig_set_string(context, "workdir", work)?;
    // What a user namespace may write: `trusted.` attributes are the host's root's.
    rustix::mount::fsconfig_set_flag(context, "userxattr")?;
    rustix::mount::fsconfig_create(context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    rustix::mount::fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn made(folder: &Path, mode: u32) -> Result<OwnedFd, Fault> {
    let fault = |error: rustix::io::Errno| Fault::at("make a folder of the room", folder, error);
    rustix::fs::mkdir(folder, Mode::from_raw_mode(mode)).map_err(fault)?;
    opened(folder).map_err(fault)
}

fn opened(folder: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(folder, flags, Mode::empty())
}
