//! What keeper and warden say to each other: small JSON datagrams over a socket pair that nobody else has.
//!
//! Must never grow a message that does not fit a datagram: the command travels in a file of its own.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _};

use nix::sys::socket::{MsgFlags, recv, send as send_bytes};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::launch::{Failure, Launch};

/// Longest message.
pub(crate) const LARGEST: usize = 64 << 10;

/// What the warden reads from its inherited file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WardenSpec {
    /// Stands in every report.
    pub(crate) nonce: String,
    pub(crate) launch: Launch,
    /// Whether the command is over; always false at the start.
    #[serde(skip)]
    pub(crate) over: bool,
}

/// A report with the nonce that proves its sender.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) nonce: String,
    pub(crate) report: Report,
}

/// From the warden.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The walls stand; nothing has been executed.
    Hello,
    /// Comes with the descriptor on which refused calls are told, from the command's process before it is the command.
    Telling,
    /// The command was executed.
    Started,
    NotStarted {
        failure: Failure,
    },
    Exited {
        code: i32,
    },
    Signalled {
        signal: i32,
    },
    Frozen {
        done: bool,
    },
    Thawed,
}

impl Report {
    /// How the command ended; `None` while it is only stopped.
    pub(crate) fn of(status: rustix::process::WaitStatus) -> Option<Self> {
        let exited = status.exit_status().map(|code| Self::Exited { code });
        exited.or_else(|| {
            status
                .terminating_signal()
                .map(|signal| Self::Signalled { signal })
        })
    }
}

/// To the warden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    Go,
    Terminate,
    Freeze,
    Thaw,
}

/// Sends one message; `None` when the other end is gone.
pub(crate) fn send(socket: impl AsFd, message: &impl Serialize) -> Option<()> {
    let bytes = serde_json::to_vec(message).ok()?;
    let sent = send_bytes(socket.as_fd().as_raw_fd(), &bytes, MsgFlags::MSG_NOSIGNAL).ok()?;
    (sent == bytes.len()).then_some(())
}

/// Sends one message with a descriptor; `None` when the other end is gone.
pub(crate) fn send_with(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptor: impl AsFd,
) -> Option<()> {
    let bytes = serde_json::to_vec(message).ok()?;
    let descriptors = [descriptor.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return None;
    }
    let words = [IoSlice::new(&bytes)];
    let sent = rustix::net::sendmsg(socket, &words, &mut ancillary, SendFlags::NOSIGNAL).ok()?;
    (sent == bytes.len()).then_some(())
}

/// Receives one order; `None` when the keeper is gone.
pub(crate) fn receive_order(socket: impl AsFd) -> Option<Order> {
    receive(socket)
}

fn receive<T: DeserializeOwned>(socket: impl AsFd) -> Option<T> {
    let mut buffer = vec![0; LARGEST];
    let length = recv(socket.as_fd().as_raw_fd(), &mut buffer, MsgFlags::empty()).ok()?;
    serde_json::from_slice(buffer.get(..length)?).ok()
}

/// Sixteen random bytes as text.
pub(crate) fn nonce() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if filled < bytes.len() {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}
