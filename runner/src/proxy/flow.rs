//! Bytes from one end to another: in order, as they come, no faster than they are taken, until nothing more happens.
//!
//! Must never keep more than one piece.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout_at};

/// A connection over which nothing goes for so long is over. Models think for minutes.
const IDLE: Duration = Duration::from_mins(15);
/// The same when the client has said all and may be gone.
const IDLE_AFTER_END: Duration = Duration::from_mins(1);
/// Bytes under way in one direction.
const PIECE: usize = 16 << 10;

/// When something last went over a connection, in whichever direction.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    last_ms: AtomicU64,
    idle_ms: AtomicU64,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            last_ms: AtomicU64::new(0),
            idle_ms: AtomicU64::new(millis(IDLE)),
        }
    }

    /// The client has ended its side.
    pub(super) fn client_ended(&self) {
        self.tick();
        self.idle_ms
            .store(millis(IDLE_AFTER_END), Ordering::Relaxed);
    }

    fn tick(&self) {
        self.last_ms
            .store(millis(self.start.elapsed()), Ordering::Relaxed);
    }

    fn deadline(&self) -> Instant {
        let last = self.last_ms.load(Ordering::Relaxed);
        let idle = self.idle_ms.load(Ordering::Relaxed);
        self.start + Duration::from_millis(last.saturating_add(idle))
    }

    /// Waits for a step, as long as anything happens on the connection.
    pub(super) async fn wait<T>(&self, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let mut step = std::pin::pin!(step);
        loop {
            let deadline = self.deadline();
            match timeout_at(deadline, &mut step).await {
                Ok(done) => {
                    self.tick();
                    return done;
                }
                // The other direction has moved meanwhile.
                Err(_) if self.deadline() > Instant::now() => {}
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Passes everything on to the end, and the end as well.
pub(super) async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    clock: &Clock,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let count = clock.wait(from.read(&mut piece)).await?;
        if count == 0 {
            return clock.wait(to.shutdown()).await;
        }
        put(&mut to, piece.get(..count).unwrap_or_default(), clock).await?;
    }
}

/// Hands over a piece, so that it goes at once.
pub(super) async fn put(
    to: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    clock: &Clock,
) -> io::Result<()> {
    clock.wait(to.write_all(bytes)).await?;
    clock.wait(to.flush()).await
}
