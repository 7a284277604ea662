//! Which process is meant: a pid counts only together with the boot it belongs to and its start time.
//!
//! Must never send a signal by number: only through a pidfd whose process was proven.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

/// One process, for ever: pids come back, identities do not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Process id.
    pub(crate) pid: u32,
    /// Start time in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub(crate) start_ticks: u64,
    /// The kernel's boot id.
    pub(crate) boot: String,
}

/// The kernel's boot id.
pub(crate) fn boot_id() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

impl Identity {
    /// The identity of the running process `pid`.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        Ok(Self {
            pid,
            start_ticks: start_ticks(pid)?,
            boot: boot_id()?,
        })
    }

    /// A pidfd of exactly this process; `None` when it is gone (or the pid belongs to another one now).
    pub(crate) fn open(&self) -> Option<OwnedFd> {
        if boot_id().ok()? != self.boot {
            return None;
        }
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // Compared after opening: what the pidfd names cannot change any more.
        (start_ticks(self.pid).ok()? == self.start_ticks).then_some(pidfd)
    }

    /// Kills exactly this process. `false` when it was gone already.
    pub(crate) fn kill(&self) -> bool {
        self.open()
            .is_some_and(|pidfd| rustix::process::pidfd_send_signal(&pidfd, Signal::KILL).is_ok())
    }
}

fn start_ticks(pid: u32) -> io::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_start(&stat).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// Field 22; the second field is a name in brackets that may itself hold blanks and brackets.
fn parse_start(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_do_not_confuse() {
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(parse_start(stat), Some(4711));
    }

    #[test]
    fn another_start_time_is_another_process() {
        let me = Identity::of(std::process::id()).unwrap();
        assert!(me.open().is_some());
        let stranger = Identity {
            start_ticks: me.start_ticks + 1,
            ..me
        };
        assert!(stranger.open().is_none() && !stranger.kill());
    }
}
