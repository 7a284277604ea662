//! From a forked child to the command: session, limits, Landlock, system call filter, folder, exec; and what stopped it
//! on the way.
//!
//! Must never leave the command a descriptor beyond standard input, output and error.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope,
};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal};
use nix::sys::stat::Mode;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::seccomp::{self, Arch, Form, Instruction};
use crate::spec::Limits;
use crate::sys::{self, Fork};
use crate::wire;

/// Landlock rights that are asked for where the kernel has them.
pub(crate) const LANDLOCK: ABI = ABI::V7;

/// A command ready to be run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Launch {
    #[serde(with = "wire::words")]
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: BTreeMap<String, String>,
    #[serde(with = "wire::path")]
    pub(crate) cwd: PathBuf,
    pub(crate) limits: Limits,
    /// In a room.
    pub(crate) confinement: Option<Confinement>,
    /// Standard input is a terminal that becomes the command's own.
    pub(crate) terminal: bool,
}

/// What is added inside a room.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Confinement {
    /// Paths that Landlock lets be written.
    #[serde(with = "wire::paths")]
    pub(crate) writable: Vec<PathBuf>,
}

/// Why the command was never executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) step: String,
    pub(crate) errno: i32,
}

impl Failure {
    fn new(step: impl Into<String>, errno: Errno) -> Self {
        Self {
            step: step.into(),
            errno: errno as i32,
        }
    }

    /// For `NotStarted`.
    pub(crate) fn reason(&self) -> String {
        let error = std::io::Error::from_raw_os_error(self.errno);
        format!("cannot {}: {error}", self.step)
    }
}

/// Forks and executes; waits until the command runs or has failed to. In a room the new process gives the descriptor
/// on which its refused calls are told to `telling`, where this kernel has such descriptors.
pub(crate) fn spawn(
    launch: &Launch,
    telling: impl FnOnce(OwnedFd) -> Option<()>,
) -> Result<Pid, Failure> {
    let pipe = nix::unistd::pipe2(OFlag::O_CLOEXEC);
    let (from, to) = pipe.map_err(|errno| Failure::new("make a pipe", errno))?;
    let parent = nix::unistd::getpid();
    match sys::fork().map_err(|errno| Failure::new("fork", errno))? {
        Fork::Child => {
            let failure = become_command(launch, parent, telling);
            let text = serde_json::to_vec(&failure).unwrap_or_default();
            // If the parent does not hear it, it sees a child that ended with 127.
            drop(File::from(to).write_all(&text));
            sys::leave(127)
        }
        Fork::Parent(child) => {
            drop(to);
            match heard(from) {
                None => Ok(child),
                Some(failure) => {
                    // The child is on its way out; its end is not the command's.
                    nix::sys::wait::waitpid(child, None).ok();
                    Err(failure)
                }
            }
        }
    }
}

fn heard(from: OwnedFd) -> Option<Failure> {
    let mut text = String::new();
    // The end of the pipe without a word means that exec closed it.
    File::from(from).read_to_string(&mut text).ok()?;
    if text.is_empty() {
        return None;
    }
    let unreadable = || Failure::new("start the command", Errno::EIO);
    Some(serde_json::from_str(&text).unwrap_or_else(|_broken| unreadable()))
}

/// Returns only when it failed.
fn become_command(
    launch: &Launch,
    parent: Pid,
    telling: impl FnOnce(OwnedFd) -> Option<()>,
) -> Failure {
    match prepare(launch, parent, telling) {
        Ok(()) => execute(launch),
        Err(failure) => failure,
    }
}

fn prepare(
    launch: &Launch,
    parent: Pid,
    telling: impl FnOnce(OwnedFd) -> Option<()>,
) -> Result<(), Failure> {
    nix::unistd::setsid().map_err(|errno| Failure::new("begin a session", errno))?;
    if launch.terminal {
        rustix::process::ioctl_tiocsctty(std::io::stdin()).map_err(|error| {
            let errno = Errno::from_raw(error.raw_os_error());
            Failure::new("take the terminal", errno)
        })?;
    }
    default_signals().map_err(|errno| Failure::new("reset signals", errno))?;
    nix::sys::stat::umask(Mode::from_bits_truncate(0o022));
    if launch.confinement.is_none() {
        // Nothing else binds an unconfined command to its keeper.
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
            .map_err(|errno| Failure::new("tie the command to its keeper", errno))?;
        if nix::unistd::getppid() != parent {
            return Err(Failure::new("reach the keeper", Errno::ESRCH));
        }
    }
    nix::unistd::chdir(&launch.cwd)
        .map_err(|errno| Failure::new(format!("enter {}", launch.cwd.display()), errno))?;
    limit(launch)?;
    if let Some(confinement) = &launch.confinement {
        nix::sys::prctl::set_no_new_privs()
            .map_err(|errno| Failure::new("give up new privileges", errno))?;
        restrict(confinement).map_err(|_refused| Failure::new("apply Landlock", Errno::EPERM))?;
        filter(telling)?;
    }
    Ok(())
}

/// The system call filter, the last wall before the command. A listener that nobody takes is not kept open: without
/// one every call on the list still fails, only with another number and untold.
fn filter(telling: impl FnOnce(OwnedFd) -> Option<()>) -> Result<(), Failure> {
    if sys::notices_fit() {
        let listener = sys::load_filter(&instructions(Form::Telling)?, true);
        // Refused where an outer sandbox listens already, or by an old kernel: then nothing is told.
        if let Ok(Some(listener)) = listener {
            telling(listener);
            return Ok(());
        }
    }
    filter_whole()
}

