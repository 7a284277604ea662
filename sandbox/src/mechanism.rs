//! What keeps each limit on this host, found by trying: for `doctor`.
//!
//! Must never leave a group behind.

use std::path::Path;

use crate::cgroup::{Cgroup, Version};

/// How one limit is kept here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mechanism {
    /// The limit, such as `memory`.
    pub limit: &'static str,
    /// What keeps it, and what that does not promise.
    pub how: String,
    /// Whether this host could keep it better.
    pub weaker: bool,
}

/// All limits; `locks` is a folder of our own for the time of the trial.
pub(crate) fn all(locks: &Path) -> Vec<Mechanism> {
    let tried = Cgroup::make(locks, "doctor", "trial", Some(64 << 20), 64);
    let (memory, pids) = tried.as_ref().map_or((None, None), Cgroup::versions);
    if let Some(cgroup) = tried {
        cgroup.remove();
    }
    let of = |limit, how: String, weaker| Mechanism { limit, how, weaker };
    let memory = match memory {
        Some(version) => of("memory", format!("{}, and a watch from outside", name(version)), false),
        None => of(
            "memory",
            "a watch from outside, since no control group can be made here: a peak shorter than half a second, and \
             memory of the kernel such as buffers, are not promised"
                .to_owned(),
            true,
        ),
    };
    let pids = match pids {
        Some(version) => of("processes", format!("{}, and RLIMIT_NPROC inside", name(version)), false),
        None => of(
            "processes",
            "RLIMIT_NPROC inside; a job that is seen at its limit is ended, one that only touches it may go on".to_owned(),
            false,
        ),
    };
    let watched = "a watch from outside: counted when the disk says that much has come, and at the end of a job";
    vec![
        memory,
        pids,
        of("disk and files", watched.to_owned(), false),
        of("size of one file", "RLIMIT_FSIZE inside".to_owned(), false),
        of(
            "wall time",
            "the clock of the job's keeper".to_owned(),
            false,
        ),
        of(
            "idle time",
            "a watch from outside: output, processes, processor time and changed files".to_owned(),
            false,
        ),
        of(
            "output",
            "the job's keeper: head and tail are kept".to_owned(),
            false,
        ),
    ]
}

fn name(version: Version) -> &'static str {
    match version {
        Version::One => "control group (version 1)",
        Version::Two => "control group (version 2)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_named_and_the_trial_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let all = all(folder.path());
        let names: Vec<_> = all.iter().map(|mechanism| mechanism.limit).collect();
        for limit in ["memory", "processes", "disk and files", "idle time"] {
            assert!(names.contains(&limit), "{names:?}");
        }
        let memory = &all[0];
        assert_eq!(memory.weaker, !memory.how.starts_with("control group"));
        assert_eq!(memory.weaker, memory.how.contains("not promised"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
