//! `why`: what a room refused, by which rule, and the exact flag or line that would allow it.

use serde_json::{Value, json};
use tests::{TestEnv, TestRepo};

fn why(repo: &TestRepo<'_>, args: &[&str]) -> Value {
    let mut words = vec!["why", "t1", "--json"];
    words.extend(args);
    repo.airlock(&words).run().exits(0).json()
}

#[test]
fn a_limit_that_was_passed_is_named_with_the_flag_that_raises_it() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "dd if=/dev/zero of=big bs=1M count=24 2>/dev/null; exec sleep 600";
    let object = repo
        .task(&["--task", "t1", "--disk", "16M"], script)
        .exits(23)
        .json();
    assert_eq!(object["refusals"], 1);
    let told = why(&repo, &[]);
    assert_eq!(told["refusals"], 1);
    let group = &told["groups"][0];
    assert_eq!(group["rule"], "disk = 16M");
    let refused = &group["refused"][0];
    assert_eq!(
        (&refused["kind"], &refused["what"], &refused["job"]),
        (&json!("limit"), &json!("disk"), &json!("agent"))
    );
    assert_eq!(refused["allow"]["flag"], "--disk 32M");
    let config = json!({"section": "sandbox", "line": "disk = \"32M\""});
    assert_eq!(refused["allow"]["config"], config);
    repo.airlock(&["why", "t1"])
        .run()
        .exits(0)
        .prints("refused by disk = 16M")
        .prints("airlock run --disk 32M");
    repo.airlock(&["show", "t1"])
        .run()
        .exits(0)
        .prints("why t1");
}

#[test]
fn nothing_refused_is_said_so_and_no_task_is_not_found() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--task", "t1"], "echo 'x = 1' > x.py").exits(0);
    repo.airlock(&["why", "t1"])
        .run()
        .exits(0)
        .prints("nothing was refused");
    repo.airlock(&["why", "t2"]).run().exits(3);
}

#[test]
fn what_was_only_printed_is_marked_as_inferred() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "touch /usr/x; mkdir '/opt/it is'; echo 'curl: (6) Could not resolve host: example.org'; true";
    repo.task(&["--task", "t1"], script).exits(11);
    let told = why(&repo, &[]);
    assert_eq!(told["refusals"], 0, "a guess is no refusal: {told:#}");
    let guesses = told["inferred"].as_array().unwrap();
    assert!(guesses.iter().all(|guess| guess["inferred"] == true));
    let of = |text: &str| {
        let found = guesses
            .iter()
            .find(|guess| guess["line"].as_str().unwrap().contains(text));
        found.unwrap_or_else(|| panic!("no guess about {text}: {told:#}"))
    };
    assert!(of("/usr/x")["rule"].as_str().unwrap().contains("/usr"));
    assert_eq!(
        of("example.org")["allow"]["flag"],
        "--net allow:example.org"
    );
    repo.airlock(&["why", "t1"])
        .run()
        .exits(0)
        .prints("inferred from what was printed");
}

#[test]
fn every_path_has_a_rule() {
    let env = TestEnv::new();
    let repo = env.repository();
    let tools = env.shared().join("tools it's");
    std::fs::create_dir(&tools).unwrap();
    let tools = tools.to_str().unwrap();
    repo.task(&["--task", "t1", "--ro", tools], "true")
        .exits(11);
    let path = |path: &str| why(&repo, &["--path", path])["path"].clone();
    assert_eq!(path("src/a.py")["reach"], "writable");
    let here = repo.path().join("a.py");
    assert_eq!(path(here.to_str().unwrap())["reach"], "writable");
    let protected = path(".envrc");
    assert_eq!(protected["reach"], "protected");
    assert_eq!(protected["allow"]["flag"], "--allow .envrc");
    assert_eq!(path(".git/config")["reach"], "engine");
    assert_eq!(path("/tmp/x")["reach"], "private");
    assert_eq!(path("/usr/bin/sh")["reach"], "read-only");
    let shown = path(&format!("{tools}/x"));
    assert_eq!(shown["reach"], "read-only");
    let quoted = format!("--rw '{}/x'", tools.replace('\'', r"'\''"));
    assert_eq!(shown["allow"]["flag"], quoted);
    let absent = path("/opt/its own");
    assert_eq!(absent["reach"], "absent");
    assert_eq!(absent["allow"]["flag"], "--ro '/opt/its own'");
}

#[test]
fn a_record_that_was_cut_off_is_reported_and_the_rest_is_read() {
    let env = TestEnv::new();
    let repo = env.repository();
    env.configure("[sandbox]\nfile_size = \"1M\"\n");
    repo.task(&["--task", "t1"], "head -c 2000000 /dev/zero > big")
        .exits(23);
    let record = env.task_folder("t1").join("deny.ndjson");
    let mut text = std::fs::read(&record).unwrap();
    text.extend_from_slice(b"{\"schema\":1,\"time\":");
    std::fs::write(&record, text).unwrap();
    let told = why(&repo, &[]);
    assert_eq!(
        (&told["refusals"], &told["broken_lines"]),
        (&json!(1), &json!(1))
    );
    repo.airlock(&["why", "t1"])
        .run()
        .exits(0)
        .says("1 line of")
        .prints("file_size = \"2M\"");
}

#[test]
fn doctor_says_what_keeps_each_limit() {
    let env = TestEnv::new();
    let repo = env.repository();
    let checks = repo.airlock(&["doctor", "--json"]).run().exits(0).json();
    let checks = checks["checks"].as_array().unwrap();
    for limit in [
        "memory",
        "processes",
        "disk and files",
        "wall time",
        "idle time",
        "output",
    ] {
        let name = format!("limit: {limit}");
        let found = checks.iter().find(|check| check["name"] == name.as_str());
        assert!(
            found.is_some_and(|check| check["detail"].as_str().unwrap().len() > 10),
            "{limit}"
        );
    }
}