/// The whole list, answered by the kernel, for this process and those it starts.
pub(crate) fn filter_whole() -> Result<(), Failure> {
    let loaded = sys::load_filter(&instructions(Form::Whole)?, false);
    let fault = |error: std::io::Error| {
        let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
        Failure::new("load the system call filter", errno)
    };
    loaded.map(drop).map_err(fault)
}

fn instructions(form: Form) -> Result<Vec<nix::libc::sock_filter>, Failure> {
    let arch = Arch::current().ok_or_else(|| {
        Failure::new(
            "choose a system call filter for this machine",
            Errno::ENOSYS,
        )
    })?;
    let program = seccomp::program(arch, form);
    Ok(program.into_iter().map(Instruction::raw).collect())
}

/// Signals as a fresh program expects them, whatever our parents ignored or blocked.
pub(crate) fn default_signals() -> nix::Result<()> {
    for signal in Signal::iterator() {
        if !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP) {
            sys::dispose(signal, SigHandler::SigDfl)?;
        }
    }
    nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

fn limit(launch: &Launch) -> Result<(), Failure> {
    let Limits {
        pids,
        fsize,
        nofile,
        core,
        memory: _,
        disk: _,
        files: _,
    } = launch.limits;
    let mut table = vec![
        (Resource::RLIMIT_FSIZE, fsize),
        (Resource::RLIMIT_NOFILE, nofile),
        (Resource::RLIMIT_CORE, core),
    ];
    if launch.confinement.is_some() {
        // Counted per user namespace: inside it is the job's own number, outside it would be the whole user's.
        table.extend([
            (Resource::RLIMIT_NPROC, pids),
            (Resource::RLIMIT_MEMLOCK, 8 << 20),
            (Resource::RLIMIT_MSGQUEUE, 64 << 10),
            (Resource::RLIMIT_SIGPENDING, 4096),
        ]);
    }
    for (resource, wanted) in table {
        let fault = |errno| Failure::new(format!("set {resource:?}"), errno);
        let (_, hard) = getrlimit(resource).map_err(fault)?;
        let value = wanted.min(hard);
        setrlimit(resource, value, value).map_err(fault)?;
    }
    Ok(())
}

/// The second wall: even a mount that became writable by mistake cannot be written.
fn restrict(confinement: &Confinement) -> Result<(), RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?;
    let everything = AccessFs::from_all(LANDLOCK);
    if let Ok(root) = PathFd::new("/") {
        rules = rules.add_rule(PathBeneath::new(root, AccessFs::from_read(LANDLOCK)))?;
    }
    for path in &confinement.writable {
        // A path that is not there gets no rule: less is allowed, not more.
        if let Ok(place) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(place, everything))?;
        }
    }
    rules.restrict_self().map(drop)
}

/// Looks the program up in the job's own PATH, as a shell would.
fn execute(launch: &Launch) -> Failure {
    let Some(program) = launch.argv.first() else {
        return Failure::new("execute an empty command", Errno::EINVAL);
    };
    let step = format!("execute {}", program.display());
    let strings = |words: Vec<Vec<u8>>| {
        words
            .into_iter()
            .map(CString::new)
            .collect::<Result<Vec<_>, _>>()
    };
    let argv = launch
        .argv
        .iter()
        .map(|word| word.as_bytes().to_vec())
        .collect();
    let env = launch
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}").into_bytes())
        .collect();
    let (Ok(argv), Ok(env)) = (strings(argv), strings(env)) else {
        return Failure::new(format!("{step} (a word holds a zero byte)"), Errno::EINVAL);
    };
    if sys::close_on_exec_from(3).is_err() {
        return Failure::new("close what is not the command's", Errno::EBADF);
    }
    let mut last = Errno::ENOENT;
    for candidate in candidates(program, launch.env.get("PATH").map(String::as_str)) {
        let Ok(path) = CString::new(candidate.into_vec()) else {
            continue;
        };
        let Err(errno) = nix::unistd::execve(&path, &argv, &env);
        if errno == Errno::ENOEXEC {
            return script(&path, &argv, &env, step);
        }
        if errno == Errno::EACCES {
            last = errno;
        } else if errno != Errno::ENOENT && errno != Errno::ENOTDIR {
            return Failure::new(step, errno);
        }
    }
    Failure::new(step, last)
}

/// A text file without `#!` is the shell's, as everywhere.
fn script(path: &CString, argv: &[CString], env: &[CString], step: String) -> Failure {
    let mut words = vec![c"/bin/sh".to_owned(), path.clone()];
    words.extend(argv.iter().skip(1).cloned());
    let Err(errno) = nix::unistd::execve(c"/bin/sh", &words, env);
    Failure::new(step, errno)
}

fn candidates(program: &OsStr, path: Option<&str>) -> Vec<OsString> {
    if program.as_bytes().contains(&b'/') {
        return vec![program.to_owned()];
    }
    let path = path.unwrap_or("/usr/local/bin:/usr/bin:/bin");
    path.split(':')
        .filter(|folder| !folder.is_empty())
        .map(|folder| PathBuf::from(folder).join(program).into_os_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_ends_the_search() {
        assert_eq!(candidates(OsStr::new("./x"), Some("/a:/b")), ["./x"]);
        assert_eq!(
            candidates(OsStr::new("x"), Some("/a::/b")),
            ["/a/x", "/b/x"]
        );
    }

    #[test]
    fn a_failure_names_step_and_error() {
        let failure = Failure::new("execute nosuch", Errno::ENOENT);
        assert_eq!(
            failure.reason(),
            "cannot execute nosuch: No such file or directory (os error 2)"
        );
    }
}
