//! The loop between a person and a command: bytes both ways, signals to the command, its end to us.

use std::io::{BufRead as _, BufReader};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use sandbox::{Outcome, Said};

use super::streams::Ours;
use super::{Finished, Window};
use crate::client;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::reporter::{Channel, Passing};
use crate::supervisor::wire::Reply;
use crate::task::TaskId;

/// How long the end of the output may take after the end of the command.
const DRAIN: Duration = Duration::from_millis(500);
const PIECE: usize = 64 << 10;

pub(super) struct Relay<'a, 'b> {
    replies: Option<BufReader<&'a UnixStream>>,
    ours: Ours,
    window: Option<&'a Window>,
    passing: &'a mut Passing<'b>,
    signals: SignalFd,
    hears: bool,
    /// What was read for the command and it has not taken yet.
    pending: Vec<u8>,
    reads: bool,
    started: bool,
    task: Option<TaskId>,
    job: Option<String>,
    ended: Option<(Outcome, Option<i32>, Instant)>,
    interrupted: Vec<i32>,
}

/// What can be ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Signals,
    Replies,
    Line,
    Output,
    Error,
    Stdin,
    Input,
}

impl<'a, 'b> Relay<'a, 'b> {
    pub(super) fn new(
        stream: &'a UnixStream,
        ours: Ours,
        window: Option<&'a Window>,
        passing: &'a mut Passing<'b>,
    ) -> Result<Self, Failure> {
        let mut more = SigSet::empty();
        more.add(Signal::SIGQUIT);
        more.add(Signal::SIGWINCH);
        more.thread_block().or_fail(Exit::Internal)?;
        let signals = client::interrupts().or_fail(Exit::Internal)?;
        let mask = SigSet::thread_get_mask().or_fail(Exit::Internal)?;
        signals.set_mask(&mask).or_fail(Exit::Internal)?;
        let reads = ours.input.is_some();
        Ok(Self {
            replies: Some(BufReader::new(stream)),
            ours,
            window,
            passing,
            signals,
            hears: true,
            pending: Vec::new(),
            reads,
            started: false,
            task: None,
            job: None,
            ended: None,
            interrupted: Vec::new(),
        })
    }

    /// To the end of the command. None when the order was not taken.
    pub(super) fn run(&mut self) -> Result<Option<Finished>, Failure> {
        while !self.is_over() {
            for source in self.wait()? {
                match source {
                    Source::Signals => self.take_signals(),
                    Source::Replies => {
                        if !self.reply()? {
                            return Ok(None);
                        }
                    }
                    Source::Line => self.hear(),
                    Source::Output => self.pass(Channel::Output),
                    Source::Error => self.pass(Channel::Error),
                    Source::Stdin => self.read(),
                    Source::Input => self.feed(),
                }
                if self.interrupted.len() > 2 {
                    // Our end of the line goes with us, and with it, after its grace, the command.
                    return Err(Failure::new(
                        Exit::Interrupted,
                        "left the command to its keeper",
                    ));
                }
            }
        }
        self.passing.end();
        let (outcome, errno) = match self.ended.take() {
            Some((outcome, errno, _)) => (outcome, errno),
            None => (Outcome::lost(), None),
        };
        Ok(Some(Finished {
            task: self.task.take(),
            job: self.job.take(),
            outcome,
            errno,
            interrupted: self.interrupted.first().copied(),
        }))
    }

    fn is_over(&self) -> bool {
        let silent = self.ours.output.is_none() && self.ours.error.is_none();
        match &self.ended {
            // The supervisor goes away when the tree is as it may be left, too.
            Some((_, _, at)) => (silent || at.elapsed() >= DRAIN) && self.replies.is_none(),
            // Neither keeper nor supervisor will say anything more.
            None => !self.hears && self.replies.is_none(),
        }
    }

