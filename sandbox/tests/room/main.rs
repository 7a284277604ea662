//! Tests of the room with the real bubblewrap. They fail where it is missing; none is skipped.
//!
//! The room starts this very program again for its hidden roles, so `main` is ours and not the test harness's.
//! Run them as root and as an ordinary user: both must hold.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test binary: it is the harness, so that the lints do not see it as one"
)]

mod judge;
mod keep;
mod place;
mod runner;
mod told;
mod view;
mod walls;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(code) = sandbox::hidden(&args) {
        return code;
    }
    if let Some(code) = keep::other_half(&args).or_else(|| judge::other_half(&args)) {
        return code;
    }
    runner::run(
        &[
            view::TESTS,
            walls::TESTS,
            keep::TESTS,
            place::TESTS,
            judge::TESTS,
            told::TESTS,
        ],
        &args,
    )
}
