//! A survey: counts that take longer than the keeper may look away, taken in a child of it.
//!
//! Must never be waited for but with a bound, and its child must never outlive the keeper.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::crowd::Crowd;
use super::memory;
use super::walk::{DEEPEST, Enough, Walk};
use crate::sys::{self, Fork};

/// A survey that takes longer is given up; the next one begins anew.
const LONGEST: Duration = Duration::from_mins(2);

/// What is to be counted, and by what.
#[derive(Debug)]
pub(super) struct Errand<'watch> {
    /// The memory that the processes hold.
    pub(super) memory: bool,
    /// The watched folders, up to these numbers.
    pub(super) tree: Option<Enough>,
    pub(super) crowd: Option<&'watch Crowd>,
    pub(super) folders: &'watch [OwnedFd],
    /// Whose user namespace to join, so that a folder closed to its owner is open.
    pub(super) holder: Option<&'watch OwnedFd>,
    /// Whose shared segments count.
    pub(super) warden: Option<&'watch OwnedFd>,
}

/// What was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Findings {
    /// Bytes of memory, without those of the room's file systems.
    pub(super) memory: Option<u64>,
    pub(super) tree: Option<TreeFindings>,
}

/// What was found in the watched folders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TreeFindings {
    /// Bytes on disk, of files without a name too.
    pub(super) bytes: u64,
    pub(super) files: u64,
    pub(super) newest_ms: u64,
    pub(super) too_deep: bool,
}

/// A survey under way.
#[derive(Debug)]
pub(super) struct Survey {
    child: Pid,
    answer: OwnedFd,
    text: Vec<u8>,
    pub(super) since: Instant,
}

impl Survey {
    /// Sends a child on the errand.
    pub(super) fn begin(errand: &Errand<'_>) -> nix::Result<Self> {
        let (answer, to) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        // Seen from the child the descendants of the keeper would be others.
        let pids = errand.crowd.map(Crowd::pids).unwrap_or_default();
        let parent = nix::unistd::getpid();
        match sys::fork()? {
            Fork::Child => {
                drop(answer);
                tied_to(parent);
                let findings = go(errand, &pids);
                let text = serde_json::to_vec(&findings).unwrap_or_default();
                drop(File::from(to).write_all(&text));
                sys::leave(0)
            }
            Fork::Parent(child) => {
                // It is few bytes, but nothing may make the keeper wait.
                rustix::io::ioctl_fionbio(&answer, true).ok();
                Ok(Self {
                    child,
                    answer,
                    text: Vec::new(),
                    since: Instant::now(),
                })
            }
        }
    }

    /// Becomes readable when there is something to be taken.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.answer.as_fd()
    }

    /// The findings when they are complete; `Err` while they are not.
    pub(super) fn take(mut self) -> Result<Findings, Self> {
        let mut piece = [0; 1024];
        loop {
            match rustix::io::read(&self.answer, &mut piece) {
                Ok(0) => return Ok(self.end()),
                Ok(count) => self.text.extend(piece.iter().take(count)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) if self.since.elapsed() < LONGEST => {
                    return Err(self);
                }
                Err(_) => return Ok(self.end()),
            }
        }
    }

    /// Waits for the findings.
    pub(super) fn wait(mut self) -> Findings {
        loop {
            let left = LONGEST.saturating_sub(self.since.elapsed());
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
            let mut ends = [PollFd::new(self.answer.as_fd(), PollFlags::POLLIN)];
            poll(&mut ends, left).ok();
            match self.take() {
                Ok(findings) => return findings,
                Err(survey) => self = survey,
            }
        }
    }

    /// Nothing is known when the child did not come to its end.
    fn end(&self) -> Findings {
        serde_json::from_slice(&self.text).unwrap_or_default()
    }
}

impl Drop for Survey {
    fn drop(&mut self) {
        // Our own child that nobody else takes in, so the number is still its own.
        nix::sys::signal::kill(self.child, Signal::SIGKILL).ok();
        while nix::sys::wait::waitpid(self.child, None) == Err(nix::errno::Errno::EINTR) {}
    }
}

/// The child holds copies of the keeper's locks and pipes: it must go when the keeper goes.
fn tied_to(parent: Pid) {
    let tied = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    if tied.is_err() || nix::unistd::getppid() != parent {
        sys::leave(1);
    }
}

fn go(errand: &Errand<'_>, pids: &[i32]) -> Findings {
    more_descriptors();
    if let Some(holder) = errand.holder {
        // Without it an ordinary user counts what he can read.
        nix::sched::setns(holder, CloneFlags::CLONE_NEWUSER).ok();
    }
    let devices = devices(errand.folders);
    let mut held = memory::Held::default();
    if let Some(crowd) = errand.crowd {
        let segments = errand
            .warden
            .filter(|_| errand.memory)
            .is_some_and(|warden| nix::sched::setns(warden, CloneFlags::CLONE_NEWIPC).is_ok());
        held = memory::count(crowd.proc(), pids, &devices, segments);
    }
    let tree = errand.tree.map(|enough| {
        let mut walk = Walk::new(enough);
        for folder in errand.folders {
            // A disk that fails is no breach; what was counted until then is.
            walk.over(folder).ok();
        }
        TreeFindings {
            bytes: walk.count.bytes.saturating_add(held.nameless),
            files: walk.count.files,
            newest_ms: walk.count.newest_ms,
            too_deep: walk.count.too_deep,
        }
    });
    Findings {
        memory: errand.memory.then_some(held.memory),
        tree,
    }
}

/// One is open for each folder on the way down.
fn more_descriptors() {
    let wanted = u64::try_from(DEEPEST).unwrap_or(0) + 256;
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < wanted
    {
        // With fewer, a tree that deep counts as too deep earlier.
        setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard).ok();
    }
}

fn devices(folders: &[OwnedFd]) -> Vec<u64> {
    let facts = folders
        .iter()
        .filter_map(|folder| rustix::fs::fstat(folder).ok());
    facts.map(|facts| facts.st_dev).collect()
}
