//! The streams of a command that is run for a person: pipes made for it. The person's own files never go into a room.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::FileType;
use rustix::pipe::PipeFlags;
use sandbox::{Ends, Line};

/// Our side of the streams.
#[derive(Debug)]
pub(super) struct Ours {
    /// Takes what the command shall read; none when there is nothing to read.
    pub(super) input: Option<OwnedFd>,
    /// Gives what it writes.
    pub(super) output: Option<OwnedFd>,
    /// Gives what it complains; none when both come together.
    pub(super) error: Option<OwnedFd>,
    /// To its keeper.
    pub(super) line: Line,
}

/// A pipe for each stream.
pub(super) fn pipes() -> io::Result<(Ends, Ours)> {
    let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
    let (output, their_output) = pipe()?;
    let (error, their_error) = pipe()?;
    let (line, their_line) = Line::pair()?;
    let (their_input, input) = if stdin_is_empty() {
        (None, None)
    } else {
        let (theirs, ours) = pipe()?;
        // A command that does not read must not keep us from seeing anything else.
        rustix::io::ioctl_fionbio(&ours, true)?;
        (Some(theirs), Some(ours))
    };
    let ends = Ends {
        input: their_input,
        output: their_output,
        error: their_error,
        line: their_line,
        terminal: false,
    };
    let ours = Ours {
        input,
        output: Some(output),
        error: Some(error),
        line,
    };
    Ok((ends, ours))
}

/// Closed, or `/dev/null`: the command gets an empty input at once, and nobody has to stand between.
fn stdin_is_empty() -> bool {
    let Ok(facts) = rustix::fs::fstat(rustix::stdio::stdin()) else {
        return true;
    };
    let null = rustix::fs::stat("/dev/null");
    let device = FileType::from_raw_mode(facts.st_mode) == FileType::CharacterDevice;
    device && null.is_ok_and(|null| null.st_rdev == facts.st_rdev)
}
