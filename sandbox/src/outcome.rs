//! How a job ended. A red exit, a timeout or a signal is data here, never an error.
//!
//! Must never mix the three answers: exit code, signal, never started.

use serde::{Deserialize, Serialize};

/// Why a job is over. In JSON an object with the tag `cause`, such as `{"cause": "code", "code": 7}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Form", from = "Form")]
pub enum Exit {
    /// The command exited by itself with this code.
    Code(i32),
    /// This signal ended the command, and nobody of ours had sent it.
    Signal(i32),
    /// The wall time was over; the whole tree is gone.
    TimedOut,
    /// It printed nothing, changed no file and used no processor for too long.
    IdleTimedOut,
    /// Somebody stopped it.
    Stopped {
        /// Who asked.
        by: String,
        /// What for.
        reason: String,
    },
    /// A limit ended it.
    OverLimit {
        /// Which one: `memory`, `pids`, `disk`, `files`, `file_size`, `cpu`.
        limit: String,
    },
    /// The command was never executed.
    NotStarted {
        /// What failed.
        reason: String,
    },
    /// The keeper or the sandbox went away under it: how the command ended cannot be known.
    Lost,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
enum Form {
    Code { code: i32 },
    Signal { signal: i32 },
    TimedOut,
    IdleTimedOut,
    Stopped { by: String, reason: String },
    OverLimit { limit: String },
    NotStarted { reason: String },
    Lost,
}

impl From<Exit> for Form {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Code { code },
            Exit::Signal(signal) => Self::Signal { signal },
            Exit::TimedOut => Self::TimedOut,
            Exit::IdleTimedOut => Self::IdleTimedOut,
            Exit::Stopped { by, reason } => Self::Stopped { by, reason },
            Exit::OverLimit { limit } => Self::OverLimit { limit },
            Exit::NotStarted { reason } => Self::NotStarted { reason },
            Exit::Lost => Self::Lost,
        }
    }
}

impl From<Form> for Exit {
    fn from(form: Form) -> Self {
        match form {
            Form::Code { code } => Self::Code(code),
            Form::Signal { signal } => Self::Signal(signal),
            Form::TimedOut => Self::TimedOut,
            Form::IdleTimedOut => Self::IdleTimedOut,
            Form::Stopped { by, reason } => Self::Stopped { by, reason },
            Form::OverLimit { limit } => Self::OverLimit { limit },
            Form::NotStarted { reason } => Self::NotStarted { reason },
            Form::Lost => Self::Lost,
        }
    }
}

/// The end of a job, as its keeper saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Why it is over.
    pub exit: Exit,
    /// Exit code of the command, also when it was stopped and still exited by itself.
    pub code: Option<i32>,
    /// Signal that ended the command, also when we sent it.
    pub signal: Option<i32>,
    /// Bytes that the job wrote.
    pub output_bytes: u64,
    /// Bytes of them that were not kept.
    pub output_dropped: u64,
    /// Whether processes of the job still held its output half a second after the command had ended.
    pub leaked: bool,
    /// When the command was executed, in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// When the job was over, in milliseconds since 1970; 0 when nobody knows.
    pub ended_ms: u64,
    /// How long it ran by the monotonic clock, in milliseconds.
    pub elapsed_ms: u64,
}

impl Outcome {
    /// The outcome of a job whose keeper died: nothing is known.
    pub fn lost() -> Self {
        Self {
            exit: Exit::Lost,
            code: None,
            signal: None,
            output_bytes: 0,
            output_dropped: 0,
            leaked: false,
            started_ms: None,
            ended_ms: 0,
            elapsed_ms: 0,
        }
    }

    /// The outcome of a job that was never handed to a keeper.
    pub fn never(reason: String) -> Self {
        Self {
            exit: Exit::NotStarted { reason },
            ..Self::lost()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_a_tag() {
        let json = |exit: &Exit| serde_json::to_string(exit).unwrap();
        assert_eq!(json(&Exit::Code(7)), r#"{"cause":"code","code":7}"#);
        assert_eq!(json(&Exit::TimedOut), r#"{"cause":"timed_out"}"#);
        let stopped = Exit::Stopped {
            by: "user".into(),
            reason: "asked".into(),
        };
        let text = json(&stopped);
        assert_eq!(text, r#"{"cause":"stopped","by":"user","reason":"asked"}"#);
        assert_eq!(serde_json::from_str::<Exit>(&text).unwrap(), stopped);
    }
}
