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

/// Connects to one of the addresses that were found. `explicit`: they may be local ones.
pub(super) async fn connect(
    target: &Target,
    found: &[IpAddr],
    explicit: bool,
) -> Result<TcpStream, NoWay> {
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

/// The addresses of a name.
pub(super) async fn addresses(target: &Target) -> Result<Vec<IpAddr>, NoWay> {
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use sandbox::egress::Host;

    use super::*;

    fn now<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(work)
    }

    #[test]
    fn a_name_that_leads_to_this_host_is_refused_unless_it_is_named_with_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let target = Target {
            host: Host::parse("rebind.test").unwrap(),
            port: listener.local_addr().unwrap().port(),
        };
        let here = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
        let refused = now(connect(&target, &here, false));
        assert!(
            matches!(refused, Err(NoWay::Refused(Refusal::Answer { address, .. })) if address == here[0])
        );
        assert!(listener.accept().is_err(), "nothing was connected");
        assert!(now(connect(&target, &here, true)).is_ok());
        let metadata = ["169.254.169.254".parse().unwrap()];
        assert!(matches!(
            now(connect(&target, &metadata, true)),
            Err(NoWay::Refused(_))
        ));
        assert!(matches!(
            now(connect(&target, &[], true)),
            Err(NoWay::Failed(_))
        ));
    }

    #[test]
    fn nobody_is_asked_where_localhost_is() {
        let target = Target {
            host: Host::parse("a.localhost").unwrap(),
            port: 1,
        };
        let found = now(addresses(&target)).ok().unwrap();
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty());
    }
}
