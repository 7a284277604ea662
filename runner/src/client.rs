//! The command line's side of the supervisor: starts it when absent, gives one order, hands on what
//! is recorded. Follows the agent's log by file while it waits, so that output needs no relay.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::event::{Event, Record};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::StateFolder;
use crate::itself;
use crate::place::Place;
use crate::supervisor::wire::{Order, Reply, Request, Then};
use crate::supervisor::{HELD, READY, SUBCOMMAND};
use crate::task::TaskId;

/// Milliseconds between two looks at a log that is being followed.
const LOOK: u16 = 20;

/// What a command wants to see while an order is carried out.
pub trait Watcher {
    /// Something was recorded.
    fn event(&mut self, record: &Record);
    /// The agent wrote something.
    fn output(&mut self, job: &str, bytes: &[u8]);
}

/// Sees nothing.
#[derive(Debug)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn event(&mut self, _record: &Record) {}
    fn output(&mut self, _job: &str, _bytes: &[u8]) {}
}

/// How an order ended.
#[derive(Debug)]
pub struct Carried {
    /// The task that it was about.
    pub task: Option<TaskId>,
    /// Whether Ctrl-C was pressed meanwhile.
    pub interrupted: bool,
    /// What was recorded of it meanwhile, oldest first.
    pub records: Vec<Record>,
}

/// Gives one order and waits for its end.
pub fn order(place: &Place, order: Order, watcher: &mut dyn Watcher) -> Result<Carried, Failure> {
    let request = Request {
        version: itself::VERSION.to_owned(),
        start: start_of(place),
        order,
    };
    // A supervisor that is about to go may take a connection and close it unread: try again.
    for _ in 0..20 {
        let stream = connect(place)?;
        if let Some(carried) = converse(place, &stream, &request, watcher)? {
            return Ok(carried);
        }
    }
    Err(
        Failure::new(Exit::Internal, "the supervisor goes away again and again")
            .advise(format!("see {}", place.folder.supervisor_log().display())),
    )
}

/// Connects to the supervisor of a state folder, starting it when there is none.
pub(crate) fn connect(place: &Place) -> Result<UnixStream, Failure> {
    for _ in 0..200 {
        if let Ok(stream) = dial(&place.folder) {
            return Ok(stream);
        }
        start(place)?;
    }
    Err(
        Failure::new(Exit::Internal, "the supervisor cannot be reached")
            .advise(format!("see {}", place.folder.supervisor_log().display())),
    )
}

/// A folder from which the same view of the repository is found again.
pub(crate) fn start_of(place: &Place) -> PathBuf {
    place
        .repository
        .checkout()
        .unwrap_or(place.repository.common_dir())
        .to_owned()
}

fn dial(folder: &StateFolder) -> io::Result<UnixStream> {
    let opened = File::open(folder.path())?;
    UnixStream::connect(format!(
        "/proc/self/fd/{}/{}",
        opened.as_raw_fd(),
        StateFolder::SOCKET
    ))
}

fn start(place: &Place) -> Result<(), Failure> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(place.folder.supervisor_log())
        .or_fail(Exit::Internal)?;
    let mut child = Command::new(itself::executable())
        .arg(SUBCOMMAND)
        .arg(place.folder.path())
        .env("AIRLOCK_STATE", place.root.path())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .or_fail(Exit::Internal)?;
    let mut said = String::new();
    let output = child.stdout.take().expect("stdout was asked to be a pipe");
    BufReader::new(output)
        .read_line(&mut said)
        .or_fail(Exit::Internal)?;
    match said.trim_end() {
        READY => Ok(()),
        HELD => {
            // Another one is coming up or going down; its lock says when it is worth a try.
            child.wait().or_fail(Exit::Internal)?;
            std::thread::yield_now();
            poll(&mut [], PollTimeout::from(5u8)).or_fail(Exit::Internal)?;
            Ok(())
        }
        other => Err(serde_json::from_str(other).unwrap_or_else(|_nonsense| {
            Failure::new(Exit::Internal, "the supervisor did not start")
                .advise(format!("see {}", place.folder.supervisor_log().display()))
        })),
    }
}

