//! `meta.json` of a job: what a person or a program can know about it, whole at every moment.
//!
//! Must never be read as "empty" when it cannot be parsed.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::durable;
use crate::identity::Identity;
use crate::outcome::{Exit, Outcome};
use crate::spec::JobSpec;

const NAME: &str = "meta.json";

/// Where a job is on its way. The last six are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Waits for its turn.
    Queued,
    /// The keeper builds the walls.
    Starting,
    /// The command was executed.
    Running,
    /// TERM was sent.
    Stopping,
    /// The command ended by itself, by exit or signal.
    Exited,
    /// The wall time was over, or it did nothing for too long.
    TimedOut,
    /// Somebody stopped it.
    Stopped,
    /// The command was never executed.
    FailedToStart,
    /// A limit ended it.
    OverLimit,
    /// Its keeper died.
    Lost,
}

impl JobState {
    /// Whether nothing follows any more.
    pub fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::Starting | Self::Running | Self::Stopping => false,
            Self::Exited
            | Self::TimedOut
            | Self::Stopped
            | Self::FailedToStart
            | Self::OverLimit
            | Self::Lost => true,
        }
    }

    pub(crate) fn of(exit: &Exit) -> Self {
        match exit {
            Exit::Code(_) | Exit::Signal(_) => Self::Exited,
            Exit::TimedOut | Exit::IdleTimedOut => Self::TimedOut,
            Exit::Stopped { .. } => Self::Stopped,
            Exit::OverLimit { .. } => Self::OverLimit,
            Exit::NotStarted { .. } => Self::FailedToStart,
            Exit::Lost => Self::Lost,
        }
    }
}

/// Output of a job, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSize {
    /// Written by the job.
    pub bytes: u64,
    /// Not kept.
    pub dropped: u64,
    /// Most that is kept.
    pub cap: u64,
}

/// The content of `meta.json`, schema 1. Times are milliseconds since 1970, durations milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// 1.
    pub schema: u32,
    /// The task.
    pub task: String,
    /// The job.
    pub job: String,
    /// Where it is.
    pub state: JobState,
    /// Whether a room is around it.
    pub confined: bool,
    /// The command, as text.
    pub command: Vec<String>,
    /// Its working directory, as the job sees it.
    pub cwd: String,
    /// The keeper: a pid counts only with the two values below.
    pub pid: u32,
    /// The keeper's start time in clock ticks since boot.
    pub start_ticks: u64,
    /// The boot it belongs to.
    pub boot: String,
    /// When the keeper began.
    pub created_ms: u64,
    /// When the command was executed.
    pub started_ms: Option<u64>,
    /// When it was over.
    pub ended_ms: Option<u64>,
    /// How long it ran, by the monotonic clock.
    pub elapsed_ms: Option<u64>,
    /// Wall time it may take.
    pub timeout_ms: Option<u64>,
    /// Time between TERM and KILL.
    pub grace_ms: u64,
    /// Its output.
    pub output: LogSize,
    /// Whether its output was still held by somebody after the command's end.
    pub leaked: bool,
    /// Why it is over.
    pub exit: Option<Exit>,
    /// Exit code of the command, whatever the cause.
    pub code: Option<i32>,
    /// Signal that ended the command, whatever the cause.
    pub signal: Option<i32>,
}

/// Why `meta.json` could not be read.
#[derive(Debug, thiserror::Error)]
pub enum MetaError {
    /// The file is there and cannot be opened or read.
    #[error("cannot read {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not what a keeper writes.
    #[error("{path} is not a job's meta file", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where it goes wrong.
        source: serde_json::Error,
    },
}

impl Meta {
    /// Reads the job in `dir`; `None` when there is none.
    pub fn read(dir: &Path) -> Result<Option<Self>, MetaError> {
        let path = dir.join(NAME);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(MetaError::Read { path, source }),
        };
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|source| MetaError::Parse { path, source })
    }

    /// The meta of a job that is about to start.
    pub(crate) fn starting(task: &str, job: &JobSpec, confined: bool, keeper: &Identity) -> Self {
        Self {
            schema: 1,
            task: task.to_owned(),
            job: job.job.clone(),
            state: JobState::Starting,
            confined,
            command: job
                .argv
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            cwd: job.cwd.to_string_lossy().into_owned(),
            pid: keeper.pid,
            start_ticks: keeper.start_ticks,
            boot: keeper.boot.clone(),
            created_ms: now_ms(),
            started_ms: None,
            ended_ms: None,
            elapsed_ms: None,
            timeout_ms: job.timeout_ms,
            grace_ms: job.grace_ms,
            output: LogSize {
                cap: job.output_cap,
                ..LogSize::default()
            },
            leaked: false,
            exit: None,
            code: None,
            signal: None,
        }
    }

    /// Only how a job ended must outlast the machine: a job does not.
    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        if self.state.is_final() {
            durable::write(&dir.join(NAME), &text)
        } else {
            durable::replace(&dir.join(NAME), &text)
        }
    }

    /// What `wait` answers; `None` while the job is not over.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        if !self.state.is_final() {
            return None;
        }
        Some(Outcome {
            exit: self.exit.clone().unwrap_or(Exit::Lost),
            code: self.code,
            signal: self.signal,
            output_bytes: self.output.bytes,
            output_dropped: self.output.dropped,
            leaked: self.leaked,
            started_ms: self.started_ms,
            ended_ms: self.ended_ms.unwrap_or(0),
            elapsed_ms: self.elapsed_ms.unwrap_or(0),
        })
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_is_none_and_broken_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Meta::read(folder.path()).unwrap().is_none());
        for broken in ["", "{", "\0\0\0\0"] {
            std::fs::write(folder.path().join(NAME), broken).unwrap();
            let error = Meta::read(folder.path()).unwrap_err();
            assert!(matches!(error, MetaError::Parse { .. }), "{broken:?}");
        }
    }
}
