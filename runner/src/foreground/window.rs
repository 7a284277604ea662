//! A terminal for a command: a pair of its own, one end of which is the command's, while the person's terminal is in raw
//! mode and only passes bytes. The person's terminal itself never goes into a room.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pty::OpenptFlags;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};
use sandbox::{Ends, Line};

use super::streams::Ours;

/// The person's terminal while a command has one of its own. Dropped, it is as it was.
#[derive(Debug)]
pub struct Window {
    before: Termios,
    master: OwnedFd,
    name: std::ffi::CString,
}

impl Window {
    /// Makes the pair and puts the person's terminal, which is standard input, into raw mode.
    pub fn open() -> io::Result<Self> {
        let stdin = rustix::stdio::stdin();
        let before = tcgetattr(stdin)?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags)?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let name = rustix::pty::ptsname(&master, Vec::new())?;
        let window = Self {
            before,
            master,
            name,
        };
        window.resize();
        tcsetattr(window.slave()?, OptionalActions::Now, &window.before)?;
        let mut raw = window.before.clone();
        raw.make_raw();
        tcsetattr(stdin, OptionalActions::Now, &raw)?;
        Ok(window)
    }

    /// The command's window becomes as large as the person's.
    pub(super) fn resize(&self) {
        if let Ok(size) = tcgetwinsize(rustix::stdio::stdin()) {
            // A size that is not taken over is a blemish, no fault.
            tcsetwinsize(&self.master, size).ok();
        }
    }

    /// The streams of a command in this window.
    pub(super) fn streams(&self) -> io::Result<(Ends, Ours)> {
        let slave = self.slave()?;
        let (line, their_line) = Line::pair()?;
        let input = self.master.try_clone()?;
        let ends = Ends {
            input: Some(slave.try_clone()?),
            output: slave.try_clone()?,
            error: slave,
            line: their_line,
            terminal: true,
        };
        let ours = Ours {
            input: Some(input),
            output: Some(self.master.try_clone()?),
            error: None,
            line,
        };
        Ok((ends, ours))
    }

    fn slave(&self) -> io::Result<OwnedFd> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.name, flags, Mode::empty())?)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // A terminal that is gone needs no mode.
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &self.before).ok();
    }
}
