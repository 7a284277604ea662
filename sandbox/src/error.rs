//! What can go wrong outside of a job. How a job ends is never here: see `outcome`.
//!
//! Must never suggest a way around the room.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::wire;

/// The sandbox cannot be had on this host; nothing was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub struct Unavailable {
    /// What could not be done, with the words of the tool that failed.
    pub problem: String,
    /// Why, as far as it can be told.
    pub cause: String,
    /// What a person can do about it.
    pub fix: String,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            problem,
            cause,
            fix,
        } = self;
        write!(
            f,
            "sandbox unavailable: {problem}\ncause: {cause}\nfix: {fix}"
        )
    }
}

/// Why a room could not be opened or a job not be handed over.
#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    /// This host does not offer a wall that the room needs.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The policy asks for a bind that would undo the room.
    #[error("{path} cannot be shown in the room: {reason}", path = path.display())]
    Refused {
        /// The path asked for.
        path: PathBuf,
        /// Which rule refused it.
        reason: String,
    },
    /// Something stands where the room needs a mount point: a link, a file, a special file.
    #[error("{path} in the worktree is {found}: remove it or choose another base", path = path.display())]
    Planted {
        /// The path in the worktree.
        path: PathBuf,
        /// What was found.
        found: String,
    },
    /// A step of building the room failed.
    #[error("cannot {doing}{}", at(path.as_ref()))]
    Build {
        /// The step.
        doing: String,
        /// The path it was about.
        path: Option<PathBuf>,
        /// What the system said.
        source: io::Error,
    },
    /// A name that cannot stand in a file name or a socket address.
    #[error("{name:?} is not usable as the name of a {what}")]
    Name {
        /// Task or job.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Another process keeps this job or this room.
    #[error("{what} of task {task} is already running")]
    Busy {
        /// The task.
        task: String,
        /// The room or the job.
        what: String,
    },
    /// The room is closed, or its holder died.
    #[error("the room of task {task} is gone")]
    Gone {
        /// The task.
        task: String,
    },
    /// The helper process ended without an answer.
    #[error("the {role} of task {task} ended without an answer")]
    Silent {
        /// Holder or keeper.
        role: &'static str,
        /// The task.
        task: String,
    },
}

fn at(path: Option<&PathBuf>) -> String {
    path.map(|path| format!(" ({})", path.display()))
        .unwrap_or_default()
}

/// Why an order to a job did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No keeper holds this job: it has ended, or never ran.
    #[error("job {job} of task {task} is not running")]
    NotRunning {
        /// The task.
        task: String,
        /// The job.
        job: String,
    },
    /// The keeper could not be reached.
    #[error("cannot reach the keeper of job {job}")]
    Reach {
        /// The job.
        job: String,
        /// What the system said.
        source: io::Error,
    },
    /// The keeper could not do it.
    #[error("the keeper of job {job} refused: {reason}")]
    Refused {
        /// The job.
        job: String,
        /// Its words.
        reason: String,
    },
}

/// A failed step of a helper process, as it travels to the process that asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub(crate) enum Fault {
    /// The host lacks something.
    Unavailable(Unavailable),
    /// The policy is refused.
    Refused {
        #[serde(with = "wire::path")]
        path: PathBuf,
        reason: String,
    },
    /// The worktree holds something in the way.
    Planted {
        #[serde(with = "wire::path")]
        path: PathBuf,
        found: String,
    },
    /// A step failed.
    Step {
        doing: String,
        path: Option<String>,
        errno: i32,
    },
    /// Somebody else keeps it.
    Busy { what: String },
    /// The room's holder is gone.
    Gone,
}

impl Fault {
    /// A failed step without a path.
    pub(crate) fn step(doing: &str, error: impl Into<io::Error>) -> Self {
        Self::Step {
            doing: doing.to_owned(),
            path: None,
            errno: error.into().raw_os_error().unwrap_or(0),
        }
    }

    /// A failed step about a path.
    pub(crate) fn at(
        doing: &str,
        path: impl AsRef<std::path::Path>,
        error: impl Into<io::Error>,
    ) -> Self {
        Self::Step {
            doing: doing.to_owned(),
            path: Some(path.as_ref().display().to_string()),
            errno: error.into().raw_os_error().unwrap_or(0),
        }
    }

    /// The same for the caller of the crate.
    pub(crate) fn into_error(self, task: &str) -> RoomError {
        match self {
            Self::Unavailable(unavailable) => RoomError::Unavailable(unavailable),
            Self::Refused { path, reason } => RoomError::Refused { path, reason },
            Self::Planted { path, found } => RoomError::Planted { path, found },
            Self::Step { doing, path, errno } => RoomError::Build {
                doing,
                path: path.map(PathBuf::from),
                source: io::Error::from_raw_os_error(errno),
            },
            Self::Busy { what } => RoomError::Busy {
                task: task.to_owned(),
                what,
            },
            Self::Gone => RoomError::Gone {
                task: task.to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unavailable_has_three_lines() {
        let text = Unavailable {
            problem: "p".into(),
            cause: "c".into(),
            fix: "f".into(),
        }
        .to_string();
        assert_eq!(text, "sandbox unavailable: p\ncause: c\nfix: f");
    }
}
