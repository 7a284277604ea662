//! What is not allowed is refused, and the record says by which rule and what would allow it.

use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};

use tests::server::ok;
use tests::{Server, TestEnv};

use super::{denials, denied};

/// Asks the proxy for each of `targets` and prints the status.
const ASK: &str = r#"
import socket, sys
def ask(raw):
    s = socket.create_connection(("127.0.0.1", 808), 10); s.settimeout(10); s.sendall(raw)
    data = b""
    while True:
        piece = s.recv(4096)
        if not piece: break
        data += piece
    return data
"#;

#[test]
fn look_alikes_addresses_and_other_ports_are_refused() {
    let env = TestEnv::new();
    let repo = env.repository();
    let server = Server::http(|_| ok("reached\n"));
    let port = server.port();
    let script = format!(
        r#"python3 -c '{ASK}
good = "allowed.test"
bad = ["evil" + good, good + ".evil.test", "rebind." + good, "127.0.0.1", "localhost", "LOCALHOST.", "[::1]", "[::ffff:127.0.0.1]",
    "0.0.0.0", "0177.0.0.1", "2130706433", "0x7f.1", "169.254.169.254", good + "@127.0.0.1", "127.0.0.1#" + good, good + "\0.evil.test", good]
for host in bad:
    for raw in ("CONNECT %s:{port} HTTP/1.1\r\nHost: %s:{port}\r\n\r\n" % (host, host), "GET http://%s:{port}/ HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, good)):
        print(ascii(host), ask(raw.encode()).split(b"\r\n")[0].decode())
print("port", ask(b"CONNECT allowed.test:22 HTTP/1.1\r\n\r\n").split(b"\r\n")[0].decode())
for kind, name in ((1, b"\x7f\0\0\1"), (3, b"\x09localhost"), (3, b"\x0fevilallowed.test")):
    s = socket.create_connection(("127.0.0.1", 808), 10); s.sendall(b"\x05\x01\x00"); s.recv(2)
    s.sendall(b"\x05\x01\x00" + bytes([kind]) + name + ({port}).to_bytes(2, "big")); print("socks", s.recv(10)[1])
'"#
    );
    repo.task(&["--task", "t1", "--net", "allow:allowed.test"], &script)
        .exits(11);
    let log = repo.log_of("t1");
    assert_eq!(log.lines().count(), 38, "{log}");
    assert!(!log.contains(" 200"), "{log}");
    assert!(
        log.lines()
            .all(|line| line.contains(" 403") || line.contains(" 400") || line == "socks 2"),
        "{log}"
    );
    assert!(server.told().is_empty());
    let denials = denials(&env, "t1");
    let evil = denied(&denials, "host", "evilallowed.test").unwrap();
    assert_eq!(evil["rule"], "not on the list: allowed.test");
    let flag = format!("allow:allowed.test,evilallowed.test:{port}");
    assert_eq!(evil["allow"]["flag"], serde_json::json!(["--net", flag]));
    let port = denied(&denials, "port", "allowed.test:22").unwrap();
    assert_eq!(
        port["allow"]["flag"][1],
        "allow:allowed.test,allowed.test:22"
    );
    assert_eq!(
        port["allow"]["config"][1],
        "net = \"allow:allowed.test,allowed.test:22\""
    );
    let address = denied(&denials, "host", "127.0.0.1").unwrap();
    assert!(address["allow"].is_null(), "{address}");
}

#[test]
fn a_name_that_leads_to_this_host_is_refused() {
    let env = TestEnv::new();
    let repo = env.repository();
    let server = Server::http(|_| ok("reached\n"));
    let hosts = env.path().join("hosts");
    std::fs::write(
        &hosts,
        "127.0.0.1 localhost rebind.test\n169.254.169.254 cloud.test\n",
    )
    .unwrap();
    // In a mount namespace in which these names are found.
    let wrapper = [
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        "--ro-bind",
        hosts.to_str().unwrap(),
        "/etc/hosts",
        "--",
    ];
    let port = server.port();
    let net = format!("allow:rebind.test,cloud.test:80,named.test:{port}");
    let script = "for url in http://rebind.test/ http://cloud.test/; do \
        curl -sS -w '%{http_code}\n' --noproxy '' -x http://127.0.0.1:808 $url; done";
    env.airlock_under(&wrapper, repo.path())
        .args([
            "run", "--task", "t1", "--net", &net, "--", "sh", "-c", script,
        ])
        .run()
        .exits(11);
    let log = repo.log_of("t1");
    assert_eq!(log.matches("is not a public address").count(), 2, "{log}");
    assert_eq!(log.matches("\n403\n").count(), 2, "{log}");
    let denials = denials(&env, "t1");
    let local = denied(&denials, "host", "rebind.test").unwrap();
    assert!(
        local["allow"]["flag"][1]
            .as_str()
            .unwrap()
            .ends_with(",rebind.test:80"),
        "{local}"
    );
    let keys = denied(&denials, "host", "cloud.test").unwrap();
    assert!(keys["allow"].is_null(), "no entry leads there: {keys}");
    assert!(server.told().is_empty());
}

#[test]
fn one_request_is_one_request() {
    let env = TestEnv::new();
    let repo = env.repository();
    let server = Server::http(|_| ok("reached\n"));
    let port = server.port();
    let script = format!(
        r#"python3 -c '{ASK}
host = "localhost:{port}"
first = "POST http://%s/first HTTP/1.1\r\nHost: %s\r\nContent-Length: 4\r\n\r\nbody" % (host, host)
behind = "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\nGET http://%s/second HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host)
print(ask((first + behind).encode()).count(b"HTTP/1.1"))
for lines in ("Content-Length: 4\r\nTransfer-Encoding: chunked", "Content-Length: 4\r\nContent-Length: 5", "Transfer-Encoding: xchunked", "Host: evil.test"):
    raw = "POST http://%s/odd HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n0\r\n\r\n" % (host, host, lines)
    print(ask(raw.encode()).split(b"\r\n")[0].decode())
chunked = "POST http://%s/chunked HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n" % (host, host)
print(ask((chunked + behind).encode()).count(b"HTTP/1.1"))
'"#
    );
    let net = format!("allow:localhost:{port}");
    repo.task(&["--task", "t1", "--net", &net], &script)
        .exits(11);
    let log = repo.log_of("t1");
    let four = "HTTP/1.1 400 Bad Request\n".repeat(4);
    assert_eq!(log, format!("1\n{four}1\n"));
    let told = server.told();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(
        told.iter()
            .all(|request| !request.contains("evil.test") && !request.contains("second")),
        "{told:#?}"
    );
}

#[test]
fn an_encrypted_connection_asks_for_its_own_host() {
    let env = TestEnv::new();
    let repo = env.repository();
    let server = Server::new(|mut client, teller| {
        let mut first = [0];
        let count = client.read(&mut first).unwrap_or_default();
        teller
            .send(format!("{:?}", first.get(..count).unwrap_or_default()))
            .ok();
    });
    let port = server.port();
    let script = format!(
        r#"python3 -c '
import socket, ssl
context = ssl.create_default_context()
for name in ("b.localhost", "a.localhost", "A.LOCALHOST"):
    s = socket.create_connection(("127.0.0.1", 808), 10)
    s.sendall(b"CONNECT a.localhost:{port} HTTP/1.1\r\n\r\n")
    assert b" 200 " in s.recv(1000)
    try: context.wrap_socket(s, server_hostname=name)
    except (ssl.SSLError, OSError) as error: print(name, "ended")
'"#
    );
    let net = format!("allow:a.localhost:{port}");
    repo.task(&["--task", "t1", "--net", &net], &script)
        .exits(11);
    assert_eq!(
        repo.log_of("t1"),
        "b.localhost ended\na.localhost ended\nA.LOCALHOST ended\n"
    );
    let told = server.told();
    assert_eq!(
        told.iter().filter(|first| *first == "[22]").count(),
        2,
        "{told:?}"
    );
    let denials = denials(&env, "t1");
    let other = denied(&denials, "host", "a.localhost").unwrap();
    assert_eq!(other["rule"], "one connection, one host name");
}

#[test]
fn what_begins_like_tls_is_judged_as_tls() {
    let env = TestEnv::new();
    let repo = env.repository();
    let server = Server::new(|mut client, teller| {
        let mut all = Vec::new();
        client.read_to_end(&mut all).ok();
        teller.send(String::from_utf8_lossy(&all).into_owned()).ok();
    });
    let port = server.port();
    let script = format!(
        r#"python3 -c '
import socket
for first in (b"\x15\x03\x01\0\x02\x01\0", b"\x14\x03\x03\0\x01\x01", b"\x16\x02\0\0\x05odd", b"\x80\x2e\x01\x03\x01", b"plain\n"):
    s = socket.create_connection(("127.0.0.1", 808), 10)
    s.sendall(b"CONNECT a.localhost:{port} HTTP/1.1\r\n\r\n")
    assert b" 200 " in s.recv(1000)
    s.sendall(first + b"behind"); s.shutdown(socket.SHUT_WR); print(s.recv(1) == b"")
' ; curl -sS --noproxy "" -x http://127.0.0.1:808 -H "Host: evil.test" http://a.localhost:{port}/"#
    );
    let net = format!("allow:a.localhost:{port}");
    repo.task(&["--task", "t1", "--net", &net], &script)
        .exits(11);
    let log = repo.log_of("t1");
    let told: String = server.told().concat();
    assert_eq!(told, "plain\nbehind", "{log}");
    assert!(
        log.starts_with(&"True\n".repeat(5)) && log.contains("says Host: \"evil.test\""),
        "{log}"
    );
    let rule = "a TLS connection begins with its whole greeting";
    assert!(
        denials(&env, "t1")
            .iter()
            .any(|denial| denial["rule"] == rule),
        "{log}"
    );
}

#[test]
fn there_is_no_other_way_out() {
    let env = TestEnv::new();
    let repo = env.repository();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    tcp.set_nonblocking(true).unwrap();
    let script = format!(
        r#"python3 -c '
import socket
def attempt(what, step):
    try: print(what, step())
    except OSError as error: print(what, "failed")
def udp(address):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.2); s.sendto(b"x", address); return s.recv(1)
attempt("udp", lambda: udp(("127.0.0.1", {})))
attempt("dns", lambda: udp(("1.1.1.1", 53)))
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", {}), 5))
attempt("public", lambda: socket.create_connection(("1.1.1.1", 443), 5))
attempt("lookup", lambda: socket.getaddrinfo("other.test", 80))
print("interfaces", [name for _, name in socket.if_nameindex()])
' ; env | grep -c -i _proxy="#,
        udp.local_addr().unwrap().port(),
        tcp.local_addr().unwrap().port()
    );
    repo.task(&["--task", "t1", "--net", "allow:allowed.test"], &script)
        .exits(11);
    let log = repo.log_of("t1");
    for what in ["udp", "dns", "tcp", "public", "lookup"] {
        assert!(log.contains(&format!("{what} failed\n")), "{log}");
    }
    assert!(log.contains("interfaces ['lo']\n"), "{log}");
    assert!(udp.recv_from(&mut [0; 8]).is_err());
    assert!(tcp.accept().is_err());
}

