//! From a forked child of the keeper to bubblewrap: into the holder's namespaces, as the room's user, with nothing.
//!
//! The keeper itself stays outside with all it has. Must never hand on an environment or a descriptor by accident.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sched::CloneFlags;
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid};
use rustix::fs::MemfdFlags;

use crate::bwrap::{self, Descriptors};
use crate::diagnose::{self, Symptom};
use crate::error::Fault;
use crate::holder::build::FILTER;
use crate::room::Entrance;
use crate::{launch, sys};

/// Before this word on standard error stands a fault of ours, not bubblewrap's.
pub(crate) const FAULT: &str = "airlock-fault: ";

/// Where the descriptors are that bubblewrap and the warden get.
const PLACES: Descriptors = Descriptors {
    control: 3,
    spec: 4,
    seccomp: 5,
    output: 7,
    error: 8,
};
const ARGUMENTS: i32 = 6;
/// Above all of them.
const CLEAR: i32 = 16;

/// What the child takes with it.
#[derive(Debug)]
pub(crate) struct Baggage {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
    pub(crate) error: OwnedFd,
    pub(crate) words: OwnedFd,
    pub(crate) control: OwnedFd,
    pub(crate) spec: OwnedFd,
    /// The holder.
    pub(crate) holder: OwnedFd,
    /// Where to write to be limited by the job's control groups.
    pub(crate) cgroups: Vec<OwnedFd>,
}

/// Becomes bubblewrap. Returns only when it failed.
pub(crate) fn enter(entrance: &Entrance, baggage: &Baggage) -> Fault {
    match prepare(entrance, baggage) {
        Ok(program) => {
            let words = bwrap::command(ARGUMENTS, PLACES)
                .into_iter()
                .map(CString::new);
            let Ok(arguments) = words.collect::<Result<Vec<_>, _>>() else {
                return Fault::step("write bwrap's command", nix::errno::Errno::EINVAL);
            };
            let nothing: [CString; 0] = [];
            let Err(errno) = nix::unistd::execve(&program, &arguments, &nothing);
            // The command is not reached yet: whatever it is, it is the host's.
            let program = OsStr::from_bytes(program.as_bytes());
            let error = std::io::Error::from(errno);
            let words = format!("cannot execute {}: {error}", program.display());
            Fault::Unavailable(diagnose::explain(&Symptom::Bwrap(words)))
        }
        Err(fault) => fault,
    }
}

fn prepare(entrance: &Entrance, baggage: &Baggage) -> Result<CString, Fault> {
    let step = |doing: &'static str| move |errno: nix::errno::Errno| Fault::step(doing, errno);
    launch::default_signals().map_err(step("reset signals"))?;
    nix::sys::stat::umask(Mode::from_bits_truncate(0o022));
    for group in &baggage.cgroups {
        // A group that lets nobody in limits nothing; the watch over the job does.
        rustix::io::write(group, b"0").ok();
    }
    join(entrance, baggage)?;
    let filter = open(FILTER, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(|errno| Fault::at("open the system call filter", FILTER, errno))?;
    let words = arguments()?;
    nix::unistd::chdir("/").map_err(step("enter the room's root"))?;
    let order = [
        (baggage.input.as_fd(), 0),
        (baggage.words.as_fd(), 1),
        (baggage.words.as_fd(), 2),
        (baggage.control.as_fd(), PLACES.control),
        (baggage.spec.as_fd(), PLACES.spec),
        (filter.as_fd(), PLACES.seccomp),
        (words.as_fd(), ARGUMENTS),
        (baggage.output.as_fd(), PLACES.output),
        (baggage.error.as_fd(), PLACES.error),
    ];
    arrange(&order)?;
    CString::new(entrance.bwrap.as_os_str().as_bytes())
        .map_err(|_zero| Fault::step("execute bwrap", nix::errno::Errno::EINVAL))
}

/// Root lets go of its groups outside, where that is allowed, and of its user id inside.
fn join(entrance: &Entrance, baggage: &Baggage) -> Result<(), Fault> {
    let account = entrance.account;
    let doing = "join the room's namespaces";
    if account.drop_root {
        nix::unistd::setgroups(&[]).map_err(|errno| Fault::step("leave root's groups", errno))?;
    }
    let mut flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS;
    if entrance.own_network {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    nix::sched::setns(&baggage.holder, flags).map_err(|errno| {
        // It was open a moment ago: its last job has ended meanwhile.
        if errno == nix::errno::Errno::ESRCH {
            Fault::Gone
        } else {
            Fault::step(doing, errno)
        }
    })?;
    if account.drop_root {
        let (uid, gid) = account.inside();
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        let fault = |errno| Fault::step("become the room's user", errno);
        nix::unistd::setresgid(gid, gid, gid).map_err(fault)?;
        nix::unistd::setresuid(uid, uid, uid).map_err(fault)?;
    }
    Ok(())
}

/// The words for bubblewrap in a file of their own: `/proc/1/cmdline` tells nothing, and no list is too long.
fn arguments() -> Result<OwnedFd, Fault> {
    let mut bytes = Vec::new();
    for word in bwrap::arguments(PLACES, &bwrap::masks()) {
        bytes.extend_from_slice(word.as_bytes());
        bytes.push(0);
    }
    memory(&bytes).map_err(|error| Fault::step("write bwrap's arguments", error))
}

/// A nameless file with this content, to be read from its start.
pub(crate) fn memory(content: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("airlock", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}

/// Puts each descriptor at its number and marks all others to be closed by exec.
fn arrange(order: &[(BorrowedFd<'_>, i32)]) -> Result<(), Fault> {
    let fault = |error| Fault::step("arrange descriptors", error);
    let mut lifted = Vec::new();
    for (descriptor, place) in order {
        // First out of the way, so that no number is overwritten before it was copied.
        let number = fcntl(descriptor, FcntlArg::F_DUPFD_CLOEXEC(CLEAR))
            .map_err(|errno| fault(errno.into()))?;
        lifted.push((sys::inherited(number).map_err(fault)?, *place));
    }
    sys::close_on_exec_from(3).map_err(fault)?;
    for (descriptor, place) in &lifted {
        sys::place(descriptor.as_fd(), *place).map_err(fault)?;
    }
    Ok(())
}
