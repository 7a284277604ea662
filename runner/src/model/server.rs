//! The scripted model as a server on loopback, on a thread of its own. What it hears goes to whoever
//! started it; it ends with its handle.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::{fmt, io};

use serde_json::{Value, json};
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::http::{self, Request};
use super::{Dialect, Reply, Script};

/// Headers in which clients send a credential.
const CREDENTIALS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];

/// One request that the model heard and answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// What was spoken; none for a request that is no conversation.
    pub dialect: Option<Dialect>,
    /// Method and path.
    pub asked: String,
    /// The credential that came with it.
    pub credential: Option<String>,
    /// What the client calls itself.
    pub client: String,
    /// Names of the tools on offer.
    pub tools: Vec<String>,
    /// What the tools answered so far, the first step's answer first.
    pub results: Vec<String>,
}

/// A model that listens. Dropped, it is silent.
pub struct Served {
    address: SocketAddr,
    heard: Receiver<Heard>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Served {
    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What it has heard since the last call.
    pub fn heard(&self) -> Vec<Heard> {
        self.heard.try_iter().collect()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing left to say but how it ended.
            thread.join().ok();
        }
    }
}

/// Starts a model on a free port of loopback.
pub fn serve(script: Script) -> io::Result<Served> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let (tell, heard) = mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let work = move || {
        runtime.block_on(async {
            let Ok(listener) = TcpListener::from_std(listener) else {
                return;
            };
            tokio::select! {
                // The sender is only ever dropped.
                _ = stopped => {}
                () = accept(listener, Arc::new(script), tell) => {}
            }
        });
    };
    let thread = thread::Builder::new()
        .name("model".to_owned())
        .spawn(work)?;
    Ok(Served {
        address,
        heard,
        stop: Some(stop),
        thread: Some(thread),
    })
}

async fn accept(listener: TcpListener, script: Arc<Script>, tell: Sender<Heard>) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A host without descriptors ends the test rather than spinning.
                let Ok((stream, _)) = accepted else { return };
                let (script, tell) = (Arc::clone(&script), tell.clone());
                clients.spawn(async move {
                    // A client that goes away in the middle of a word is nobody's failure.
                    converse(stream, &script, &tell).await.ok();
                });
            }
            Some(_) = clients.join_next() => {}
        }
    }
}

async fn converse(stream: TcpStream, script: &Script, tell: &Sender<Heard>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(request) = Request::read(&mut stream).await? {
        let (status, reply, heard) = answer(&request, script);
        // Whoever started the model may have heard enough.
        tell.send(heard).ok();
        let body = request.method != "HEAD";
        http::write(stream.get_mut(), status, &reply, body).await?;
    }
    Ok(())
}

fn answer(request: &Request, script: &Script) -> (&'static str, Reply, Heard) {
    let header = |name: &str| request.header(name).map(str::to_owned);
    let mut heard = Heard {
        dialect: None,
        asked: format!("{} {}", request.method, request.path),
        credential: CREDENTIALS.iter().find_map(|name| header(name)),
        client: header("user-agent").unwrap_or_default(),
        tools: Vec::new(),
        results: Vec::new(),
    };
    let small = |value: Value| Reply::One(value);
    if request.header("upgrade").is_some() {
        let error = json!({"error": {"message": "this model speaks plain HTTP"}});
        return ("426 Upgrade Required", small(error), heard);
    }
    if request.method != "POST" {
        let models = json!({"object": "list", "models": [], "data": [{"id": "scripted", "object": "model"}]});
        return ("200 OK", small(models), heard);
    }
    if request.path.ends_with("count_tokens") || request.path.ends_with(":countTokens") {
        return (
            "200 OK",
            small(json!({"input_tokens": 10, "totalTokens": 10})),
            heard,
        );
    }
    let Some(dialect) = Dialect::at(&request.path) else {
        return (
            "404 Not Found",
            small(json!({"error": {"message": "no such path"}})),
            heard,
        );
    };
    let Ok(value) = serde_json::from_slice::<Value>(&request.body) else {
        let error = json!({"error": {"message": "the body is no JSON"}});
        return ("400 Bad Request", small(error), heard);
    };
    let (reply, asked) = super::answer(dialect, &request.path, &value, script);
    heard.dialect = Some(dialect);
    heard.tools = asked.tools.into_iter().map(|tool| tool.name).collect();
    heard.results = asked.results;
    ("200 OK", reply, heard)
}
