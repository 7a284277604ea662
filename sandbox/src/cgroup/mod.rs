//! Control groups of a task and its jobs, where they can be had: memory of the task, processes of a job.
//!
//! The keeper makes them and takes them away; what a killed keeper leaves is swept by the names in the lock folder.
//! Must never remove a folder whose name is not made of the task and the lock folder.

mod place;

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use place::{Places, Version};

use crate::holder;
use place::Place;

/// bubblewrap outside, the warden, and the warden's helper for the start.
const OURS: u64 = 3;
/// The record of a task's groups in the lock folder.
const RECORD: &str = "cgroup";
/// How the names of our groups begin.
const PREFIX: &str = "airlock-";
/// Empty for this long, a group belongs to nobody.
const STALE: Duration = Duration::from_mins(10);
/// Rounds of waiting for the last process to leave, and the time of one.
const ROUNDS: u32 = 200;
const ROUND: Duration = Duration::from_millis(2);

/// The groups of one job.
#[derive(Debug)]
pub(crate) struct Cgroup {
    record: PathBuf,
    memory: Option<Group>,
    pids: Option<Group>,
}

#[derive(Debug)]
struct Group {
    task: PathBuf,
    job: PathBuf,
    version: Version,
}

impl Cgroup {
    /// Makes the groups of a job; none where they cannot be had: the watch is there all the same.
    pub(crate) fn make(
        locks: &Path,
        task: &str,
        job: &str,
        memory: Option<u64>,
        pids: u64,
    ) -> Option<Self> {
        let places = Places::find();
        let record = locks.join(holder::file_name(task, RECORD));
        let name = group_name(locks, task);
        let make = |place: Option<Place>| Group::make(place.as_ref()?, &name, job, &record);
        let mut cgroup = Self {
            memory: memory.and_then(|_| make(places.memory)),
            pids: make(places.pids),
            record: record.clone(),
        };
        // What cannot be set limits nothing: it goes again.
        if let (Some(group), Some(bytes)) = (&cgroup.memory, memory)
            && group.limit_memory(bytes).is_err()
        {
            group.remove();
            cgroup.memory = None;
        }
        if let Some(group) = &cgroup.pids
            && group.set("pids.max", pids.saturating_add(OURS)).is_err()
        {
            group.remove();
            cgroup.pids = None;
        }
        (cgroup.memory.is_some() || cgroup.pids.is_some()).then_some(cgroup)
    }

    /// Which kind of group limits memory, and which the number of processes.
    pub(crate) fn versions(&self) -> (Option<Version>, Option<Version>) {
        let version = |group: &Option<Group>| group.as_ref().map(|group| group.version);
        (version(&self.memory), version(&self.pids))
    }

    /// Whether the number of processes is limited by a group.
    pub(crate) fn counts_pids(&self) -> bool {
        self.pids.is_some()
    }

    /// Where a process writes `0` to enter.
    pub(crate) fn entrances(&self) -> Vec<OwnedFd> {
        let mut folders: Vec<&Path> = self.groups().map(|group| group.job.as_path()).collect();
        folders.dedup();
        let open = |folder: &Path| {
            File::options()
                .write(true)
                .open(folder.join("cgroup.procs"))
        };
        folders
            .into_iter()
            .filter_map(|folder| open(folder).ok())
            .map(OwnedFd::from)
            .collect()
    }

    /// Whether the kernel has killed a process of the job for want of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.memory.as_ref().is_some_and(|group| {
            let file = match group.version {
                Version::One => "memory.oom_control",
                Version::Two => "memory.events",
            };
            group.event(file, "oom_kill") > 0
        })
    }

    /// Whether the kernel has refused the job a process.
    pub(crate) fn was_refused_a_process(&self) -> bool {
        self.pids
            .as_ref()
            .is_some_and(|group| group.event("pids.events", "max") > 0)
    }

    /// Removes the groups when nobody is in them any more.
    pub(crate) fn remove(self) {
        let mut left = false;
        for group in self.groups() {
            group.remove();
            left |= group.task.exists();
        }
        if !left {
            // Absent is what was wanted.
            drop(std::fs::remove_file(&self.record));
        }
    }

    fn groups(&self) -> impl Iterator<Item = &Group> {
        [&self.memory, &self.pids].into_iter().flatten()
    }
}

impl Group {
    fn make(place: &Place, name: &str, job: &str, record: &Path) -> Option<Self> {
        sweep_stale(&place.folder);
        let task = place.folder.join(name);
        let group = Self {
            job: task.join(job),
            task,
            version: place.version,
        };
        // Written down first: what is made is found again.
        note(record, &group.task).ok()?;
        for _ in 0..ROUNDS {
            match group.try_make() {
                Ok(()) => return Some(group),
                // The last job of the task took the folder away under us.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => break,
            }
        }
        None
    }

    fn try_make(&self) -> io::Result<()> {
        folder(&self.task)?;
        if self.version == Version::Two {
            for controller in ["+memory", "+pids"] {
                // Each is checked by the limit that needs it.
                drop(put(&self.task.join("cgroup.subtree_control"), controller));
            }
        }
        folder(&self.job)
    }

    fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        let value = bytes.to_string();
        match self.version {
            Version::One => {
                put(&self.task.join("memory.limit_in_bytes"), &value)?;
                // Only where swap is counted.
                drop(put(&self.task.join("memory.memsw.limit_in_bytes"), &value));
            }
            Version::Two => {
                put(&self.task.join("memory.max"), &value)?;
                drop(put(&self.task.join("memory.swap.max"), "0"));
                drop(put(&self.job.join("memory.oom.group"), "1"));
            }
        }
        Ok(())
    }

    fn set(&self, file: &str, value: u64) -> io::Result<()> {
        put(&self.job.join(file), &value.to_string())
    }

    fn event(&self, file: &str, name: &str) -> u64 {
        let text = std::fs::read_to_string(self.job.join(file)).unwrap_or_default();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.trim().parse().ok())
            .unwrap_or(0)
    }

    fn remove(&self) {
        take_away(&self.job);
        // Another job of the task may be in it.
        drop(std::fs::remove_dir(&self.task));
    }
}

fn folder(path: &Path) -> io::Result<()> {
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn put(path: &Path, value: &str) -> io::Result<()> {
    // Never made anew: these files are the kernel's.
    File::options()
        .write(true)
        .open(path)?
        .write_all(value.as_bytes())
}

/// Removes a group; the last processes may take a moment to leave it.
fn take_away(path: &Path) {
    for _ in 0..ROUNDS {
        match std::fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(ROUND),
            Ok(()) | Err(_) => return,
        }
    }
}

/// Removes groups of ours that stand empty for long: of tasks whose state was thrown away after a kill. A group of a
/// job that lives is never empty but for the moments of its beginning and its end; one with processes cannot be removed.
fn sweep_stale(place: &Path) {
    let old = |path: &Path| {
        let changed = std::fs::metadata(path).and_then(|facts| facts.modified());
        changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE))
    };
    let groups = std::fs::read_dir(place).into_iter().flatten().flatten();
    let ours = groups.filter(|group| group.file_name().to_string_lossy().starts_with(PREFIX));
    for group in ours.map(|group| group.path()).filter(|group| old(group)) {
        for job in std::fs::read_dir(&group).into_iter().flatten().flatten() {
            if job.file_type().is_ok_and(|kind| kind.is_dir()) && old(&job.path()) {
                // It refuses while somebody is in it.
                drop(std::fs::remove_dir(job.path()));
            }
        }
        drop(std::fs::remove_dir(&group));
    }
}

fn group_name(locks: &Path, task: &str) -> String {
    // The same task name may be used in another state folder.
    let hash = locks.as_os_str().as_encoded_bytes().iter();
    let hash = hash.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{PREFIX}{task}-{hash:016x}")
}

fn note(record: &Path, group: &Path) -> io::Result<()> {
    let line = format!("{}\n", group.display());
    let known = std::fs::read_to_string(record).unwrap_or_default();
    if known.contains(&line) {
        return Ok(());
    }
    let mut options = File::options();
    options
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW);
    options.open(record)?.write_all(line.as_bytes())
}

/// Removes what killed keepers of `task` left. Only when none of its jobs runs any more.
pub(crate) fn sweep(locks: &Path, task: &str) {
    let record = locks.join(holder::file_name(task, RECORD));
    let Ok(text) = std::fs::read_to_string(&record) else {
        return;
    };
    let name = group_name(locks, task);
    let groups = text.lines().map(PathBuf::from);
    for group in groups.filter(|group| group.file_name().is_some_and(|file| *file == *name)) {
        for job in std::fs::read_dir(&group).into_iter().flatten().flatten() {
            if job.file_type().is_ok_and(|kind| kind.is_dir()) {
                take_away(&job.path());
            }
        }
        take_away(&group);
    }
    drop(std::fs::remove_file(&record));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_named_by_task_and_state() {
        let one = group_name(Path::new("/a/locks"), "t1");
        assert!(one.starts_with("airlock-t1-"), "{one}");
        assert_ne!(one, group_name(Path::new("/b/locks"), "t1"));
    }

    #[test]
    fn what_nobody_uses_for_long_goes_and_the_new_stays() {
        let root = tempfile::tempdir().unwrap();
        let long_ago = std::time::SystemTime::now() - STALE * 2;
        for (name, is_old) in [
            ("airlock-old-1", true),
            ("airlock-new-1", false),
            ("other", true),
        ] {
            let group = root.path().join(name);
            std::fs::create_dir_all(group.join("agent")).unwrap();
            for folder in [group.join("agent"), group] {
                let folder = File::open(folder).unwrap();
                if is_old {
                    folder.set_modified(long_ago).unwrap();
                }
            }
        }
        sweep_stale(root.path());
        assert!(!root.path().join("airlock-old-1").exists());
        assert!(root.path().join("airlock-new-1/agent").exists());
        assert!(root.path().join("other/agent").exists());
    }

    #[test]
    fn a_sweep_removes_what_is_named_by_the_task_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let locks = root.path().join("locks");
        std::fs::create_dir(&locks).unwrap();
        let ours = root.path().join(group_name(&locks, "t1"));
        let other = root.path().join("precious");
        for group in [&ours, &other] {
            std::fs::create_dir_all(group.join("agent")).unwrap();
            note(&locks.join("t1.cgroup"), group).unwrap();
            note(&locks.join("t1.cgroup"), group).unwrap();
        }
        let record = std::fs::read_to_string(locks.join("t1.cgroup")).unwrap();
        assert_eq!(record.lines().count(), 2);
        sweep(&locks, "t1");
        assert!(!ours.exists() && other.join("agent").exists());
        assert!(!locks.join("t1.cgroup").exists());
    }
}
