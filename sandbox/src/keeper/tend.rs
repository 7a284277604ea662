//! The keeper's one loop: output, reports, orders and the clock, until nobody of the job is left.
//!
//! Must never wait for anything without a bound but for the job itself, and must never write a final state twice.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::channels::{Channels, channels};
use super::charge::{Charge, Happening};
use super::handed::Front;
use super::output::Log;
use super::serve::{Order, Reply, Server};
use super::{KeeperAnswer, KeeperSpec, Teller, file_name, refusals};
use crate::cgroup::Cgroup;
use crate::denial::{Denial, DenialKind, DenialLog};
use crate::error::Fault;
use crate::foreground::Said;
use crate::limit::Limit;
use crate::meta::{JobState, Meta, now_ms};
use crate::outcome::Exit;
use crate::spec::{JobSpec, Limits};
use crate::watch::Watch;

/// The walls must stand by then.
const START: Duration = Duration::from_secs(30);
/// How long the output may stay open after the command's end.
const DRAIN: Duration = Duration::from_millis(500);
/// Between two rounds of killing a bare job.
const AGAIN: Duration = Duration::from_millis(5);
const PIECE: usize = 64 << 10;

/// Where the job is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Phase {
    Starting {
        until: Instant,
    },
    Running,
    /// TERM was sent.
    Stopping {
        kill_at: Instant,
    },
    /// The command is over; its output may not be.
    Draining {
        until: Instant,
    },
    /// KILL was sent.
    Killed {
        again_at: Instant,
    },
}

/// The word to the warden that lets the command be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Due,
    /// Frozen before there was anything to freeze.
    Kept,
    Given,
}

pub(super) struct Tending<'job> {
    pub(super) job: &'job JobSpec,
    pub(super) meta: Meta,
    pub(super) teller: &'job mut Teller,
    pub(super) log: Option<Log>,
    pub(super) denials: DenialLog,
    pub(super) charge: Charge,
    pub(super) watch: Watch,
    pub(super) server: Server,
    signals: SignalFd,
    output: Option<OwnedFd>,
    /// To the person in front of the job.
    pub(super) line: Option<OwnedFd>,
    pub(super) phase: Phase,
    pub(super) up: bool,
    gone: bool,
    pub(super) started: Option<Instant>,
    pub(super) ended: Option<Instant>,
    deadline: Option<Instant>,
    pub(super) frozen: Option<Instant>,
    word: Word,
    /// Why we ended it, if we did.
    pub(super) cause: Option<Exit>,
    pub(super) not_started: Option<String>,
    /// The system's error number of that.
    pub(super) errno: Option<i32>,
}

/// Sees the job through. An error means that nothing was run.
pub(crate) fn tend(
    spec: &KeeperSpec,
    meta: Meta,
    front: Option<Front>,
    teller: &mut Teller,
) -> Result<(), Fault> {
    let job = &spec.job;
    let signals = watch_signals().map_err(|errno| Fault::step("watch signals", errno))?;
    let name = file_name(&spec.task, &job.job, "sock");
    let server = Server::listen(&spec.locks, &name)
        .map_err(|error| Fault::at("listen for orders", spec.locks.join(&name), error))?;
    let Channels {
        streams,
        log,
        output,
        line,
    } = channels(job, front)?;
    let cgroup = spec.entrance.as_ref().and_then(|_room| {
        let Limits { memory, pids, .. } = job.limits;
        Cgroup::make(&spec.locks, &spec.task, &job.job, memory, pids)
    });
    let begun = Charge::begin(spec, streams, cgroup.as_ref());
    let watch = Watch::new(spec, cgroup);
    let charge = match begun {
        Ok(charge) => charge,
        Err(fault) => {
            watch.end();
            return Err(fault);
        }
    };
    let mut tending = Tending {
        job,
        meta,
        teller,
        log,
        denials: DenialLog::new(&job.denials),
        charge,
        watch,
        server,
        signals,
        output,
        line,
        phase: Phase::Starting {
            until: Instant::now() + START,
        },
        up: false,
        gone: false,
        started: None,
        ended: None,
        deadline: None,
        frozen: None,
        word: Word::Due,
        cause: None,
        not_started: None,
        errno: None,
    };
    // While bubblewrap builds: the disk's time and its time are the same time.
    tending.record(JobState::Starting);
    if spec.entrance.is_none() {
        tending.happened(Happening::Up);
    }
    while !tending.gone {
        tending.turn()?;
    }
    tending.finish()
}

