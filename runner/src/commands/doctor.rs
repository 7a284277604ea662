//! `doctor`: what this host and repository offer, found by trying, with what to mend. Changes
//! nothing but our own folders.

use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox::{WallState, Walls};
use serde_json::{Value, json};
use worktrees::Repository;

use crate::cli::Globals;
use crate::commands::agents::look;
use crate::config;
use crate::exit::{Exit, Failure};
use crate::home::StateRoot;
use crate::keyring;
use crate::place::here;
use crate::proxy;
use crate::reporter::Console;
use crate::toolchain::Language;

/// Say what this host can do, and what to mend.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  airlock doctor           a line for each wall and each thing that a task needs
  airlock doctor --json    the same for scripts

Exit code 30 when no room can be had on this host, 0 otherwise.")]
pub struct Args {}

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// As it should be.
    Good,
    /// Works, with less.
    Warn,
    /// Not there, and needed.
    Missing,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Warn => "warn",
            Self::Missing => "missing",
        }
    }
}

/// One line of the answer.
#[derive(Debug)]
struct Line {
    name: String,
    state: State,
    detail: String,
    fix: Option<String>,
}

impl Line {
    fn new(name: impl Into<String>, state: State, detail: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state,
            detail: detail.into(),
            fix: None,
        }
    }

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    fn object(&self) -> Value {
        json!({"name": self.name, "state": self.state.as_str(), "detail": self.detail, "fix": self.fix})
    }
}

/// Looks at everything.
pub fn run(globals: &Globals, console: &Console, _args: Args) -> Result<Exit, Failure> {
    let probed = sandbox::probe();
    let can_confine = probed.is_ok();
    let mut lines = match &probed {
        Ok(walls) => of_walls(walls),
        Err(missing) => vec![
            Line::new(
                "room",
                State::Missing,
                format!("{}; {}", missing.problem, missing.cause),
            )
            .fix(&missing.fix),
        ],
    };
    lines.push(kernel());
    lines.push(git());
    lines.push(certificates());
    lines.extend(of_state());
    lines.extend(of_repository(globals));
    lines.extend(toolchains());
    lines.extend(agents());
    if console.is_json() {
        let list: Vec<Value> = lines.iter().map(Line::object).collect();
        console.json(&json!({"schema": 1, "sandbox": can_confine, "checks": list}));
    } else {
        show(console, &lines);
    }
    Ok(if can_confine {
        Exit::Ok
    } else {
        Exit::SandboxUnavailable
    })
}

fn show(console: &Console, lines: &[Line]) {
    let row = |line: &Line| {
        vec![
            line.name.clone(),
            line.state.as_str().to_owned(),
            line.detail.clone(),
        ]
    };
    console.table(
        &["CHECK", "STATE", "DETAIL"],
        &lines.iter().map(row).collect::<Vec<_>>(),
    );
    for line in lines {
        if let Some(fix) = &line.fix {
            console.data(&format!("\n{}: {fix}", line.name));
        }
    }
}

fn of_walls(walls: &Walls) -> Vec<Line> {
    let room = Line::new("room", State::Good, "a trial command ran in a whole room");
    let bwrap = Line::new(
        "bubblewrap",
        State::Good,
        format!("{} at {}", walls.version, walls.bwrap.display()),
    );
    let each = walls.walls.iter().map(|wall| {
        let state = match wall.state {
            WallState::On | WallState::NotNeeded => State::Good,
            WallState::Off => State::Warn,
        };
        Line::new(wall.name, state, wall.detail.clone())
    });
    let limits = walls.limits.iter().map(|mechanism| {
        let state = if mechanism.weaker {
            State::Warn
        } else {
            State::Good
        };
        Line::new(
            format!("limit: {}", mechanism.limit),
            state,
            mechanism.how.clone(),
        )
    });
    [room, bwrap]
        .into_iter()
        .chain(each)
        .chain(limits)
        .collect()
}