    /// What is ready.
    fn wait(&self) -> Result<Vec<Source>, Failure> {
        let (reads, writes) = (PollFlags::POLLIN, PollFlags::POLLOUT);
        let stream = self
            .replies
            .as_ref()
            .map(|replies| replies.get_ref().as_fd());
        let idle = self.pending.is_empty();
        let wants = idle && self.started && self.reads && self.ended.is_none();
        let input = self.ours.input.as_ref().map(OwnedFd::as_fd);
        let sources = [
            (Source::Signals, Some(self.signals.as_fd()), reads),
            (Source::Replies, stream, reads),
            (
                Source::Line,
                self.hears.then(|| self.ours.line.as_fd()),
                reads,
            ),
            (
                Source::Output,
                self.ours.output.as_ref().map(OwnedFd::as_fd),
                reads,
            ),
            (
                Source::Error,
                self.ours.error.as_ref().map(OwnedFd::as_fd),
                reads,
            ),
            (Source::Stdin, wants.then(rustix::stdio::stdin), reads),
            (Source::Input, input.filter(|_| !idle), writes),
        ];
        let sources: Vec<(Source, BorrowedFd<'_>, PollFlags)> = sources
            .into_iter()
            .filter_map(|(source, fd, events)| Some((source, fd?, events)))
            .collect();
        let mut fds: Vec<PollFd<'_>> = sources
            .iter()
            .map(|(_, fd, events)| PollFd::new(*fd, *events))
            .collect();
        let patience = match &self.ended {
            Some(_) => PollTimeout::from(50_u8),
            None => PollTimeout::NONE,
        };
        match poll(&mut fds, patience) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(Failure::caused(Exit::Internal, &errno)),
        }
        let ready = sources.iter().zip(&fds);
        Ok(ready
            .filter(|(_, fd)| fd.any() == Some(true))
            .map(|((source, _, _), _)| *source)
            .collect())
    }

    /// The first signal asks the command to end, the second one ends it, the third one ends us.
    fn take_signals(&mut self) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            let number = i32::try_from(signal.ssi_signo).unwrap_or(0);
            if number == Signal::SIGWINCH as i32 {
                if let Some(window) = self.window {
                    window.resize();
                }
                continue;
            }
            // More grace than the task gives is not given.
            let grace = if self.interrupted.is_empty() {
                u64::MAX
            } else {
                0
            };
            self.interrupted.push(number);
            self.ours.line.stop("user", "interrupted", grace);
        }
    }

    /// `false` when the order was not taken and nobody is there any more.
    fn reply(&mut self) -> Result<bool, Failure> {
        let Some(replies) = &mut self.replies else {
            return Ok(true);
        };
        loop {
            let mut line = String::new();
            let read = replies.read_line(&mut line);
            if read.is_err() || line.is_empty() {
                self.replies = None;
                return Ok(self.task.is_some() || self.started || self.ended.is_some());
            }
            match serde_json::from_str(&line).or_fail(Exit::Internal)? {
                Reply::Taken { task } => self.task = Some(task),
                Reply::Kept { job } => self.job = Some(job),
                Reply::Failed { failure } => return Err(failure),
                Reply::Event { .. } | Reply::Done => {}
            }
            if !replies.buffer().contains(&b'\n') {
                return Ok(true);
            }
        }
    }

    fn hear(&mut self) {
        match self.ours.line.hear() {
            Some(Said::Started) => self.started = true,
            Some(Said::Ended { outcome, errno }) => {
                self.ended = Some((outcome, errno, Instant::now()));
                self.hears = false;
            }
            None => self.hears = false,
        }
    }

    fn pass(&mut self, channel: Channel) {
        let end = match channel {
            Channel::Output => &mut self.ours.output,
            Channel::Error => &mut self.ours.error,
        };
        let Some(fd) = end else { return };
        let mut piece = vec![0; PIECE];
        match rustix::io::read(&*fd, &mut piece) {
            Err(rustix::io::Errno::INTR) => {}
            // A terminal whose last user is gone says so by an error.
            Ok(0) | Err(_) => *end = None,
            Ok(count) => {
                self.passing
                    .take(channel, piece.get(..count).unwrap_or_default());
                if channel == Channel::Output && self.passing.is_gone() {
                    // The command hears of it as of any pipe that nobody reads.
                    *end = None;
                }
            }
        }
    }

    fn read(&mut self) {
        let mut piece = vec![0; PIECE];
        match rustix::io::read(rustix::stdio::stdin(), &mut piece) {
            Ok(count) if count > 0 => {
                piece.truncate(count);
                self.pending = piece;
                self.feed();
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Ok(_) | Err(_) => self.close_input(),
        }
    }

    fn feed(&mut self) {
        let Some(input) = &self.ours.input else {
            return;
        };
        match rustix::io::write(input, &self.pending) {
            Ok(count) => drop(self.pending.drain(..count)),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            // It does not want any more.
            Err(_) => self.close_input(),
        }
    }

    fn close_input(&mut self) {
        self.reads = false;
        self.pending.clear();
        self.ours.input = None;
    }
}