fn converse(
    place: &Place,
    stream: &UnixStream,
    request: &Request,
    watcher: &mut dyn Watcher,
) -> Result<Option<Carried>, Failure> {
    let mut line = serde_json::to_vec(request).or_fail(Exit::Internal)?;
    line.push(b'\n');
    let mut sender = stream;
    if sender.write_all(&line).is_err() {
        return Ok(None);
    }
    let mut conversation = Conversation {
        signals: interrupts().or_fail(Exit::Internal)?,
        replies: BufReader::with_capacity(1 << 16, stream),
        log: None,
        carried: Carried {
            task: None,
            interrupted: false,
            records: Vec::new(),
        },
    };
    loop {
        let Some(reply) = conversation.next(watcher)? else {
            return if conversation.carried.task.is_none() {
                Ok(None)
            } else {
                Err(died(conversation.carried.task.as_ref()))
            };
        };
        match reply {
            Reply::Taken { task } => conversation.carried.task = Some(task),
            Reply::Event { record } => {
                conversation.record(place, &record, watcher);
                conversation.carried.records.push(*record);
            }
            // Only a command of a person's own is told so, and that has its own way.
            Reply::Kept { .. } => {}
            Reply::Done => return Ok(Some(conversation.carried)),
            Reply::Failed { failure } => return Err(failure),
        }
    }
}

fn died(task: Option<&TaskId>) -> Failure {
    let id = task.map_or_else(String::new, ToString::to_string);
    Failure::new(Exit::Lost, format!("the supervisor died while it worked on task {id}"))
        .advise(format!("nothing is lost: `airlock resume {id}` takes the task up, `airlock show {id}` says where it stands"))
}

/// Ctrl-C and its relatives as readable events instead of sudden death.
pub(crate) fn interrupts() -> nix::Result<SignalFd> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block()?;
    SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

struct Conversation<'a> {
    signals: SignalFd,
    replies: BufReader<&'a UnixStream>,
    log: Option<FollowedLog>,
    carried: Carried,
}

struct FollowedLog {
    job: String,
    path: PathBuf,
    file: Option<File>,
}

impl Conversation<'_> {
    /// The next reply; none when the supervisor is gone.
    fn next(&mut self, watcher: &mut dyn Watcher) -> Result<Option<Reply>, Failure> {
        while !self.replies.buffer().contains(&b'\n') {
            if let Some(log) = &mut self.log {
                log.hand_on(watcher);
            }
            let timeout = if self.log.is_some() {
                PollTimeout::from(LOOK)
            } else {
                PollTimeout::NONE
            };
            let stream = *self.replies.get_ref();
            let mut fds = [
                PollFd::new(stream.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut fds, timeout) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => return Err(Failure::caused(Exit::Internal, &errno)),
            }
            let [replied, signalled] = fds.map(|fd| fd.any().unwrap_or(false));
            if signalled {
                self.interrupt()?;
            }
            if replied {
                break;
            }
        }
        let mut line = String::new();
        let read = self.replies.read_line(&mut line);
        if read.is_err() || line.is_empty() {
            return Ok(None);
        }
        serde_json::from_str(&line)
            .or_fail(Exit::Internal)
            .map(Some)
    }

    /// The first signal stops the task; the second one ends only this command.
    fn interrupt(&mut self) -> Result<(), Failure> {
        while let Ok(Some(_signal)) = self.signals.read_signal() {}
        if self.carried.interrupted {
            return Err(Failure::new(
                Exit::Interrupted,
                "interrupted again: left the task as it is",
            )
            .advise("`airlock ls` shows it"));
        }
        self.carried.interrupted = true;
        let stop = Then::Stop {
            by: "user".to_owned(),
            reason: "interrupted".to_owned(),
        };
        let mut line = serde_json::to_vec(&stop).or_fail(Exit::Internal)?;
        line.push(b'\n');
        let mut stream = *self.replies.get_ref();
        stream.write_all(&line).or_fail(Exit::Internal)
    }

    fn record(&mut self, place: &Place, record: &Record, watcher: &mut dyn Watcher) {
        if matches!(record.event, Event::Ended { .. })
            && let Some(mut log) = self.log.take()
        {
            log.hand_on(watcher);
        }
        watcher.event(record);
        if let Event::Started { job, .. } = &record.event {
            let path = place.folder.task(record.task.as_str()).log(job);
            self.log = Some(FollowedLog {
                job: job.clone(),
                path,
                file: None,
            });
        }
    }
}

impl FollowedLog {
    /// Whatever has been written since the last look.
    fn hand_on(&mut self, watcher: &mut dyn Watcher) {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return };
        let mut piece = vec![0; 1 << 16];
        while let Ok(bytes) = file.read(&mut piece) {
            if bytes == 0 {
                break;
            }
            watcher.output(&self.job, piece.get(..bytes).unwrap_or_default());
        }
    }
}
