//! One connection of the relay: a client in the room, the proxy's socket, and a buffer for each direction.
//!
//! The end of one direction is passed on as the end of that direction only. Must never block.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::FOLDER;
use crate::egress::SOCKET;

/// Bytes under way in one direction.
const BUFFER: usize = 16 << 10;
/// How long a client waits for a proxy that is not there.
const PATIENCE: Duration = Duration::from_mins(10);

/// A client and its way to the proxy.
#[derive(Debug)]
pub(super) struct Link {
    client: TcpStream,
    proxy: Option<UnixStream>,
    since: Instant,
    up: Flow,
    down: Flow,
}

/// One direction.
#[derive(Debug)]
struct Flow {
    buffer: Vec<u8>,
    start: usize,
    /// Nothing more will be read.
    read: bool,
    /// Nothing more will be written.
    written: bool,
}

impl Flow {
    fn new(first: &[u8]) -> Self {
        let mut buffer = Vec::with_capacity(BUFFER);
        buffer.extend_from_slice(first);
        Self {
            buffer,
            start: 0,
            read: false,
            written: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.start == self.buffer.len()
    }

    /// Moves what can be moved now. `end` passes the end on.
    fn go_on(&mut self, mut from: impl Read, mut to: impl Write, end: impl FnOnce()) {
        while !self.written {
            if !self.is_empty() {
                match to.write(self.buffer.get(self.start..).unwrap_or_default()) {
                    Ok(count) => self.start += count,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                    Err(_) => return self.give_up(),
                }
            } else if self.read {
                end();
                return self.give_up();
            } else {
                self.buffer.resize(BUFFER, 0);
                self.start = 0;
                let count = from.read(&mut self.buffer);
                self.buffer.truncate(*count.as_ref().unwrap_or(&0));
                match count {
                    Ok(0) => self.read = true,
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                    // What was reset has ended as well.
                    Err(_) => self.read = true,
                }
            }
        }
    }

    fn give_up(&mut self) {
        (self.read, self.written) = (true, true);
        self.start = self.buffer.len();
    }

    fn wants_to_read(&self) -> bool {
        !self.read && self.is_empty()
    }
}

impl Link {
    /// Takes a client in. `None`: it cannot be served.
    pub(super) fn new(client: TcpStream, preamble: &[u8]) -> Option<Self> {
        client.set_nonblocking(true).ok()?;
        client.set_nodelay(true).ok()?;
        Some(Self {
            client,
            proxy: connect(),
            since: Instant::now(),
            up: Flow::new(preamble),
            down: Flow::new(&[]),
        })
    }

    /// Whether the proxy is not there yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.proxy.is_none()
    }

    /// What has to happen before there is something to do.
    pub(super) fn interests(&self) -> Vec<PollFd<'_>> {
        let Some(proxy) = &self.proxy else {
            // A client that goes away while it waits is seen by its end.
            return Vec::new();
        };
        let flags = |reads: bool, writes: bool| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::POLLIN, reads);
            flags.set(PollFlags::POLLOUT, writes);
            flags
        };
        let of_client = flags(self.up.wants_to_read(), !self.down.is_empty());
        let of_proxy = flags(self.down.wants_to_read(), !self.up.is_empty());
        let both = [
            PollFd::new(self.client.as_fd(), of_client),
            PollFd::new(proxy.as_fd(), of_proxy),
        ];
        // What nothing is wanted of is left out: its end would be reported again and again.
        both.into_iter()
            .filter(|end| !end.events().is_empty())
            .collect()
    }

    /// Moves what can be moved now. `None`: the connection is over.
    pub(super) fn go_on(&mut self) -> Option<()> {
        if self.proxy.is_none() {
            self.proxy = connect();
        }
        let Some(proxy) = &self.proxy else {
            return (self.since.elapsed() < PATIENCE && !self.has_left()).then_some(());
        };
        self.up.go_on(&self.client, proxy, || {
            // It may be gone already.
            drop(proxy.shutdown(Shutdown::Write));
        });
        self.down.go_on(proxy, &self.client, || {
            drop(self.client.shutdown(Shutdown::Write));
        });
        (!(self.up.written && self.down.written)).then_some(())
    }

    /// Whether the client has gone while it waited.
    fn has_left(&self) -> bool {
        let mut byte = [0];
        match self.client.peek(&mut byte) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }
}

/// The proxy's socket, without waiting: a full queue is no better than no proxy.
fn connect() -> Option<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
    let address = SocketAddrUnix::new(format!("{FOLDER}/{SOCKET}")).ok()?;
    rustix::net::connect(&socket, &address).ok()?;
    Some(UnixStream::from(socket))
}
