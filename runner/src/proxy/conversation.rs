//! One connection of a room, from its first byte: which protocol it speaks, where it wants to go, and the way there.
//!
//! Must never let bytes through before they have been judged, unless the list names host and port.

use std::io;
use std::sync::Arc;

use sandbox::egress::{
    Form, Hello, Host, Refusal, Request, RequestError, SocksError, Target, read_greeting,
    read_hello, read_preamble, read_request, read_socks, socks_answer,
};
use tokio::net::{TcpStream, UnixStream};

use super::answer::{Asked, UNRECOGNIZED_NAME, http};
use super::exchange;
use super::flow::{Clock, pass, put};
use super::inbound::{Inbound, Reading, fill};
use super::outbound::NoWay;
use super::routes::{Routes, Way};

/// Serves a connection to its end.
pub(super) async fn hold(client: UnixStream, routes: Arc<Routes>) {
    let mut client = Inbound::new(client);
    if !client.more().await {
        return;
    }
    match client.buffer.first() {
        Some(0) => by_name(client, &routes).await,
        Some(5) => socks(client, &routes).await,
        _ => proxied(client, &routes).await,
    }
}

/// A connection that the relay opened for a name of the room's own.
async fn by_name(mut client: Inbound, routes: &Routes) {
    match client.read(read_preamble).await {
        Ok(Some(target)) => lead(client, routes, &target, Asked::ByName).await,
        Err(RequestError::Refused(refusal)) => drop(routes.refuse(&refusal).await),
        Ok(None) | Err(RequestError::Malformed(_) | RequestError::TooLong) => {}
    }
}

async fn socks(mut client: Inbound, routes: &Routes) {
    let Ok(Some(chosen)) = client.read(read_greeting).await else {
        return;
    };
    client.say(&chosen).await;
    if chosen.ends_with(&[255]) {
        return client.end(&[]).await;
    }
    match client.read(read_socks).await {
        Ok(Some(target)) => lead(client, routes, &target, Asked::Socks).await,
        Ok(None) => {}
        Err(error) => {
            if let SocksError::Refused(refusal) = &error {
                routes.refuse(refusal).await;
            }
            client.end(&socks_answer(error.code())).await;
        }
    }
}

/// HTTP to a proxy.
async fn proxied(mut client: Inbound, routes: &Routes) {
    match client.read(|bytes| read_request(bytes, Form::Proxy)).await {
        Ok(Some(Request::Tunnel(target))) => lead(client, routes, &target, Asked::Connect).await,
        Ok(Some(Request::Exchange(request))) => exchange::carry(client, routes, request).await,
        Ok(None) => {}
        Err(error) => complain(client, routes, error).await,
    }
}

/// Says what is wrong with a request.
pub(super) async fn complain(client: Inbound, routes: &Routes, error: RequestError) {
    let answer = match error {
        RequestError::Refused(refusal) => http("403 Forbidden", &routes.refuse(&refusal).await),
        RequestError::TooLong => http("431 Request Header Fields Too Large", &format!("{error}\n")),
        RequestError::Malformed(_) => http("400 Bad Request", &format!("{error}\n")),
    };
    client.end(&answer).await;
}

/// A connection to `target`, however it was asked for.
async fn lead(mut client: Inbound, routes: &Routes, target: &Target, asked: Asked) {
    let explicit = match routes.way(target) {
        Ok(Way::Host { explicit }) => explicit,
        Ok(Way::Credential(_)) => {
            client.say(&asked.done()).await;
            return inner(client, routes, target, None).await;
        }
        Err(refusal) => {
            let why = routes.refuse(&refusal).await;
            return client.end(&asked.refused(&why)).await;
        }
    };
    match routes.connect(target, explicit).await {
        Ok(server) => {
            client.say(&asked.done()).await;
            if explicit {
                open(client, routes, target, server).await;
            } else {
                judged(client, routes, target, server).await;
            }
        }
        Err(NoWay::Refused(refusal)) => {
            let why = routes.refuse(&refusal).await;
            client.end(&asked.refused(&why)).await;
        }
        Err(NoWay::Failed(why)) => client.end(&asked.unreachable(&why)).await,
    }
}

