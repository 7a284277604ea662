//! Builds the room's file tree, in the order in which later mounts cover earlier ones.
//!
//! Must never leave a writable place without a size, or the root writable.

use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::image::{Image, Kind, Tmpfs, terminals};
use super::take::{self, Everything, GitEntry, Program, Show};
use super::{cover, layers};
use crate::bwrap::WARDEN;
use crate::environment::HOME;
use crate::error::Fault;
use crate::policy::{Bind, Source};
use crate::relay;
use crate::seccomp::{self, Arch, Form};
use crate::spec::RoomSpec;

/// Where bubblewrap finds the part of the system call filter that it loads.
pub(crate) const FILTER: &str = "/run/airlock/filter";
const GIT: &str = "/run/airlock/git";
const OUTBOX: &str = "/run/airlock/outbox";
const SHARED_MEMORY: u64 = 64 << 20;

/// Builds it all. Answers the paths in the room that jobs may write.
pub(super) fn room(room: &RoomSpec, taken: &Everything) -> Result<Vec<PathBuf>, Fault> {
    let mut image = Image::new()?;
    cover::prepare(&image)?;
    for (path, mount) in &taken.system {
        image.mount(&mount.mount, path, Kind::Folder)?;
    }
    for (path, target) in &taken.links {
        symlink(target, path).map_err(|error| Fault::at("make a link in the room", path, error))?;
    }
    cover::system()?;
    etc(&image, taken)?;
    image.mount(&taken.proc.mount, Path::new("/proc"), Kind::Folder)?;
    devices(&mut image, taken)?;
    private(&mut image, room, taken)?;
    own_folder(&image, taken)?;
    let writable = binds(&image, room, taken)?;
    seal()?;
    Ok(writable)
}

fn etc(image: &Image, taken: &Everything) -> Result<(), Fault> {
    let etc = Path::new("/etc");
    drop(image.place(etc, Kind::Folder)?);
    for (name, content) in &taken.etc.files {
        write(&etc.join(name), content, 0o644)?;
    }
    link("../proc/self/mounts", "/etc/mtab")?;
    for (name, mount) in &taken.etc.folders {
        image.mount(&mount.mount, &etc.join(name), Kind::Folder)?;
    }
    Ok(())
}

fn devices(image: &mut Image, taken: &Everything) -> Result<(), Fault> {
    let dev = Path::new("/dev");
    // Small: it holds names only.
    drop(image.mount_tmpfs(
        Tmpfs {
            bytes: 64 << 10,
            mode: "0755",
        },
        dev,
        false,
    )?);
    for (name, mount) in &taken.devices {
        image.mount(&mount.mount, &dev.join(name), Kind::File)?;
    }
    let terminals = terminals().map_err(|error| Fault::step("make the room's terminals", error))?;
    image.mount(&terminals, Path::new("/dev/pts"), Kind::Folder)?;
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("core", "/proc/kcore"),
        ("ptmx", "pts/ptmx"),
    ] {
        link(target, &format!("/dev/{name}"))?;
    }
    let shared = Tmpfs {
        bytes: SHARED_MEMORY,
        mode: "1777",
    };
    drop(image.mount_tmpfs(shared, Path::new("/dev/shm"), true)?);
    Ok(())
}

/// What the jobs of a task share among themselves and with nobody else.
fn private(image: &mut Image, room: &RoomSpec, taken: &Everything) -> Result<(), Fault> {
    let tmp = Tmpfs {
        bytes: room.tmp_bytes,
        mode: "1777",
    };
    let tmp = image.mount_tmpfs(tmp, Path::new("/tmp"), true)?;
    // The same memory once more, not a link: a worktree may stand below /var/tmp.
    let again =
        take::clone(&tmp, false).map_err(|error| Fault::step("share /tmp as /var/tmp", error))?;
    image.mount(&again, Path::new("/var/tmp"), Kind::Folder)?;
    let home = Tmpfs {
        bytes: room.home_bytes,
        mode: "0700",
    };
    layers::home(image, home, &taken.layers)?;
    for (layer, _) in &taken.layers {
        cover::tool(&layer.at)?;
    }
    for (name, content) in &room.home_files {
        begin_with(Path::new(name), content)?;
    }
    for folder in [
        "/root",
        "/run/lock",
        "/var/lib",
        "/var/cache",
        "/var/log",
        "/opt",
        "/mnt",
        "/srv",
    ] {
        drop(image.place(Path::new(folder), Kind::Folder)?);
    }
    Ok(())
}

/// Puts a file into the fresh HOME. Nothing is there yet that could be followed.
fn begin_with(name: &Path, content: &str) -> Result<(), Fault> {
    let below = |part| matches!(part, std::path::Component::Normal(_));
    let path = Path::new(HOME).join(name);
    let fault = |error| Fault::at("put a file into HOME", &path, error);
    if !name.components().all(below) || name.as_os_str().is_empty() {
        return Err(fault(std::io::ErrorKind::InvalidInput.into()));
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(fault)?;
    }
    std::fs::write(&path, content).map_err(fault)
}

