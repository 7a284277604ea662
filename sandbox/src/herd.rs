//! All processes of a job at once: signal them, stop them so that nothing moves, let them go on.
//!
//! Must never count on a snapshot: whoever forks meanwhile is caught by the next round.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Which processes are meant, seen from the process that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Herd {
    /// Everybody in this pid namespace but its pid 1, who asks.
    Namespace,
    /// All descendants of the process that asks, which is their reaper.
    Descendants,
}

/// Processes that were stopped before we came; they stay so.
#[derive(Debug, Default)]
pub(crate) struct AlreadyStopped(BTreeSet<i32>);

impl Herd {
    /// Signals everybody. `false` when nobody is left.
    pub(crate) fn signal(self, signal: Signal) -> bool {
        match self {
            Self::Namespace => kill(Pid::from_raw(-1), signal) != Err(Errno::ESRCH),
            Self::Descendants => {
                let members = self.members();
                for pid in &members {
                    // One that is gone already is no fault; it cannot be another: its parent reaps here.
                    kill(Pid::from_raw(*pid), signal).ok();
                }
                !members.is_empty()
            }
        }
    }

    /// Whether somebody is left.
    pub(crate) fn is_alive(self) -> bool {
        match self {
            Self::Namespace => kill(Pid::from_raw(-1), None) != Err(Errno::ESRCH),
            Self::Descendants => !self.members().is_empty(),
        }
    }

    /// Stops everybody and waits until nobody moves. `None` when that did not come true within `patience`.
    pub(crate) fn freeze(self, patience: Duration) -> Option<AlreadyStopped> {
        let before = self.members();
        let already = before
            .into_iter()
            .filter(|pid| state(*pid) == Some('T'))
            .collect();
        let until = Instant::now() + patience;
        let mut quiet = BTreeSet::new();
        loop {
            self.signal(Signal::SIGSTOP);
            let members: BTreeSet<i32> = self.members().into_iter().collect();
            if members.iter().all(|pid| is_still(*pid)) {
                // Twice the same: nobody was born between the look and the signal.
                if members == quiet {
                    return Some(AlreadyStopped(already));
                }
                quiet = members;
            } else if Instant::now() > until {
                return None;
            } else {
                quiet.clear();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Lets everybody go on but those that were stopped before.
    pub(crate) fn thaw(self, already: &AlreadyStopped) {
        for pid in self.members() {
            if !already.0.contains(&pid) {
                // One that is gone meanwhile needs no signal.
                kill(Pid::from_raw(pid), Signal::SIGCONT).ok();
            }
        }
    }

    /// Their process ids, now.
    pub(crate) fn members(self) -> Vec<i32> {
        let me = i32::try_from(std::process::id()).unwrap_or(1);
        let parents = parents();
        match self {
            Self::Namespace => parents.into_keys().filter(|pid| *pid != me).collect(),
            Self::Descendants => descendants(&parents, me),
        }
    }
}

/// Every process with its parent.
fn parents() -> BTreeMap<i32, i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parse(&stat)?.1))
        })
        .collect()
}

fn descendants(parents: &BTreeMap<i32, i32>, ancestor: i32) -> Vec<i32> {
    let below = |pid: &i32| {
        let mut at = *pid;
        // A table read while processes come and go can hold a ring; no chain is longer than the table.
        for _ in 0..parents.len() {
            match parents.get(&at) {
                Some(parent) if *parent == ancestor => return true,
                Some(parent) => at = *parent,
                None => return false,
            }
        }
        false
    };
    parents.keys().copied().filter(below).collect()
}

/// State letter and parent of a `stat` line.
fn parse(stat: &str) -> Option<(char, i32)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(parse(&stat)?.0)
}

/// Whether no thread of the process runs or can run before somebody lets it.
fn is_still(pid: i32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    threads.filter_map(Result::ok).all(|thread| {
        let Ok(stat) = std::fs::read_to_string(thread.path().join("stat")) else {
            return true;
        };
        match parse(&stat) {
            Some(('T' | 't' | 'Z' | 'X' | 'x', _)) | None => true,
            // The parent of a vfork sleeps until the child, which is stopped, has executed something.
            Some(('D', _)) => waits_for_child(&thread.path()),
            Some(_) => false,
        }
    })
}

fn waits_for_child(thread: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(thread.join("syscall")) else {
        return false;
    };
    let number = text
        .split_ascii_whitespace()
        .next()
        .and_then(|word| word.parse::<i64>().ok());
    #[cfg(target_arch = "x86_64")]
    let vfork = Some(nix::libc::SYS_vfork);
    #[cfg(not(target_arch = "x86_64"))]
    let vfork = None;
    let forks = [
        Some(nix::libc::SYS_clone),
        Some(nix::libc::SYS_clone3),
        vfork,
    ];
    number.is_some_and(|number| forks.contains(&Some(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_through_generations() {
        let table = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (6, 9)]);
        assert_eq!(descendants(&table, 2), [3, 4]);
        let ring = BTreeMap::from([(7, 8), (8, 7)]);
        assert!(descendants(&ring, 2).is_empty());
    }

    #[test]
    fn a_stat_line_with_a_wild_name() {
        assert_eq!(parse("7 (x) S (y) T 3 7 7"), Some(('T', 3)));
    }
}
