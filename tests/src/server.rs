//! A server on this host's loopback, for what a room may or may not reach: it notes what it is told, and answers as the
//! test says. It ends with the value.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer than anything here takes: a client that hangs fails the test instead.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server at work.
pub struct Server {
    port: u16,
    told: Receiver<String>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Gives every connection to `talk`, each on a thread of its own. What `talk` sends into its channel is noted.
    pub fn new(talk: impl Fn(TcpStream, Sender<String>) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of our own");
        let port = listener.local_addr().expect("an address").port();
        let (teller, told) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let talk = Arc::new(talk);
        let thread = std::thread::spawn(move || {
            for client in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(client), talk, teller) = (client, Arc::clone(&talk), teller.clone()) else {
                    continue;
                };
                client.set_read_timeout(Some(PATIENCE)).ok();
                std::thread::spawn(move || talk(client, teller));
            }
        });
        Self {
            port,
            told,
            over,
            thread: Some(thread),
        }
    }

    /// An HTTP server that notes every request, head and body, and answers with what `answer` makes of it.
    pub fn http(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::new(move |mut client, teller| {
            let request = request(&mut client);
            let answer = answer(&request);
            teller.send(request).ok();
            client.write_all(&answer).ok();
        })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it was told until now.
    pub fn told(&self) -> Vec<String> {
        self.told.try_iter().collect()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({})", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Only so that the listener looks up.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Reads a request: its head, and as much body as that says.
pub fn request(client: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 1 << 16];
    let mut head: Option<(usize, Option<usize>)> = None;
    loop {
        if head.is_none() {
            head = bytes
                .windows(4)
                .position(|end| end == b"\r\n\r\n")
                .map(|at| {
                    let text = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
                    (at + 4, body_length(&text))
                });
        }
        let whole = head.is_some_and(|(start, length)| match length {
            Some(length) => bytes.len() >= start + length,
            None => bytes.ends_with(b"0\r\n\r\n"),
        });
        if whole {
            break;
        }
        match client.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How long a body is; none when its last chunk says it.
fn body_length(head: &str) -> Option<usize> {
    if head.contains("transfer-encoding: chunked") {
        return None;
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    Some(length.unwrap_or(0))
}

/// A whole answer of HTTP.
pub fn ok(body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
