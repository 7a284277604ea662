//! Which walls this host offers, found by building them: the real room around `true`.
//!
//! Must never answer from a version number alone what can be tried.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::denial::{DENIALS, Denials};
use crate::error::{RoomError, Unavailable};
use crate::mechanism::{self, Mechanism};
use crate::outcome::{Exit, Outcome};
use crate::spec::{JobSpec, Layer, Limits, Net, RoomSpec};
use crate::{Room, bwrap, environment};

/// All walls, for `doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walls {
    /// Where bubblewrap is.
    pub bwrap: PathBuf,
    /// What it says its version is.
    pub version: String,
    /// Each wall.
    pub walls: Vec<Wall>,
    /// How each limit is kept.
    pub limits: Vec<Mechanism>,
}

/// One wall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wall {
    /// Its name.
    pub name: &'static str,
    /// Whether it stands.
    pub state: WallState,
    /// What it rests on here.
    pub detail: String,
}

/// Whether a wall stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WallState {
    /// It does.
    On,
    /// It does not; the room stands without it.
    Off,
    /// It is not needed for this user.
    NotNeeded,
}

/// What the job of the probe tells: its own status, its network, its landing place.
const SCRIPT: &str = "exec 2>&1; cat /proc/self/status; echo ==; cat /proc/net/dev; echo ==; unshare -U true && echo nested; echo ==; echo x > ~/layer/x && echo layered";

/// Builds a room with all walls and looks at it from inside. Comes back with what failed if it cannot be built.
pub fn probe() -> Result<Walls, Unavailable> {
    let path = bwrap::find_bwrap()?;
    let version = version(&path);
    let folder = Scratch::new()?;
    let seen = look(&folder.0)?;
    // The trial command makes a call that every room refuses.
    let told = Denials::read(&folder.0.join(DENIALS)).is_ok_and(|denials| denials.total() > 0);
    Ok(Walls {
        bwrap: path,
        version,
        walls: walls(&seen, told),
        limits: mechanism::all(&folder.0),
    })
}

fn version(path: &Path) -> String {
    let output = Command::new(path).arg("--version").env_clear().output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    text.trim().trim_start_matches("bubblewrap ").to_owned()
}

fn look(folder: &Path) -> Result<String, Unavailable> {
    let room = RoomSpec {
        task: "probe".into(),
        locks: folder.join("locks"),
        tree: folder.join("tree"),
        writable: true,
        mount_at: "/workspace/probe".into(),
        git: None,
        bg: folder.join("bg"),
        sub: folder.join("sub"),
        feedback: folder.join("feedback"),
        outbox: folder.join("outbox"),
        ro: Vec::new(),
        rw: Vec::new(),
        tools: Vec::new(),
        layers: layer(folder),
        forbidden: Vec::new(),
        net: Net::None,
        home_bytes: 1 << 20,
        home_files: std::collections::BTreeMap::new(),
        tmp_bytes: 1 << 20,
        repo_owner: (0, 0),
    };
    let job = JobSpec {
        job: "true".into(),
        dir: folder.join("bg/true"),
        argv: ["/bin/sh", "-c", SCRIPT].map(Into::into).to_vec(),
        env: environment::room_environment(),
        cwd: room.mount_at.clone(),
        timeout_ms: Some(20_000),
        idle_ms: None,
        grace_ms: 0,
        output_cap: 1 << 20,
        limits: Limits::default(),
        watched: Vec::new(),
        denials: folder.join(DENIALS),
        stdin: Vec::new(),
    };
    let opened = Room::open(&room).map_err(unavailable)?;
    let outcome = opened.start(&job).map_err(unavailable)?.wait();
    opened.close();
    judged(&outcome, &job)
}

/// Something to put a layer over; none where it has no plain path.
fn layer(folder: &Path) -> Vec<Layer> {
    let from = folder.join("layer");
    let made = std::fs::create_dir(&from).and_then(|()| std::fs::canonicalize(&from));
    let at = Path::new(environment::HOME).join("layer");
    let layer = made.map(|from| Layer {
        from,
        at,
        writable: true,
    });
    layer.into_iter().collect()
}

fn judged(outcome: &Outcome, job: &JobSpec) -> Result<String, Unavailable> {
    if let Exit::Code(_) = outcome.exit {
        let log = std::fs::read_to_string(job.dir.join(crate::keeper::LOG));
        return Ok(log.unwrap_or_default());
    }
    Err(Unavailable {
        problem: format!("a trial command in the room ended with {:?}", outcome.exit),
        cause: "the room was built, and the command in it could not run".into(),
        fix: "look at the kernel's log (dmesg) for a refusal".into(),
    })
}

