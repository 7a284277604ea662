//! The processes of a job at a glance, read from outside: how many, what they hold, what they have worked.
//!
//! Must never trust a name or a state that a process gives itself: only numbers that the kernel keeps.

use std::ffi::CString;
use std::hash::{Hash as _, Hasher as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::herd::Herd;

/// Where the processes of a job are found.
#[derive(Debug)]
pub(super) enum Crowd {
    /// The `/proc` of its pid namespace: everybody in it.
    Room(OwnedFd),
    /// The descendants of this process, in the `/proc` of the host.
    Bare(OwnedFd),
}

/// What a glance tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Glance {
    /// Threads of all processes.
    pub(super) threads: u64,
    /// Resident bytes, those that are shared counted for each.
    pub(super) resident: u64,
    /// Processor time of all, of children that were waited for too, in clock ticks.
    pub(super) ticks: u64,
    /// Changes when somebody comes or goes.
    pub(super) who: u64,
}

impl Crowd {
    pub(super) fn proc(&self) -> BorrowedFd<'_> {
        match self {
            Self::Room(proc) | Self::Bare(proc) => proc.as_fd(),
        }
    }

    /// The process ids, as `/proc` names them.
    pub(super) fn pids(&self) -> Vec<i32> {
        match self {
            Self::Room(proc) => numbers(proc).unwrap_or_default(),
            Self::Bare(_) => Herd::Descendants.members(),
        }
    }

    pub(super) fn glance(&self) -> Glance {
        let mut glance = Glance::default();
        let mut who = std::hash::DefaultHasher::new();
        for pid in self.pids() {
            // One that is gone meanwhile holds nothing any more.
            let Ok(text) = file(self.proc(), pid, "stat") else {
                continue;
            };
            let Some(stat) = Stat::parse(&text) else {
                continue;
            };
            glance.threads += stat.threads;
            glance.resident = glance.resident.saturating_add(stat.resident);
            glance.ticks = glance.ticks.saturating_add(stat.ticks);
            (pid, stat.started).hash(&mut who);
        }
        glance.who = who.finish();
        glance
    }
}

fn numbers(proc: &OwnedFd) -> rustix::io::Result<Vec<i32>> {
    // Anew each time: a shared place in the folder would be one.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(proc, ".", flags, Mode::empty())?;
    let mut pids = Vec::new();
    for entry in Dir::new(folder)? {
        let name = entry?;
        pids.extend(
            name.file_name()
                .to_str()
                .ok()
                .and_then(|name| name.parse::<i32>().ok()),
        );
    }
    Ok(pids)
}

/// The content of a file of process `pid`.
pub(super) fn file(proc: impl AsFd, pid: i32, name: &str) -> rustix::io::Result<Vec<u8>> {
    let path = CString::new(format!("{pid}/{name}")).map_err(|_zero| Errno::INVAL)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(proc, path, flags, Mode::empty())?;
    let mut content = Vec::with_capacity(1024);
    loop {
        let start = content.len();
        content.resize(start + 4096, 0);
        let rest = content.get_mut(start..).unwrap_or_default();
        match rustix::io::read(&file, rest) {
            Ok(count) => {
                content.truncate(start + count);
                if count == 0 {
                    return Ok(content);
                }
            }
            Err(Errno::INTR) => content.truncate(start),
            Err(error) => return Err(error),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    ticks: u64,
    threads: u64,
    started: u64,
    resident: u64,
}

impl Stat {
    /// Fields 14 to 17, 20, 22 and 24; the name in field 2 may hold anything.
    fn parse(text: &[u8]) -> Option<Self> {
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |field: usize| -> Option<u64> {
            // Counted from one, and two are before the bracket.
            let value: i64 = fields.get(field - 3)?.parse().ok()?;
            Some(u64::try_from(value).unwrap_or(0))
        };
        let ticks = [14, 15, 16, 17].into_iter().filter_map(number);
        Some(Self {
            ticks: ticks.fold(0, u64::saturating_add),
            threads: number(20)?,
            started: number(22)?,
            resident: number(24)?.saturating_mul(page()),
        })
    }
}

/// Bytes of a page.
pub(super) fn page() -> u64 {
    let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
    size.ok()
        .flatten()
        .and_then(|size| u64::try_from(size).ok())
        .unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_with_a_wild_name() {
        let line = b"7 (a) R 1 (b) S 1 2 3 4 5 6 7 8 9 10 100 200 30 4 20 0 5 0 4711 99999 10 1 2";
        let stat = Stat::parse(line).unwrap();
        let expected = Stat {
            ticks: 334,
            threads: 5,
            started: 4711,
            resident: 10 * page(),
        };
        assert_eq!(stat, expected);
        assert_eq!(Stat::parse(b"7 (x) S 1"), None);
    }

    #[test]
    fn this_process_is_seen() {
        let proc: OwnedFd = std::fs::File::open("/proc").unwrap().into();
        let crowd = Crowd::Room(proc);
        let glance = crowd.glance();
        assert!(glance.threads > 1 && glance.resident > 1 << 20);
        assert!(
            crowd
                .pids()
                .contains(&i32::try_from(std::process::id()).unwrap())
        );
    }
}
