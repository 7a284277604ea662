//! The room's `/etc`: a few files written for it, a few that every program needs from the host, nothing else.
//!
//! Must never take a file that may hold a secret: no shadow, no registry configuration, no host keys.

use std::path::{Path, PathBuf};

use super::take::{self, Show, Taken};
use crate::account::Account;
use crate::egress;
use crate::environment::HOME;
use crate::error::Fault;
use crate::spec::Net;

/// Copied when the host has them; links are followed.
const FILES: [&str; 22] = [
    "ld.so.cache",
    "ld.so.conf",
    "localtime",
    "timezone",
    "os-release",
    "lsb-release",
    "debian_version",
    "mime.types",
    "magic",
    "magic.mime",
    "services",
    "protocols",
    "rpc",
    "networks",
    "shells",
    "inputrc",
    "locale.alias",
    "locale.conf",
    "gai.conf",
    "host.conf",
    "bash.bashrc",
    "ethertypes",
];
/// Shown read-only when the host has them: certificates, library paths, what `/usr` links to.
const FOLDERS: [&str; 8] = [
    "alternatives",
    "ssl",
    "ca-certificates",
    "pki",
    "crypto-policies",
    "ld.so.conf.d",
    "terminfo",
    "fonts",
];
/// The same for every version of a runtime.
const RUNTIMES: [&str; 2] = ["java", "python"];
/// A copied file is a small one.
const LARGEST: u64 = 4 << 20;

/// Content and mounts of the room's `/etc`.
#[derive(Debug)]
pub(super) struct Etc {
    pub(super) files: Vec<(String, Vec<u8>)>,
    pub(super) folders: Vec<(String, Taken)>,
}

pub(super) fn read(net: &Net, account: Account) -> Result<Etc, Fault> {
    let mut files = written(net, account);
    files.extend(
        FILES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), copied(name)?))),
    );
    let mut folders = Vec::new();
    for name in folder_names() {
        let path = Path::new("/etc").join(&name);
        if path.is_dir() {
            let real = std::fs::canonicalize(&path)
                .map_err(|error| Fault::at("find a folder of /etc", &path, error))?;
            folders.push((name, take::take(&real, Show::ReadOnly)?));
        }
    }
    Ok(Etc { files, folders })
}

fn written(net: &Net, account: Account) -> Vec<(String, Vec<u8>)> {
    let (uid, gid) = account.inside();
    let passwd = format!(
        "root:x:0:0:root:/root:/bin/sh\nagent:x:{uid}:{gid}:agent:{HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
    );
    let group = format!("root:x:0:\nagent:x:{gid}:\nnogroup:x:65534:\n");
    let own_hosts = "127.0.0.1 localhost airlock\n::1 localhost ip6-localhost ip6-loopback\n";
    let (hosts, resolver) = match net {
        Net::None => (None, None),
        Net::Proxied { policy, .. } => {
            let named = egress::hosts_lines(policy);
            (Some(format!("{own_hosts}{named}").into()), None)
        }
        Net::Host => (copied("hosts"), copied("resolv.conf")),
    };
    let lookup = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\nservices: files\nrpc: files\n";
    vec![
        ("passwd".into(), passwd.into()),
        ("group".into(), group.into()),
        ("hosts".into(), hosts.unwrap_or_else(|| own_hosts.into())),
        ("hostname".into(), b"airlock\n".to_vec()),
        ("nsswitch.conf".into(), lookup.into()),
        ("resolv.conf".into(), resolver.unwrap_or_default()),
    ]
}

fn copied(name: &str) -> Option<Vec<u8>> {
    let path: PathBuf = Path::new("/etc").join(name);
    let facts = std::fs::metadata(&path).ok()?;
    if !facts.is_file() || facts.len() > LARGEST {
        return None;
    }
    std::fs::read(&path).ok()
}

fn folder_names() -> Vec<String> {
    let mut names: Vec<String> = FOLDERS.map(str::to_owned).to_vec();
    let Ok(entries) = std::fs::read_dir("/etc") else {
        return names;
    };
    let mut runtimes: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| RUNTIMES.iter().any(|runtime| name.starts_with(runtime)))
        .collect();
    runtimes.sort_unstable();
    names.append(&mut runtimes);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rooms_user_is_agent_and_the_resolver_is_the_hosts_only_with_its_network() {
        let account = Account {
            uid: 4711,
            gid: 4712,
            drop_root: false,
        };
        let files = written(&Net::None, account);
        let of = |name: &str| {
            let found = files.iter().find(|(file, _)| file == name).unwrap();
            String::from_utf8(found.1.clone()).unwrap()
        };
        assert!(of("passwd").contains("agent:x:4711:4712:agent:/home/agent:"));
        assert!(of("group").contains("agent:x:4712:"));
        assert_eq!(of("resolv.conf"), "");
    }
}
