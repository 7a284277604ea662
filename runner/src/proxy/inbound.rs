//! A connection from the room, and what has been read of it and not been used yet.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a whole head may take to come, in however many pieces.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a client is heard out that has its answer.
const LAST: Duration = Duration::from_secs(10);
/// Bytes that are read at once.
const PIECE: usize = 16 << 10;

/// The room's end.
#[derive(Debug)]
pub(super) struct Inbound {
    reading: ReadHalf<UnixStream>,
    pub(super) writing: WriteHalf<UnixStream>,
    /// Read and not used yet.
    pub(super) buffer: Vec<u8>,
    /// When the head that is being read must be there.
    deadline: Instant,
}

/// The reading side alone.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) stream: ReadHalf<UnixStream>,
    /// Read and not used yet.
    pub(super) buffer: Vec<u8>,
}

impl Inbound {
    pub(super) fn new(stream: UnixStream) -> Self {
        let (reading, writing) = tokio::io::split(stream);
        Self {
            reading,
            writing,
            buffer: Vec::new(),
            deadline: Instant::now() + PATIENCE,
        }
    }

    /// What comes now is another head, with a time of its own.
    pub(super) fn begin(&mut self) {
        self.deadline = Instant::now() + PATIENCE;
    }

    /// Reads until `parse` has understood something whole, and takes it out. `None`: the client went away before. The
    /// readers of heads bound what is kept: they refuse what is too long.
    pub(super) async fn read<T, E>(
        &mut self,
        parse: impl Fn(&[u8]) -> Result<Option<(usize, T)>, E>,
    ) -> Result<Option<T>, E> {
        self.begin();
        loop {
            if let Some((used, whole)) = parse(&self.buffer)? {
                self.buffer.drain(..used.min(self.buffer.len()));
                return Ok(Some(whole));
            }
            if !self.more().await {
                return Ok(None);
            }
        }
    }

    /// Reads on. `false`: nothing more comes, or the time for this head is over.
    pub(super) async fn more(&mut self) -> bool {
        // What is ready is read even after a deadline: one that always has a byte ready is late all the same.
        if Instant::now() >= self.deadline {
            return false;
        }
        let read = fill(&mut self.reading, &mut self.buffer);
        matches!(timeout_at(self.deadline, read).await, Ok(Ok(count)) if count > 0)
    }

    /// Says something; a client that has gone does not hear it.
    pub(super) async fn say(&mut self, bytes: &[u8]) {
        self.writing.write_all(bytes).await.ok();
    }

    /// Says the last word, and hears the client out.
    pub(super) async fn end(mut self, bytes: &[u8]) {
        self.say(bytes).await;
        self.writing.shutdown().await.ok();
        hear_out(&mut self.reading, &mut self.buffer).await;
    }

    pub(super) fn split(self) -> (Reading, WriteHalf<UnixStream>) {
        let reading = Reading {
            stream: self.reading,
            buffer: self.buffer,
        };
        (reading, self.writing)
    }
}

/// Lets a client say what it still has to say, for a while: one that is cut off in the middle of a body may never read
/// the answer that it was given.
pub(super) async fn hear_out(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) {
    let all = async {
        loop {
            buffer.clear();
            if !matches!(fill(stream, buffer).await, Ok(count) if count > 0) {
                return;
            }
        }
    };
    timeout(LAST, all).await.ok();
}

/// Appends what comes next; how many bytes that were.
pub(super) async fn fill(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<usize> {
    buffer.reserve(PIECE);
    stream.read_buf(buffer).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_one_time_however_it_is_cut() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (mut client, server) = UnixStream::pair().unwrap();
            let mut inbound = Inbound::new(server);
            client.write_all(b"G").await.unwrap();
            let given = inbound.deadline;
            assert!(inbound.more().await);
            assert_eq!(inbound.deadline, given, "a byte is worth no time");
            client.write_all(b"E").await.unwrap();
            inbound.deadline = Instant::now();
            assert!(!inbound.more().await, "too late, though a byte is there");
            assert_eq!(inbound.buffer, b"G");
            inbound.begin();
            assert!(inbound.more().await);
            assert_eq!(inbound.buffer, b"GE");
        });
    }
}
