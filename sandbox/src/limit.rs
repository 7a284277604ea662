//! The limits of a job by name: what a person calls each, and which flag or line raises it.
//!
//! Must never enforce one: that is for kernel, cgroup and keeper.

use crate::denial::{Denial, DenialKind};

/// One limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Wall time, in milliseconds.
    Timeout,
    /// Time without any sign of work, in milliseconds.
    Idle,
    /// Memory of the task, in bytes.
    Memory,
    /// Processes and threads of a job.
    Pids,
    /// Bytes of the worktree.
    Disk,
    /// Files of the worktree.
    Files,
    /// Bytes of one file.
    FileSize,
    /// Kept bytes of output.
    Output,
    /// Processor time, which nobody but the job itself limits.
    Cpu,
}

impl Limit {
    /// The name in an outcome: `over_limit: memory`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Idle => "idle_timeout",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Disk => "disk",
            Self::Files => "files",
            Self::FileSize => "file_size",
            Self::Output => "output",
            Self::Cpu => "cpu",
        }
    }

    /// The record of having reached it at `value`, with what would allow twice as much.
    pub(crate) fn denial(self, job: &str, value: u64) -> Denial {
        let (now, twice) = (self.written(value), self.written(value.saturating_mul(2)));
        let name = self.name();
        let denial = Denial::now(
            Some(job),
            DenialKind::Limit,
            name,
            &format!("{name} = {now}"),
        );
        let section = match self {
            Self::Timeout | Self::Idle => "task",
            Self::Memory
            | Self::Pids
            | Self::Disk
            | Self::Files
            | Self::FileSize
            | Self::Output => "sandbox",
            // The command set it for itself.
            Self::Cpu => return denial,
        };
        let value = match self {
            Self::Pids | Self::Files => twice.clone(),
            Self::Timeout
            | Self::Idle
            | Self::Memory
            | Self::Disk
            | Self::FileSize
            | Self::Output
            | Self::Cpu => format!("\"{twice}\""),
        };
        let line = format!("{name} = {value}");
        let flag = format!("--{}", name.replace('_', "-"));
        match self {
            Self::FileSize | Self::Output => denial.allowed_by(&[], Some((section, &line))),
            Self::Timeout
            | Self::Idle
            | Self::Memory
            | Self::Pids
            | Self::Disk
            | Self::Files
            | Self::Cpu => denial.allowed_by(&[&flag, &twice], Some((section, &line))),
        }
    }

    fn written(self, value: u64) -> String {
        match self {
            Self::Timeout | Self::Idle => duration(value),
            Self::Pids | Self::Files => value.to_string(),
            Self::Memory | Self::Disk | Self::FileSize | Self::Output => size(value),
            Self::Cpu => format!("{value}s"),
        }
    }
}

/// Bytes as the configuration reads them, in the largest unit that is exact.
fn size(bytes: u64) -> String {
    let units = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    let exact = units
        .into_iter()
        .find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    exact.map_or_else(
        || bytes.to_string(),
        |(unit, shift)| format!("{}{unit}", bytes >> shift),
    )
}

/// Milliseconds as the configuration reads them.
fn duration(milliseconds: u64) -> String {
    let units = [("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    let exact = units
        .into_iter()
        .find(|(_, unit)| milliseconds > 0 && milliseconds.is_multiple_of(*unit));
    exact.map_or_else(
        || format!("{milliseconds}ms"),
        |(name, unit)| format!("{}{name}", milliseconds / unit),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_names_what_raises_it() {
        let denial = Limit::Memory.denial("agent", 128 << 20);
        assert_eq!(denial.rule, "memory = 128M");
        let allow = denial.allow.unwrap();
        assert_eq!(allow.flag, ["--memory", "256M"]);
        assert_eq!(
            allow.config,
            Some(("sandbox".into(), "memory = \"256M\"".into()))
        );
        let allow = Limit::Idle.denial("agent", 90_000).allow.unwrap();
        assert_eq!(allow.flag, ["--idle-timeout", "3m"]);
        let config = Some(("task".into(), "idle_timeout = \"3m\"".into()));
        assert_eq!(allow.config, config);
        let allow = Limit::Files.denial("agent", 100).allow.unwrap();
        assert_eq!(allow.flag, ["--files", "200"]);
        assert_eq!(allow.config, Some(("sandbox".into(), "files = 200".into())));
        let allow = Limit::FileSize.denial("agent", 5000).allow.unwrap();
        assert!(allow.flag.is_empty());
        assert_eq!(
            allow.config,
            Some(("sandbox".into(), "file_size = \"10000\"".into()))
        );
        assert_eq!(Limit::Cpu.denial("agent", 1).allow, None);
    }
}