/// `/run/airlock`: the git view, feedback and outbox, our own program, the filter.
fn own_folder(image: &Image, taken: &Everything) -> Result<(), Fault> {
    match &taken.program {
        Program::Mount(mount) => image.mount(&mount.mount, Path::new(WARDEN), Kind::File)?,
        Program::Copy(file) => {
            drop(image.place(Path::new(WARDEN), Kind::File)?);
            let mut from = file;
            let fault = |error| Fault::at("copy our own program into the room", WARDEN, error);
            let mut to = std::fs::File::create(WARDEN).map_err(fault)?;
            std::io::copy(&mut from, &mut to).map_err(fault)?;
            std::fs::set_permissions(WARDEN, Permissions::from_mode(0o755)).map_err(fault)?;
        }
    }
    let arch = Arch::current().ok_or_else(|| {
        Fault::step(
            "choose a system call filter for this machine",
            nix::errno::Errno::ENOSYS,
        )
    })?;
    let filter = seccomp::bytes(arch, Form::Below);
    write(Path::new(FILTER), &filter, 0o644)?;
    if let Some(shadow) = &taken.shadow {
        image.mount(&shadow.mount, Path::new(GIT), Kind::Folder)?;
    }
    for (index, objects) in taken.objects.iter().enumerate() {
        let path = format!("/run/airlock/objects/{index}");
        image.mount(&objects.mount, Path::new(&path), Kind::Folder)?;
    }
    if let Some(proxy) = &taken.proxy {
        image.mount(&proxy.mount, Path::new(relay::FOLDER), Kind::Folder)?;
    }
    image.mount(&taken.outbox.mount, Path::new(OUTBOX), Kind::Folder)?;
    image.mount(
        &taken.feedback.mount,
        Path::new("/run/airlock/feedback"),
        Kind::Folder,
    )
}

/// The worktree and the paths of the policy; answers what is writable in the room.
fn binds(image: &Image, room: &RoomSpec, taken: &Everything) -> Result<Vec<PathBuf>, Fault> {
    let mut writable: Vec<PathBuf> = ["/tmp", "/dev", "/proc", HOME, OUTBOX]
        .map(PathBuf::from)
        .to_vec();
    if taken.shadow.is_some() {
        writable.push(GIT.into());
    }
    for (bind, mount) in &taken.binds {
        if let Some(outer) = around(taken, bind) {
            image.pin_way(outer, &bind.path)?;
        }
        match (&bind.source, mount) {
            (Source::Tree, Some(mount)) => {
                image.mount(&mount.mount, &bind.path, Kind::Folder)?;
                tree(image, room, taken, &bind.path)?;
            }
            (Source::Host, Some(mount)) => {
                image.mount(&mount.mount, &bind.path, Kind::of(mount.is_folder))?;
                if room.tools.contains(&bind.path) {
                    // Before what lies deeper is mounted: what a person names is shown.
                    cover::tool(&bind.path)?;
                }
            }
            (Source::InTree(inner), _) if !bind.writable => {
                image.protect(&room_tree(taken), inner)?;
            }
            (Source::InTree(_) | Source::Tree | Source::Host, _) => {}
        }
        if bind.writable {
            writable.push(bind.path.clone());
        }
    }
    Ok(writable)
}

/// The innermost writable path that `bind` stands in.
fn around<'taken>(taken: &'taken Everything, bind: &Bind) -> Option<&'taken Path> {
    let outer = taken
        .binds
        .iter()
        .map(|(outer, _)| outer)
        .filter(|outer| outer.writable);
    outer
        .map(|outer| outer.path.as_path())
        .filter(|outer| bind.path != *outer && bind.path.starts_with(outer))
        .max_by_key(|path| path.components().count())
}

fn room_tree(taken: &Everything) -> PathBuf {
    taken
        .binds
        .iter()
        .find(|(bind, _)| bind.source == Source::Tree)
        .map(|(bind, _)| bind.path.clone())
        .unwrap_or_default()
}

/// The entries of the worktree that are not the agent's.
fn tree(image: &Image, room: &RoomSpec, taken: &Everything, at: &Path) -> Result<(), Fault> {
    let git = at.join(".git");
    match (taken.git_entry, room.git.is_some()) {
        (GitEntry::Absent, _) => {}
        (GitEntry::File, shown) => {
            let pointer = Path::new("/run/airlock/pointer");
            let text = if shown {
                format!("gitdir: {GIT}\n")
            } else {
                String::new()
            };
            write(pointer, text.as_bytes(), 0o444)?;
            image.mount(&taken_within(pointer)?, &git, Kind::File)?;
        }
        (GitEntry::Folder, true) => {
            image.mount(&taken_within(Path::new(GIT))?, &git, Kind::Folder)?;
        }
        (GitEntry::Folder, false) => {
            let empty = Path::new("/run/airlock/empty");
            drop(image.place(empty, Kind::Folder)?);
            image.mount(&taken_within(empty)?, &git, Kind::Folder)?;
        }
    }
    if taken.has_views {
        image.mount(&taken.bg.mount, &at.join(".bg"), Kind::Folder)?;
        image.mount(&taken.sub.mount, &at.join(".sub"), Kind::Folder)?;
    }
    Ok(())
}

/// A read-only copy of what the room already shows at `path`.
fn taken_within(path: &Path) -> Result<OwnedFd, Fault> {
    Ok(take::take(path, Show::ReadOnly)?.mount)
}

/// The root and `/dev` become read-only; what is mounted on them keeps its own mode.
fn seal() -> Result<(), Fault> {
    use rustix::fs::{Mode, OFlags};
    for path in ["/dev", "/"] {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mount = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| Fault::at("seal the room", path, error))?;
        take::restrict(&mount, Show::ReadOnly, false)
            .map_err(|error| Fault::at("seal the room", path, error))?;
    }
    Ok(())
}

fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), Fault> {
    let fault = |error| Fault::at("write a file of the room", path, error);
    std::fs::write(path, content).map_err(fault)?;
    std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(fault)
}

fn link(target: &str, path: &str) -> Result<(), Fault> {
    symlink(target, path).map_err(|error| Fault::at("make a link in the room", path, error))
}
