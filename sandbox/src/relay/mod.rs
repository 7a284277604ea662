//! The relay: a process in the room's network namespace that takes connections on loopback and pipes each one to the
//! proxy's socket. It knows no protocol: a door that stands for one host says so in a line, all else are the client's bytes.
//!
//! It is no process of any job: it lives outside their pid namespaces, has no privilege, and ends with the holder.
//! Must never decide anything, and must never hold more than its buffers.

mod link;

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};

use self::link::Link;
use crate::egress::{Door, Policy};
use crate::error::Fault;
use crate::sys;

/// Where the room shows the folder of the proxy's socket.
pub(crate) const FOLDER: &str = "/run/airlock/proxy";
/// Connections at one time; further ones wait in the kernel's queue.
const MOST: usize = 256;
/// Between two tries to reach a proxy that is not there: a supervisor that was killed comes back with the next command.
const AGAIN: Duration = Duration::from_millis(100);

/// A listening socket that the relay inherits, and what it says of each connection.
#[derive(Debug, Serialize, Deserialize)]
struct Entrance {
    socket: i32,
    preamble: Vec<u8>,
}

/// The relay, seen by the holder: it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Relay(Child);

impl Relay {
    /// Listens at every door of the policy, while this process may still take ports below 1024, and starts the relay.
    pub(crate) fn start(task: &str, policy: &Policy) -> Result<Self, Fault> {
        let fault = |doing: &'static str| move |error: std::io::Error| Fault::step(doing, error);
        let mut listeners = Vec::new();
        let mut entrances = Vec::new();
        for door in Door::all(policy) {
            let listener = TcpListener::bind((door.address, door.port))
                .map_err(fault("listen in the room's network"))?;
            listener
                .set_nonblocking(true)
                .and_then(|()| Ok(fcntl(&listener, FcntlArg::F_SETFD(FdFlag::empty()))?))
                .map_err(fault("hand a socket to the relay"))?;
            entrances.push(Entrance {
                socket: listener.as_raw_fd(),
                preamble: door.preamble(),
            });
            listeners.push(listener);
        }
        let mut spec = serde_json::to_vec(&entrances)
            .map_err(|error| Fault::step("write the relay's spec", std::io::Error::from(error)))?;
        spec.push(b'\n');
        let mut child = Command::new("/proc/self/exe")
            .arg0(format!("airlock __relay {task}"))
            .arg("__relay")
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(fault("start the relay"))?;
        if let Some(input) = &mut child.stdin {
            input.write_all(&spec).map_err(fault("start the relay"))?;
        }
        Ok(Self(child))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It ends by itself then; what cannot be taken in has been.
        drop(self.0.wait());
    }
}

pub(crate) fn main(_words: &[OsString]) -> ExitCode {
    match serve() {
        Some(()) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    }
}

/// Until the holder's end of standard input closes.
fn serve() -> Option<()> {
    nix::sys::prctl::set_dumpable(false).ok()?;
    let mut line = String::new();
    let input = std::io::stdin();
    BufReader::new(input.lock()).read_line(&mut line).ok()?;
    let mut doors = Vec::new();
    for Entrance { socket, preamble } in serde_json::from_str::<Vec<Entrance>>(&line).ok()? {
        let listener = TcpListener::from(sys::inherited(socket).ok()?);
        doors.push((listener, preamble));
    }
    sys::close_on_exec_from(3).ok()?;
    let mut links: Vec<Link> = Vec::new();
    loop {
        let open = links.len() < MOST;
        let waiting = links.iter().any(Link::is_waiting);
        let mut ends = vec![PollFd::new(input.as_fd(), PollFlags::empty())];
        if open {
            ends.extend(
                doors
                    .iter()
                    .map(|(door, _)| PollFd::new(door.as_fd(), PollFlags::POLLIN)),
            );
        }
        for link in &links {
            ends.extend(link.interests());
        }
        let timeout = if waiting {
            PollTimeout::try_from(AGAIN).ok()?
        } else {
            PollTimeout::NONE
        };
        match poll(&mut ends, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return None,
        }
        if ends.first().is_some_and(|end| end.any() == Some(true)) {
            return Some(());
        }
        if open {
            accept(&doors, &mut links);
        }
        links.retain_mut(|link| link.go_on().is_some());
    }
}

fn accept(doors: &[(TcpListener, Vec<u8>)], links: &mut Vec<Link>) {
    for (door, preamble) in doors {
        while links.len() < MOST {
            // Nobody is there any more, or a client went away while it waited.
            let Ok((client, _address)) = door.accept() else {
                break;
            };
            links.extend(Link::new(client, preamble));
        }
    }
}
