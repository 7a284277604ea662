//! The keeper: one process per job, outside of the room, that sees it through whatever becomes of the supervisor.
//!
//! One thread, a session of its own. It holds the job's lock, takes the output, keeps the deadline, writes the final
//! status. When it dies the job dies with it. Must never run anything but bubblewrap, or the command when unconfined.

mod channels;
mod charge;
mod enter;
mod finish;
mod front;
mod guard;
mod handed;
mod output;
mod refusals;
mod serve;
mod tend;

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;

use nix::fcntl::{OFlag, open};
use nix::sys::signal::{SigHandler, Signal};
use nix::sys::stat::Mode;
use serde::{Deserialize, Serialize};

pub(crate) use output::NAME as LOG;
pub use serve::Order;
pub(crate) use serve::{Reply, connect, exchange, receive, send};

use crate::error::Fault;
use crate::identity::Identity;
use crate::lock::HeldLock;
use crate::meta::Meta;
use crate::room::Entrance;
use crate::spec::JobSpec;
use crate::watch::USE;
use crate::{durable, sys, wire};

/// What the keeper reads on standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeeperSpec {
    pub(crate) task: String,
    #[serde(with = "wire::path")]
    pub(crate) locks: PathBuf,
    pub(crate) job: JobSpec,
    /// `None` runs the command unconfined.
    pub(crate) entrance: Option<Entrance>,
    /// Somebody stands in front of it: streams and line come with this spec, as descriptors.
    pub(crate) foreground: Option<Foreground>,
}

/// Which descriptors come with the spec of a foreground job: output, error, line, and then the input if there is one.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Foreground {
    pub(crate) input: bool,
    pub(crate) terminal: bool,
}

/// What it answers on standard output, once.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum KeeperAnswer {
    /// The job is kept from here on; in a room: the walls stand.
    Kept,
    /// It is not, and nothing was run.
    Failed(Fault),
}

/// Files of a job in the lock folder.
pub(crate) fn file_name(task: &str, job: &str, what: &str) -> String {
    format!("{task}.{job}.{what}")
}

pub(crate) fn main(_words: &[OsString]) -> ExitCode {
    if sys::close_from(3).is_err() || nix::unistd::setsid().is_err() {
        return ExitCode::FAILURE;
    }
    // The room's user reads what is written here, whatever our caller's mask is.
    nix::sys::stat::umask(Mode::from_bits_truncate(0o022));
    // Whoever hangs up, the job goes on.
    for signal in [
        Signal::SIGHUP,
        Signal::SIGPIPE,
        Signal::SIGINT,
        Signal::SIGQUIT,
    ] {
        if sys::dispose(signal, SigHandler::SigIgn).is_err() {
            return ExitCode::FAILURE;
        }
    }
    // Inherited as "ignored", the end of children would never be told.
    if sys::dispose(Signal::SIGCHLD, SigHandler::SigDfl).is_err() {
        return ExitCode::FAILURE;
    }
    let Ok((text, descriptors)) = handed::receive(std::io::stdin()) else {
        return ExitCode::FAILURE;
    };
    let Ok(spec) = serde_json::from_slice::<KeeperSpec>(&text) else {
        return ExitCode::FAILURE;
    };
    let mut teller = Teller::new();
    match keep(&spec, descriptors, &mut teller) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            teller.tell(&KeeperAnswer::Failed(fault));
            ExitCode::FAILURE
        }
    }
}

/// Tells the process that started us once, then lets go of its pipe.
pub(crate) struct Teller(Option<File>);

impl Teller {
    fn new() -> Self {
        use std::os::fd::AsFd as _;
        let pipe = std::io::stdout()
            .as_fd()
            .try_clone_to_owned()
            .ok()
            .map(File::from);
        // Standard output itself is given up: only this copy keeps the pipe open.
        if let Ok(null) = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()) {
            nix::unistd::dup2_stdin(&null).ok();
            nix::unistd::dup2_stdout(&null).ok();
            nix::unistd::dup2_stderr(&null).ok();
        }
        Self(pipe)
    }

    pub(crate) fn tell(&mut self, answer: &KeeperAnswer) {
        if let (Some(mut pipe), Ok(mut line)) = (self.0.take(), serde_json::to_vec(answer)) {
            line.push(b'\n');
            // A supervisor that is gone meanwhile takes the job up from its files.
            drop(pipe.write_all(&line));
        }
    }
}

fn keep(spec: &KeeperSpec, descriptors: Vec<OwnedFd>, teller: &mut Teller) -> Result<(), Fault> {
    nix::unistd::chdir("/").map_err(|errno| Fault::step("enter /", errno))?;
    let (lock, me) = claim(spec)?;
    let outcome = serve_job(spec, &me, descriptors, teller);
    // Gone with the job: an order finds nobody instead of a closed door.
    for what in ["sock", USE] {
        let file = file_name(&spec.task, &spec.job.job, what);
        drop(std::fs::remove_file(spec.locks.join(file)));
    }
    drop(lock.remove());
    outcome
}

fn serve_job(
    spec: &KeeperSpec,
    me: &Identity,
    descriptors: Vec<OwnedFd>,
    teller: &mut Teller,
) -> Result<(), Fault> {
    let front = handed::front(spec.foreground, descriptors)?;
    // Held to the end, or the room would close under the job.
    let _pipe = hold_room(spec)?;
    let dir = &spec.job.dir;
    std::fs::create_dir_all(dir).map_err(|error| Fault::at("make the job's folder", dir, error))?;
    durable::sweep(dir).map_err(|error| Fault::at("sweep the job's folder", dir, error))?;
    let meta = Meta::starting(&spec.task, &spec.job, spec.entrance.is_some(), me);
    tend::tend(spec, meta, front, teller)
}

/// Takes the job's lock and writes into it who holds it.
fn claim(spec: &KeeperSpec) -> Result<(HeldLock, Identity), Fault> {
    let path = spec
        .locks
        .join(file_name(&spec.task, &spec.job.job, "lock"));
    let fault = |error| Fault::at("lock the job", &path, error);
    let busy = || Fault::Busy {
        what: format!("job {}", spec.job.job),
    };
    let lock = HeldLock::acquire_soon(&path).map_err(|error| fault(error.source))?;
    let lock = lock.ok_or_else(busy)?;
    let me = Identity::of(std::process::id()).map_err(fault)?;
    let text = serde_json::to_vec(&me).map_err(|error| fault(error.into()))?;
    lock.file().set_len(0).map_err(fault)?;
    std::os::unix::fs::FileExt::write_all_at(lock.file(), &text, 0).map_err(fault)?;
    Ok((lock, me))
}

/// The keeper's own end of the task's pipe keeps the room open while the job runs.
fn hold_room(spec: &KeeperSpec) -> Result<Option<OwnedFd>, Fault> {
    if spec.entrance.is_none() {
        return Ok(None);
    }
    let path = spec
        .locks
        .join(crate::holder::file_name(&spec.task, "room"));
    let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    match open(&path, flags, Mode::empty()) {
        Ok(pipe) => Ok(Some(pipe)),
        Err(nix::errno::Errno::ENXIO | nix::errno::Errno::ENOENT) => Err(Fault::Gone),
        Err(errno) => Err(Fault::at("open the room's pipe", &path, errno)),
    }
}
