//! The room of a task, seen by the supervisor: open it, start jobs in it, close it.
//!
//! Must never fork: helpers are our own program, spawned anew, with what they need on standard input.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::attach::Keeper;
use crate::error::{Fault, RoomError};
use crate::foreground::Ends;
use crate::holder::{self, HolderAnswer, HolderSpec};
use crate::identity::Identity;
use crate::keeper::{Foreground, KeeperAnswer, KeeperSpec};
use crate::lock::HeldLock;
use crate::spec::{JobSpec, RoomSpec};
use crate::{bwrap, cgroup, control, durable, wire};

/// Longest name of a task and a job together: their socket's address must fit 108 bytes.
const LONGEST: usize = 72;

/// What a keeper needs to bring a job into the room.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entrance {
    pub(crate) holder: Identity,
    pub(crate) account: Account,
    #[serde(with = "wire::path")]
    pub(crate) bwrap: PathBuf,
    pub(crate) own_network: bool,
    /// Paths in the room that jobs may write.
    #[serde(with = "wire::paths")]
    pub(crate) writable: Vec<PathBuf>,
}

/// An open room. Dropped or closed, its holder ends; jobs that run in it go on until they end.
#[derive(Debug)]
pub struct Room {
    task: String,
    locks: PathBuf,
    entrance: Entrance,
    /// The supervisor's end of the pipe that keeps the holder waiting.
    pipe: Option<File>,
    /// The holder, when this process started it.
    child: Option<Child>,
}

impl Room {
    /// Opens the room: builds all of its walls but those that each job has of its own.
    pub fn open(spec: &RoomSpec) -> Result<Self, RoomError> {
        usable("task", &spec.task, LONGEST)?;
        let _door = door(&spec.locks, &spec.task)?;
        Self::build(spec)
    }

    /// Joins the room of the task when it is open, else opens it.
    pub fn enter(spec: &RoomSpec) -> Result<Self, RoomError> {
        usable("task", &spec.task, LONGEST)?;
        if let Some(open) = Self::take_up(&spec.locks, &spec.task)? {
            return Ok(open);
        }
        let _door = door(&spec.locks, &spec.task)?;
        if let Some(open) = Self::take_up(&spec.locks, &spec.task)? {
            return Ok(open);
        }
        // A holder that was let go ends in a moment; the next one needs its lock.
        let lock = spec
            .locks
            .join(holder::file_name(&spec.task, "holder.lock"));
        drop(
            HeldLock::acquire(&lock)
                .map_err(|error| build("lock the room", &lock, error.source))?,
        );
        Self::build(spec)
    }

    /// With the door shut.
    fn build(spec: &RoomSpec) -> Result<Self, RoomError> {
        let bwrap = bwrap::find_bwrap()?;
        let account = Account::choose(spec.repo_owner, &spec.task)?;
        let pipe = make_pipe(spec)?;
        let holder = HolderSpec {
            room: spec.clone(),
            account,
        };
        let (mut child, answer) = ask::<HolderAnswer>("__holder", &holder, &[], &spec.task)?;
        let writable = match answer {
            Some(HolderAnswer::Ready { writable }) => writable,
            Some(HolderAnswer::Failed(fault)) => {
                return Err(given_up(spec, &mut child, Some(fault)));
            }
            None => return Err(given_up(spec, &mut child, None)),
        };
        let identity = Identity::of(child.id());
        let mut room = Self {
            task: spec.task.clone(),
            locks: spec.locks.clone(),
            entrance: Entrance {
                holder: identity
                    .map_err(|error| build("look at the holder", &spec.locks, error))?,
                account,
                bwrap,
                own_network: spec.net.is_own(),
                writable,
            },
            pipe: Some(pipe),
            child: Some(child),
        };
        if let Err(error) = room.record() {
            room.end_behind_door();
            return Err(error);
        }
        // Now that the holder reads: a pipe of our own that only writes.
        match open_pipe(&room.locks, &room.task) {
            Ok(pipe) => room.pipe = Some(pipe),
            Err(error) => {
                room.end_behind_door();
                return Err(error);
            }
        }
        Ok(room)
    }

