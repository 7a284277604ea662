//! Runs one command in a room around a folder: `room FOLDER [--at PATH] [--ro PATH]… [--layer FROM AT]… [--git SHADOW OBJECTS] [--repeat N] -- COMMAND…`.
//! Its output goes to standard output, its exit code is ours; 30 when the room cannot be had. With `--repeat N` the
//! command runs N times in the one room, to see what a job costs.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sandbox::{Exit, GitView, JobSpec, Layer, Limits, Net, Room, RoomError, RoomSpec};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = sandbox::hidden(&args) {
        return code;
    }
    let Some((folder, argv, room, times)) = parse(args) else {
        return told(
            "usage: room FOLDER [--at PATH] [--ro PATH]… [--layer FROM AT]… [--git SHADOW OBJECTS] [--repeat N] -- COMMAND…",
            2,
        );
    };
    match run(&folder, argv, &room, times) {
        Ok(Exit::Code(code)) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Ok(other) => told(&format!("{other:?}"), 20),
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            told(&format!("{error} {}", cause.unwrap_or_default()), 30)
        }
    }
}

/// Folder for the room's own files, command, room, how often.
fn parse(args: Vec<OsString>) -> Option<(PathBuf, Vec<OsString>, RoomSpec, u32)> {
    let mut times = 1;
    let mut words = args.into_iter().skip(1);
    let tree = std::fs::canonicalize(words.next()?).ok()?;
    let folder = std::env::temp_dir().join(format!("airlock-room-{}", std::process::id()));
    let mut room = RoomSpec {
        task: "room".into(),
        locks: folder.join("locks"),
        mount_at: tree.clone(),
        tree,
        writable: true,
        git: None,
        bg: folder.join("bg"),
        sub: folder.join("sub"),
        feedback: folder.join("feedback"),
        outbox: folder.join("outbox"),
        ro: Vec::new(),
        rw: Vec::new(),
        tools: Vec::new(),
        layers: Vec::new(),
        forbidden: vec![folder.clone()],
        net: Net::None,
        home_bytes: 256 << 20,
        home_files: std::collections::BTreeMap::new(),
        tmp_bytes: 256 << 20,
        repo_owner: (0, 0),
    };
    loop {
        match words.next()?.to_str()? {
            "--at" => room.mount_at = words.next()?.into(),
            "--ro" => room.ro.push(words.next()?.into()),
            "--layer" => room.layers.push(Layer {
                from: words.next()?.into(),
                at: words.next()?.into(),
                writable: true,
            }),
            "--git" => {
                let shadow = words.next()?.into();
                room.git = Some(GitView {
                    shadow,
                    objects: vec![words.next()?.into()],
                });
            }
            "--repeat" => times = words.next()?.to_str()?.parse().ok()?,
            "--" => return Some((folder, words.collect(), room, times)),
            _ => return None,
        }
    }
}

fn run(folder: &Path, argv: Vec<OsString>, spec: &RoomSpec, times: u32) -> Result<Exit, RoomError> {
    let job = JobSpec {
        job: "main".into(),
        dir: spec.bg.join("main"),
        argv,
        env: sandbox::room_environment(),
        cwd: spec.mount_at.clone(),
        timeout_ms: Some(60_000),
        idle_ms: None,
        grace_ms: 1_000,
        output_cap: 4 << 20,
        limits: Limits {
            pids: 256,
            ..Limits::default()
        },
        watched: vec![spec.tree.clone()],
        denials: folder.join(sandbox::DENIALS),
        stdin: Vec::new(),
    };
    let room = Room::open(spec)?;
    let mut outcome = room.start(&job)?.wait();
    for _ in 1..times {
        outcome = room.start(&job)?.wait();
    }
    room.close();
    let log = std::fs::read(job.dir.join("output.log")).unwrap_or_default();
    // Nobody to tell when standard output is gone.
    drop(std::io::stdout().write_all(&log));
    drop(std::fs::remove_dir_all(folder));
    Ok(outcome.exit)
}

fn told(text: &str, code: u8) -> ExitCode {
    drop(writeln!(std::io::stderr(), "{text}"));
    ExitCode::from(code)
}
