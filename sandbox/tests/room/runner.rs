//! Runs the tests, several at once, and says what failed. Also the room that most of them use.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sandbox::{JobSpec, Keeper, Limits, Net, Outcome, Room, RoomSpec};

/// A test and its name.
pub(crate) type Test = (&'static str, fn());

/// Runs those whose name holds the first argument that is not a flag.
pub(crate) fn run(groups: &[&[Test]], args: &[OsString]) -> ExitCode {
    let words: Vec<_> = args
        .iter()
        .skip(1)
        .filter_map(|word| word.to_str())
        .collect();
    let filter = words
        .iter()
        .find(|word| !word.starts_with('-'))
        .copied()
        .unwrap_or("");
    let tests: Vec<Test> = groups
        .iter()
        .copied()
        .flatten()
        .copied()
        .filter(|(name, _)| name.contains(filter))
        .collect();
    if words.contains(&"--list") {
        for (name, _) in &tests {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((name, test)) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let good = catch_unwind(AssertUnwindSafe(test)).is_ok();
                    println!("test {name} ... {}", if good { "ok" } else { "FAILED" });
                    if !good {
                        failed.lock().unwrap().push(*name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    println!(
        "{} of {} passed; failed: {failed:?}",
        tests.len() - failed.len(),
        tests.len()
    );
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A throw-away task: folders, a small tree with a git pointer, and the room around it.
pub(crate) struct Task {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) spec: RoomSpec,
}

impl Task {
    pub(crate) fn new() -> Self {
        Self::named("t")
    }

    pub(crate) fn named(task: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["tree", "git", "objects", "bg", "sub", "feedback", "locks"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        // As the engine keeps it: closed to all others. As root that is in the way of the room's user.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::write(at("tree/.git"), "gitdir: /nowhere\n").unwrap();
        std::fs::write(at("tree/a.txt"), "a\n").unwrap();
        std::fs::write(at("git/HEAD"), "ref: refs/heads/x\n").unwrap();
        std::fs::write(at("objects/x"), "object\n").unwrap();
        std::fs::write(at("feedback/round"), "no\n").unwrap();
        let spec = RoomSpec {
            task: task.into(),
            locks: at("locks"),
            tree: at("tree"),
            writable: true,
            mount_at: "/home/someone/project".into(),
            git: Some(sandbox::GitView {
                shadow: at("git"),
                objects: vec![at("objects")],
            }),
            bg: at("bg"),
            sub: at("sub"),
            feedback: at("feedback"),
            outbox: at("outbox"),
            ro: Vec::new(),
            rw: Vec::new(),
            tools: Vec::new(),
            layers: Vec::new(),
            forbidden: vec![folder.path().to_owned()],
            net: Net::None,
            home_bytes: 64 << 20,
            home_files: std::collections::BTreeMap::new(),
            tmp_bytes: 64 << 20,
            repo_owner: (0, 0),
        };
        Self { folder, spec }
    }

    pub(crate) fn open(&self) -> Room {
        Room::open(&self.spec).unwrap_or_else(|error| panic!("no room: {}", whole(&error)))
    }

    pub(crate) fn job(&self, name: &str, argv: &[&str]) -> JobSpec {
        JobSpec {
            job: name.into(),
            dir: self.spec.bg.join(name),
            argv: argv.iter().map(OsString::from).collect(),
            env: sandbox::room_environment(),
            cwd: self.spec.mount_at.clone(),
            timeout_ms: Some(30_000),
            idle_ms: None,
            grace_ms: 300,
            output_cap: 1 << 20,
            limits: Limits::default(),
            watched: vec![self.spec.tree.clone()],
            denials: self.denials(),
            stdin: Vec::new(),
        }
    }

    pub(crate) fn denials(&self) -> PathBuf {
        self.folder.path().join(sandbox::DENIALS)
    }

    pub(crate) fn script(&self, name: &str, script: &str) -> JobSpec {
        self.job(name, &["/bin/sh", "-c", script])
    }

    /// Opens a room, runs a script in it, closes it.
    pub(crate) fn run(&self, script: &str) -> (Outcome, String) {
        let room = self.open();
        let job = self.script("main", script);
        let answer = self.wait(start(&room, &job), "main");
        room.close();
        answer
    }

    pub(crate) fn wait(&self, keeper: Keeper, job: &str) -> (Outcome, String) {
        let outcome = keeper.wait();
        (outcome, self.log(job))
    }

    pub(crate) fn log(&self, job: &str) -> String {
        let log = std::fs::read(self.spec.bg.join(job).join("output.log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    pub(crate) fn lock_files(&self) -> Vec<String> {
        names(&self.spec.locks)
    }
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

pub(crate) fn start(room: &Room, job: &JobSpec) -> Keeper {
    room.start(job)
        .unwrap_or_else(|error| panic!("no job: {}", whole(&error)))
}

/// An error with its causes.
pub(crate) fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Host processes whose command line holds `marker`.
pub(crate) fn processes(marker: &str) -> Vec<u32> {
    let me = std::process::id();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != me)
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(marker)
        })
        .collect()
}

/// Waits until `condition` holds; fails after ten seconds.
pub(crate) fn until(what: &str, condition: impl Fn() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !condition() {
        assert!(std::time::Instant::now() < end, "{what} did not come true");
        std::thread::yield_now();
    }
}

/// Watches that `condition` holds for so many milliseconds.
pub(crate) fn holds_for(millis: u64, condition: impl Fn() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_millis(millis);
    while std::time::Instant::now() < end {
        assert!(condition(), "it did not stay so");
        std::thread::yield_now();
    }
}

pub(crate) fn unique(word: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!(
        "{word}-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

pub(crate) fn path(text: &str) -> PathBuf {
    text.into()
}