    /// Takes up the room of a task whose supervisor died while jobs kept it open. `None` when there is none.
    pub fn take_up(locks: &Path, task: &str) -> Result<Option<Self>, RoomError> {
        let path = locks.join(holder::file_name(task, "holder.json"));
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(build("read the room's record", &path, error)),
        };
        let entrance: Entrance = serde_json::from_slice(&text)
            .map_err(|error| build("read the room's record", &path, error.into()))?;
        if entrance.holder.open().is_none() {
            return Ok(None);
        }
        let Ok(pipe) = open_pipe(locks, task) else {
            return Ok(None);
        };
        Ok(Some(Self {
            task: task.to_owned(),
            locks: locks.to_owned(),
            entrance,
            pipe: Some(pipe),
            child: None,
        }))
    }

    /// Whether it was opened through this handle, and not joined.
    pub fn is_opened_here(&self) -> bool {
        self.child.is_some()
    }

    /// Starts a job. Comes back when all walls stand around it and it is kept, or with what stood in the way.
    pub fn start(&self, job: &JobSpec) -> Result<Keeper, RoomError> {
        let entrance = Some(self.entrance.clone());
        start_kept(&self.locks, &self.task, job, entrance, None)
    }

    /// Starts a job with somebody in front of it, who gets its output and is told how it goes.
    pub fn start_in_front(&self, job: &JobSpec, ends: &Ends) -> Result<Keeper, RoomError> {
        let entrance = Some(self.entrance.clone());
        start_kept(&self.locks, &self.task, job, entrance, Some(ends))
    }

    /// Ends the holder and waits until it is gone. Jobs that still run keep their walls; no new one can be started.
    pub fn close(mut self) {
        self.end();
    }

    /// Lets go without ending it: the room lives on as long as a job does. Whoever opened it comes back when it is
    /// closed, and nothing of it is left then.
    pub fn leave(mut self) {
        // Without its pipe there is nothing that `Drop` would end.
        self.pipe = None;
        let Some(child) = &mut self.child else { return };
        reap(child);
        if let Ok(_door) = door(&self.locks, &self.task)
            && self.is_recorded()
        {
            tidy(&self.locks, &self.task);
        }
    }

    /// Whether the files in the lock folder are this room's, and not those of one that was opened after it.
    fn is_recorded(&self) -> bool {
        let path = self
            .locks
            .join(holder::file_name(&self.task, "holder.json"));
        let entrance = std::fs::read(path).ok();
        let entrance: Option<Entrance> =
            entrance.and_then(|text| serde_json::from_slice(&text).ok());
        entrance.is_some_and(|entrance| entrance.holder == self.entrance.holder)
    }

    fn record(&self) -> Result<(), RoomError> {
        let path = self
            .locks
            .join(holder::file_name(&self.task, "holder.json"));
        let text = serde_json::to_vec(&self.entrance)
            .map_err(|error| build("write the room's record", &path, error.into()))?;
        durable::replace(&path, &text)
            .map_err(|error| build("write the room's record", &path, error))
    }

    fn end(&mut self) {
        if self.pipe.is_some() {
            // Without the lock folder there are no files either.
            let _door = door(&self.locks, &self.task).ok();
            self.end_behind_door();
        }
    }

    /// With the door shut.
    fn end_behind_door(&mut self) {
        self.pipe = None;
        let pidfd = self.entrance.holder.open();
        self.entrance.holder.kill();
        if let Some(pidfd) = pidfd {
            wait_for_end(&pidfd);
        }
        if let Some(child) = &mut self.child {
            reap(child);
        }
        tidy(&self.locks, &self.task);
        // Of keepers that were killed; those that live take their own away.
        if !control::runs(&self.locks, &self.task) {
            cgroup::sweep(&self.locks, &self.task);
        }
    }
}

/// Shut while a room is opened or its files are removed: one at a time.
#[derive(Debug)]
struct Door(Option<HeldLock>);

fn door(locks: &Path, task: &str) -> Result<Door, RoomError> {
    let path = locks.join(holder::file_name(task, "door"));
    std::fs::create_dir_all(locks).map_err(|error| build("make the lock folder", locks, error))?;
    HeldLock::acquire(&path)
        .map(|lock| Door(Some(lock)))
        .map_err(|error| build("shut the room's door", &path, error.source))
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Some(lock) = self.0.take() {
            // Whoever waits for it makes a new one.
            drop(lock.remove());
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.end();
    }
}

/// Takes in a holder that did not make it, and removes what it would have used.
fn given_up(spec: &RoomSpec, child: &mut Child, fault: Option<Fault>) -> RoomError {
    reap(child);
    if !matches!(fault, Some(Fault::Busy { .. })) {
        tidy(&spec.locks, &spec.task);
    }
    let silent = || RoomError::Silent {
        role: "holder",
        task: spec.task.clone(),
    };
    fault.map_or_else(silent, |fault| fault.into_error(&spec.task))
}

/// Removes the files of a room whose holder is gone.
fn tidy(locks: &Path, task: &str) {
    for what in ["holder.json", "room"] {
        // What cannot be removed names a holder that is proven dead.
        drop(std::fs::remove_file(
            locks.join(holder::file_name(task, what)),
        ));
    }
    let lock = locks.join(holder::file_name(task, "holder.lock"));
    if let Ok(Some(lock)) = HeldLock::try_acquire(&lock) {
        drop(lock.remove());
    }
}

/// Starts a job without a room: no walls, but a keeper that sees it through.
pub fn start_unconfined(locks: &Path, task: &str, job: &JobSpec) -> Result<Keeper, RoomError> {
    usable("task", task, LONGEST)?;
    start_kept(locks, task, job, None, None)
}

