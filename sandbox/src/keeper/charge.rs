//! The process tree in a keeper's charge: in a room behind a warden, or bare below the keeper itself.
//!
//! Must never take a report whose nonce is not the warden's, and must never kill by a number that may be reused.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::fcntl::{OFlag, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

use super::KeeperSpec;
use super::enter::{self, Baggage};
use super::refusals::Refusals;
use crate::cgroup::Cgroup;
use crate::diagnose::{self, Symptom};
use crate::error::Fault;
use crate::herd::{AlreadyStopped, Herd};
use crate::launch::{self, Confinement, Failure, Launch};
use crate::room::Entrance;
use crate::sys::{self, Fork};
use crate::warden::{self, Message, Report, WardenSpec};
use crate::watch::Inside;

/// How long a freeze of a bare job may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the kernel may take to end a namespace, in milliseconds.
const LAST: u16 = 5_000;
/// Most of bubblewrap's own words that are kept.
const WORDS: usize = 16 << 10;

/// What became known about the charge.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// The walls stand; it waits for the word to go.
    Up,
    Started,
    NotStarted(Failure),
    Exited(i32),
    Signalled(i32),
    Frozen(bool),
    Thawed,
    /// The filter refused a call of this name.
    Refused(&'static str),
    /// Nobody is left.
    Gone,
}

#[derive(Debug)]
pub(crate) enum Charge {
    Confined(Confined),
    Bare(Bare),
}

#[derive(Debug)]
pub(crate) struct Confined {
    control: Option<OwnedFd>,
    words: Option<OwnedFd>,
    said: Vec<u8>,
    bwrap: Pid,
    alive: bool,
    warden: Option<OwnedFd>,
    inside: Option<Inside>,
    nonce: String,
    refusals: Option<Refusals>,
}

#[derive(Debug)]
pub(crate) struct Bare {
    main: Option<Pid>,
    stopped: Option<AlreadyStopped>,
    alive: bool,
    /// Why it was never started.
    failure: Option<Failure>,
}

/// Standard input, output and error, as the job gets them.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
    pub(crate) error: OwnedFd,
}

impl Charge {
    /// Begins: bubblewrap is on its way, or the bare command runs.
    pub(crate) fn begin(
        spec: &KeeperSpec,
        streams: Streams,
        cgroup: Option<&Cgroup>,
    ) -> Result<Self, Fault> {
        match &spec.entrance {
            Some(entrance) => confined(spec, entrance, streams, cgroup).map(Self::Confined),
            None => bare(spec, &streams).map(Self::Bare),
        }
    }

    /// What else can become readable.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Confined(confined) => [&confined.control, &confined.words]
                .into_iter()
                .flatten()
                .map(OwnedFd::as_fd)
                .chain(confined.refusals.as_ref().and_then(Refusals::descriptor))
                .collect(),
            Self::Bare(_) => Vec::new(),
        }
    }

    /// When there is something to do without anything becoming readable.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        match self {
            Self::Confined(confined) => confined.refusals.as_ref()?.rests_until(),
            Self::Bare(_) => None,
        }
    }

    /// What can be seen of the job in its room, once.
    pub(crate) fn inside(&mut self) -> Option<Inside> {
        match self {
            Self::Confined(confined) => confined.inside.take(),
            Self::Bare(_) => None,
        }
    }

    /// Takes in what was said and who ended.
    pub(crate) fn listen(&mut self) -> Vec<Happening> {
        match self {
            Self::Confined(confined) => confined.listen(),
            Self::Bare(bare) => bare.listen(),
        }
    }

    /// Lets the command be executed.
    pub(crate) fn go(&mut self) -> Vec<Happening> {
        match self {
            Self::Confined(confined) => {
                confined.order(warden::Order::Go);
                Vec::new()
            }
            Self::Bare(bare) => match &bare.failure {
                Some(failure) => vec![Happening::NotStarted(failure.clone())],
                None => vec![Happening::Started],
            },
        }
    }

    /// TERM to everybody.
    pub(crate) fn terminate(&mut self) {
        match self {
            Self::Confined(confined) => confined.order(warden::Order::Terminate),
            Self::Bare(bare) => {
                bare.stopped = None;
                Herd::Descendants.signal(nix::sys::signal::Signal::SIGTERM);
                Herd::Descendants.signal(nix::sys::signal::Signal::SIGCONT);
            }
        }
    }

    /// Ends everybody, from outside.
    pub(crate) fn kill(&mut self) {
        match self {
            Self::Confined(confined) => confined.kill(),
            Self::Bare(_) => {
                // Stopped first, so that nobody forks away from the second look.
                Herd::Descendants.signal(nix::sys::signal::Signal::SIGSTOP);
                Herd::Descendants.signal(nix::sys::signal::Signal::SIGKILL);
            }
        }
    }

    pub(crate) fn freeze(&mut self) -> Option<Happening> {
        match self {
            Self::Confined(confined) => {
                confined.order(warden::Order::Freeze);
                None
            }
            Self::Bare(bare) => {
                if bare.stopped.is_none() {
                    bare.stopped = Herd::Descendants.freeze(PATIENCE);
                }
                Some(Happening::Frozen(bare.stopped.is_some()))
            }
        }
    }

    pub(crate) fn thaw(&mut self) -> Option<Happening> {
        match self {
            Self::Confined(confined) => {
                confined.order(warden::Order::Thaw);
                None
            }
            Self::Bare(bare) => {
                let already = bare.stopped.take().unwrap_or_default();
                Herd::Descendants.thaw(&already);
                Some(Happening::Thawed)
            }
        }
    }

    /// Why the walls did not come up.
    pub(crate) fn fault(&mut self) -> Fault {
        match self {
            Self::Confined(confined) => confined.fault(),
            Self::Bare(_) => Fault::step("start the command", nix::errno::Errno::ECHILD),
        }
    }
}

