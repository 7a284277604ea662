//! A command in front of a person: its streams by pipe or by a terminal of its own, Ctrl-C on its line, its end told by
//! its keeper. Whatever becomes of the supervisor meanwhile, the two ends stay connected.

mod relay;
mod streams;
mod window;

use std::io::{self, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use sandbox::{Ends, Outcome};

use crate::client;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::itself;
use crate::place::Place;
use crate::reporter::Passing;
use crate::supervisor::wire::{Order, Request, Wish};
use crate::task::TaskId;

use relay::Relay;
pub use window::Window;

/// How a command ended.
#[derive(Debug)]
pub struct Finished {
    /// The task.
    pub task: Option<TaskId>,
    /// The job.
    pub job: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// The system's error number, when it was never executed.
    pub errno: Option<i32>,
    /// The signal that this program got meanwhile, if any.
    pub interrupted: Option<i32>,
}

/// Runs the command to its end.
pub fn run(
    place: &Place,
    wish: Wish,
    window: Option<&Window>,
    passing: &mut Passing<'_>,
) -> Result<Finished, Failure> {
    let request = Request {
        version: itself::VERSION.to_owned(),
        start: client::start_of(place),
        order: Order::Exec(wish),
    };
    let mut line = serde_json::to_vec(&request).or_fail(Exit::Internal)?;
    line.push(b'\n');
    // A supervisor that is about to go may take a connection and close it unread: try again.
    for _ in 0..20 {
        let stream = client::connect(place)?;
        let (ends, ours) = match window {
            Some(window) => window.streams().or_fail(Exit::Internal)?,
            None => streams::pipes().or_fail(Exit::Internal)?,
        };
        if send(&stream, &line, &ends).is_err() {
            continue;
        }
        drop(ends);
        let mut relay = Relay::new(&stream, ours, window, passing)?;
        if let Some(finished) = relay.run()? {
            return Ok(finished);
        }
    }
    Err(
        Failure::new(Exit::Internal, "the supervisor goes away again and again")
            .advise(format!("see {}", place.folder.supervisor_log().display())),
    )
}

/// The order, and beside it the streams in the order that [`Wish`] gives.
fn send(mut stream: &UnixStream, line: &[u8], ends: &Ends) -> io::Result<()> {
    let handed: Vec<BorrowedFd<'_>> = [
        Some(&ends.output),
        Some(&ends.error),
        Some(&ends.line),
        ends.input.as_ref(),
    ]
    .into_iter()
    .flatten()
    .map(OwnedFd::as_fd)
    .collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !beside.push(SendAncillaryMessage::ScmRights(&handed)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let words = [IoSlice::new(line)];
    let sent = rustix::net::sendmsg(stream, &words, &mut beside, SendFlags::NOSIGNAL)?;
    stream.write_all(line.get(sent..).unwrap_or_default())
}