fn start_kept(
    locks: &Path,
    task: &str,
    job: &JobSpec,
    entrance: Option<Entrance>,
    ends: Option<&Ends>,
) -> Result<Keeper, RoomError> {
    usable("job", &job.job, LONGEST.saturating_sub(task.len()))?;
    let spec = KeeperSpec {
        task: task.to_owned(),
        locks: locks.to_owned(),
        job: job.clone(),
        entrance,
        foreground: ends.map(|ends| Foreground {
            input: ends.input.is_some(),
            terminal: ends.terminal,
        }),
    };
    let handed: Vec<BorrowedFd<'_>> = ends
        .iter()
        .flat_map(|ends| {
            [
                Some(&ends.output),
                Some(&ends.error),
                Some(&ends.line),
                ends.input.as_ref(),
            ]
        })
        .flatten()
        .map(OwnedFd::as_fd)
        .collect();
    let (mut child, answer) = ask::<KeeperAnswer>("__keeper", &spec, &handed, task)?;
    match answer {
        Some(KeeperAnswer::Kept) => Ok(Keeper::of_child(child, locks, task, job)),
        Some(KeeperAnswer::Failed(fault)) => {
            reap(&mut child);
            Err(fault.into_error(task))
        }
        None => {
            reap(&mut child);
            Err(RoomError::Silent {
                role: "keeper",
                task: task.to_owned(),
            })
        }
    }
}

/// Names become file names and a socket's address.
fn usable(what: &'static str, name: &str, longest: usize) -> Result<(), RoomError> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || name.starts_with('.') || name.len() > longest || !name.bytes().all(good) {
        return Err(RoomError::Name {
            what,
            name: name.to_owned(),
        });
    }
    Ok(())
}

/// Spawns a helper, gives it its spec and descriptors beside it, and reads its one answer.
fn ask<Answer: DeserializeOwned>(
    role: &str,
    spec: &impl Serialize,
    handed: &[BorrowedFd<'_>],
    task: &str,
) -> Result<(Child, Option<Answer>), RoomError> {
    let fault = |doing: &str| {
        let doing = doing.to_owned();
        move |source| RoomError::Build {
            doing,
            path: None,
            source,
        }
    };
    let text = serde_json::to_vec(spec).map_err(|error| fault("write a spec")(error.into()))?;
    let (ours, theirs) = UnixStream::pair().map_err(fault("make a socket"))?;
    let mut child = Command::new("/proc/self/exe")
        .arg0(format!("airlock {role} {task}"))
        .arg(role)
        .env_clear()
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(fault("start a helper process"))?;
    // A helper that does not read any more has an answer why, or none.
    drop(hand_over(ours, &text, handed));
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        drop(BufReader::new(output).read_line(&mut line));
    }
    Ok((child, serde_json::from_str(&line).ok()))
}

fn hand_over(mut socket: UnixStream, text: &[u8], handed: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !handed.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(handed)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let words = [IoSlice::new(text)];
    let sent = rustix::net::sendmsg(&socket, &words, &mut beside, SendFlags::NOSIGNAL)?;
    socket.write_all(text.get(sent..).unwrap_or_default())
}

fn reap(child: &mut Child) {
    // Fails where the end of children is ignored: the kernel has taken it in then.
    drop(child.wait());
}

/// Makes the task's pipe anew and opens both of its ends, so that neither side finds it closed while the holder starts.
fn make_pipe(spec: &RoomSpec) -> Result<File, RoomError> {
    let lock = spec
        .locks
        .join(holder::file_name(&spec.task, "holder.lock"));
    let path = spec.locks.join(holder::file_name(&spec.task, "room"));
    std::fs::create_dir_all(&spec.locks)
        .map_err(|error| build("make the lock folder", &spec.locks, error))?;
    if HeldLock::stays_held(&lock) {
        return Err(RoomError::Busy {
            task: spec.task.clone(),
            what: "the room".into(),
        });
    }
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(build("remove an old pipe", &path, error));
        }
        Ok(()) | Err(_) => {}
    }
    let mode = nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR;
    nix::unistd::mkfifo(&path, mode)
        .map_err(|errno| build("make the room's pipe", &path, errno.into()))?;
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(&path)
        .map_err(|error| build("open the room's pipe", &path, error))
}

fn open_pipe(locks: &Path, task: &str) -> Result<File, RoomError> {
    let path = locks.join(holder::file_name(task, "room"));
    let fault = |error| build("open the room's pipe", &path, error);
    let pipe = OpenOptions::new()
        .write(true)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(&path)
        .map_err(fault)?;
    if !pipe.metadata().map_err(fault)?.file_type().is_fifo() {
        return Err(fault(io::ErrorKind::InvalidData.into()));
    }
    Ok(pipe)
}

fn build(doing: &str, path: &Path, source: io::Error) -> RoomError {
    RoomError::Build {
        doing: doing.to_owned(),
        path: Some(path.to_owned()),
        source,
    }
}

/// Waits until the process is gone.
pub(crate) fn wait_for_end(pidfd: &OwnedFd) {
    loop {
        let mut ends = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
        // Any other error cannot happen with one valid descriptor; waiting on would not help.
        if poll(&mut ends, PollTimeout::NONE) != Err(nix::errno::Errno::EINTR) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_file_names() {
        for good in ["a", "t-1_x.y", "2024a"] {
            assert!(usable("job", good, 10).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", ".x", "a/b", "a b", "ä", "aaaaaaaaaaa"] {
            assert!(usable("job", bad, 10).is_err(), "{bad}");
        }
    }
}
