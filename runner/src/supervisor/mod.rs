//! The supervisor: one process for each state folder, started when a command needs it and gone when
//! nothing is left to do. It holds the folder's lock, is the only writer of the event store, and
//! carries tasks through their life. It may be killed at any moment: keepers go on without it, and
//! the next one takes their jobs up from events and files.

mod connection;
mod opening;
mod recorder;
mod registry;
pub mod wire;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::process::ExitCode;

use sandbox::HeldLock;
use tokio::net::UnixListener;

use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::{StateFolder, StateRoot};
use crate::proxy::Keys;

pub use recorder::{Closed, Recorder, now_ms};
pub use registry::StopRequest;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__supervisor";

/// What the supervisor says to its starter when it can be spoken to.
pub const READY: &str = "ready";

/// What it says when another one already holds the lock.
pub const HELD: &str = "held";

/// Everything that the work on a task needs.
#[derive(Debug, Clone)]
pub struct Shop {
    /// The state root.
    pub root: StateRoot,
    /// The state folder.
    pub folder: StateFolder,
    /// The event store.
    pub recorder: Recorder,
    /// Values of credentials, for the proxies of rooms.
    pub keys: Keys,
}

/// Runs until idle. The argument is the state folder.
pub fn main(args: &[OsString]) -> ExitCode {
    // A starter that stands in a session of its own must not take the supervisor with it.
    nix::unistd::setsid().ok();
    crate::proxy::more_descriptors();
    let mut said = io::stdout().lock();
    match open(args) {
        Ok(Some((shop, lock, listener))) => {
            let told = writeln!(said, "{READY}").and_then(|()| said.flush());
            drop(said);
            release_stdout();
            let ran = told
                .or_fail(Exit::Internal)
                .and_then(|()| run(&shop, listener));
            fs::remove_file(shop.folder.path().join(StateFolder::SOCKET)).ok();
            drop(lock);
            ran.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
        }
        Ok(None) => {
            writeln!(said, "{HELD}").ok();
            ExitCode::SUCCESS
        }
        Err(failure) => {
            let text = serde_json::to_string(&failure).unwrap_or_default();
            writeln!(said, "{text}").ok();
            ExitCode::FAILURE
        }
    }
}

type Opened = (Shop, HeldLock, std::os::unix::net::UnixListener);

fn open(args: &[OsString]) -> Result<Option<Opened>, Failure> {
    let [folder] = args else {
        return Err(Failure::new(
            Exit::Internal,
            "the supervisor was started without its folder",
        ));
    };
    let folder = StateFolder::at(PathBuf::from(folder));
    let Some(lock) = HeldLock::try_acquire(&folder.supervisor_lock()).or_fail(Exit::Internal)?
    else {
        return Ok(None);
    };
    let root = StateRoot::from_env()?;
    let recorder = Recorder::start(folder.clone())?;
    let listener = listen(&folder).or_fail(Exit::Internal)?;
    Ok(Some((
        Shop {
            root,
            folder,
            recorder,
            keys: Keys::default(),
        },
        lock,
        listener,
    )))
}

/// Binds below an open folder, since a socket's own path must be shorter than many state roots.
fn listen(folder: &StateFolder) -> io::Result<std::os::unix::net::UnixListener> {
    let opened = fs::File::open(folder.path())?;
    let path = format!(
        "/proc/self/fd/{}/{}",
        opened.as_raw_fd(),
        StateFolder::SOCKET
    );
    // The lock is ours, so whoever left a socket here is gone.
    fs::remove_file(&path).ok();
    let listener = std::os::unix::net::UnixListener::bind(&path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The starter waits for the end of our output; only the one line was meant for it.
fn release_stdout() {
    if let Ok(null) = fs::OpenOptions::new().write(true).open("/dev/null") {
        rustix::stdio::dup2_stdout(&null).ok();
    }
}

fn run(shop: &Shop, listener: std::os::unix::net::UnixListener) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_fail(Exit::Internal)?;
    runtime.block_on(async {
        let listener = UnixListener::from_std(listener).or_fail(Exit::Internal)?;
        registry::serve(shop.clone(), listener).await
    })
}