#[test]
fn without_a_network_there_is_nothing_but_loopback() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 80808 - 80000)); \
                  c = socket.create_connection((\"localhost\", 808)); c.sendall(b\"x\"); print(s.accept()[0].recv(1))' 2>&1 | tail -n 1; \
                  ls /run/airlock/proxy 2>&1 | grep -c such; env | grep -c -i _proxy= ; cat /etc/hosts | wc -l";
    repo.task(&["--task", "t1"], script).exits(11);
    let log = repo.log_of("t1");
    // A port below 1024 is nobody's inside; where the kernel gives them to everybody, it is the agent's own.
    assert!(
        log.starts_with("b'x'\n") || log.starts_with("PermissionError"),
        "{log}"
    );
    assert!(log.ends_with("\n1\n0\n2\n"), "{log}");
}

#[test]
fn a_repository_narrows_the_list_and_widens_it_only_with_trust() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write(
        "airlock.toml",
        "[sandbox]\nnet = [\"a.example.org\", \"evil.test\"]\n",
    );
    repo.commit("wishes");
    let run = || repo.airlock(&["run", "--json", "--", "true"]).run();
    run()
        .exits(2)
        .says("sandbox.net = allow:a.example.org,evil.test");
    env.configure("[sandbox]\nnet = \"allow:*.example.org,npm\"\n");
    let shown = run().exits(11).json();
    assert_eq!(shown["isolation"]["net"], "allow:a.example.org");
    env.configure("");
    repo.airlock(&["trust", "--yes"]).run().exits(0);
    let shown = run().exits(11).json();
    assert_eq!(shown["isolation"]["net"], "allow:a.example.org,evil.test");
    repo.airlock(&["run", "--net", "allow:127.0.0.1", "--", "true"])
        .run()
        .exits(2)
        .says("is an address");
    repo.airlock(&[
        "run",
        "--isolation",
        "worktree",
        "--net",
        "allow:npm",
        "--",
        "true",
    ])
    .run()
    .exits(2)
    .says("has no room");
    repo.airlock(&["run", "--net", "allow:nmp", "--", "true"])
        .run()
        .exits(2)
        .says("npm, pypi, crates");
}
