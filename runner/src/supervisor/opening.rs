//! The first line of a connection, and the descriptors that come beside it.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// A prompt may be long; what is longer than this is none of ours.
const LONGEST: usize = 64 << 20;

/// Most descriptors beside a line.
const MOST: usize = 4;

/// What a caller began with.
#[derive(Debug, Default)]
pub(super) struct Opening {
    /// The line, without its end.
    pub(super) line: Vec<u8>,
    /// What was read beyond it.
    pub(super) rest: Vec<u8>,
    /// What came beside it.
    pub(super) descriptors: Vec<OwnedFd>,
}

/// Reads up to the end of the first line. None when there is no line.
pub(super) async fn read(stream: &UnixStream) -> Option<Opening> {
    let mut opening = Opening::default();
    loop {
        stream.readable().await.ok()?;
        match stream.try_io(Interest::READABLE, || piece(stream, &mut opening)) {
            Ok(0) => return None,
            Ok(count) if ended(&mut opening, count) => return Some(opening),
            Ok(_) if opening.line.len() > LONGEST => return None,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

/// Cuts the line where it ends, if that is within the last `count` bytes.
fn ended(opening: &mut Opening, count: usize) -> bool {
    let seen = opening.line.len() - count;
    let fresh = opening.line.get(seen..).unwrap_or_default();
    let Some(end) = fresh.iter().position(|byte| *byte == b'\n') else {
        return false;
    };
    opening.rest = opening.line.split_off(seen + end + 1);
    opening.line.pop();
    true
}

fn piece(stream: &UnixStream, opening: &mut Opening) -> io::Result<usize> {
    let mut buffer = vec![0; 16 << 10];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut words = [IoSliceMut::new(&mut buffer)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let got = rustix::net::recvmsg(stream.as_fd(), &mut words, &mut beside, flags)?;
    for extra in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(handed) = extra {
            opening.descriptors.extend(handed);
        }
    }
    opening
        .line
        .extend_from_slice(buffer.get(..got.bytes).unwrap_or_default());
    Ok(got.bytes)
}
