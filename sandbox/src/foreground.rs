//! A job with somebody in front of it: its three streams are handed over with it, and a line of its own tells the
//! person how it goes and takes what the person wants.
//!
//! Must never carry a descriptor of a host's file into a room: pipes and a terminal made for the job, nothing else.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};

use crate::keeper::{self, Order};
use crate::outcome::Outcome;

/// What is handed over with a foreground job. Each stream is one end of a pipe, or all are the same terminal.
#[derive(Debug)]
pub struct Ends {
    /// Standard input; none is an empty one.
    pub input: Option<OwnedFd>,
    /// Standard output.
    pub output: OwnedFd,
    /// Standard error.
    pub error: OwnedFd,
    /// The keeper's end of the line.
    pub line: OwnedFd,
    /// Whether the streams are a terminal made for this job, which then becomes its controlling one.
    pub terminal: bool,
}

/// What the keeper says on the line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// The command was executed.
    Started,
    /// Nobody of the job is left.
    Ended {
        /// How it ended.
        outcome: Outcome,
        /// The system's error number, when the command was never executed.
        errno: Option<i32>,
    },
}

/// The person's end of the line. When it closes, the keeper stops the job.
#[derive(Debug)]
pub struct Line(OwnedFd);

impl Line {
    /// Both ends; the second one belongs to [`Ends`].
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(ours), theirs))
    }

    /// Asks for the end of the job: TERM, and after `grace_ms` KILL. Nobody may be there any more.
    pub fn stop(&self, by: &str, reason: &str, grace_ms: u64) {
        let order = Order::Stop {
            by: by.to_owned(),
            reason: reason.to_owned(),
            grace_ms,
        };
        // An end that is not heard is on its way.
        drop(keeper::send(&self.0, &order));
    }

    /// The next thing said; none when the keeper is gone. Blocks until there is one.
    pub fn hear(&self) -> Option<Said> {
        keeper::receive(&self.0).ok().flatten()
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
