//! What it costs to start a command behind all walls: `airlock exec` around `true`, beside one bubblewrap that a person
//! starts by hand to have the same walls around the same tree. Wall by wall, all in one interleaved run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use super::{Bench, finish, median, timed};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::StateRoot;
use crate::reporter::Console;

/// The task whose agent is at work: its room is open.
const OPEN: &str = "floor-open";
/// The task that rests: a room is opened for each command.
const REST: &str = "floor-rest";

/// The name of the whole by hand, with which everything is compared.
const BY_HAND: &str = "by hand: + system call filter, all the same walls";

/// One way to start `true`, and how long it took each time, in milliseconds.
struct Way {
    name: &'static str,
    program: &'static str,
    words: Vec<String>,
    times: Vec<f64>,
}

/// What was measured.
pub(super) struct Floor {
    ways: Vec<Way>,
}

impl Bench {
    /// Measures `rounds` of each way.
    pub(super) fn floor(&self, console: &Console, rounds: u32) -> Result<Floor, Failure> {
        console.talk(&format!("measuring {rounds} starts of a command each way"));
        let filter = self.place.join("filter");
        fs::write(&filter, sandbox::system_call_filter().unwrap_or_default())
            .or_fail(Exit::Internal)?;
        let start = |words: &[&str]| {
            let mut command = self.hermetic("/proc/self/exe");
            command.args(words);
            finish(command, "airlock run")
        };
        start(&["run", "-d", "--task", OPEN, "--", "sleep", "3600"])?;
        let script = "echo 'x = 1' > floor.py";
        start(&[
            "run",
            "-q",
            "--task",
            REST,
            "--cleanup",
            "never",
            "--",
            "sh",
            "-c",
            script,
        ])?;
        let measured = self.measure(rounds, &filter);
        start(&["stop", "-q", OPEN])?;
        start(&["rm", "-q", OPEN, "--discard"])?;
        start(&["rm", "-q", REST, "--discard"])?;
        measured
    }

    fn measure(&self, rounds: u32, filter: &Path) -> Result<Floor, Failure> {
        let mut ways = self.ways()?;
        for _ in 0..rounds {
            for way in &mut ways {
                let mut command = self.hermetic(way.program);
                command.args(&way.words);
                if way.name == BY_HAND {
                    command.stdin(Stdio::from(File::open(filter).or_fail(Exit::Internal)?));
                }
                way.times.push(timed(command, way.name)?);
            }
        }
        Ok(Floor { ways })
    }

    fn ways(&self) -> Result<Vec<Way>, Failure> {
        let exec = |task: &str| ["exec", task, "--", "true"].map(str::to_owned).to_vec();
        let ours = "/proc/self/exe";
        let task = self.task_folder()?;
        let mut by_hand: Vec<String> = Vec::new();
        let mut ways = vec![way("true alone", "true", Vec::new())];
        for (name, words) in self.walls(&task) {
            by_hand.extend(words);
            let command = ["--", "true"].map(str::to_owned);
            ways.push(way(name, "bwrap", [by_hand.as_slice(), &command].concat()));
        }
        ways.push(way(
            "airlock alone: its own start",
            ours,
            vec!["--version".to_owned()],
        ));
        ways.push(way(
            "airlock exec, in the open room of a task at work",
            ours,
            exec(OPEN),
        ));
        ways.push(way("airlock exec, a room opened for it", ours, exec(REST)));
        Ok(ways)
    }

    fn task_folder(&self) -> Result<PathBuf, Failure> {
        let repository =
            worktrees::Repository::discover(&self.repository).or_fail(Exit::Internal)?;
        let root = StateRoot::at(self.place.join("state"));
        let folder = root.folder(repository.name(), repository.common_dir())?;
        Ok(folder.task(REST).path().to_owned())
    }

