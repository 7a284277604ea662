//! Credentials stay outside: the room gets what they are for, and nothing of them.

use std::fs;
use std::path::Path;

use tests::server::ok;
use tests::{Role, Server, TestEnv, TestRepo, until};

use super::{denials, denied};

const KEY: &str = "canary-3f9a1c";

fn configure(env: &TestEnv, upstream: &str, more: &str) {
    env.configure(&format!(
        "[sandbox.credentials.model]\nupstream = \"{upstream}\"\nenv = \"MODEL_KEY\"\nheader = \"x-api-key\"\n\
         paths = [\"/v1/messages\", \"/v1/models/\"]\n{more}"
    ));
}

/// Files of the host, below a folder, that hold the key.
fn with_the_key(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let bytes = fs::read(&path).unwrap_or_default();
                if bytes
                    .windows(KEY.len())
                    .any(|window| window == KEY.as_bytes())
                {
                    found.push(path.display().to_string());
                }
            }
        }
    }
    found
}

fn run(repo: &TestRepo<'_>, script: &str) -> tests::Run {
    let words = [
        "run",
        "--json",
        "--cleanup",
        "never",
        "--task",
        "t1",
        "--net",
        "allow:model.airlock",
        "--",
        "sh",
        "-c",
        script,
    ];
    repo.airlock(&words).env("MODEL_KEY", KEY).run()
}

#[test]
fn the_header_is_added_outside_and_nothing_of_it_is_seen_or_kept() {
    let env = TestEnv::new();
    let repo = env.repository();
    let server = Server::http(|request| {
        if request.starts_with("GET /base/v1/models/away") {
            return b"HTTP/1.1 302 Found\r\nLocation: http://evil.test/\r\nContent-Length: 0\r\n\r\n".to_vec();
        }
        ok("answered\n")
    });
    configure(
        &env,
        &format!("http://localhost:{}/base", server.port()),
        "",
    );
    let script = "curl -sS -H 'x-api-key: dummy' -H 'Authorization: Bearer dummy' -d '{}' http://model.airlock/v1/messages?beta=1
        curl -sS --noproxy '' -x http://127.0.0.1:808 http://model.airlock/v1/models/a
        curl -sS --noproxy '' -p -x http://127.0.0.1:808 http://model.airlock/v1/models/b
        curl -sS -L -o /dev/null -w '%{http_code} %{redirect_url}\n' http://model.airlock/v1/models/away
        for bad in 'DELETE /v1/messages' 'GET /v1/other' 'GET /v1/models/%2e%2e/other' 'GET /'; do
            curl -sS -o /dev/null -w '%{http_code}\n' --path-as-is -X ${bad% *} http://model.airlock${bad#* }; done
        curl -sS -o /dev/null -w '%{http_code}\n' --noproxy '' -p -x http://127.0.0.1:808 http://model.airlock:443/ 2>/dev/null
        env > env.txt; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline > proc.txt 2>/dev/null
        grep -r -l -s 'can''ary-3f' /run /etc /tmp /home . | wc -l";
    run(&repo, script).exits(0);
    let log = repo.log_of("t1");
    let expected = "answered\nanswered\nanswered\n403 \n403\n403\n403\n403\n000\n0\n";
    assert_eq!(log, expected);
    let told = server.told();
    assert_eq!(told.len(), 4, "{told:#?}");
    for request in &told {
        assert!(
            request.contains(&format!("x-api-key: {KEY}\r\n")),
            "{request}"
        );
        assert!(
            !request.contains("dummy") && request.contains(" /base/v1/"),
            "{request}"
        );
        assert!(
            request.contains(&format!("Host: localhost:{}\r\n", server.port())),
            "{request}"
        );
    }
    let denials = denials(&env, "t1");
    let path = denied(&denials, "host", "model.airlock GET /v1/other").unwrap();
    assert_eq!(path["allow"]["config"][0], "sandbox.credentials.model");
    assert!(
        denied(&denials, "host", "evil.test").is_some(),
        "{denials:#?}"
    );
    assert_eq!(with_the_key(&env.state()), Vec::<String>::new());
    let statement =
        fs::read_to_string(env.task_folder("t1").join("evidence/statement.json")).unwrap();
    assert!(
        statement.contains("allow:model.airlock") && statement.contains("\"upstream\""),
        "{statement}"
    );
}

