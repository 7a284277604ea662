//! A command that has ended, and what a test says about it.

use std::fmt;
use std::ops::Deref;

use serde_json::Value;

/// A command whose exit code nobody has looked at yet.
#[must_use = "say what the command should have ended with: .exits(0)"]
#[derive(Debug)]
pub struct Run(pub(crate) Ended);

/// How a command ended and what it said.
pub struct Ended {
    /// The words of the command, for messages.
    pub command: String,
    /// Exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    /// The command ended with this code, and neither stream shows a panic.
    #[track_caller]
    pub fn exits(self, code: i32) -> Ended {
        assert!(self.code == Some(code), "expected exit code {code}\n{self}");
        let panicked = [&self.stdout, &self.stderr]
            .iter()
            .any(|text| text.contains("panicked at"));
        assert!(!panicked, "it panicked\n{self}");
        self.0
    }
}

impl Deref for Run {
    type Target = Ended;

    fn deref(&self) -> &Ended {
        &self.0
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[expect(
    clippy::return_self_not_must_use,
    reason = "a check is complete without a further one"
)]
impl Ended {
    /// Standard error holds this text.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(
            self.stderr.contains(text),
            "standard error does not say {text:?}\n{self}"
        );
        self
    }

    /// Standard output holds this text.
    #[track_caller]
    pub fn prints(self, text: &str) -> Self {
        assert!(
            self.stdout.contains(text),
            "standard output does not hold {text:?}\n{self}"
        );
        self
    }

    /// The object on the last line of standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        let line = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("no JSON on the last line: {error}\n{self}"))
    }

    /// The objects on all lines of standard output.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("no JSON: {error}: {line}\n{self}"))
        };
        self.stdout.lines().map(parse).collect()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "command: {}", self.command)?;
        writeln!(f, "code: {:?}", self.code)?;
        writeln!(f, "--- stdout\n{}", self.stdout)?;
        write!(f, "--- stderr\n{}", self.stderr)
    }
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
