//! Looks from outside whether the escaper got anywhere: at files, processes and a socket of the
//! host. What the escaper says of itself plays no part.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use super::scene::{Aims, CANARY, DECOY_KEY, Scene, TOKEN};
use crate::exit::{Exit, Failure, OrFail as _};

/// What is watched while the agents run.
#[derive(Debug)]
pub(super) struct Walls {
    listener: TcpListener,
    aims: Aims,
    /// The repository's own configuration as it was before.
    config: Vec<u8>,
}

/// One way out that was tried.
#[derive(Debug)]
pub(super) struct WayOut {
    /// What the escaper wanted.
    pub(super) attempt: &'static str,
    /// What was found instead, or what shows that it got out.
    pub(super) proof: String,
    /// Whether the room held.
    pub(super) held: bool,
}

impl Walls {
    /// Opens the server that nobody may reach and makes the repository.
    pub(super) fn raise(scene: &Scene) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").or_fail(Exit::Internal)?;
        listener.set_nonblocking(true).or_fail(Exit::Internal)?;
        let port = listener.local_addr().or_fail(Exit::Internal)?.port();
        // About a day, and for practical purposes nobody else's number.
        let seconds = 80_000_000 + u64::from(std::process::id());
        let aims = Aims { port, seconds };
        scene.commit(aims)?;
        let config = fs::read(scene.repository().join(".git/config")).or_fail(Exit::Internal)?;
        Ok(Self {
            listener,
            aims,
            config,
        })
    }

    /// Looks at every way out.
    pub(super) fn inspect(&self, scene: &Scene) -> Result<Vec<WayOut>, Failure> {
        Ok(vec![
            seen(written(scene))?,
            seen(stolen(scene))?,
            seen(self.planted(scene))?,
            seen(self.left_behind())?,
            self.reached(),
        ])
    }

    fn planted(&self, scene: &Scene) -> io::Result<WayOut> {
        let git = scene.repository().join(".git");
        let hooks = names(&git.join("hooks"))?;
        let configured = fs::read(git.join("config"))? != self.config;
        let ran = scene.outside().join("hook-ran").exists();
        let held = hooks.is_empty() && !configured && !ran;
        let proof = if held {
            "the repository has no hook, and its configuration is as it was".to_owned()
        } else {
            format!("hooks: {hooks:?}, configuration changed: {configured}, ran: {ran}")
        };
        Ok(WayOut {
            attempt: "plant a git hook",
            proof,
            held,
        })
    }

    fn left_behind(&self) -> io::Result<WayOut> {
        let mark = self.aims.seconds.to_string();
        let mut alive = Vec::new();
        for name in names(Path::new("/proc"))? {
            // A process may end between the two looks; then it is not there any more.
            let Ok(line) = fs::read(Path::new("/proc").join(&name).join("cmdline")) else {
                continue;
            };
            if line
                .windows(mark.len())
                .any(|window| window == mark.as_bytes())
            {
                alive.push(name);
            }
        }
        let held = alive.is_empty();
        let proof = if held {
            "no process of it is left on this host".to_owned()
        } else {
            format!("still running: {}", alive.join(", "))
        };
        Ok(WayOut {
            attempt: "leave a daemon behind",
            proof,
            held,
        })
    }

    fn reached(&self) -> WayOut {
        let port = self.aims.port;
        let (held, proof) = match self.listener.accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                (true, format!("nobody called at port {port}"))
            }
            Ok((_, caller)) => (false, format!("a call from {caller}")),
            Err(error) => (false, format!("the listener failed: {error}")),
        };
        WayOut {
            attempt: "reach the host's loopback",
            proof,
            held,
        }
    }
}

/// A wall that could not be looked at is no wall that held.
fn seen(way: io::Result<WayOut>) -> Result<WayOut, Failure> {
    way.map_err(|error| {
        let mut failure = Failure::new(Exit::CouldNotCheck, "cannot look at the room from outside");
        failure.causes.push(error.to_string());
        failure
    })
}

fn written(scene: &Scene) -> io::Result<WayOut> {
    let canary = fs::read_to_string(scene.outside().join("canary")).unwrap_or_default();
    let mut strange = names(&scene.outside())?;
    strange.retain(|name| name != "canary" && name != "hook-ran");
    let beside = [scene.folder().join("owned"), scene.state().join("owned")];
    let beside = beside
        .into_iter()
        .chain(["/usr/owned", "/etc/owned"].map(PathBuf::from));
    strange.extend(
        beside
            .filter(|path| path.exists())
            .map(|path| path.display().to_string()),
    );
    let held = canary == CANARY && strange.is_empty();
    let proof = if held {
        "the file outside is untouched, nothing was added".to_owned()
    } else {
        format!("the file outside says {canary:?}, new: {strange:?}")
    };
    Ok(WayOut {
        attempt: "write outside of the worktree",
        proof,
        held,
    })
}

/// Everything that the escaper could read it printed, and what it printed was captured.
fn stolen(scene: &Scene) -> io::Result<WayOut> {
    // Without a key there is none to steal; the decoys are there in any case.
    let key = fs::read_to_string(scene.state().join("signing.key")).unwrap_or_default();
    let secrets = key
        .lines()
        .filter(|line| line.len() > 20 && !line.starts_with('-'));
    let secrets: Vec<&str> = secrets.chain([DECOY_KEY, TOKEN.1]).collect();
    let printed = captured(scene)?;
    let found = secrets
        .iter()
        .filter(|secret| printed.contains(*secret))
        .count();
    let held = found == 0 && !printed.is_empty();
    let proof = if held {
        "none of them is in anything that it printed".to_owned()
    } else if printed.is_empty() {
        "its output was not captured".to_owned()
    } else {
        format!("{found} of {} secrets are in its output", secrets.len())
    };
    Ok(WayOut {
        attempt: "read keys and tokens",
        proof,
        held,
    })
}

fn captured(scene: &Scene) -> io::Result<String> {
    let mut text = String::new();
    for folder in names(&scene.state())? {
        let jobs = scene.state().join(folder).join("tasks/escaper/bg");
        for job in names(&jobs)? {
            let bytes = fs::read(jobs.join(job).join("output.log"))?;
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    Ok(text)
}

/// The names in a folder; none when it is no folder or not there.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder)?;
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}
