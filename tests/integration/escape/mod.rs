//! A test for each promise about the room: what an agent tries, and what of it shows on the host. The table of
//! promises, walls and tests is `sandbox/README.md`.
//!
//! Attacks are code in a room: the scripted agent, a shell, or Python, whose system calls are not those of a library.

use serde_json::Value;
use tests::{Run, TestEnv, TestRepo};

/// Who may open a room further.
mod asking;
/// Trees that resist their removal.
mod cleanup;
/// Files of the host.
mod files;
/// The repository and the task's view of it.
mod git;
/// Privileges, mounts, calls.
mod kernel;
/// What a room may use up.
mod memory;
/// What one run leaves for the next.
mod next_run;
/// Processes, environments, descriptors.
pub(crate) mod processes;
/// Networks and sockets.
mod sockets;
/// How a job ended.
mod verdict;

/// Runs steps of the scripted agent in a room and returns what it said.
#[track_caller]
pub(crate) fn steps(env: &TestEnv, repo: &TestRepo<'_>, id: &str, steps: &[&str]) -> String {
    let agent = env.fake_agent();
    let folder = agent.parent().unwrap().to_str().unwrap().to_owned();
    let call = repo
        .airlock(&["run", "--json", "--task", id, "--ro", &folder, "--"])
        .arg(&agent)
        .args(steps);
    let _judged_elsewhere: Run = call.run();
    repo.log_of(id)
}

/// What an attack in Python has at hand. It says `OPEN` and what, where a wall does not stand.
const MEANS: &str = r"
import ctypes, errno, fcntl, glob, os, socket, stat, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    answer = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    return answer, ctypes.get_errno()
def tries(what, act):
    try: act()
    except OSError: return
    print('OPEN', what)
def writes(path, text='x'):
    def act():
        with open(path, 'w') as file: file.write(text)
    tries('write ' + str(path), act)
";

/// Runs an attack in Python in a room of task `id`. It has to come to its end, and no wall may have been open. Returns
/// what else it said.
#[track_caller]
pub(crate) fn attack(repo: &TestRepo<'_>, id: &str, flags: &[&str], script: &str) -> String {
    let script = format!("{script}\nprint('tried everything')");
    let run = room(repo, id, flags, &script);
    assert!(matches!(run.code, Some(0 | 10 | 11)), "{run}");
    let log = repo.log_of(id);
    log.replace("tried everything\n", "")
}

/// The same for an attack that says itself when it has tried everything, and ends in its own way: the command ends
/// with `code`. Returns its object.
#[track_caller]
pub(crate) fn attack_that_ends(
    repo: &TestRepo<'_>,
    id: &str,
    flags: &[&str],
    script: &str,
    code: i32,
) -> Value {
    room(repo, id, flags, script).exits(code).json()
}

#[track_caller]
fn room(repo: &TestRepo<'_>, id: &str, flags: &[&str], script: &str) -> Run {
    let script = format!("{MEANS}\n{script}");
    let run = repo
        .airlock(&["run", "--json", "--task", id])
        .args(flags)
        .args(["--", "/usr/bin/python3", "-c", &script])
        .run();
    let log = repo.log_of(id);
    let whole = log.contains("tried everything");
    assert!(whole, "the attack did not come to its end\n{log}\n{run}");
    assert!(!log.contains("OPEN"), "{log}\n{run}");
    run
}
