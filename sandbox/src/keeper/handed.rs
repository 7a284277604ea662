//! What the keeper is handed on standard input: its spec, and the descriptors of a foreground job beside it.
//!
//! Must never pass on to a job what is neither a pipe nor a terminal: a file of the host could be opened anew by it.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::FileType;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use super::Foreground;
use crate::error::Fault;

/// Streams and line of a foreground job.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) input: Option<OwnedFd>,
    pub(crate) output: OwnedFd,
    pub(crate) error: OwnedFd,
    pub(crate) line: OwnedFd,
}

/// Most descriptors that can come.
const MOST: usize = 4;

/// Reads the socket to its end.
pub(super) fn receive(socket: impl AsFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let (mut text, mut descriptors) = (Vec::new(), Vec::new());
    let mut buffer = vec![0; 16 << 10];
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut words = [IoSliceMut::new(&mut buffer)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got = match rustix::net::recvmsg(&socket, &mut words, &mut ancillary, flags) {
            Ok(got) => got,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        for extra in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(handed) = extra {
                descriptors.extend(handed);
            }
        }
        if got.bytes == 0 {
            return Ok((text, descriptors));
        }
        text.extend_from_slice(buffer.get(..got.bytes).unwrap_or_default());
    }
}

/// Takes the descriptors for what they are.
pub(super) fn front(
    foreground: Option<Foreground>,
    descriptors: Vec<OwnedFd>,
) -> Result<Option<Front>, Fault> {
    let Some(Foreground { input, terminal }) = foreground else {
        return Ok(None);
    };
    let mut descriptors = descriptors.into_iter();
    let mut next = || {
        let absent = || Fault::step("take the streams of the job", nix::errno::Errno::EBADF);
        descriptors.next().ok_or_else(absent)
    };
    let (output, error, line) = (next()?, next()?, next()?);
    let input = input.then(next).transpose()?;
    for stream in [Some(&output), Some(&error), input.as_ref()]
        .into_iter()
        .flatten()
    {
        fitting(stream, terminal)?;
    }
    Ok(Some(Front {
        input,
        output,
        error,
        line,
    }))
}

fn fitting(stream: &OwnedFd, terminal: bool) -> Result<(), Fault> {
    let doing = "take a stream of the job";
    let facts = rustix::fs::fstat(stream).map_err(|error| Fault::step(doing, error))?;
    let fits = if terminal {
        rustix::termios::isatty(stream)
    } else {
        FileType::from_raw_mode(facts.st_mode) == FileType::Fifo
    };
    if fits {
        Ok(())
    } else {
        Err(Fault::step(doing, nix::errno::Errno::EINVAL))
    }
}
