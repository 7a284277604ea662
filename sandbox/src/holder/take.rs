//! What a room shows of the host, taken as detached mounts while this process may still reach it.
//!
//! Must never follow a link in the worktree, and must leave nothing there but the folders `.bg` and `.sub`.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::libc;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::mount::OpenTreeFlags;

use super::{etc, layers, own};
use crate::account::Account;
use crate::error::Fault;
use crate::policy::{Bind, Source};
use crate::spec::{Layer, Net, RoomSpec};
use crate::{diagnose, sys};

/// A mount without a place, to be attached once.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) mount: OwnedFd,
    pub(super) is_folder: bool,
}

/// What stands at `.git` in the worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitEntry {
    Absent,
    File,
    Folder,
}

/// Our own program.
#[derive(Debug)]
pub(super) enum Program {
    Mount(Taken),
    /// It was replaced on disk since this process began: only its open file is left.
    Copy(File),
}

/// Everything that comes from the host.
#[derive(Debug)]
pub(super) struct Everything {
    /// Top folders and links, such as `/usr` and `/bin`.
    pub(super) system: Vec<(PathBuf, Taken)>,
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    pub(super) etc: etc::Etc,
    pub(super) devices: Vec<(&'static str, Taken)>,
    pub(super) proc: Taken,
    pub(super) program: Program,
    pub(super) git_entry: GitEntry,
    pub(super) shadow: Option<Taken>,
    pub(super) objects: Vec<Taken>,
    pub(super) bg: Taken,
    pub(super) sub: Taken,
    pub(super) feedback: Taken,
    /// The folder of the proxy's socket.
    pub(super) proxy: Option<Taken>,
    pub(super) outbox: Taken,
    /// Whether `.bg` and `.sub` exist in the tree to be mounted over.
    pub(super) has_views: bool,
    /// What is shown below HOME.
    pub(super) layers: Vec<(Layer, Taken)>,
    /// The plan; `None` where the source is in the tree and is taken when the tree stands.
    pub(super) binds: Vec<(Bind, Option<Taken>)>,
}

const TOP: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Makes the folders of the task that the room shows, where they are not there yet.
pub(super) fn folders(room: &RoomSpec) -> Result<(), Fault> {
    for folder in [&room.bg, &room.sub, &room.feedback, &room.outbox] {
        std::fs::create_dir_all(folder)
            .map_err(|error| Fault::at("make a folder", folder, error))?;
    }
    Ok(())
}

pub(super) fn all(room: &RoomSpec, plan: &[Bind], account: Account) -> Result<Everything, Fault> {
    let (system, links) = top()?;
    let devices = DEVICES
        .iter()
        .map(|name| Ok((*name, take(&Path::new("/dev").join(name), Show::Device)?)))
        .collect::<Result<_, Fault>>()?;
    let (git_entry, has_views) = prepare_tree(room)?;
    let (shadow, objects) = match &room.git {
        Some(git) => (
            Some(take(&git.shadow, Show::Writable)?),
            git.objects
                .iter()
                .map(|path| take(path, Show::ReadOnly))
                .collect::<Result<_, _>>()?,
        ),
        None => (None, Vec::new()),
    };
    Ok(Everything {
        system,
        links,
        etc: etc::read(&room.net, account)?,
        devices,
        proc: take(Path::new("/proc"), Show::AsIs)?,
        program: program(account)?,
        git_entry,
        shadow,
        objects,
        bg: take(&room.bg, Show::ReadOnly)?,
        sub: take(&room.sub, Show::ReadOnly)?,
        feedback: take(&room.feedback, Show::ReadOnly)?,
        proxy: match &room.net {
            Net::Proxied { folder, .. } => Some(take(folder, Show::ReadOnly)?),
            Net::None | Net::Host => None,
        },
        outbox: take(&room.outbox, Show::Writable)?,
        has_views,
        layers: layers::take_all(&room.layers, account)?,
        binds: binds(room, plan)?,
    })
}

fn binds(room: &RoomSpec, plan: &[Bind]) -> Result<Vec<(Bind, Option<Taken>)>, Fault> {
    plan.iter()
        .map(|bind| {
            let show = if bind.writable {
                Show::Writable
            } else {
                Show::ReadOnly
            };
            let taken = match &bind.source {
                Source::Tree => Some(take(&room.tree, show)?),
                // The policy has seen that no link is on the way.
                Source::Host => Some(take(&bind.path, show)?),
                Source::InTree(_) => None,
            };
            Ok((bind.clone(), taken))
        })
        .collect()
}

/// The system's folders, and those that are only links to them on merged systems.
#[expect(clippy::type_complexity, reason = "two lists of pairs, used once")]
fn top() -> Result<(Vec<(PathBuf, Taken)>, Vec<(PathBuf, PathBuf)>), Fault> {
    let (mut folders, mut links) = (Vec::new(), Vec::new());
    for name in TOP {
        let path = Path::new("/").join(name);
        match std::fs::symlink_metadata(&path) {
            Ok(facts) if facts.is_symlink() => {
                let target = std::fs::read_link(&path)
                    .map_err(|error| Fault::at("read a link", &path, error))?;
                links.push((path, target));
            }
            Ok(_) => {
                let taken = take(&path, Show::ReadOnly)?;
                folders.push((path, taken));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Fault::at("look at a system folder", &path, error)),
        }
    }
    Ok((folders, links))
}

/// Looks at the worktree's own entries that the room covers, and makes the two that may be made.
fn prepare_tree(room: &RoomSpec) -> Result<(GitEntry, bool), Fault> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let tree = rustix::fs::open(&room.tree, flags, Mode::empty())
        .map_err(|error| Fault::at("open the worktree", &room.tree, error))?;
    let look = |name: &str| {
        own::kind_of(&tree, name)
            .map_err(|error| Fault::at("look into the worktree", room.tree.join(name), error))
    };
    let git = match look(".git")? {
        None => GitEntry::Absent,
        Some(FileType::RegularFile) => GitEntry::File,
        Some(FileType::Directory) => GitEntry::Folder,
        Some(other) => return Err(planted(room.tree.join(".git"), other)),
    };
    if git == GitEntry::Absent && room.git.is_some() {
        return Err(Fault::Planted {
            path: room.tree.join(".git"),
            found: "missing".into(),
        });
    }
    let mut present = true;
    for name in [".bg", ".sub"] {
        match look(name)? {
            Some(FileType::Directory) => {}
            Some(other) => return Err(planted(room.tree.join(name), other)),
            // A tree that is not ours to write stays as it is.
            None if !room.writable => present = false,
            None => rustix::fs::mkdirat(&tree, name, Mode::from_raw_mode(0o755))
                .map_err(|error| Fault::at("make a folder", room.tree.join(name), error))?,
        }
    }
    Ok((git, present))
}