fn kernel() -> Line {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    let machine = uname.machine().to_string_lossy().into_owned();
    let mut numbers = release
        .split(['.', '-'])
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let line = Line::new(
        "kernel",
        State::Good,
        format!("Linux {release} on {machine}"),
    );
    if version < (5, 12) {
        return Line {
            state: State::Warn,
            ..line
        }
        .fix("Linux 5.12 or newer has what a room needs");
    }
    line
}

/// Airlock does its git work itself; the program only matters to the people and agents beside it.
fn git() -> Line {
    let answer = Command::new("git")
        .arg("--version")
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .output();
    match answer {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            Line::new(
                "git",
                State::Good,
                text.trim().trim_start_matches("git version ").to_owned(),
            )
        }
        Ok(_) | Err(_) => Line::new(
            "git",
            State::Warn,
            "no git program in /usr/local/bin, /usr/bin or /bin",
        )
        .fix("install the package git: Airlock itself does without, agents in a room do not"),
    }
}

/// What the proxy checks the upstream of a credential with; nothing else needs it.
fn certificates() -> Line {
    match proxy::certificates() {
        Ok(count) => {
            let detail = format!("{count} to check the upstreams of credentials with");
            Line::new("certificates", State::Good, detail)
        }
        Err(error) => Line::new("certificates", State::Warn, error.to_string()).fix(
            "install the package ca-certificates, or name a file in SSL_CERT_FILE: credentials need it",
        ),
    }
}

fn of_state() -> Vec<Line> {
    let root = match StateRoot::from_env() {
        Ok(root) => root,
        Err(error) => {
            let failure = Failure::from(error);
            let line = Line::new("state root", State::Missing, failure.to_string());
            return vec![line.fix(failure.next.unwrap_or_default())];
        }
    };
    let key = match keyring::public(&root) {
        Ok(Some(key)) => Line::new("signing key", State::Good, format!("key id {}", key.id())),
        Ok(None) => Line::new(
            "signing key",
            State::Good,
            "none yet; made with the first evidence",
        ),
        Err(error) => {
            let failure = Failure::from(error);
            let line = Line::new("signing key", State::Missing, failure.to_string());
            line.fix(
                failure
                    .next
                    .unwrap_or_else(|| format!("look at {}", root.signing_key().display())),
            )
        }
    };
    vec![disk(root.path()), key]
}

/// What kind of disk keeps the state: locks and durable writes must mean something there.
fn disk(path: &Path) -> Line {
    let shown = path.display();
    let stat = match nix::sys::statvfs::statvfs(path) {
        Ok(stat) => stat,
        Err(errno) => return Line::new("state root", State::Warn, format!("{shown}: {errno}")),
    };
    let free = stat.blocks_available().saturating_mul(stat.fragment_size()) >> 20;
    let kind = nix::sys::statfs::statfs(path)
        .map_or("unknown", |stat| disk_name(stat.filesystem_type().0));
    let line = Line::new(
        "state root",
        State::Good,
        format!("{shown} on {kind}, {free} MiB free"),
    );
    if matches!(kind, "nfs" | "cifs" | "9p" | "fuse") {
        return Line { state: State::Warn, ..line }
            .fix("file locks may not hold on this kind of disk: set AIRLOCK_STATE to a folder on a local one");
    }
    if free < 512 {
        return Line {
            state: State::Warn,
            ..line
        }
        .fix("a task needs room for a checkout: free some, or set AIRLOCK_STATE");
    }
    line
}

fn disk_name(magic: i64) -> &'static str {
    match magic {
        0xEF53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683E => "btrfs",
        0x2FC1_2FC1 => "zfs",
        0xCA45_1A4E => "bcachefs",
        0xF2F5_2010 => "f2fs",
        0x0102_1994 => "tmpfs",
        0x794C_7630 => "overlayfs",
        0x6969 => "nfs",
        0xFF53_4D42 | 0xFE53_4D42 => "cifs",
        0x0102_1997 => "9p",
        0x6573_5546 => "fuse",
        _ => "another file system",
    }
}