    /// The words of a bubblewrap that builds the room of the task that rests, wall by wall.
    fn walls(&self, task: &Path) -> Vec<(&'static str, Vec<String>)> {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let at = |path: &Path| path.to_string_lossy().into_owned();
        let mut files = words("--ro-bind /usr /usr --ro-bind /etc /etc");
        for name in ["/bin", "/sbin", "/lib", "/lib64"] {
            if let Ok(target) = fs::read_link(name) {
                files.extend(["--symlink".to_owned(), at(&target), name.to_owned()]);
            } else if Path::new(name).exists() {
                files.extend(["--ro-bind", name, name].map(str::to_owned));
            }
        }
        let mut mounts = words(
            "--proc /proc --ro-bind /proc/sys /proc/sys --dev /dev --size 67108864 --tmpfs /dev/shm \
             --remount-ro /dev --size 1073741824 --tmpfs /tmp --size 1073741824 --tmpfs /home/agent",
        );
        let tree = &self.repository;
        let objects = tree.join(".git/objects");
        for (kind, from, to) in [
            ("--bind", task.join("tree"), tree.clone()),
            ("--ro-bind", task.join("tree/.git"), tree.join(".git")),
            ("--bind", task.join("git"), "/run/airlock/git".into()),
            ("--ro-bind", objects, "/run/airlock/objects/0".into()),
            (
                "--ro-bind",
                task.join("feedback"),
                "/run/airlock/feedback".into(),
            ),
            ("--ro-bind", task.join("bg"), tree.join(".bg")),
            ("--ro-bind", task.join("sub"), tree.join(".sub")),
        ] {
            mounts.extend([kind.to_owned(), at(&from), at(&to)]);
        }
        let masks = [
            "keys",
            "key-users",
            "timer_list",
            "kallsyms",
            "kcore",
            "sched_debug",
        ];
        for mask in masks.map(|name| format!("/proc/{name}")) {
            if Path::new(&mask).exists() {
                mounts.extend(["--ro-bind".to_owned(), "/dev/null".to_owned(), mask]);
            }
        }
        mounts.extend(["--remount-ro", "/", "--chdir"].map(str::to_owned));
        mounts.push(at(tree));
        vec![
            ("by hand: bwrap, only the system's files", files),
            (
                "by hand: + namespaces, no capabilities",
                words(
                    "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --disable-userns \
                     --cap-drop ALL --uid 1000 --gid 1000 --hostname airlock --die-with-parent --new-session",
                ),
            ),
            ("by hand: + network namespace", words("--unshare-net")),
            ("by hand: + mounts of the room", mounts),
            (BY_HAND, words("--seccomp 0")),
        ]
    }
}

fn way(name: &'static str, program: &'static str, words: Vec<String>) -> Way {
    Way {
        name,
        program,
        words,
        times: Vec::new(),
    }
}

impl Way {
    fn median(&self) -> f64 {
        median(&mut self.times.clone())
    }

    fn least(&self) -> f64 {
        self.times.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

impl Floor {
    fn by_hand(&self) -> Option<&Way> {
        self.ways.iter().find(|way| way.name == BY_HAND)
    }

    /// Name, least, median, step to the row before, ratio of the medians to the whole by hand.
    fn rows(&self) -> Vec<(&'static str, f64, f64, f64, f64)> {
        let whole = self.by_hand().map_or(f64::NAN, Way::median);
        let mut before = 0.0;
        let rows = self.ways.iter().map(|way| {
            let median = way.median();
            let step = median - before;
            before = median;
            (way.name, way.least(), median, step, median / whole)
        });
        rows.collect()
    }

    pub(super) fn print(&self, console: &Console) {
        let rows: Vec<Vec<String>> = self
            .rows()
            .into_iter()
            .map(|(name, least, median, step, ratio)| {
                let step = if name.starts_with("by hand") {
                    format!("{step:+.1}")
                } else {
                    String::new()
                };
                vec![
                    name.to_owned(),
                    format!("{least:.1}"),
                    format!("{median:.1}"),
                    step,
                    format!("{ratio:.2}"),
                ]
            })
            .collect();
        console.table(
            &[
                "start of a command",
                "least ms",
                "median ms",
                "wall",
                "ratio",
            ],
            &rows,
        );
        console
            .talk("Landlock, warden and keeper are what airlock exec has beyond the walls by hand");
    }

    pub(super) fn object(&self) -> Value {
        let rows = self.rows().into_iter().map(|(name, least, median, step, ratio)| {
            json!({"way": name, "least_ms": least, "median_ms": median, "step_ms": step, "ratio": ratio})
        });
        json!({"compared_with": BY_HAND, "ways": rows.collect::<Vec<_>>()})
    }
}
