//! `bench`: what a whole trivial task costs beside the same steps by hand, in one interleaved run
//! (A B A B), so that a machine that slows down slows both. Works in a folder of its own.

mod floor;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::Globals;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::reporter::Console;

/// Measure a whole trivial task against the same steps by shell, as a ratio in one run.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  airlock bench\n  airlock bench --floor --rounds 100\n  airlock bench --files 5000 --rounds 9 --json"
)]
pub struct Args {
    /// Rounds of each side; the medians are printed.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(3..=1000))]
    rounds: u32,
    /// Files in the repository.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    files: u32,
    /// Only what it costs to start a command in a room
    #[arg(long)]
    floor: bool,
    /// Make the repository below this folder, instead of the one for temporary files.
    #[arg(long, value_name = "DIR")]
    below: Option<PathBuf>,
}

/// The steps that people take today, without gates and evidence.
const BY_HAND: &str = r#"set -e
git worktree add -q -b "$1" "$2"
bwrap --unshare-all --die-with-parent --ro-bind / / --dev /dev --proc /proc --bind "$2" "$2" --chdir "$2" sh -c "$3"
git -C "$2" add -A
git -C "$2" commit -q -m task
git merge -q --ff-only "$1"
git worktree remove --force "$2"
git branch -q -D "$1"
"#;

/// Measures.
pub fn run(_globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let Args {
        rounds,
        files,
        floor: only_floor,
        below,
    } = args;
    let below = below.unwrap_or_else(std::env::temp_dir);
    let place = below.join(format!("airlock-bench-{}", std::process::id()));
    fs::create_dir(&place).or_fail(Exit::Usage)?;
    let bench = Bench {
        repository: place.join("repository"),
        place: place.clone(),
    };
    let measured = bench.make(files).and_then(|()| {
        let floor = bench.floor(console, rounds)?;
        let whole = (!only_floor).then(|| bench.rounds(console, rounds));
        Ok((floor, whole.transpose()?))
    });
    worktrees::remove_tree(&place).or_fail(Exit::Internal)?;
    let (floor, whole) = measured?;
    let mut object = json!({
        "schema": 1, "files": files, "rounds": rounds, "floor": floor.object(),
    });
    if !console.is_json() {
        floor.print(console);
    }
    if let Some(times) = whole {
        tell(console, (files, rounds), times, &mut object);
    }
    if console.is_json() {
        console.json(&object);
    }
    Ok(Exit::Ok)
}

/// The whole task: as a table, or into the object.
fn tell(console: &Console, (files, rounds): (u32, u32), times: Times, object: &mut Value) {
    let Times {
        mut ours,
        mut by_hand,
        first,
    } = times;
    let (ours, by_hand) = (median(&mut ours), median(&mut by_hand));
    let ratio = ours / by_hand;
    if console.is_json() {
        object["airlock_ms"] = ours.into();
        object["by_hand_ms"] = by_hand.into();
        object["ratio"] = ratio.into();
        object["first_ms"] = first.into();
    } else {
        let row = |what: &str, ms: f64, ratio: f64| {
            vec![what.to_owned(), format!("{ms:.1}"), format!("{ratio:.2}")]
        };
        console.table(
            &["a whole trivial task", "median ms", "ratio"],
            &[
                row(
                    "by hand: worktree, bwrap, add, commit, merge, remove",
                    by_hand,
                    1.0,
                ),
                row(
                    "airlock run --merge: the same with gates and evidence",
                    ours,
                    ratio,
                ),
                row(
                    "the very first one, with key and supervisor",
                    first,
                    first / by_hand,
                ),
            ],
        );
        console.talk(&format!(
            "{files} files, {rounds} rounds of each, interleaved"
        ));
    }
}

struct Bench {
    place: PathBuf,
    repository: PathBuf,
}

struct Times {
    ours: Vec<f64>,
    by_hand: Vec<f64>,
    first: f64,
}

impl Bench {
    fn make(&self, files: u32) -> Result<(), Failure> {
        for index in 0..files {
            let folder = self.repository.join(format!("part{}", index / 100));
            fs::create_dir_all(&folder).or_fail(Exit::Internal)?;
            let text = format!("def value_{index}():\n    return {index} * 2\n").repeat(20);
            fs::write(folder.join(format!("module_{index}.py")), text).or_fail(Exit::Internal)?;
        }
        for words in [
            ["init", "-q", "-b", "main"].as_slice(),
            &["add", "-A"],
            &["commit", "-q", "-m", "base"],
        ] {
            let mut git = self.hermetic("git");
            git.args(words);
            finish(git, "git")?;
        }
        Ok(())
    }

    fn rounds(&self, console: &Console, rounds: u32) -> Result<Times, Failure> {
        console.talk(&format!("measuring {rounds} rounds of each side"));
        let mut times = Times {
            ours: Vec::new(),
            by_hand: Vec::new(),
            first: self.ours(0)?,
        };
        for round in 1..=rounds {
            times.by_hand.push(self.by_hand(round)?);
            times.ours.push(self.ours(round)?);
        }
        Ok(times)
    }

    fn ours(&self, round: u32) -> Result<f64, Failure> {
        let mut command = self.hermetic("/proc/self/exe");
        command
            .args(["run", "--merge", "--quiet", "--", "sh", "-c"])
            .arg(work("ours", round));
        timed(command, "airlock run")
    }

    fn by_hand(&self, round: u32) -> Result<f64, Failure> {
        let mut command = self.hermetic("sh");
        let tree = self.place.join(format!("tree-{round}"));
        command
            .args(["-c", BY_HAND, "sh"])
            .arg(format!("hand-{round}"))
            .arg(tree)
            .arg(work("hand", round));
        timed(command, "the steps by hand")
    }

    /// Nothing of the user's configuration takes part in a measurement.
    fn hermetic(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.repository)
            .env("AIRLOCK_STATE", self.place.join("state"))
            .env("XDG_CONFIG_HOME", self.place.join("config"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "bench")
            .env("GIT_AUTHOR_EMAIL", "bench@localhost")
            .env("GIT_COMMITTER_NAME", "bench")
            .env("GIT_COMMITTER_EMAIL", "bench@localhost")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }
}

fn work(side: &str, round: u32) -> String {
    format!("printf 'def add(a, b):\\n    return a + b + {round}\\n' > {side}_{round}.py")
}

fn timed(command: Command, what: &str) -> Result<f64, Failure> {
    let started = Instant::now();
    finish(command, what)?;
    Ok(milliseconds(started.elapsed()))
}

fn finish(mut command: Command, what: &str) -> Result<(), Failure> {
    let output = command.output().or_fail(Exit::Internal)?;
    if output.status.success() {
        return Ok(());
    }
    let mut failure = Failure::new(
        Exit::Internal,
        format!("{what} failed with {}", output.status),
    );
    failure.causes = vec![String::from_utf8_lossy(&output.stderr).trim().to_owned()];
    Err(failure)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