fn planted(path: PathBuf, kind: FileType) -> Fault {
    let found = match kind {
        FileType::Symlink => "a link",
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of an unknown kind",
    };
    Fault::Planted {
        path,
        found: found.to_owned(),
    }
}

/// How much of a mount jobs get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    ReadOnly,
    Writable,
    /// A device node: the one thing that must not be `nodev`.
    Device,
    /// `/proc`: bubblewrap writes the namespace limit through it, then covers it.
    AsIs,
}

/// Takes `path`, with all that is mounted below it, without following a link at its end.
pub(super) fn take(path: &Path, show: Show) -> Result<Taken, Fault> {
    let fault = |error: rustix::io::Errno| Fault::at("take a path into the room", path, error);
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let source = rustix::fs::open(path, flags, Mode::empty()).map_err(fault)?;
    let facts = rustix::fs::fstat(&source).map_err(fault)?;
    let kind = FileType::from_raw_mode(facts.st_mode);
    let fitting = match show {
        Show::Device => kind == FileType::CharacterDevice,
        Show::ReadOnly | Show::Writable => {
            matches!(kind, FileType::Directory | FileType::RegularFile)
        }
        Show::AsIs => kind == FileType::Directory,
    };
    if !fitting {
        return Err(planted(path.to_owned(), kind));
    }
    let mount = clone(&source, true).map_err(fault)?;
    restrict(&mount, show, true)
        .map_err(|error| Fault::at("restrict a mount of the room", path, error))?;
    Ok(Taken {
        mount,
        is_folder: kind == FileType::Directory,
    })
}

/// A detached copy of the mount that `source` is in, rooted at `source`.
pub(super) fn clone(source: &OwnedFd, recursive: bool) -> rustix::io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    if recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    rustix::mount::open_tree(source, "", flags)
}

/// No set-id, no devices, no news from the host; read-only unless it is to be written.
pub(super) fn restrict(mount: &OwnedFd, show: Show, recursive: bool) -> io::Result<()> {
    let set = match show {
        Show::ReadOnly => {
            libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV
        }
        Show::Writable => libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        Show::Device => libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC,
        Show::AsIs => libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC,
    };
    let attributes = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    sys::mount_setattr(mount.as_fd(), &attributes, recursive)
}

/// Shows the files of a mount as the user namespace `view` maps their owner.
pub(super) fn look_as(mount: &OwnedFd, view: &OwnedFd) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_IDMAP,
        attr_clr: 0,
        propagation: 0,
        userns_fd: u64::from(view.as_raw_fd().unsigned_abs()),
    };
    sys::mount_setattr(mount.as_fd(), &attributes, false)
}

fn program(account: Account) -> Result<Program, Fault> {
    let open =
        File::open("/proc/self/exe").map_err(|error| Fault::step("open our own program", error))?;
    let path = std::fs::read_link("/proc/self/exe")
        .map_err(|error| Fault::step("find our own program", error))?;
    if !account.may_execute(Path::new("/proc/self/exe")) {
        return Err(Fault::Unavailable(diagnose::explain(
            &diagnose::Symptom::Program(path),
        )));
    }
    let same = match (open.metadata(), std::fs::symlink_metadata(&path)) {
        (Ok(running), Ok(named)) => running.dev() == named.dev() && running.ino() == named.ino(),
        _ => false,
    };
    if same {
        return Ok(Program::Mount(take(&path, Show::ReadOnly)?));
    }
    Ok(Program::Copy(open))
}
