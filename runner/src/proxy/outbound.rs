//! From a host that was let through to a connection: looked up once, judged by its addresses, connected to one of those.
//!
//! Must never look a name up twice.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use sandbox::egress::{Refusal, Target, may_reach};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// How long a name may take to be found.
const LOOKUP: Duration = Duration::from_secs(20);
/// How long one address may take to answer.
const CONNECT: Duration = Duration::from_secs(15);
/// How many addresses of a name are tried.
const TRIES: usize = 4;

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum NoWay {
    /// Against the rules.
    Refused(Refusal),
    /// Not to be had, in words for the room.
    Failed(String),
}

/// Connects. `explicit`: the addresses may be local ones.
pub(super) async fn connect(target: &Target, explicit: bool) -> Result<TcpStream, NoWay> {
    let found = addresses(target).await?;
    let good: Vec<IpAddr> = found
        .iter()
        .copied()
        .filter(|address| may_reach(*address, explicit))
        .collect();
    if let (true, Some(address)) = (good.is_empty(), found.first()) {
        return Err(NoWay::Refused(Refusal::Answer {
            target: target.clone(),
            address: *address,
        }));
    }
    let mut last = "it has no address".to_owned();
    for address in good.into_iter().take(TRIES) {
        match timeout(
            CONNECT,
            TcpStream::connect(SocketAddr::new(address, target.port)),
        )
        .await
        {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true).ok();
                return Ok(stream);
            }
            Ok(Err(error)) => last = error.to_string(),
            Err(_) => "it does not answer".clone_into(&mut last),
        }
    }
    Err(NoWay::Failed(format!(
        "cannot reach {}:{}: {last}\n",
        target.host, target.port
    )))
}

async fn addresses(target: &Target) -> Result<Vec<IpAddr>, NoWay> {
    if target.host.is_localhost() {
        // By RFC 6761 nobody is asked, so nobody can answer something else.
        return Ok(vec![
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ]);
    }
    let fail = |why: &str| NoWay::Failed(format!("cannot find {}: {why}\n", target.host));
    match timeout(LOOKUP, lookup_host((target.host.as_str(), target.port))).await {
        Ok(Ok(found)) => Ok(found.map(|address| address.ip()).collect()),
        Ok(Err(error)) => Err(fail(&error.to_string())),
        Err(_) => Err(fail("the resolver does not answer")),
    }
}
