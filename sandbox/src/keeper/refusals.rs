//! The calls that the room's filter leaves to the keeper: each gets the answer that the kernel would have given, and
//! is told under its name.
//!
//! Must never let a call pass, read the memory of who called, or let a flood of calls take the keeper's time: whoever
//! calls waits for the answer, so a keeper that rests between answers slows down nobody else.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::seccomp::{self, Arch, Attempt, Form, Instruction};
use crate::sys;

/// The rule that refuses them, as `deny.ndjson` names it.
pub(super) const RULE: &str = "the system call filter of every room";

/// Answers in one go, before output and orders get their turn.
const BATCH: usize = 32;
/// So many are answered without a rest.
const UNRESTED: u64 = 1024;
/// After each further batch.
const REST: Duration = Duration::from_millis(10);

/// The listener of one job's filter, and what was told there.
#[derive(Debug)]
pub(super) struct Refusals {
    listener: Option<OwnedFd>,
    arch: Arch,
    /// The list as the kernel answers it.
    list: Vec<Instruction>,
    told: u64,
    rests_until: Option<Instant>,
}

impl Refusals {
    /// Takes over a listener. `None` on a machine without a list, where no room can be.
    pub(super) fn new(listener: OwnedFd) -> Option<Self> {
        let arch = Arch::current()?;
        Some(Self {
            listener: Some(listener),
            arch,
            list: seccomp::program(arch, Form::Whole),
            told: 0,
            rests_until: None,
        })
    }

    /// What becomes readable when a call waits; nothing while it rests.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let listener = self.listener.as_ref()?;
        self.rests_until.is_none().then(|| listener.as_fd())
    }

    /// When the rest is over.
    pub(super) fn rests_until(&self) -> Option<Instant> {
        self.listener.as_ref().and(self.rests_until)
    }

    /// Answers those that wait now, and comes back with their names.
    pub(super) fn answer(&mut self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if self.rests_until.is_some_and(|end| Instant::now() < end) {
            return names;
        }
        self.rests_until = None;
        while names.len() < BATCH {
            let Some(told) = self.next() else {
                return names;
            };
            names.push(self.refuse(&told));
            self.told += 1;
        }
        if self.told > UNRESTED {
            self.rests_until = Some(Instant::now() + REST);
        }
        names
    }

    /// The next call that waits, if there is one. Without anybody left to call, the listener is closed.
    fn next(&mut self) -> Option<libc::seccomp_notif> {
        loop {
            let listener = self.listener.as_ref()?.as_fd();
            let mut ends = [PollFd::new(listener, PollFlags::POLLIN)];
            poll(&mut ends, PollTimeout::ZERO).ok()?;
            let [end] = ends;
            let seen = end.revents().unwrap_or(PollFlags::empty());
            if !seen.contains(PollFlags::POLLIN) {
                if !seen.is_empty() {
                    self.listener = None;
                }
                return None;
            }
            match sys::next_told(listener) {
                Ok(told) => return Some(told),
                // Who called was ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // Whatever it is: closed, every further call fails without us.
                Err(_broken) => {
                    self.listener = None;
                    return None;
                }
            }
        }
    }

    fn refuse(&self, told: &libc::seccomp_notif) -> &'static str {
        let attempt = Attempt {
            number: u32::try_from(told.data.nr).unwrap_or(u32::MAX),
            machine: told.data.arch,
            arguments: told.data.args,
        };
        // What our own list lets pass is not told; if it were, it would be refused all the same.
        let errno = seccomp::errno(&self.list, &attempt).unwrap_or(libc::EPERM);
        if let Some(listener) = &self.listener {
            // Fails when who called was ended meanwhile.
            drop(sys::refuse_told(listener.as_fd(), told.id, errno));
        }
        seccomp::name(self.arch, &attempt)
    }
}
