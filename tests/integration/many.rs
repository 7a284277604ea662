//! Many rooms, and many commands in one: nothing of them is left, in no table of the kernel and in no folder. The
//! numbers grow with `AIRLOCK_MANY_ROOMS` and `AIRLOCK_MANY_COMMANDS`; `.ci/soak` sets them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tests::{Process, Role, TestEnv, TestRepo, until, within};

/// How long the last traces may take to go.
const LAST: Duration = Duration::from_secs(20);

/// What can leak, counted where the kernel or the disk shows it.
#[derive(Debug, PartialEq, Eq)]
struct Census {
    /// Open descriptors of the supervisor.
    descriptors: usize,
    /// Its children that nobody has taken in.
    zombies: usize,
    /// Mounts of ours that everybody sees.
    mounts: usize,
    /// Control groups of ours, of either version.
    groups: BTreeSet<String>,
    /// Names in the state folder but for the event store's own.
    files: BTreeSet<String>,
}

fn number(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

fn supervisor(env: &TestEnv) -> Process {
    until("a supervisor", || env.of_role(Role::Supervisor).pop())
}

/// `group` begins the names of the control groups that count: others may be at work on this host.
fn census(env: &TestEnv, group: &str) -> Census {
    let pid = supervisor(env).pid;
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let dead = |child: &&str| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('Z'))
    };
    let mut files = BTreeSet::new();
    list(&env.state_folder(), &env.state_folder(), &mut files);
    let mut groups = BTreeSet::new();
    folders_of_ours(Path::new("/sys/fs/cgroup"), group, &mut groups);
    Census {
        descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
        zombies: children.unwrap_or_default().split(' ').filter(dead).count(),
        mounts: env.mounts().len(),
        groups,
        files,
    }
}

fn list(root: &Path, folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = path
            .strip_prefix(root)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let inside = entry.file_type().is_ok_and(|kind| kind.is_dir()) && !name.ends_with("/tree");
        // The event store grows, and the use of limits is noted from time to time.
        let noted = path.extension().is_some_and(|kind| kind == "use");
        if !name.starts_with("state.db") && !noted {
            names.insert(name);
        }
        if inside {
            list(root, &path, names);
        }
    }
}

fn folders_of_ours(folder: &Path, group: &str, found: &mut BTreeSet<String>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
    {
        let name = path.to_string_lossy().into_owned();
        if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(group))
        {
            found.insert(name);
        } else if !path.is_symlink() {
            folders_of_ours(&path, group, found);
        }
    }
}

fn resident(env: &TestEnv) -> String {
    let status = fs::read_to_string(format!("/proc/{}/status", supervisor(env).pid)).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.unwrap_or_default()
        .trim_start_matches("VmRSS:")
        .trim()
        .to_owned()
}

/// A task that is at work all the time, so that one supervisor carries everything.
fn stays(env: &TestEnv, repo: &TestRepo<'_>) {
    let script = "touch here; sleep 3600";
    repo.airlock(&["run", "-d", "--task", "stays", "--", "sh", "-c", script])
        .run()
        .exits(0);
    env.at_work("stays");
}

fn goes(env: &TestEnv, repo: &TestRepo<'_>) {
    repo.airlock(&["stop", "stays"]).run().exits(0);
    repo.airlock(&["rm", "stays", "--discard"]).run().exits(0);
    env.is_quiet();
    repo.is_clean();
}

#[test]
fn commands_in_a_row_leave_nothing() {
    let env = TestEnv::new();
    let repo = env.repository();
    stays(&env, &repo);
    repo.task(&["--task", "lone"], "echo 'x = 1' > x.py")
        .exits(0);
    let once = || {
        let run = repo.airlock(&["exec", "lone", "--", "cat", "x.py"]).run();
        assert_eq!(run.exits(0).stdout, "x = 1\n");
    };
    // The first ones start threads and caches that stay.
    (0..5).for_each(|_| once());
    let (before, began, size) = (
        census(&env, "airlock-lone-"),
        Instant::now(),
        resident(&env),
    );
    let count = number("AIRLOCK_MANY_COMMANDS", 60);
    let first = supervisor(&env).pid;
    (0..count).for_each(|_| once());
    println!(
        "{count} commands in a row: {:?}, supervisor {size} before, {} after",
        began.elapsed(),
        resident(&env)
    );
    assert_eq!(supervisor(&env).pid, first, "one supervisor carried all");
    within(LAST, || census(&env, "airlock-lone-") == before);
    assert_eq!(census(&env, "airlock-lone-"), before);
    let ends = repo
        .events("lone")
        .into_iter()
        .filter(|event| event == "exec_ended");
    assert_eq!(ends.count(), count + 5, "each end is on record");
    repo.airlock(&["rm", "lone", "--discard"]).run().exits(0);
    goes(&env, &repo);
}

#[test]
fn rooms_at_once_leave_nothing() {
    let env = TestEnv::new();
    let repo = env.repository();
    stays(&env, &repo);
    let before = census(&env, "airlock-crowd");
    let count = number("AIRLOCK_MANY_ROOMS", 50);
    let began = Instant::now();
    let names: Vec<String> = (0..count).map(|number| format!("crowd{number}")).collect();
    let script = "touch here; while ! test -e go; do sleep 0.1; done; rm here go";
    let starting = names.iter().map(|name| {
        repo.airlock(&["run", "--task", name, "--", "sh", "-c", script])
            .spawn()
    });
    let running: Vec<_> = starting.collect();
    for name in &names {
        env.at_work(name);
    }
    assert_eq!(
        env.of_role(Role::Holder).len(),
        count + 1,
        "each has a room of its own"
    );
    let open = began.elapsed();
    let commands = names.iter().map(|name| {
        let script = "echo \"$AIRLOCK_TASK\"; echo mine > /tmp/mine; cat /tmp/*";
        repo.airlock(&["exec", name, "--", "sh", "-c", script])
            .spawn()
    });
    for (command, name) in commands.collect::<Vec<_>>().into_iter().zip(&names) {
        assert_eq!(command.wait().exits(0).stdout, format!("{name}\nmine\n"));
    }
    println!(
        "{count} rooms at once: open after {open:?}, supervisor {}",
        resident(&env)
    );
    for name in &names {
        env.let_go(name);
    }
    for task in running {
        task.wait().exits(11);
    }
    println!(
        "all gone after {:?}, supervisor {}",
        began.elapsed(),
        resident(&env)
    );
    for name in &names {
        repo.airlock(&["rm", name]).run().exits(0);
    }
    let comparable = |mut census: Census| {
        census.files.retain(|file| !file.starts_with("tasks/crowd"));
        census
    };
    let before = comparable(before);
    let is_back = || comparable(census(&env, "airlock-crowd")) == before;
    within(LAST, is_back);
    assert_eq!(comparable(census(&env, "airlock-crowd")), before);
    goes(&env, &repo);
}