fn of_repository(globals: &Globals) -> Vec<Line> {
    let repository = match Repository::discover(&here(globals)) {
        Ok(repository) => repository,
        Err(worktrees::OpenError::NotARepository { .. }) => {
            let detail = "not in a git repository, so nothing of one was looked at";
            return vec![Line::new("repository", State::Good, detail)];
        }
        Err(error) => {
            let failure = Failure::caused(Exit::Usage, &error);
            return vec![Line::new("repository", State::Missing, failure.to_string())];
        }
    };
    let head = match repository.resolve("HEAD") {
        Ok(head) => head,
        Err(error) => {
            let line = Line::new(
                "repository",
                State::Missing,
                Failure::caused(Exit::Usage, &error).to_string(),
            );
            return vec![line.fix("a task starts from a commit: make one")];
        }
    };
    let supported = match repository.refuse_unsupported(head) {
        Ok(()) => Line::new(
            "repository",
            State::Good,
            format!("{} at {head}", repository.common_dir().display()),
        ),
        Err(error) => Line::new(
            "repository",
            State::Missing,
            Failure::caused(Exit::Usage, &error).to_string(),
        )
        .fix("tasks cannot run here; `airlock gate` may"),
    };
    let configured = match config::files(&repository, head) {
        Ok(files) => {
            let asks = config::asks(&files.repository).len();
            let detail = match asks {
                0 => "config.toml and airlock.toml can be read".to_owned(),
                count => format!(
                    "airlock.toml asks for {count} things beyond your own configuration; see `airlock trust`"
                ),
            };
            Line::new("configuration", State::Good, detail)
        }
        Err(failure) => Line::new("configuration", State::Missing, failure.to_string())
            .fix("mend the line that is named"),
    };
    vec![supported, configured]
}

/// What a room can have of each toolchain.
fn toolchains() -> Vec<Line> {
    let line = |(language, parts): (Language, Vec<PathBuf>)| {
        let name = format!("toolchain {}", language.as_str());
        let parts: Vec<String> = parts
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        if parts.is_empty() {
            return Line::new(name, State::Good, "not here; nothing is shown of it");
        }
        Line::new(name, State::Good, parts.join(", "))
    };
    config::toolchains_here().into_iter().map(line).collect()
}

/// Named agents that are installed here.
fn agents() -> Vec<Line> {
    let agents = match config::agents_of_the_user() {
        Ok(agents) => agents,
        Err(failure) => {
            let line = Line::new("agents", State::Missing, failure.to_string());
            return vec![line.fix("mend the line that is named")];
        }
    };
    let caller = std::env::vars_os().collect();
    let found = agents
        .into_iter()
        .map(|(name, agent)| look::one(name, agent, &caller));
    found.filter_map(|found| of_agent(&found)).collect()
}

fn of_agent(found: &look::Found) -> Option<Line> {
    let program = found.program.as_ref()?;
    let detail = format!("{}, credential: {}", program.display(), found.credential());
    let name = format!("agent {}", found.name);
    if found.credential() != "none" {
        return Some(Line::new(name, State::Good, detail));
    }
    let variables = found.variables();
    let fix = if variables.is_empty() {
        "its profile names no variable with a credential: hand over what it needs with --env"
            .to_owned()
    } else {
        format!(
            "a room does not see how it is signed in at home: set {}",
            variables.join(" or ")
        )
    };
    Some(Line::new(name, State::Warn, detail).fix(fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_one_of_three_states() {
        let line = Line::new("x", State::Missing, "d").fix("f");
        assert_eq!(
            line.object(),
            json!({"name": "x", "state": "missing", "detail": "d", "fix": "f"})
        );
        assert_eq!(
            [State::Good, State::Warn].map(State::as_str),
            ["ok", "warn"]
        );
    }

    #[test]
    fn the_kernel_is_named() {
        let line = kernel();
        assert!(line.detail.starts_with("Linux "), "{}", line.detail);
    }
}