/// A connection whose first bytes decide: TLS to this very host, or on port 80 plain HTTP to it.
async fn judged(mut client: Inbound, routes: &Routes, target: &Target, server: TcpStream) {
    client.begin();
    let refusal = loop {
        match read_hello(&client.buffer) {
            Ok(Hello::Partial) => {
                if !client.more().await {
                    return;
                }
            }
            Ok(Hello::NotTls) if target.port == 80 => {
                return inner(client, routes, target, Some(server)).await;
            }
            Ok(Hello::NotTls) => {
                break Refusal::NotTls {
                    target: target.clone(),
                };
            }
            hello => match named(target, hello.ok()) {
                None => return tunnel(client, server).await,
                Some(refusal) => break refusal,
            },
        }
    };
    routes.refuse(&refusal).await;
    client.end(&UNRECOGNIZED_NAME).await;
}

/// Why a whole greeting is not one to `target`.
fn named(target: &Target, hello: Option<Hello>) -> Option<Refusal> {
    let target = target.clone();
    match hello {
        Some(Hello::Name(Some(name)))
            if Host::parse(&name).is_ok_and(|name| name == target.host) =>
        {
            None
        }
        Some(Hello::Name(name)) => Some(Refusal::OtherName {
            target,
            found: name.unwrap_or_default(),
        }),
        Some(Hello::Hidden) => Some(Refusal::HiddenName { target }),
        Some(Hello::Partial | Hello::NotTls) => Some(Refusal::NotTls { target }),
        None => Some(Refusal::Greeting { target }),
    }
}

/// Plain HTTP over a connection that leads to one host.
async fn inner(mut client: Inbound, routes: &Routes, target: &Target, server: Option<TcpStream>) {
    match client
        .read(|bytes| read_request(bytes, Form::Inner(target)))
        .await
    {
        Ok(Some(Request::Exchange(request))) => match server {
            Some(server) => exchange::over(client, &request, server).await,
            None => exchange::carry(client, routes, request).await,
        },
        Ok(Some(Request::Tunnel(_)) | None) => {}
        Err(error) => complain(client, routes, error).await,
    }
}

/// Whatever is said, both ways.
async fn tunnel(client: Inbound, server: TcpStream) {
    let clock = Clock::new();
    let (client, to_client) = client.split();
    let (from_server, mut to_server) = server.into_split();
    let up = async {
        put(&mut to_server, &client.buffer, &clock).await?;
        pass(client.stream, to_server, &clock).await
    };
    both_ways(up, pass(from_server, to_client, &clock)).await;
}

/// Until both directions have ended. When the server breaks off, all ends at once: a client that waits for an answer has
/// to see that none comes. When the way up breaks off, what the server has said still arrives.
async fn both_ways(
    up: impl Future<Output = io::Result<()>>,
    down: impl Future<Output = io::Result<()>>,
) {
    let up = async {
        up.await.ok();
        Ok(())
    };
    tokio::try_join!(up, down).ok();
}

/// A connection to a host and port that the list names: any protocol, and the server may speak first. TLS all the same
/// asks for this host.
async fn open(client: Inbound, routes: &Routes, target: &Target, server: TcpStream) {
    let clock = Clock::new();
    let (client, to_client) = client.split();
    let (from_server, mut to_server) = server.into_split();
    let up = async {
        let Reading {
            mut stream,
            mut buffer,
        } = client;
        loop {
            match read_hello(&buffer) {
                Ok(Hello::Partial) => {
                    if clock.wait(fill(&mut stream, &mut buffer)).await? == 0 {
                        break;
                    }
                }
                Ok(Hello::NotTls) => break,
                hello => {
                    if let Some(refusal) = named(target, hello.ok()) {
                        routes.refuse(&refusal).await;
                        return Ok(());
                    }
                    break;
                }
            }
        }
        put(&mut to_server, &buffer, &clock).await?;
        pass(stream, to_server, &clock).await
    };
    both_ways(up, pass(from_server, to_client, &clock)).await;
}