fn confined(
    spec: &KeeperSpec,
    entrance: &Entrance,
    streams: Streams,
    cgroup: Option<&Cgroup>,
) -> Result<Confined, Fault> {
    let step = |doing: &'static str| move |errno: rustix::io::Errno| Fault::step(doing, errno);
    let holder = entrance.holder.open().ok_or(Fault::Gone)?;
    let nonce = warden::nonce().map_err(|error| Fault::step("make a nonce", error))?;
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(step("make the warden's socket"))?;
    rustix::net::sockopt::set_socket_passcred(&ours, true)
        .map_err(step("make the warden's socket"))?;
    let (words, theirs_words) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)
        .map_err(|errno| Fault::step("make a pipe", errno))?;
    let launch = launch_of(
        spec,
        Some(Confinement {
            writable: entrance.writable.clone(),
        }),
        cgroup,
    );
    let text = serde_json::to_vec(&WardenSpec {
        nonce: nonce.clone(),
        launch,
        over: false,
    })
    .map_err(|error| Fault::step("write the warden's file", std::io::Error::from(error)))?;
    let file =
        enter::memory(&text).map_err(|error| Fault::step("write the warden's file", error))?;
    let Streams {
        input,
        output,
        error,
    } = streams;
    if entrance.account.drop_root {
        // So that the job can open `/dev/stdout`, which is this pipe once more.
        let (uid, gid) = (entrance.account.uid, entrance.account.gid);
        for stream in [&output, &error] {
            nix::unistd::fchown(stream, Some(uid.into()), Some(gid.into()))
                .map_err(|errno| Fault::step("hand the output's pipe to the room's user", errno))?;
        }
    }
    let baggage = Baggage {
        input,
        output,
        error,
        words: theirs_words,
        control: theirs,
        spec: file,
        holder,
        cgroups: cgroup.map(Cgroup::entrances).unwrap_or_default(),
    };
    match sys::fork().map_err(|errno| Fault::step("fork", errno))? {
        Fork::Child => {
            let fault = enter::enter(entrance, &baggage);
            let text = serde_json::to_string(&fault).unwrap_or_default();
            let line = format!("{}{text}\n", enter::FAULT);
            rustix::io::write(&baggage.words, line.as_bytes()).ok();
            sys::leave(125)
        }
        Fork::Parent(child) => Ok(Confined {
            control: Some(ours),
            words: Some(words),
            said: Vec::new(),
            bwrap: Pid::from_raw(child.as_raw()).ok_or(Fault::Gone)?,
            alive: true,
            warden: None,
            inside: None,
            nonce,
            refusals: None,
        }),
    }
}

fn launch_of(
    spec: &KeeperSpec,
    confinement: Option<Confinement>,
    cgroup: Option<&Cgroup>,
) -> Launch {
    let mut limits = spec.job.limits;
    if cgroup.is_some_and(Cgroup::counts_pids) {
        // The group refuses first, since it can tell that it did.
        limits.pids = limits.pids.saturating_add(16);
    }
    Launch {
        argv: spec.job.argv.clone(),
        env: spec.job.env.clone(),
        cwd: spec.job.cwd.clone(),
        limits,
        confinement,
        terminal: spec
            .foreground
            .is_some_and(|foreground| foreground.terminal),
    }
}

impl Confined {
    fn listen(&mut self) -> Vec<Happening> {
        let mut happenings = Vec::new();
        // Asked first: all that was said before the end is there to be read after it.
        let over = self.alive && reaped(self.bwrap).is_some();
        self.listen_to_words();
        while let Some(report) = self.receive() {
            happenings.push(match report {
                Report::Hello => Happening::Up,
                Report::Telling => continue,
                Report::Started => Happening::Started,
                Report::NotStarted { failure } => Happening::NotStarted(failure),
                Report::Exited { code } => Happening::Exited(code),
                Report::Signalled { signal } => Happening::Signalled(signal),
                Report::Frozen { done } => Happening::Frozen(done),
                Report::Thawed => Happening::Thawed,
            });
        }
        if let Some(refusals) = &mut self.refusals {
            happenings.extend(refusals.answer().into_iter().map(Happening::Refused));
        }
        // After the reports: bubblewrap ends last.
        if over {
            self.alive = false;
            self.see_off();
            happenings.push(Happening::Gone);
        }
        happenings
    }

