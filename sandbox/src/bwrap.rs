//! bubblewrap: where it may come from, and the arguments that every job gets.
//!
//! Must never be looked up in PATH, which may be the worktree's.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::diagnose::{self, Symptom};
use crate::error::Unavailable;

const FOLDERS: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];

/// Where the warden is in the room.
pub(crate) const WARDEN: &str = "/run/airlock/bin/airlock";
/// What tells about the host and is nobody's business in a room; covered where it exists.
const MASKED: [&str; 6] = [
    "keys",
    "key-users",
    "timer_list",
    "kallsyms",
    "kcore",
    "sched_debug",
];

/// The bubblewrap of this host: root's, in a folder of root's, and not set-uid.
pub fn find_bwrap() -> Result<PathBuf, Unavailable> {
    let mut doubt = None;
    for folder in FOLDERS {
        let path = Path::new(folder).join("bwrap");
        match judge(Path::new(folder), &path) {
            Verdict::Absent => {}
            Verdict::Good => return Ok(path),
            Verdict::Bad(symptom) => doubt = doubt.or(Some(symptom)),
        }
    }
    Err(diagnose::explain(&doubt.unwrap_or(Symptom::NoBwrap)))
}

enum Verdict {
    Absent,
    Good,
    Bad(Symptom),
}

fn judge(folder: &Path, path: &Path) -> Verdict {
    let (Ok(around), Ok(facts)) = (std::fs::metadata(folder), std::fs::metadata(path)) else {
        return Verdict::Absent;
    };
    let foreign = |facts: &std::fs::Metadata| !ours(facts.uid()) || facts.mode() & 0o022 != 0;
    if foreign(&around) || foreign(&facts) || !facts.is_file() {
        return Verdict::Bad(Symptom::ForeignBwrap(path.to_owned()));
    }
    if facts.permissions().mode() & 0o6000 != 0 {
        return Verdict::Bad(Symptom::SetUidBwrap(path.to_owned()));
    }
    Verdict::Good
}

/// Root, or the host's root as a user namespace without it shows him.
fn ours(uid: u32) -> bool {
    uid == 0 || uid == overflow_uid()
}

fn overflow_uid() -> u32 {
    let text = std::fs::read_to_string("/proc/sys/kernel/overflowuid").unwrap_or_default();
    text.trim().parse().unwrap_or(65_534)
}

/// Descriptors that the warden inherits through bubblewrap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descriptors {
    pub(crate) control: i32,
    pub(crate) spec: i32,
    pub(crate) seccomp: i32,
    /// Where the output goes; standard output and error are for bubblewrap's own words, because its outer half
    /// keeps them open to its end.
    pub(crate) output: i32,
    /// The command's standard error; the same as `output` unless somebody is in front of it.
    pub(crate) error: i32,
}

/// The arguments after `bwrap`, in the order that counts. The mounts are the holder's already:
/// what only a process in the new pid namespace can do is left.
pub(crate) fn arguments(descriptors: Descriptors, masks: &[String]) -> Vec<String> {
    let mut words: Vec<String> = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--disable-userns",
        "--cap-drop",
        "ALL",
        "--hostname",
        "airlock",
        "--die-with-parent",
        "--new-session",
        "--as-pid-1",
        // The holder's root is the room's; device nodes in it must stay usable, all else is nodev already.
        "--dev-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--ro-bind",
        "/proc/sys",
        "/proc/sys",
        // The warden enters the job's folder: one that is missing is the command's fault, not the room's.
        "--chdir",
        "/",
    ]
    .map(str::to_owned)
    .to_vec();
    for mask in masks {
        words.push("--ro-bind".into());
        words.push("/dev/null".into());
        words.push(format!("/proc/{mask}"));
    }
    words.push("--seccomp".into());
    words.push(descriptors.seccomp.to_string());
    words
}

/// The command of bubblewrap itself, which it takes from its own command line only.
pub(crate) fn command(arguments: i32, descriptors: Descriptors) -> Vec<String> {
    let Descriptors {
        control,
        spec,
        output,
        error,
        seccomp: _,
    } = descriptors;
    let words = [
        "bwrap",
        "--args",
        &arguments.to_string(),
        "--",
        WARDEN,
        "__warden",
    ]
    .map(str::to_owned);
    let mut words = words.to_vec();
    words.extend([control, spec, output, error].map(|number| number.to_string()));
    words
}

/// The entries of `/proc` to cover that this kernel has.
pub(crate) fn masks() -> Vec<String> {
    MASKED
        .iter()
        .filter(|name| Path::new("/proc").join(name).exists())
        .map(|name| (*name).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wall_is_named() {
        let descriptors = Descriptors {
            control: 3,
            spec: 4,
            seccomp: 5,
            output: 7,
            error: 8,
        };
        let words = arguments(descriptors, &["keys".to_owned()]);
        let line = words.join(" ");
        for wall in [
            "--unshare-user ",
            "--unshare-pid ",
            "--unshare-ipc ",
            "--unshare-uts ",
            "--disable-userns ",
            "--cap-drop ALL ",
            "--new-session ",
            "--die-with-parent ",
            "--seccomp 5",
            "--ro-bind /dev/null /proc/keys ",
            "--ro-bind /proc/sys /proc/sys ",
        ] {
            assert!(line.contains(wall), "{wall} is missing in {line}");
        }
        assert!(line.ends_with("--seccomp 5"));
    }
}
