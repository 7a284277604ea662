//! Which living processes belong to a test: by what the kernel shows of them, since a process that
//! was left behind has no parent that would know it.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What a process of the engine is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A command that a person gave.
    Command,
    /// Carries tasks through their life.
    Supervisor,
    /// Keeps the namespaces of a room.
    Holder,
    /// Leads from a room to its proxy.
    Relay,
    /// Owns one job.
    Keeper,
    /// The sandbox of one job.
    Bubblewrap,
    /// The first process inside.
    Warden,
    /// Reads hostile bytes.
    Judge,
    /// The agent, or something that it started.
    Agent,
}

/// A living process.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// The id of its parent.
    pub parent: i32,
    /// What it is for.
    pub role: Role,
    /// Its command line.
    pub command: String,
    started: u64,
}

impl Process {
    /// Ends it at once, if it is still the same process.
    pub fn kill(&self) {
        if Stat::of(self.pid).is_some_and(|stat| stat.started == self.started) {
            kill(Pid::from_raw(self.pid), Signal::SIGKILL).ok();
        }
    }

    /// Whether it still lives.
    pub fn lives(&self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| stat.started == self.started && stat.alive)
    }
}

/// Every living process that has to do with a folder whose name is `mark`, and what it started.
pub(crate) fn marked(mark: &str) -> Vec<Process> {
    let us = i32::try_from(std::process::id()).expect("a pid fits");
    let seen: Vec<(i32, Stat)> = pids()
        .into_iter()
        .filter_map(|pid| Some((pid, Stat::of(pid)?)))
        .collect();
    let mut ours: Vec<i32> = Vec::new();
    for (pid, stat) in &seen {
        if *pid != us && stat.alive && bears(*pid, mark) {
            ours.push(*pid);
        }
    }
    loop {
        let more: Vec<i32> = seen
            .iter()
            .filter(|(pid, stat)| stat.alive && ours.contains(&stat.parent) && !ours.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            break;
        }
        ours.extend(more);
    }
    seen.into_iter()
        .filter(|(pid, _)| ours.contains(pid))
        .map(|(pid, stat)| {
            let command = command_line(pid);
            Process {
                pid,
                parent: stat.parent,
                role: role(&stat.name, &command),
                command,
                started: stat.started,
            }
        })
        .collect()
}

fn role(name: &str, command: &str) -> Role {
    let hidden = [
        ("__supervisor", Role::Supervisor),
        ("__holder", Role::Holder),
        ("__relay", Role::Relay),
        ("__keeper", Role::Keeper),
        ("__enter", Role::Keeper),
        ("__warden", Role::Warden),
        ("__judge", Role::Judge),
    ];
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let first = words.next().unwrap_or_default();
    if name == "bwrap" {
        Role::Bubblewrap
    } else if let Some((_, role)) = hidden.into_iter().find(|(word, _)| *word == first) {
        role
    } else if program.ends_with("airlock-under-test") {
        Role::Command
    } else {
        Role::Agent
    }
}

fn pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("a process table");
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn command_line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes)
        .trim_end_matches('\0')
        .replace('\0', " ")
}

/// Whether the kernel shows the mark anywhere on a process.
fn bears(pid: i32, mark: &str) -> bool {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let holds = |bytes: &[u8]| {
        bytes
            .windows(mark.len())
            .any(|window| window == mark.as_bytes())
    };
    let file = |name: &str| fs::read(folder.join(name)).is_ok_and(|bytes| holds(&bytes));
    let link =
        |path: &Path| fs::read_link(path).is_ok_and(|to| holds(to.as_os_str().as_encoded_bytes()));
    let opened = || {
        let entries = fs::read_dir(folder.join("fd"));
        entries.is_ok_and(|entries| entries.flatten().any(|entry| link(&entry.path())))
    };
    // In our own mount namespace the table says something about the host, not about the process.
    let elsewhere =
        || fs::read_link(folder.join("ns/mnt")).ok() != fs::read_link("/proc/self/ns/mnt").ok();
    file("cmdline")
        || file("environ")
        || link(&folder.join("cwd"))
        || opened()
        || (elsewhere() && file("mountinfo"))
}

/// What `/proc/PID/stat` says.
struct Stat {
    name: String,
    alive: bool,
    parent: i32,
    started: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may itself hold brackets and blanks.
        let (before, after) = text.rsplit_once(')')?;
        let fields: Vec<&str> = after.split_ascii_whitespace().collect();
        Some(Self {
            name: before.split_once('(')?.1.to_owned(),
            alive: !matches!(fields.first(), Some(&"Z" | &"X")),
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}
