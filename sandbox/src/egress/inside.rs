//! What a room sees of the proxy: where it listens, which variables point there, and the names that lead to it without
//! any variable.
//!
//! Every host that a list names one by one has an address of loopback in the room's `/etc/hosts`, and the relay listens
//! there: programs that ignore the proxy variables, or look a name up first, work all the same. Such a connection begins
//! with a line of the relay's that says where it leads; it is judged like any other.
//! Must never name a host that the policy does not.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::host::Host;
use super::judge::Target;
use super::policy::Policy;
use super::refusal::Refusal;
use super::request::RequestError;
use super::rule::{Rule, USUAL_PORTS, parse_port};

/// Where the proxy listens in a room. Below 1024: nobody inside can take its place.
const PROXY_PORT: u16 = 808;
/// Most hosts that get an address.
const MOST: usize = 250;
/// Name of the proxy's socket in its folder.
pub const SOCKET: &str = "socket";
/// First byte of a connection that the relay opens for a name; neither HTTP nor SOCKS begins so.
const MARK: u8 = 0;
/// Longest line behind it: a name, a port, a line feed.
const LONGEST_LINE: usize = 280;

/// A place in the room where the relay listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// The address.
    pub address: Ipv4Addr,
    /// The port.
    pub port: u16,
    /// What every connection there is for; none at the proxy, whose clients say it themselves.
    pub target: Option<Target>,
}

impl Door {
    /// All doors of a room with this policy: the proxy first.
    pub fn all(policy: &Policy) -> Vec<Self> {
        let mut doors = vec![Self {
            address: Ipv4Addr::LOCALHOST,
            port: PROXY_PORT,
            target: None,
        }];
        for (host, address, ports) in names(policy) {
            doors.extend(ports.into_iter().map(|port| Self {
                address,
                port,
                target: Some(Target {
                    host: host.clone(),
                    port,
                }),
            }));
        }
        doors
    }

    /// What the relay says before the client's first byte.
    pub fn preamble(&self) -> Vec<u8> {
        let Some(target) = &self.target else {
            return Vec::new();
        };
        let mut line = vec![MARK];
        line.extend_from_slice(format!("{}:{}\n", target.host, target.port).as_bytes());
        line
    }
}

/// Reads what the relay says first. `None`: it is not whole. Else how many bytes it had, and where the connection is to
/// lead; nothing but a refusal where it is not one of the relay's.
pub fn read_preamble(bytes: &[u8]) -> Result<Option<(usize, Target)>, RequestError> {
    let malformed = RequestError::Malformed("this is not a connection of the relay's");
    let Some(end) = bytes
        .iter()
        .take(LONGEST_LINE)
        .position(|byte| *byte == b'\n')
    else {
        return if bytes.len() >= LONGEST_LINE {
            Err(malformed)
        } else {
            Ok(None)
        };
    };
    let line = bytes
        .get(1..end)
        .and_then(|line| std::str::from_utf8(line).ok());
    let (host, port) = line
        .and_then(|line| line.rsplit_once(':'))
        .ok_or_else(|| malformed.clone())?;
    let port = parse_port(port).ok_or(malformed)?;
    let host = Host::parse(host).map_err(|error| Refusal::of_name(host, Some(port), &error))?;
    Ok(Some((end + 1, Target { host, port })))
}

/// Hosts that are named one by one, with their address and their ports.
fn names(policy: &Policy) -> Vec<(Host, Ipv4Addr, Vec<u16>)> {
    let mut hosts: BTreeMap<Host, Vec<u16>> = BTreeMap::new();
    for rule in policy.rules() {
        let (named, ports) = match rule {
            Rule::Name { host, port } => {
                let ports = port.map_or_else(|| USUAL_PORTS.to_vec(), |port| vec![port]);
                (vec![host.clone()], ports)
            }
            Rule::Group(group) => {
                let hosts = group
                    .hosts()
                    .iter()
                    .filter_map(|host| Host::parse(host).ok());
                (hosts.collect(), USUAL_PORTS.to_vec())
            }
            Rule::Credential(name) => {
                let host = Host::parse(&format!("{name}.airlock")).ok();
                (host.into_iter().collect(), vec![80])
            }
            Rule::Below { .. } => continue,
        };
        for host in named {
            let all = hosts.entry(host).or_default();
            all.extend(
                ports
                    .iter()
                    .filter(|port| !all.contains(port))
                    .copied()
                    .collect::<Vec<_>>(),
            );
        }
    }
    let mut last = 0;
    let placed = hosts.into_iter().take(MOST).map(|(host, mut ports)| {
        if host.as_str() == "localhost" {
            ports.retain(|port| *port != PROXY_PORT);
            return (host, Ipv4Addr::LOCALHOST, ports);
        }
        last += 1;
        (host, Ipv4Addr::new(127, 0, 1, last), ports)
    });
    placed.collect()
}