#[test]
fn a_missing_value_or_an_unknown_name_stops_the_task_before_it_begins() {
    let env = TestEnv::new();
    let repo = env.repository();
    configure(&env, "https://api.example.com", "");
    repo.airlock(&["run", "--net", "allow:model.airlock", "--", "true"])
        .run()
        .exits(2)
        .says("the variable MODEL_KEY of your environment");
    repo.airlock(&["run", "--net", "allow:other.airlock", "--", "true"])
        .run()
        .exits(2)
        .says("[sandbox.credentials.other]");
    configure(&env, "http://api.example.com", "");
    repo.airlock(&["run", "--", "true"])
        .run()
        .exits(2)
        .says("over https only");
    repo.write(
        "airlock.toml",
        "[sandbox.credentials.x]\nupstream = \"https://evil.test\"\n",
    );
    repo.commit("a wish");
    env.configure("");
    repo.airlock(&["run", "--", "true"])
        .run()
        .exits(2)
        .says("your own config.toml only");
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn after_the_death_of_a_supervisor_the_value_is_missing_until_it_is_given_anew() {
    let env = TestEnv::new();
    let repo = env.repository();
    let server = Server::http(|_| ok("answered\n"));
    configure(&env, &format!("http://localhost:{}", server.port()), "");
    let script = "touch here; while ! test -e go; do :; done
        while ! curl -sS http://model.airlock/v1/models/a > answer; do :; done; cat answer; touch asked
        while ! grep -q answered answer; do curl -sS http://model.airlock/v1/models/a > answer; done; cat answer; rm -f here go asked answer";
    let words = [
        "run",
        "--json",
        "--task",
        "t1",
        "--net",
        "allow:model.airlock",
        "--",
        "sh",
        "-c",
        script,
    ];
    let running = repo.airlock(&words).env("MODEL_KEY", KEY).spawn();
    env.at_work("t1");
    for process in env.of_role(Role::Supervisor) {
        process.kill();
    }
    drop(running.wait());
    env.let_go("t1");
    // A command of somebody who does not have the value: the task is taken up, the value is not there.
    let follower = repo.airlock(&["resume", "t1"]).spawn();
    let asked = env.task_folder("t1").join("tree/asked");
    until("an answer that says what is missing", || {
        asked.exists().then_some(())
    });
    assert!(server.told().is_empty());
    repo.airlock(&["resume", "t1"])
        .env("MODEL_KEY", KEY)
        .run()
        .exits(11);
    follower.wait().exits(11);
    let log = repo.log_of("t1");
    assert!(
        log.contains("airlock resume t1") && log.ends_with("answered\n"),
        "{log}"
    );
    assert!(server.told().iter().all(|request| request.contains(KEY)));
    let denials = denials(&env, "t1");
    assert!(
        denied(&denials, "host", "model.airlock").is_some(),
        "{denials:#?}"
    );
}

#[test]
fn what_the_upstream_says_of_the_value_is_struck_out() {
    let env = TestEnv::new();
    let repo = env.repository();
    let server = Server::http(|request| {
        let key = request
            .lines()
            .find_map(|line| line.strip_prefix("x-api-key: "))
            .unwrap_or_default();
        let (begin, end) = key.split_at(key.len() / 2);
        let (first, second) = (begin.len() + 6, end.len() + 5);
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        match request.split(' ').nth(1) {
            Some("/v1/models/chunks") => format!(
                "{chunks}{first:x}\r\nfirst {begin}\r\n{second:X};x\r\n{end} last\r\n1\r\n\n\r\n0\r\nX-Key: {key}\r\n\r\n"
            )
            .into_bytes(),
            Some("/v1/models/head") => {
                format!("HTTP/1.1 200 {key}\r\nX-Echo: a{key}\r\nContent-Length: 0\r\n\r\n").into_bytes()
            }
            _ => ok(request),
        }
    });
    configure(&env, &format!("http://localhost:{}", server.port()), "");
    let script = "curl -sS --compressed -H 'X-HTTP-Method-Override: DELETE' -H 'X-Original-URL: /admin' http://model.airlock/v1/models/echo
        curl -sS http://model.airlock/v1/models/chunks; curl -sSi http://model.airlock/v1/models/head";
    run(&repo, script).exits(11);
    let log = repo.log_of("t1").replace('\r', "");
    let stars = "*".repeat(KEY.len());
    assert!(!log.contains(KEY), "{log}");
    for text in [
        format!("\nx-api-key: {stars}\n"),
        format!("first {stars} last\n"),
        format!("HTTP/1.1 200 {stars}\nX-Echo: a{stars}\n"),
        "\naccept-encoding: identity\n".to_owned(),
    ] {
        assert!(log.contains(&text), "{text}:\n{log}");
    }
    let told = server.told();
    assert_eq!(told.len(), 3, "{told:#?}");
    assert!(
        told.iter().all(|request| request.contains(KEY)
            && !request.contains("DELETE")
            && !request.contains("admin")),
        "{told:#?}"
    );
    assert!(env.task_folder("t1").join("proxy").exists());
    repo.airlock(&["rm", "t1", "--discard"]).run().exits(0);
    assert!(!env.task_folder("t1").join("proxy").exists());
}

#[test]
fn a_file_that_holds_a_value_is_shown_in_no_room() {
    let env = TestEnv::new();
    let repo = env.repository();
    let keys = env.path().join("keys");
    fs::create_dir(&keys).unwrap();
    let file = |path: &Path| {
        fs::write(path, KEY).unwrap();
        env.configure(&format!(
            "[sandbox.credentials.model]\nupstream = \"https://api.example.com\"\nfile = \"{}\"\npaths = [\"/v1/\"]\n",
            path.display()
        ));
    };
    let key = keys.join("model");
    file(&key);
    let link = env.path().join("link");
    std::os::unix::fs::symlink(&key, &link).unwrap();
    for shown in [&key, &keys, &link] {
        for flag in ["--ro", "--rw"] {
            repo.airlock(&["run", flag, shown.to_str().unwrap(), "--", "true"])
                .run()
                .exits(2)
                .says("where the value of a credential is kept");
        }
    }
    let inside = repo.path().join("key.txt");
    file(&inside);
    let session = ["run", "--isolation", "session", "--", "cat", "key.txt"];
    repo.airlock(&session)
        .run()
        .exits(2)
        .says("the room would see");
    fs::remove_file(&inside).unwrap();
    file(&repo.path().join(".git/key"));
    repo.airlock(&["run", "--", "true"])
        .run()
        .exits(2)
        .says("the room would see");
    file(&key);
    repo.airlock(&["run", "--", "true"]).run().exits(11);
}

/// Speaks TLS with a certificate for `api.localhost` and prints its port and the header of each request.
const TLS: &str = "
import http.server, ssl, sys
class Talk(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        open(\"seen\", \"a\").write(\"%s %s\\n\" % (self.headers[\"Host\"], self.headers[\"x-api-key\"]))
        self.send_response(200); self.send_header(\"Content-Length\", \"9\"); self.end_headers(); self.wfile.write(b\"answered\\n\")
    def log_message(self, *_): pass
server = http.server.HTTPServer((\"127.0.0.1\", 0), Talk)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain(\"cert.pem\", \"key.pem\")
server.socket = context.wrap_socket(server.socket, server_side=True)
open(\"port.new\", \"w\").write(str(server.server_port)); __import__(\"os\").rename(\"port.new\", \"port\")
server.serve_forever()
";

#[test]
fn over_tls_the_certificate_decides() {
    let env = TestEnv::new();
    let repo = env.repository();
    let folder = env.path().join("upstream");
    fs::create_dir(&folder).unwrap();
    env.program("openssl", &folder)
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args([
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
            "-subj",
            "/CN=api",
            "-addext",
            "subjectAltName=DNS:api.localhost",
        ])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .run()
        .exits(0);
    let upstream = env.program("python3", &folder).args(["-c", TLS]).spawn();
    let port = until("a server", || fs::read_to_string(folder.join("port")).ok());
    let task = |id: &str, host: &str, trusted: bool| {
        configure(&env, &format!("https://{host}:{port}"), "");
        let script = "curl -sS -w '%{http_code}' http://model.airlock/v1/models/a";
        let words = [
            "run",
            "--json",
            "--task",
            id,
            "--net",
            "allow:model.airlock",
            "--",
            "sh",
            "-c",
            script,
        ];
        let call = repo.airlock(&words).env("MODEL_KEY", KEY);
        let call = if trusted {
            call.env("SSL_CERT_FILE", folder.join("cert.pem"))
        } else {
            call
        };
        call.run().exits(11);
        for process in env.of_role(Role::Supervisor) {
            // The next one is to have its own idea of whom to trust.
            process.kill();
        }
        repo.log_of(id)
    };
    assert_eq!(task("t1", "api.localhost", true), "answered\n200");
    let other = task("t2", "other.localhost", true);
    assert!(
        other.contains("no TLS with other.localhost") && other.ends_with("502"),
        "{other}"
    );
    let unknown = task("t3", "api.localhost", false);
    assert!(
        unknown.contains("no TLS with api.localhost") && unknown.ends_with("502"),
        "{unknown}"
    );
    let seen = fs::read_to_string(folder.join("seen")).unwrap();
    assert_eq!(seen, format!("api.localhost:{port} {KEY}\n"));
    upstream.signal(nix::sys::signal::Signal::SIGKILL);
    assert_eq!(upstream.wait().code, None);
}
