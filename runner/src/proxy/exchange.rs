//! One plain HTTP request and its answer. Both ends are told that the connection ends with it, so the next request is
//! read, judged and led anew.
//!
//! Must never send a byte of the client's that does not belong to the request, or give a room the value of a credential
//! that its upstream says.

use std::io;

use sandbox::egress::{
    Body, Chunks, Credential, Exchange, Refusal, Target, read_response, write_chunk, write_end,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::rustls::pki_types::ServerName;

use super::answer::http;
use super::flow::{Clock, pass, put};
use super::inbound::{Inbound, Reading, fill, hear_out};
use super::mask::Mask;
use super::outbound::NoWay;
use super::routes::{Routes, Way};

/// Carries a request to where it may go.
pub(super) async fn carry(client: Inbound, routes: &Routes, request: Exchange) {
    let explicit = match routes.way(&request.target) {
        Ok(Way::Host { explicit }) => explicit,
        Ok(Way::Credential(credential)) => {
            return with_credential(client, routes, request, credential).await;
        }
        Err(refusal) => return refuse(client, routes, &refusal).await,
    };
    match routes.connect(&request.target, explicit).await {
        Ok(server) => over(client, &request, server).await,
        Err(no_way) => give_up(client, routes, no_way).await,
    }
}

/// Over a connection that stands, to the host of the request.
pub(super) async fn over(
    client: Inbound,
    request: &Exchange,
    server: impl AsyncRead + AsyncWrite + Unpin,
) {
    let Target { host, port } = &request.target;
    let authority = if *port == 80 {
        host.to_string()
    } else {
        format!("{host}:{port}")
    };
    let head = request.head(&authority, &request.path);
    both(client, request.body, server, (head, None)).await;
}

async fn refuse(client: Inbound, routes: &Routes, refusal: &Refusal) {
    let why = routes.refuse(refusal).await;
    client.end(&http("403 Forbidden", &why)).await;
}

async fn give_up(client: Inbound, routes: &Routes, no_way: NoWay) {
    match no_way {
        NoWay::Refused(refusal) => refuse(client, routes, &refusal).await,
        NoWay::Failed(why) => client.end(&http("502 Bad Gateway", &why)).await,
    }
}

/// To the upstream of a credential, with its header.
async fn with_credential(
    client: Inbound,
    routes: &Routes,
    mut request: Exchange,
    credential: &Credential,
) {
    if !credential.takes(&request.method, &request.path) {
        let path = request.path.split('?').next().unwrap_or_default();
        let refusal = Refusal::Path {
            credential: credential.name.clone(),
            method: request.method.chars().take(32).collect(),
            path: path.chars().take(200).collect(),
        };
        return refuse(client, routes, &refusal).await;
    }
    let Some(key) = routes.key(credential) else {
        let why = routes.miss(credential).await;
        return client.end(&http("503 Service Unavailable", &why)).await;
    };
    let upstream = &credential.upstream;
    let target = Target {
        host: upstream.host.clone(),
        port: upstream.port,
    };
    // The user's own configuration names it: it may be in a local network.
    let server = match routes.connect(&target, true).await {
        Ok(server) => server,
        Err(no_way) => return give_up(client, routes, no_way).await,
    };
    request.authorize(
        &credential.header,
        &format!("{}{}", credential.prefix, key.reveal()),
    );
    let path = format!("{}{}", upstream.base, request.path);
    let said = (request.head(&upstream.authority(), &path), Mask::new(&key));
    if !upstream.tls {
        // Plain HTTP is for this very host alone: an upstream of any other kind cannot be written.
        if server
            .peer_addr()
            .is_ok_and(|address| address.ip().is_loopback())
        {
            return both(client, request.body, server, said).await;
        }
        return client
            .end(&http(
                "502 Bad Gateway",
                "the upstream is not on this host\n",
            ))
            .await;
    }
    let name = ServerName::try_from(upstream.host.to_string());
    let (Ok(name), Some(tls)) = (name, routes.tls()) else {
        return client
            .end(&http(
                "502 Bad Gateway",
                "there is no TLS for this upstream\n",
            ))
            .await;
    };
    match tls.connect(name, server).await {
        Ok(server) => both(client, request.body, server, said).await,
        Err(error) => {
            let why = format!("no TLS with {}: {error}\n", upstream.host);
            client.end(&http("502 Bad Gateway", &why)).await;
        }
    }
}

/// Request up, answer down, until the answer ends. With the head, what is struck out of the answer.
async fn both(
    client: Inbound,
    body: Body,
    server: impl AsyncRead + AsyncWrite + Unpin,
    (head, mask): (Vec<u8>, Option<Mask>),
) {
    let clock = Clock::new();
    let (mut client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let ended = {
        let up = async {
            put(&mut to_server, &head, &clock).await?;
            send_body(&mut client, body, &mut to_server, &clock).await
        };
        let down = answer(&mut from_server, &mut to_client, mask, &clock);
        tokio::pin!(up, down);
        let mut sending = true;
        loop {
            tokio::select! {
                ended = &mut down => break ended,
                sent = &mut up, if sending => {
                    sending = false;
                    if sent.is_err_and(|error| is_clients(&error)) {
                        break Err(Fault::Rest);
                    }
                }
            }
        }
    };
    if let Err(Fault::Head(why)) = ended {
        to_client
            .write_all(&http("502 Bad Gateway", why))
            .await
            .ok();
    }
    to_client.shutdown().await.ok();
    hear_out(&mut client.stream, &mut client.buffer).await;
}

/// Whether a body was cut or malformed: no answer is to be waited for then. A server that does not take all of it may
/// have answered all the same.
fn is_clients(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
    )
}

/// The body, and not a byte more. Then watches for the client's end.
async fn send_body(
    client: &mut Reading,
    body: Body,
    to: &mut (impl AsyncWrite + Unpin),
    clock: &Clock,
) -> io::Result<()> {
    let Reading { stream, buffer } = client;
    match body {
        Body::None => {}
        Body::Sized(length) => {
            let mut left = length;
            while left > 0 {
                if buffer.is_empty() && clock.wait(fill(stream, buffer)).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let count =
                    usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
                put(to, buffer.get(..count).unwrap_or_default(), clock).await?;
                buffer.drain(..count);
                left -= count as u64;
            }
        }
        Body::Chunked => {
            let (mut chunks, mut out) = (Chunks::default(), Vec::new());
            while !chunks.is_over() {
                if buffer.is_empty() && clock.wait(fill(stream, buffer)).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let read = chunks.read(buffer, &mut out);
                let used =
                    read.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                buffer.drain(..used);
                put(to, &out, clock).await?;
                out.clear();
            }
        }
    }
    // What comes now belongs to no request.
    loop {
        buffer.clear();
        if clock.wait(fill(stream, buffer)).await? == 0 {
            clock.client_ended();
            return Ok(());
        }
    }
}

/// Why an answer ended early.
enum Fault {
    /// Before there was one.
    Head(&'static str),
    /// In its middle: the client sees that by the end of the connection.
    Rest,
}

/// Heads of answers, up to the one that counts, then its body as it comes.
async fn answer(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut mask: Option<Mask>,
    clock: &Clock,
) -> Result<(), Fault> {
    let mut buffer = Vec::new();
    let chunked = loop {
        let read = read_response(&buffer)
            .map_err(|_error| Fault::Head("the answer of the server is not HTTP/1\n"))?;
        let Some(response) = read else {
            let early = Fault::Head("the server ended the connection without an answer\n");
            match clock.wait(fill(from, &mut buffer)).await {
                Ok(0) | Err(_) => return Err(early),
                Ok(_) => continue,
            }
        };
        buffer.drain(..response.length);
        if response.status == 101 {
            return Err(Fault::Head(
                "the server changes the protocol, which was not asked for\n",
            ));
        }
        let head = match &mut mask {
            Some(mask) => mask.whole(&response.head),
            None => response.head,
        };
        put(to, &head, clock).await.map_err(|_error| Fault::Rest)?;
        if response.status >= 200 {
            break response.chunked;
        }
    };
    let rest = async {
        if let Some(mask) = mask {
            masked(from, to, (buffer, chunked, mask), clock).await
        } else {
            put(to, &buffer, clock).await?;
            pass(from, to, clock).await
        }
    };
    rest.await.map_err(|_error: io::Error| Fault::Rest)
}

/// The body of an answer, with a value struck out. Chunks are written anew, since the value may be cut by their ends.
async fn masked(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    (mut buffer, chunked, mut mask): (Vec<u8>, bool, Mask),
    clock: &Clock,
) -> io::Result<()> {
    let mut chunks = chunked.then(Chunks::default);
    let (mut data, mut out) = (Vec::new(), Vec::new());
    loop {
        match &mut chunks {
            Some(chunks) => {
                let read = chunks.data(&buffer, &mut data);
                read.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                write_chunk(&mut out, &mask.next(&data));
                if chunks.is_over() {
                    write_chunk(&mut out, &mask.rest());
                    write_end(&mut out);
                }
                data.clear();
            }
            None => out = mask.next(&buffer),
        }
        if !out.is_empty() {
            put(to, &out, clock).await?;
            out.clear();
        }
        if chunks.as_ref().is_some_and(Chunks::is_over) {
            break;
        }
        buffer.clear();
        if clock.wait(fill(from, &mut buffer)).await? == 0 {
            break;
        }
    }
    // Of a body in chunks that was cut nothing more can be said.
    if chunks.is_none() {
        put(to, &mask.rest(), clock).await?;
    }
    clock.wait(to.shutdown()).await
}