fn watch_signals() -> nix::Result<SignalFd> {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    mask.add(Signal::SIGTERM);
    mask.thread_block()?;
    SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

impl Tending<'_> {
    /// Waits for the next thing to happen and deals with it.
    fn turn(&mut self) -> Result<(), Fault> {
        let (signals, output, listener, clients) = self.wait()?;
        if signals {
            self.take_signals();
        }
        if output {
            self.take_output();
        }
        for happening in self.charge.listen() {
            self.happened(happening);
        }
        if listener {
            self.server.admit();
        }
        // From the end, so that a client that leaves does not move the others.
        for index in clients.into_iter().rev() {
            if let Some(order) = self.server.order(index) {
                self.obey(index, order);
            }
        }
        self.hear_line();
        self.clock();
        self.guard();
        Ok(())
    }

    fn wait(&self) -> Result<(bool, bool, bool, Vec<usize>), Fault> {
        let end = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut ends = vec![end(self.signals.as_fd()), end(self.server.listener.as_fd())];
        let first_client = ends.len();
        ends.extend(
            self.server
                .clients
                .iter()
                .map(|client| end(client.socket.as_fd())),
        );
        let output_at = ends.len();
        ends.extend(self.output.iter().map(|output| end(output.as_fd())));
        ends.extend(self.charge.descriptors().into_iter().map(end));
        ends.extend(self.line.iter().map(|line| end(line.as_fd())));
        ends.extend(self.watch.descriptor().map(end));
        match poll(&mut ends, self.patience()) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(Fault::step("wait for the job", errno)),
        }
        let ready = |index: usize| ends.get(index).is_some_and(|end| end.any() == Some(true));
        let clients = (first_client..output_at).filter(|index| ready(*index));
        Ok((
            ready(0),
            self.output.is_some() && ready(output_at),
            ready(1),
            clients.map(|index| index - first_client).collect(),
        ))
    }

    /// Until the next moment at which the clock has something to do.
    fn patience(&self) -> PollTimeout {
        let next = match self.phase {
            Phase::Starting { .. } if self.word == Word::Kept => None,
            Phase::Starting { until } | Phase::Draining { until } => Some(until),
            Phase::Stopping { kill_at } => Some(kill_at),
            Phase::Killed { again_at } => Some(again_at),
            Phase::Running if self.frozen.is_some() => None,
            Phase::Running => self.deadline,
        };
        let watched = matches!(self.phase, Phase::Running | Phase::Stopping { .. });
        let watch = self.watch.due().filter(|_| watched);
        let next = next.into_iter().chain(self.charge.wakes_at()).chain(watch);
        let Some(next) = next.min() else {
            return PollTimeout::NONE;
        };
        let left = next.saturating_duration_since(Instant::now());
        // Rounded up: a moment too early would turn this loop in circles.
        let millis = left.as_millis().saturating_add(u128::from(!left.is_zero()));
        PollTimeout::try_from(i32::try_from(millis).unwrap_or(i32::MAX))
            .unwrap_or(PollTimeout::NONE)
    }

    fn take_signals(&mut self) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if i32::try_from(signal.ssi_signo) == Ok(Signal::SIGTERM as i32) {
                let cause = Exit::Stopped {
                    by: "signal".into(),
                    reason: format!("the keeper was sent SIGTERM by process {}", signal.ssi_pid),
                };
                self.stop(cause, self.job.grace_ms);
            }
        }
    }

    /// Takes one piece. `false` when there is none now, or no more at all.
    fn take_output(&mut self) -> bool {
        let Some(output) = &self.output else {
            return false;
        };
        let mut piece = vec![0; PIECE];
        match rustix::io::read(output, &mut piece) {
            Ok(count) if count > 0 => {
                if let (Some(log), Some(bytes)) = (&mut self.log, piece.get(..count)) {
                    log.take(bytes);
                }
                self.watch.output(Instant::now());
                true
            }
            Err(rustix::io::Errno::INTR) => true,
            Err(rustix::io::Errno::AGAIN) => false,
            Ok(_) | Err(_) => {
                self.output = None;
                false
            }
        }
    }

    fn happened(&mut self, happening: Happening) {
        match happening {
            Happening::Up => {
                self.up = true;
                self.teller.tell(&KeeperAnswer::Kept);
                if self.word == Word::Due {
                    self.go();
                }
            }
            Happening::Started => {
                let now = Instant::now();
                self.started = Some(now);
                self.watch.begin(self.charge.inside(), now);
                self.meta.started_ms = Some(now_ms());
                self.deadline = self
                    .job
                    .timeout_ms
                    .map(|time| now + Duration::from_millis(time));
                if matches!(self.phase, Phase::Starting { .. }) {
                    self.phase = Phase::Running;
                    self.record(JobState::Running);
                }
                self.tell_line(&Said::Started);
            }
            Happening::NotStarted(failure) => {
                self.not_started = Some(failure.reason());
                self.errno = Some(failure.errno);
            }
            Happening::Exited(code) => {
                self.meta.code = Some(code);
                self.command_ended();
            }
            Happening::Signalled(signal) => {
                self.meta.signal = Some(signal);
                self.command_ended();
            }
            Happening::Frozen(done) => self.froze(done),
            Happening::Refused(name) => self.refused(name),
            Happening::Thawed => {
                let frozen = self.frozen.take();
                if let Some(since) = frozen {
                    // The time that it stood still is not its own.
                    self.deadline = self.deadline.map(|deadline| deadline + since.elapsed());
                    self.watch.stood_still(since.elapsed());
                }
                self.server.reply_all_waiting(&Reply::Done);
            }
            Happening::Gone => {
                self.gone = true;
                self.ended.get_or_insert_with(Instant::now);
                // What the dead wrote is still in the pipe; whoever holds it now is not of the job.
                while self.take_output() {}
            }
        }
    }

    fn refused(&mut self, call: &str) {
        let job = Some(self.job.job.as_str());
        let denial = Denial::now(job, DenialKind::Syscall, call, refusals::RULE);
        self.denials.note(denial);
    }

    fn go(&mut self) {
        self.word = Word::Given;
        for happening in self.charge.go() {
            self.happened(happening);
        }
    }

    fn froze(&mut self, done: bool) {
        if done {
            self.frozen.get_or_insert_with(Instant::now);
            self.server.reply_all_waiting(&Reply::Done);
        } else {
            let reason = "some process did not stop in time".to_owned();
            self.server.reply_all_waiting(&Reply::Refused { reason });
        }
    }

    fn command_ended(&mut self) {
        self.ended = Some(Instant::now());
        // Whoever was sent TERM with it keeps the grace.
        if matches!(self.phase, Phase::Running | Phase::Starting { .. }) {
            self.phase = Phase::Draining {
                until: Instant::now() + DRAIN,
            };
        }
    }

    fn obey(&mut self, index: usize, order: Order) {
        let running = matches!(self.phase, Phase::Running | Phase::Starting { .. });
        let stopping = matches!(self.phase, Phase::Stopping { .. });
        match order {
            Order::Stop {
                by,
                reason,
                grace_ms,
            } => {
                if !running && !stopping {
                    return self.server.reply(index, &Reply::Over);
                }
                self.stop(Exit::Stopped { by, reason }, grace_ms);
                self.server.reply(index, &Reply::Done);
            }
            // Nobody is there to be moved or stopped: still is what was asked for.
            Order::Freeze | Order::Thaw if self.ended.is_some() && !stopping => {
                self.server.reply(index, &Reply::Over);
            }
            Order::Freeze if self.word != Word::Given => {
                self.word = Word::Kept;
                self.server.reply(index, &Reply::Done);
            }
            Order::Thaw if self.word == Word::Kept => {
                self.word = Word::Due;
                self.server.reply(index, &Reply::Done);
                if self.up {
                    self.go();
                }
            }
            Order::Freeze | Order::Thaw => {
                if let Some(client) = self.server.clients.get_mut(index) {
                    client.waits = true;
                }
                let at_once = if order == Order::Freeze {
                    self.charge.freeze()
                } else {
                    self.charge.thaw()
                };
                if let Some(happening) = at_once {
                    self.happened(happening);
                }
            }
        }
    }

    /// TERM now, KILL after the grace. A second order may only shorten the grace of the first.
    pub(super) fn stop(&mut self, cause: Exit, grace_ms: u64) {
        let kill_at = Instant::now() + Duration::from_millis(grace_ms);
        match self.phase {
            Phase::Stopping { kill_at: planned } => {
                self.phase = Phase::Stopping {
                    kill_at: planned.min(kill_at),
                };
                return;
            }
            Phase::Draining { .. } | Phase::Killed { .. } => return,
            Phase::Starting { .. } | Phase::Running => {}
        }
        self.cause = Some(cause);
        self.frozen = None;
        self.phase = Phase::Stopping { kill_at };
        if self.started.is_some() {
            self.charge.terminate();
        } else {
            // Nothing runs yet that could use a grace.
            self.phase = Phase::Stopping {
                kill_at: Instant::now(),
            };
        }
        self.record(JobState::Stopping);
    }

    fn clock(&mut self) {
        let now = Instant::now();
        match self.phase {
            Phase::Starting { until } if now >= until && self.word != Word::Kept => {
                self.not_started = Some("bwrap did not build the room in 30 s".into());
                self.kill(now);
            }
            Phase::Running
                if self.frozen.is_none() && self.deadline.is_some_and(|end| now >= end) =>
            {
                self.note(Limit::Timeout, self.job.timeout_ms.unwrap_or(0));
                self.stop(Exit::TimedOut, self.job.grace_ms);
            }
            Phase::Stopping { kill_at } if now >= kill_at => self.kill(now),
            Phase::Draining { until } => {
                let open = self.output.is_some();
                if !open || now >= until {
                    self.meta.leaked = open;
                    self.kill(now);
                }
            }
            // One kill ends a namespace; a bare tree may have grown meanwhile.
            Phase::Killed { again_at } if now >= again_at => self.kill(now),
            Phase::Starting { .. }
            | Phase::Running
            | Phase::Stopping { .. }
            | Phase::Killed { .. } => {}
        }
    }

    pub(super) fn kill(&mut self, now: Instant) {
        if !self.gone {
            self.charge.kill();
        }
        self.phase = Phase::Killed {
            again_at: now + AGAIN,
        };
    }

    /// Writes the state down. A disk that cannot be written must not end the job.
    pub(super) fn record(&mut self, state: JobState) {
        self.meta.state = state;
        if let Some(log) = &self.log {
            (self.meta.output.bytes, self.meta.output.dropped) = log.sizes();
        }
        drop(self.meta.write(&self.job.dir));
    }
}
