//! The holder: one process per task that owns the room's namespaces and the finished file tree in them.
//!
//! It takes what the room shows from the host, gives up root, makes user, mount and network namespaces, builds the
//! tree on a fresh root and throws the host's root away; then it waits until nobody holds the task's pipe any more.
//! Jobs join its namespaces. It starts the relay to the proxy where the room has one. Must never run a command, and must
//! never keep a descriptor of the host but its lock.

pub(crate) mod build;
mod cover;
mod etc;
mod idmap;
mod image;
mod layers;
mod own;
mod take;

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid};
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::error::Fault;
use crate::lock::HeldLock;
use crate::policy::Bind;
use crate::relay::Relay;
use crate::spec::{Net, RoomSpec};
use crate::{diagnose, sys};

/// What the holder reads on standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HolderSpec {
    pub(crate) room: RoomSpec,
    pub(crate) account: Account,
}

/// What it answers on standard output, once.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HolderAnswer {
    /// The room stands. Paths in it that jobs may write.
    Ready {
        #[serde(with = "crate::wire::paths")]
        writable: Vec<PathBuf>,
    },
    /// It could not be built.
    Failed(Fault),
}

/// Files of a task's room in the lock folder.
pub(crate) fn file_name(task: &str, what: &str) -> String {
    format!("{task}.{what}")
}

pub(crate) fn main(_words: &[OsString]) -> ExitCode {
    // Nothing that the caller left open may live as long as a room.
    if sys::close_from(3).is_err() || nix::unistd::setsid().is_err() {
        return ExitCode::FAILURE;
    }
    // The room's user enters what is made here, whatever our caller's mask is.
    nix::sys::stat::umask(Mode::from_bits_truncate(0o022));
    let mut text = String::new();
    let Ok(_) = std::io::stdin().read_to_string(&mut text) else {
        return ExitCode::FAILURE;
    };
    // A caller that died in the middle of writing gets no room.
    let Ok(spec) = serde_json::from_str::<HolderSpec>(&text) else {
        return ExitCode::FAILURE;
    };
    let outcome = open_room(&spec);
    let (answer, held) = match outcome {
        Ok((writable, held)) => (HolderAnswer::Ready { writable }, Some(held)),
        Err(fault) => (HolderAnswer::Failed(fault), None),
    };
    let Ok(mut line) = serde_json::to_vec(&answer) else {
        return ExitCode::FAILURE;
    };
    line.push(b'\n');
    // If nobody reads it, the caller died: then there is no writer on the pipe to wait for either.
    let told = std::io::stdout()
        .write_all(&line)
        .and_then(|()| std::io::stdout().flush());
    match held {
        Some(held) if told.is_ok() && silence().is_ok() => held.wait(),
        _ => ExitCode::FAILURE,
    }
}

/// What keeps the room open and its end visible.
struct Held {
    /// Read end of the task's pipe: hangs up when the last supervisor and keeper is gone.
    pipe: File,
    /// Held as long as this process lives.
    _lock: HeldLock,
    /// The way to the proxy, as long as this process lives.
    relay: Option<Relay>,
}

impl Held {
    fn wait(&self) -> ExitCode {
        loop {
            let mut ends = [PollFd::new(self.pipe.as_fd(), PollFlags::empty())];
            match poll(&mut ends, PollTimeout::NONE) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(_) => return ExitCode::FAILURE,
            }
            let hung_up = ends.iter().any(|end| end.any() == Some(true));
            if hung_up {
                return ExitCode::SUCCESS;
            }
        }
    }
}

fn open_room(spec: &HolderSpec) -> Result<(Vec<PathBuf>, Held), Fault> {
    let mut held = hold(&spec.room)?;
    let plan = crate::policy::plan(&spec.room)?;
    let writable = make_room(spec, &plan).map_err(blame_host)?;
    if let Net::Proxied { policy, .. } = &spec.room.net {
        held.relay = Some(Relay::start(&spec.room.task, policy)?);
    }
    Ok((writable, held))
}