    fn receive(&mut self) -> Option<Report> {
        let mut buffer = vec![0; 64 << 10];
        let mut space =
            [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1), ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut words = [IoSliceMut::new(&mut buffer)];
        let control = self.control.as_ref()?;
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let got = match rustix::net::recvmsg(control, &mut words, &mut ancillary, flags) {
            Ok(got) if got.bytes > 0 => got,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return None,
            Ok(_) | Err(_) => {
                self.control = None;
                return None;
            }
        };
        let message: Message = serde_json::from_slice(buffer.get(..got.bytes)?).ok()?;
        if message.nonce != self.nonce {
            return None;
        }
        for extra in ancillary.drain() {
            match (&message.report, extra) {
                // The warden waits for our word with its end open: its pid cannot be another's.
                (Report::Hello, RecvAncillaryMessage::ScmCredentials(sender)) => {
                    self.warden = rustix::process::pidfd_open(sender.pid, PidfdFlags::empty()).ok();
                    self.inside = Inside::of(sender.pid, self.warden.as_ref());
                }
                (Report::Telling, RecvAncillaryMessage::ScmRights(mut sent)) => {
                    self.refusals = sent.next().and_then(Refusals::new);
                }
                _ => {}
            }
        }
        Some(message.report)
    }

    fn listen_to_words(&mut self) {
        let Some(words) = &self.words else { return };
        let mut buffer = [0; 4096];
        loop {
            match rustix::io::read(words, &mut buffer) {
                Ok(0) => {
                    self.words = None;
                    return;
                }
                Ok(count) => {
                    let left = WORDS.saturating_sub(self.said.len());
                    self.said.extend(buffer.iter().take(count.min(left)));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn order(&mut self, order: warden::Order) {
        // A warden that is gone is told by the end of bubblewrap.
        if let Some(control) = &self.control {
            warden::send(control, &order);
        }
    }

    fn kill(&mut self) {
        if let Some(warden) = &self.warden {
            rustix::process::pidfd_send_signal(warden, Signal::KILL).ok();
        }
        // Without a warden yet: its end follows bubblewrap's, and the end of our socket.
        if self.warden.is_none() && self.alive {
            rustix::process::kill_process(self.bwrap, Signal::KILL).ok();
        }
    }

    /// bubblewrap may have been killed alone: nobody inside shall outlive it either.
    fn see_off(&self) {
        if let Some(warden) = &self.warden {
            rustix::process::pidfd_send_signal(warden, Signal::KILL).ok();
            let mut ends = [PollFd::new(warden.as_fd(), PollFlags::POLLIN)];
            // The namespace's first process is over only after all others are.
            poll(&mut ends, PollTimeout::from(LAST)).ok();
        }
    }

    fn fault(&self) -> Fault {
        let said = String::from_utf8_lossy(&self.said);
        let own = said
            .lines()
            .find_map(|line| line.strip_prefix(enter::FAULT));
        own.and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_else(|| {
                Fault::Unavailable(diagnose::explain(&Symptom::Bwrap(said.into_owned())))
            })
    }
}

fn bare(spec: &KeeperSpec, streams: &Streams) -> Result<Bare, Fault> {
    let fault = |errno| Fault::step("become the reaper of the job", errno);
    nix::sys::prctl::set_child_subreaper(true).map_err(fault)?;
    nix::unistd::dup2_stdin(&streams.input).map_err(fault)?;
    nix::unistd::dup2_stdout(&streams.output).map_err(fault)?;
    nix::unistd::dup2_stderr(&streams.error).map_err(fault)?;
    let spawned = launch::spawn(&launch_of(spec, None, None), |_none_without_a_room| None);
    // The keeper itself must not keep the output open.
    let null = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()).map_err(fault)?;
    nix::unistd::dup2_stdin(&null).map_err(fault)?;
    nix::unistd::dup2_stdout(&null).map_err(fault)?;
    nix::unistd::dup2_stderr(&null).map_err(fault)?;
    let (main, failure) = match spawned {
        Ok(main) => (Pid::from_raw(main.as_raw()), None),
        Err(failure) => (None, Some(failure)),
    };
    Ok(Bare {
        main,
        stopped: None,
        alive: true,
        failure,
    })
}

impl Bare {
    fn listen(&mut self) -> Vec<Happening> {
        let mut happenings = Vec::new();
        while self.alive {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid) == self.main => {
                    let ended = match Report::of(status) {
                        Some(Report::Exited { code }) => Happening::Exited(code),
                        Some(Report::Signalled { signal }) => Happening::Signalled(signal),
                        _ => continue,
                    };
                    self.main = None;
                    happenings.push(ended);
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    self.alive = false;
                    happenings.push(Happening::Gone);
                }
                Ok(None) => break,
            }
        }
        happenings
    }
}

/// Whether our child `pid` has ended; takes it in.
fn reaped(pid: Pid) -> Option<()> {
    match rustix::process::waitpid(Some(pid), WaitOptions::NOHANG) {
        Ok(None) => None,
        Ok(Some(_)) | Err(_) => Some(()),
    }
}
