//! Networks and sockets: the host's, another task's, another job's.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use tests::TestEnv;

use super::{attack, steps};

#[test]
fn the_hosts_sockets_cannot_be_reached() {
    let env = TestEnv::new();
    let repo = env.repository();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let path = env.path().join("daemon.sock");
    let _unix = UnixListener::bind(&path).unwrap();
    let name = format!("airlock-test-{}", std::process::id());
    let _abstract =
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let tcp = tcp.local_addr().unwrap().to_string();
    let to = udp.local_addr().unwrap().to_string();
    let said = steps(
        &env,
        &repo,
        "t1",
        &[
            "tcp",
            &tcp,
            "udp",
            &to,
            "unix",
            path.to_str().unwrap(),
            "abstract",
            &name,
        ],
    );
    for step in ["tcp", "unix", "abstract"] {
        assert!(said.contains(&format!("{step}: refused")), "{said}");
    }
    assert!(
        udp.recv(&mut [0; 16]).is_err(),
        "a datagram came out\n{said}"
    );
}

#[test]
fn a_rooms_own_loopback_works_and_is_nobody_elses() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = |agent: &Path| {
        format!(
            "{0} serve 127.0.0.1:8765; touch here; while ! test -e go; do sleep 0.02; done",
            agent.display()
        )
    };
    let agent = env.fake_agent();
    let folder = agent.parent().unwrap().to_str().unwrap().to_owned();
    let start = |id: &str| {
        repo.airlock(&[
            "run",
            "--task",
            id,
            "--ro",
            &folder,
            "--",
            "sh",
            "-c",
            &script(&agent),
        ])
        .spawn()
    };
    let (one, two) = (start("one"), start("two"));
    for id in ["one", "two"] {
        env.at_work(id);
    }
    for id in ["one", "two"] {
        env.let_go(id);
    }
    one.wait().exits(0);
    two.wait().exits(0);
    for id in ["one", "two"] {
        assert!(repo.log_of(id).contains("serve: ok"), "{}", repo.log_of(id));
    }
}

#[test]
fn only_families_that_a_network_needs_have_sockets() {
    let env = TestEnv::new();
    let repo = env.repository();
    let said = steps(
        &env,
        &repo,
        "t1",
        &["family", "vsock", "family", "packet", "family", "raw"],
    );
    assert_eq!(said.matches("family: refused").count(), 3, "{said}");
}

#[test]
fn no_socket_of_the_engine_or_of_another_task_is_in_reach() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "touch here; while ! test -e go; do sleep 0.02; done";
    let other = repo
        .airlock(&["run", "--task", "other", "--", "sh", "-c", script])
        .spawn();
    env.at_work("other");
    // Where the engine really listens at this moment, by its full path.
    let table = std::fs::read_to_string("/proc/net/unix").unwrap();
    let state = env.state();
    let mut paths: Vec<String> = sockets_below(&state);
    paths.extend(table.lines().filter_map(|line| {
        let name = line.split_whitespace().nth(7)?;
        name.starts_with('@').then(|| name.to_owned())
    }));
    assert!(
        paths.iter().any(|path| path.contains("/locks/")),
        "{paths:?}"
    );
    let script = format!(
        r"
for path in {paths:?}:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as end:
            tries('connect ' + path, lambda: end.connect('\0' + path[1:] if path[0] == '@' else path))
for folder, folders, files in os.walk('/'):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in ('/proc', '/usr')]
    for name in files:
        if stat.S_ISSOCK(os.lstat(os.path.join(folder, name)).st_mode): print('OPEN', folder, name)
for line in open('/proc/net/unix').read().splitlines()[1:]:
    if len(line.split()) > 7: print('OPEN', line)
"
    );
    attack(&repo, "t1", &[], &script);
    env.let_go("other");
    other.wait().exits(0);
}

fn sockets_below(folder: &Path) -> Vec<String> {
    use std::os::unix::fs::FileTypeExt as _;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(sockets_below(&entry.path())),
            Ok(kind) if kind.is_socket() => found.push(entry.path().display().to_string()),
            Ok(_) | Err(_) => {}
        }
    }
    found
}

#[test]
fn there_is_no_way_out_of_the_rooms_network() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = r"
print([name for number, name in socket.if_nameindex()])
print(len(open('/proc/net/route').read().splitlines()), 'lines of routes')
for host in ('127.0.0.53', '169.254.169.254', '10.0.0.1', '1.1.1.1', '8.8.8.8'):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.settimeout(0.2)
        tries('datagram ' + host, lambda: (end.sendto(b'x', (host, 53)), end.recv(1)))
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as end:
        end.settimeout(0.2)
        tries('connect ' + host, lambda: end.connect((host, 80)))
with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as end:
    end.settimeout(0.2)
    tries('connect by the newer protocol', lambda: end.connect(('2606:4700:4700::1111', 80)))
tries('a name', lambda: socket.getaddrinfo('example.org', 80))
# A route, an interface, a filter: all need a privilege.
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as end:
    new_link = struct.pack('=IHHII', 32, 16, 5, 1, 0) + struct.pack('=BBHiII', 0, 0, 0, 0, 1, 1)
    end.send(new_link); answer = end.recv(4096)
    print('netlink', errno.errorcode.get(-struct.unpack('=i', answer[16:20])[0], answer))
for family in range(64):
    if family in (1, 2, 10, 16): continue
    for kind in (1, 2, 3, 5):
        tries('family %d' % family, lambda: socket.socket(family, kind).close())
        tries('pair %d' % family, lambda: socket.socketpair(family, kind))
for kind in (3, 3 | 0o4000, 3 | 0o2000000):
    for family in (2, 10): tries('raw %d' % family, lambda: socket.socket(family, kind, 1).close())
";
    let log = attack(&repo, "t1", &[], script);
    assert_eq!(log, "['lo']\n1 lines of routes\nnetlink EPERM\n");
}