fn unavailable(error: RoomError) -> Unavailable {
    if let RoomError::Unavailable(unavailable) = error {
        return unavailable;
    }
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    let problem = format!("{error}: {}", cause.unwrap_or_default());
    Unavailable {
        problem,
        cause: "a step of building the room failed".into(),
        fix: "see the path and the error above; Linux 5.12 or newer is needed".into(),
    }
}

fn walls(seen: &str, told: bool) -> Vec<Wall> {
    let mut parts = seen.split("==\n");
    let status = parts.next().unwrap_or_default();
    let network = parts.next().unwrap_or_default();
    let nested = parts.next().unwrap_or_default();
    let layers = parts.next().unwrap_or_default().contains("layered");
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let on = |name, good: bool, detail: String| Wall {
        name,
        state: if good { WallState::On } else { WallState::Off },
        detail,
    };
    let capabilities = field("CapBnd").unwrap_or_default();
    let filter = field("Seccomp").unwrap_or_default();
    let pids = field("NSpid").unwrap_or_default();
    let interfaces = network.lines().skip(2).count();
    vec![
        on("user namespace", true, "the room was built in it".into()),
        on(
            "pid namespace",
            !pids.is_empty(),
            format!("pids inside: {pids}"),
        ),
        on(
            "network namespace",
            interfaces == 1,
            format!("{interfaces} interface: loopback"),
        ),
        on(
            "no nested user namespaces",
            !nested.contains("nested"),
            "bwrap --disable-userns".into(),
        ),
        on(
            "no capabilities",
            capabilities.bytes().all(|byte| byte == b'0'),
            format!("CapBnd {capabilities}"),
        ),
        on(
            "no new privileges",
            field("NoNewPrivs").as_deref() == Some("1"),
            "prctl".into(),
        ),
        on(
            "system call filter",
            filter == "2",
            format!("seccomp mode {filter}"),
        ),
        on(
            "refused calls are recorded",
            told,
            if told {
                "the keeper is told of each (seccomp user notification)".into()
            } else {
                "refused all the same; this kernel, or a sandbox around this one, does not let us be told".into()
            },
        ),
        landlock(),
        root_drop(field("Uid").unwrap_or_default().as_str()),
        on("private layers over caches", layers, layers_rest_on(layers)),
    ]
}

fn layers_rest_on(there: bool) -> String {
    let how = if there {
        "overlays: a room may write to a copy of its own"
    } else {
        "no overlays here: rooms see caches read-only"
    };
    how.to_owned()
}

fn landlock() -> Wall {
    let enabled = std::fs::read_to_string("/sys/kernel/security/lsm").ok();
    let version = landlock_version();
    let named = enabled.is_none_or(|list| list.contains("landlock"));
    Wall {
        name: "Landlock",
        state: if version > 0 && named {
            WallState::On
        } else {
            WallState::Off
        },
        detail: format!("ABI {version}"),
    }
}

/// The version that the kernel offers; 0 without Landlock.
fn landlock_version() -> i64 {
    crate::sys::landlock_version()
}

fn root_drop(uids: &str) -> Wall {
    let uid = uids
        .split_ascii_whitespace()
        .next()
        .unwrap_or("?")
        .to_owned();
    if rustix::process::geteuid().is_root() {
        let state = if uid == "0" || uid == "?" {
            WallState::Off
        } else {
            WallState::On
        };
        return Wall {
            name: "root is given up",
            state,
            detail: format!("jobs run as uid {uid}"),
        };
    }
    Wall {
        name: "root is given up",
        state: WallState::NotNeeded,
        detail: "not started by root".into(),
    }
}

/// A folder for the probe, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Unavailable> {
        let unique = crate::warden::nonce().unwrap_or_else(|_error| std::process::id().to_string());
        let path = std::env::temp_dir().join(format!("airlock-probe-{unique}"));
        let made = std::fs::create_dir(&path).and_then(|()| std::fs::create_dir(path.join("tree")));
        match made {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(Unavailable {
                problem: format!(
                    "cannot make a folder for a trial room in {}",
                    path.display()
                ),
                cause: error.to_string(),
                fix: "set TMPDIR to a folder that you can write".into(),
            }),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Ours alone, never shown to anybody but the trial command; a rest in the temporary folder does no harm.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