/// Lines for the room's `/etc/hosts`.
pub fn hosts_lines(policy: &Policy) -> String {
    let others = names(policy)
        .into_iter()
        .filter(|(_, address, _)| *address != Ipv4Addr::LOCALHOST);
    let lines: Vec<String> = others
        .map(|(host, address, _)| format!("{address} {host}\n"))
        .collect();
    lines.concat()
}

/// The variables that point programs to the proxy.
///
/// Not among them: `JAVA_TOOL_OPTIONS`, since every JVM prints it to standard error; Maven and Gradle have variables of
/// their own. `ALL_PROXY` is HTTP, since some Python clients refuse to start when it is SOCKS and their extra package is
/// missing; the port speaks SOCKS5 too (`socks5h://127.0.0.1:808`).
pub fn environment() -> BTreeMap<String, String> {
    let url = format!("http://127.0.0.1:{PROXY_PORT}");
    let direct = "localhost,127.0.0.1,::1";
    let java = format!(
        "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={PROXY_PORT} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={PROXY_PORT} \
         -Dhttp.nonProxyHosts=localhost|127.0.0.1"
    );
    let to_proxy = [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
        "npm_config_proxy",
        "npm_config_https_proxy",
        "YARN_HTTP_PROXY",
        "YARN_HTTPS_PROXY",
        "PIP_PROXY",
        "CARGO_HTTP_PROXY",
        "GLOBAL_AGENT_HTTP_PROXY",
    ];
    let fixed = [
        ("NO_PROXY", direct),
        ("no_proxy", direct),
        ("npm_config_noproxy", direct),
        ("GLOBAL_AGENT_NO_PROXY", direct),
        ("NODE_USE_ENV_PROXY", "1"),
        ("ELECTRON_GET_USE_PROXY", "1"),
        ("MAVEN_OPTS", &java),
        ("GRADLE_OPTS", &java),
    ];
    let to_proxy = to_proxy.into_iter().map(|name| (name, url.as_str()));
    to_proxy
        .chain(fixed)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_named_host_has_a_door_and_an_address_of_its_own() {
        let policy: Policy = "b.org,a.org:8443,a.org,*.c.org,localhost:5000,model.airlock"
            .parse()
            .unwrap();
        insta::assert_snapshot!(hosts_lines(&policy), @r"
        127.0.1.1 a.org
        127.0.1.2 b.org
        127.0.1.3 model.airlock
        ");
        let doors: Vec<String> = Door::all(&policy)
            .iter()
            .map(|door| {
                let said = String::from_utf8(door.preamble()).unwrap();
                format!(
                    "{}:{} {}",
                    door.address,
                    door.port,
                    said.trim_start_matches('\0').trim_end()
                )
            })
            .collect();
        insta::assert_snapshot!(doors.join("\n"), @r"
        127.0.0.1:808 
        127.0.1.1:80 a.org:80
        127.0.1.1:443 a.org:443
        127.0.1.1:8443 a.org:8443
        127.0.1.2:80 b.org:80
        127.0.1.2:443 b.org:443
        127.0.0.1:5000 localhost:5000
        127.0.1.3:80 model.airlock:80
        ");
    }

    #[test]
    fn what_the_relay_says_is_understood() {
        let policy: Policy = "a.org:8443".parse().unwrap();
        let door = Door::all(&policy).pop().unwrap();
        let said = door.preamble();
        let read = read_preamble(&[&said[..], b"more"].concat()).unwrap();
        assert_eq!(read, Some((said.len(), door.target.unwrap())));
        assert_eq!(read_preamble(&said[..5]), Ok(None));
        assert!(read_preamble(b"\0a.org\n").is_err());
        assert!(read_preamble(b"\x00127.0.0.1:80\n").is_err());
        assert!(read_preamble(&[b'a'; 300]).is_err());
    }

    #[test]
    fn common_clients_are_pointed_to_the_proxy() {
        let env = environment();
        assert_eq!(env["HTTPS_PROXY"], "http://127.0.0.1:808");
        assert_eq!(env["NODE_USE_ENV_PROXY"], "1");
        assert!(env["no_proxy"].contains("localhost"));
    }
}
