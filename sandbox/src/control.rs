//! Orders to a running job, and the end of all jobs of a task.
//!
//! Must never signal a process whose identity is not proven.

use std::borrow::Borrow;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::attach::holder_of;
use crate::cgroup;
use crate::error::ControlError;
use crate::holder;
use crate::keeper::{self, Order, Reply};
use crate::lock::HeldLock;
use crate::room::Entrance;
use crate::watch::USE;

/// How long a keeper may take to end its job when the task is swept.
const PATIENCE: Duration = Duration::from_secs(5);

/// Gives an order to the job `job` of `task`. `Freeze` comes back when nobody of the job moves any more.
pub fn control(
    locks: &Path,
    task: &str,
    job: &str,
    order: impl Borrow<Order>,
) -> Result<(), ControlError> {
    let not_running = || ControlError::NotRunning {
        task: task.to_owned(),
        job: job.to_owned(),
    };
    let reach = |source| ControlError::Reach {
        job: job.to_owned(),
        source,
    };
    if !HeldLock::is_held(&locks.join(keeper::file_name(task, job, "lock"))) {
        return Err(not_running());
    }
    let socket = match keeper::connect(locks, &keeper::file_name(task, job, "sock")) {
        Ok(socket) => socket,
        Err(error) if is_gone(&error) => return Err(not_running()),
        Err(error) => return Err(reach(error)),
    };
    match keeper::exchange(&socket, order.borrow()) {
        Ok(Reply::Done) => Ok(()),
        Ok(Reply::Over) => Err(not_running()),
        Ok(Reply::Refused { reason }) => Err(ControlError::Refused {
            job: job.to_owned(),
            reason,
        }),
        Err(error) if is_gone(&error) => Err(not_running()),
        Err(error) => Err(reach(error)),
    }
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(
        error.kind(),
        NotFound | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof
    )
}

/// What a sweep found and ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Whether a holder lived and was ended.
    pub holder: bool,
    /// Jobs whose keepers lived and were ended.
    pub jobs: Vec<String>,
    /// Lock files that are held by a process that cannot be proven to be ours: left alone.
    pub unproven: Vec<PathBuf>,
}

/// Ends whatever still lives of `task` and removes its files from the lock folder: for a task that is removed, or
/// that is taken up after a crash and shall not go on.
pub fn sweep(locks: &Path, task: &str) -> Swept {
    let mut swept = Swept::default();
    for job in jobs(locks, task) {
        let lock = locks.join(keeper::file_name(task, &job, "lock"));
        if HeldLock::is_held(&lock) {
            if end_job(locks, task, &job, &lock) {
                swept.jobs.push(job.clone());
            } else {
                swept.unproven.push(lock);
                continue;
            }
        }
        remove(
            locks,
            &["sock", USE].map(|what| keeper::file_name(task, &job, what)),
        );
        remove_lock(&lock);
    }
    sweep_holder(locks, task, &mut swept);
    if swept.unproven.is_empty() {
        cgroup::sweep(locks, task);
    }
    swept
}

/// Whether a job of `task` is kept.
pub(crate) fn runs(locks: &Path, task: &str) -> bool {
    let lock = |job: &String| locks.join(keeper::file_name(task, job, "lock"));
    jobs(locks, task)
        .iter()
        .any(|job| HeldLock::is_held(&lock(job)))
}

/// Jobs of `task` that have a lock file.
fn jobs(locks: &Path, task: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(locks) else {
        return Vec::new();
    };
    let mut jobs: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| {
            let job = name
                .strip_prefix(task)?
                .strip_prefix('.')?
                .strip_suffix(".lock")?;
            (job != "holder").then(|| job.to_owned())
        })
        .collect();
    jobs.sort_unstable();
    jobs
}

/// Stops the job through its keeper, so that its final state is written; kills the keeper if that takes too long.
fn end_job(locks: &Path, task: &str, job: &str, lock: &Path) -> bool {
    let proven = holder_of(lock);
    let order = Order::Stop {
        by: "airlock".into(),
        reason: "the task is swept".into(),
        grace_ms: 0,
    };
    let told = control(locks, task, job, order);
    let Some((identity, pidfd)) = proven else {
        // Nobody to be proven: it let go meanwhile, or it is a stranger.
        return !HeldLock::is_held(lock);
    };
    if told.is_ok() && ends_within(&pidfd, PATIENCE) {
        return true;
    }
    identity.kill();
    ends_within(&pidfd, PATIENCE)
}

fn ends_within(pidfd: &OwnedFd, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        let mut ends = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ends, left) {
            Ok(count) => return count > 0,
            Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}

fn sweep_holder(locks: &Path, task: &str, swept: &mut Swept) {
    let lock = locks.join(holder::file_name(task, "holder.lock"));
    if HeldLock::is_held(&lock) {
        let record = locks.join(holder::file_name(task, "holder.json"));
        let entrance = std::fs::read(record).ok();
        let entrance: Option<Entrance> =
            entrance.and_then(|text| serde_json::from_slice(&text).ok());
        let pidfd = entrance
            .as_ref()
            .and_then(|entrance| entrance.holder.open());
        let (Some(entrance), Some(pidfd)) = (entrance, pidfd) else {
            // A holder whose supervisor died before it was recorded ends by itself: nobody holds its pipe.
            if !let_go_within(&lock, PATIENCE) {
                swept.unproven.push(lock);
                return;
            }
            swept.holder = true;
            return forget(locks, task, &lock);
        };
        entrance.holder.kill();
        swept.holder = ends_within(&pidfd, PATIENCE);
    }
    forget(locks, task, &lock);
}

fn let_go_within(lock: &Path, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    while HeldLock::is_held(lock) {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn forget(locks: &Path, task: &str, lock: &Path) {
    let files = ["holder.json", "room", "door"].map(|what| holder::file_name(task, what));
    remove(locks, &files);
    remove_lock(lock);
}

fn remove(locks: &Path, names: &[String]) {
    for name in names {
        // Absent is what was wanted.
        drop(std::fs::remove_file(locks.join(name)));
    }
}

fn remove_lock(lock: &Path) {
    if lock.exists()
        && let Ok(Some(lock)) = HeldLock::try_acquire(lock)
    {
        drop(lock.remove());
    }
}
