//! The keeper's control socket: orders from the supervisor while the job runs, one datagram each way.
//!
//! Must never obey anybody but root and the keeper's own user. The socket stands in the lock folder, which no room sees.

use std::ffi::OsStr;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const LARGEST: usize = 64 << 10;

/// What a job can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// TERM to everybody, after the grace KILL.
    Stop {
        /// Who asks.
        by: String,
        /// What for.
        reason: String,
        /// Milliseconds between TERM and KILL.
        grace_ms: u64,
    },
    /// Stops every process; answered when nobody moves any more.
    Freeze,
    /// Lets them go on.
    Thaw,
}

/// The keeper's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Done,
    Refused {
        reason: String,
    },
    /// The command is over already.
    Over,
}

/// An address that is short enough wherever the lock folder is, and what keeps it valid.
fn address(locks: &Path, name: &str) -> io::Result<(SocketAddrUnix, OwnedFd)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(locks, flags, Mode::empty())?;
    let path =
        PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(OsStr::new(name));
    Ok((SocketAddrUnix::new(&path)?, folder))
}

pub(crate) fn connect(locks: &Path, name: &str) -> io::Result<OwnedFd> {
    let (address, _folder) = address(locks, name)?;
    let socket = socket(SocketFlags::CLOEXEC)?;
    rustix::net::connect(&socket, &address)?;
    Ok(socket)
}

fn socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        flags,
        None,
    )?)
}

/// Sends an order and waits for the answer.
pub(crate) fn exchange(socket: &OwnedFd, order: &Order) -> io::Result<Reply> {
    send(socket, order)?;
    receive(socket)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Sends one message as one datagram.
pub(crate) fn send(socket: impl AsFd, message: &impl Serialize) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let mut nothing = SendAncillaryBuffer::default();
    let words = [IoSlice::new(&bytes)];
    rustix::net::sendmsg(socket, &words, &mut nothing, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one message; `None` when the other end is closed.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<T>> {
    receive_with(socket, RecvFlags::empty())
}

/// The same without waiting: nothing there is an error of the kind `WouldBlock`.
pub(crate) fn receive_now<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<T>> {
    receive_with(socket, RecvFlags::DONTWAIT)
}

fn receive_with<T: DeserializeOwned>(socket: impl AsFd, flags: RecvFlags) -> io::Result<Option<T>> {
    let mut buffer = vec![0; LARGEST];
    let mut nothing = RecvAncillaryBuffer::default();
    let mut words = [IoSliceMut::new(&mut buffer)];
    let got = rustix::net::recvmsg(socket, &mut words, &mut nothing, flags)?;
    if got.bytes == 0 {
        return Ok(None);
    }
    let text = buffer.get(..got.bytes).unwrap_or_default();
    Ok(Some(serde_json::from_slice(text)?))
}

/// The listening end and whoever is connected.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) listener: OwnedFd,
    pub(crate) clients: Vec<Client>,
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) socket: OwnedFd,
    /// Its order was given and is not done yet.
    pub(crate) waits: bool,
}

impl Server {
    pub(crate) fn listen(locks: &Path, name: &str) -> io::Result<Self> {
        let path = locks.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let (address, _folder) = address(locks, name)?;
        let listener = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        rustix::net::bind(&listener, &address)?;
        rustix::fs::chmod(&path, Mode::RUSR | Mode::WUSR)?;
        rustix::net::listen(&listener, 16)?;
        Ok(Self {
            listener,
            clients: Vec::new(),
        })
    }

    /// Lets in whoever waits and may.
    pub(crate) fn admit(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(socket) = rustix::net::accept_with(&self.listener, flags) {
            let me = rustix::process::geteuid();
            let may = rustix::net::sockopt::socket_peercred(&socket)
                .is_ok_and(|peer| peer.uid.is_root() || peer.uid == me);
            if may {
                self.clients.push(Client {
                    socket,
                    waits: false,
                });
            }
        }
    }

    /// The order of the client at `index`; a client that says nothing sensible is dropped.
    pub(crate) fn order(&mut self, index: usize) -> Option<Order> {
        let socket = &self.clients.get(index)?.socket;
        let order = receive(socket).ok().flatten();
        if order.is_none() {
            drop(self.clients.remove(index));
        }
        order
    }

    /// Answers the client at `index` and parts from it.
    pub(crate) fn reply(&mut self, index: usize, reply: &Reply) {
        if index < self.clients.len() {
            let client = self.clients.remove(index);
            // A client that went away does not want the answer.
            drop(send(&client.socket, reply));
        }
    }

    /// Answers everybody whose order was not done yet.
    pub(crate) fn reply_all_waiting(&mut self, reply: &Reply) {
        let (waiting, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.clients)
            .into_iter()
            .partition(|client| client.waits);
        self.clients = rest;
        for client in waiting {
            drop(send(&client.socket, reply));
        }
    }
}