/// The kernel does not allow this process a step: that is about the host, since every path that a person names has
/// been looked at before.
fn blame_host(fault: Fault) -> Fault {
    let Fault::Step { doing, path, errno } = &fault else {
        return fault;
    };
    if !matches!(*errno, libc::EPERM | libc::ENOSYS) {
        return fault;
    }
    let step = match path {
        Some(path) => format!("{doing} ({path})"),
        None => doing.clone(),
    };
    refused(&step, *errno)
}

fn make_room(spec: &HolderSpec, plan: &[Bind]) -> Result<Vec<PathBuf>, Fault> {
    let account = spec.account;
    take::folders(&spec.room)?;
    let early = if account.drop_root {
        // As root: open everything now, so that folders closed to others on the way do not matter later.
        if spec.room.writable {
            own::hand_over(&spec.room.tree, account)?;
        }
        if let Some(git) = &spec.room.git {
            own::hand_over(&git.shadow, account)?;
        }
        own::hand_over(&spec.room.outbox, account)?;
        let taken = take::all(&spec.room, plan, account)?;
        give_up_root(account)?;
        Some(taken)
    } else {
        None
    };
    separate(account, &spec.room.net)?;
    let taken = match early {
        Some(taken) => taken,
        None => take::all(&spec.room, plan, account)?,
    };
    build::room(&spec.room, &taken)
}

fn hold(room: &RoomSpec) -> Result<Held, Fault> {
    let at = |what: &str| room.locks.join(file_name(&room.task, what));
    let lock = at("holder.lock");
    let lock = HeldLock::acquire_soon(&lock)
        .map_err(|error| Fault::at("lock the room", &lock, error.source))?
        .ok_or_else(|| Fault::Busy {
            what: "the room".into(),
        })?;
    let path = at("room");
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let pipe = open(&path, flags, Mode::empty())
        .map_err(|error| Fault::at("open the room's pipe", &path, error))?;
    Ok(Held {
        pipe: File::from(pipe),
        _lock: lock,
        relay: None,
    })
}

fn give_up_root(account: Account) -> Result<(), Fault> {
    let fault = |error| Fault::step("change to an ordinary user", error);
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    nix::unistd::setgroups(&[]).map_err(fault)?;
    nix::unistd::setresgid(gid, gid, gid).map_err(fault)?;
    nix::unistd::setresuid(uid, uid, uid).map_err(fault)?;
    // The change made this process undumpable, and with it its own /proc files root's: it has its maps to write.
    nix::sys::prctl::set_dumpable(true).map_err(fault)
}

/// Makes the namespaces and becomes their master.
fn separate(account: Account, net: &Net) -> Result<(), Fault> {
    let mut flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS;
    if net.is_own() {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    nix::sched::unshare(flags)
        .map_err(|error| refused("create the room's namespaces", error as i32))?;
    let (uid, gid) = account.inside();
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{uid} {} 1", account.uid)),
        ("gid_map", format!("{gid} {} 1", account.gid)),
    ] {
        let path = Path::new("/proc/self").join(file);
        std::fs::write(&path, text).map_err(|error| {
            refused(&format!("write {file}"), error.raw_os_error().unwrap_or(0))
        })?;
    }
    if net.is_own() {
        loopback()?;
    }
    Ok(())
}

fn loopback() -> Result<(), Fault> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    let socket = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .map_err(|error| Fault::step("open a socket in the room's network", error))?;
    sys::loopback_up(socket.as_fd()).map_err(|error| {
        refused(
            "bring up loopback in the room",
            error.raw_os_error().unwrap_or(0),
        )
    })
}

fn refused(step: &str, errno: i32) -> Fault {
    Fault::Unavailable(diagnose::explain(&diagnose::Symptom::Namespace {
        step: step.to_owned(),
        errno,
    }))
}

/// Lets go of the caller's pipes: a waiting holder must not keep anybody's reader waiting.
fn silence() -> nix::Result<()> {
    let null = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)
}
