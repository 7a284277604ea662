//! The proxy of a room: the only way out of it, one socket for each task. It runs in the supervisor; who connects is told
//! by the socket, never by what is said there. Every request is put to the one policy function of
//! [`sandbox::egress`], and so is every request of a connection that is used again.
//!
//! What is bounded: connections of one task and of all tasks together, the head of a request, what waits in a buffer, how long nothing happens.
//! Must never follow a redirect, connect to another address than the one that was judged, or put a credential on a
//! connection that others can read.

mod answer;
mod budget;
mod conversation;
mod exchange;
mod flow;
mod inbound;
mod keys;
mod mask;
mod outbound;
mod routes;

use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::{Arc, mpsc as blocking};
use std::time::Duration;

use sandbox::egress::{Credential, Policy, SOCKET};
use sandbox::{DENIALS, Denial, DenialLog};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::home::TaskFolder;
use crate::task::TaskId;

use budget::Budget;
pub use budget::more_descriptors;
pub use keys::Keys;
use routes::Routes;
pub use routes::{RootsError, certificates};

/// How long nothing is accepted after that has failed, as when the host has no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a proxy cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The socket could not be made.
    #[error("cannot make the socket of the room's network")]
    Socket(#[source] io::Error),
    /// Nothing to check the other end's certificate with.
    #[error(transparent)]
    Roots(#[from] RootsError),
}

/// What the proxy of a task is for.
#[derive(Debug, Clone)]
pub struct Order {
    /// The task.
    pub task: TaskId,
    /// What it lets through.
    pub policy: Policy,
    /// The credentials that the policy names.
    pub credentials: Vec<Credential>,
    /// Where their values are.
    pub keys: Keys,
}

/// A proxy at work. It ends when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    /// Dropped, it asks for the end.
    stop: Option<oneshot::Sender<()>>,
    /// Closed when the end has come.
    ended: blocking::Receiver<()>,
}

impl Proxy {
    /// Listens in the task's folder. Only from a blocking thread of the runtime.
    pub fn start(folder: &TaskFolder, order: Order) -> Result<Self, ProxyError> {
        let (denials, told) = mpsc::channel(64);
        let routes = Arc::new(Routes::new(order, denials)?);
        let runtime = Handle::current();
        let listener = listen(&folder.proxy()).map_err(ProxyError::Socket)?;
        let entered = runtime.enter();
        let listener = UnixListener::from_std(listener).map_err(ProxyError::Socket)?;
        drop(entered);
        let (stop, stopped) = oneshot::channel();
        let (ending, ended) = blocking::channel();
        let log = DenialLog::new(&folder.path().join(DENIALS));
        // It is joined by `Drop`, through `ended`.
        drop(runtime.spawn(async move {
            serve(listener, &routes, (log, told), stopped).await;
            drop(ending);
        }));
        Ok(Self {
            stop: Some(stop),
            ended,
        })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        // Nothing is ever sent: the answer is that the other end has gone.
        self.ended.recv().ok();
    }
}

async fn serve(
    listener: UnixListener,
    routes: &Arc<Routes>,
    (mut log, mut told): (DenialLog, mpsc::Receiver<Denial>),
    mut stopped: oneshot::Receiver<()>,
) {
    let budget = Budget::of_this_process();
    let mut connections = JoinSet::new();
    // The one that has been accepted and has no place in the budget yet.
    let mut waiting: Option<UnixStream> = None;
    loop {
        tokio::select! {
            biased;
            _asked = &mut stopped => break,
            Some(denial) = told.recv() => log.note(denial),
            Some(_ended) = connections.join_next(), if !connections.is_empty() => {}
            place = budget.place(), if waiting.is_some() => {
                if let Some(client) = waiting.take() {
                    let routes = Arc::clone(routes);
                    connections.spawn(async move {
                        conversation::hold(client, routes).await;
                        drop(place);
                    });
                }
            }
            accepted = listener.accept(), if waiting.is_none() && connections.len() < budget.of_one_task => {
                match accepted {
                    Ok((client, _address)) => waiting = Some(client),
                    Err(_no_descriptors) => tokio::time::sleep(PAUSE).await,
                }
            }
        }
    }
    connections.shutdown().await;
    while let Ok(denial) = told.try_recv() {
        log.note(denial);
    }
    log.flush();
}

/// Binds below an open folder, since a socket's own path must be shorter than many state roots.
fn listen(folder: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)?;
    // The room's user may be another one; on the host the task's folder keeps everybody else out.
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    let opened = fs::File::open(folder)?;
    let path = format!("/proc/self/fd/{}/{SOCKET}", opened.as_raw_fd());
    // A supervisor that was killed left its own; the relay finds the new one by the same name.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = std::os::unix::net::UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
