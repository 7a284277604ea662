//! The ends of a job's streams: pipes of the keeper's own, or what a person in front of the job brought along.
//!
//! Must never give a job a file that it could write where it should read, or cut short.

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::charge::Streams;
use super::enter;
use super::handed::Front;
use super::output::Log;
use crate::error::Fault;
use crate::spec::JobSpec;

/// The job's streams, and what of them is the keeper's.
pub(super) struct Channels {
    pub(super) streams: Streams,
    pub(super) log: Option<Log>,
    /// Where the output arrives that is kept.
    pub(super) output: Option<OwnedFd>,
    /// To the person in front of the job.
    pub(super) line: Option<OwnedFd>,
}

/// Output is taken and kept, unless somebody stands in front of the job and takes it himself.
pub(super) fn channels(job: &JobSpec, front: Option<Front>) -> Result<Channels, Fault> {
    if let Some(front) = front {
        let input = front.input.map_or_else(|| input(&[]), Ok)?;
        return Ok(Channels {
            streams: Streams {
                input,
                output: front.output,
                error: front.error,
            },
            log: None,
            output: None,
            line: Some(front.line),
        });
    }
    let log = Log::create(&job.dir, job.output_cap)
        .map_err(|error| Fault::at("make the log", &job.dir, error))?;
    let pipe = |errno| Fault::step("make the output's pipe", errno);
    let (output, theirs) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(pipe)?;
    rustix::io::ioctl_fionbio(&output, true)
        .map_err(|errno| Fault::step("make the output's pipe", errno))?;
    let error = theirs
        .try_clone()
        .map_err(|error| Fault::step("make the output's pipe", error))?;
    Ok(Channels {
        streams: Streams {
            input: input(&job.stdin)?,
            output: theirs,
            error,
        },
        log: Some(log),
        output: Some(output),
        line: None,
    })
}

/// Standard input of the job: the bytes it is given, then end of file.
fn input(bytes: &[u8]) -> Result<OwnedFd, Fault> {
    let path = if bytes.is_empty() {
        None
    } else {
        Some(enter::memory(bytes).map_err(|error| Fault::step("prepare standard input", error))?)
    };
    let name = match &path {
        None => "/dev/null".to_owned(),
        // Opened anew: the job shall not write what it reads, nor move our place in it.
        Some(file) => format!("/proc/self/fd/{}", file.as_raw_fd()),
    };
    open(
        name.as_str(),
        OFlag::O_RDONLY | OFlag::O_CLOEXEC,
        Mode::empty(),
    )
    .map_err(|errno| Fault::step("prepare standard input", errno))
}
