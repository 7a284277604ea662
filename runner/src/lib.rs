//! The `airlock` binary: command line, configuration, task lifecycle and supervisor.

use std::process::ExitCode;

/// Runs the command line that this process was started with.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
