//! The exit codes that scripts may rely on, and the one form in which a failure reaches a person.
//! Each kind has one code; nothing else in the program picks a number.

use std::error::Error as StdError;
use std::fmt;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

/// Why the program ends, as its documented exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Exit {
    /// Accepted, landed, or simply done.
    Ok = 0,
    /// The engine itself could not do its work.
    Internal = 1,
    /// Bad usage or configuration.
    Usage = 2,
    /// No such task, commit or evidence.
    NotFound = 3,
    /// Locked, running, dirty target, too many.
    Conflict = 4,
    /// A gate refused the delivery.
    GateFailed = 10,
    /// Nothing was delivered.
    Empty = 11,
    /// The delivery does not merge into its target.
    MergeConflict = 12,
    /// Evidence that does not hold.
    EvidenceInvalid = 13,
    /// A gate could not be checked; never a pass.
    CouldNotCheck = 14,
    /// The agent ended with a code of its own, or by a signal, or never started.
    AgentFailed = 20,
    /// The wall time ran out.
    Timeout = 21,
    /// The agent did nothing for too long.
    IdleTimeout = 22,
    /// A limit was passed.
    OverLimit = 23,
    /// The setup of the configuration failed; nothing of the agent was run.
    SetupFailed = 24,
    /// The room cannot be had on this host.
    SandboxUnavailable = 30,
    /// The process that owned the task died.
    Lost = 31,
    /// Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// The number given to the system.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// What the program ends with: a code of ours, or the one of a command that was run for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(u8);

impl Status {
    /// The code of a command of the person's own.
    pub fn of_command(code: u8) -> Self {
        Self(code)
    }

    /// The number given to the system.
    pub fn code(self) -> u8 {
        self.0
    }
}

impl From<Exit> for Status {
    fn from(exit: Exit) -> Self {
        Self(exit.code())
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.0)
    }
}

/// What went wrong, in the form that is printed and sent from the supervisor to the command line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Failure {
    /// The exit code of the command that fails with it.
    pub exit: Exit,
    /// What could not be done, and on what.
    pub what: String,
    /// The causes, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Failure {
    /// A failure without a deeper cause.
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            exit,
            what: what.into(),
            causes: Vec::new(),
            next: None,
        }
    }

    /// Bad usage or configuration.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// An error with its chain of causes.
    pub fn caused(exit: Exit, error: &(dyn StdError + 'static)) -> Self {
        let mut causes = Vec::new();
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        Self {
            exit,
            what: error.to_string(),
            causes,
            next: None,
        }
    }

    /// The same failure with advice.
    #[must_use]
    pub fn advise(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        for cause in &self.causes {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl StdError for Failure {}

/// Pairs an error with its exit code where it leaves the engine.
pub trait OrFail<T> {
    /// Turns the error into a [`Failure`] with this exit code.
    fn or_fail(self, exit: Exit) -> Result<T, Failure>;
}

impl<T, E: StdError + 'static> OrFail<T> for Result<T, E> {
    fn or_fail(self, exit: Exit) -> Result<T, Failure> {
        self.map_err(|error| Failure::caused(exit, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_that_scripts_rely_on() {
        let table = [
            (Exit::Ok, 0),
            (Exit::Internal, 1),
            (Exit::Usage, 2),
            (Exit::NotFound, 3),
            (Exit::Conflict, 4),
            (Exit::GateFailed, 10),
            (Exit::Empty, 11),
            (Exit::MergeConflict, 12),
            (Exit::EvidenceInvalid, 13),
            (Exit::CouldNotCheck, 14),
            (Exit::AgentFailed, 20),
            (Exit::Timeout, 21),
            (Exit::IdleTimeout, 22),
            (Exit::OverLimit, 23),
            (Exit::SetupFailed, 24),
            (Exit::SandboxUnavailable, 30),
            (Exit::Lost, 31),
            (Exit::Interrupted, 130),
        ];
        for (exit, number) in table {
            assert_eq!(exit.code(), number, "{exit:?}");
        }
    }

    #[test]
    fn a_failure_tells_its_causes_once_and_in_order() {
        let cause = std::io::Error::from(std::io::ErrorKind::NotFound);
        let error = crate::durable::WriteError {
            path: "/x".into(),
            source: cause,
        };
        let failure = Failure::caused(Exit::Internal, &error).advise("look");
        assert_eq!(failure.to_string(), "cannot write /x: entity not found");
        let sent = serde_json::to_string(&failure).unwrap();
        let back: Failure = serde_json::from_str(&sent).unwrap();
        assert_eq!(
            (back.exit, back.next.as_deref()),
            (Exit::Internal, Some("look"))
        );
    }
}
