//! The record of a delivery: anybody can check it from the commit, and whoever changes a byte of it
//! is found out.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tests::{TestEnv, TestRepo};

fn delivered(env: &TestEnv) -> TestRepo<'_> {
    let repo = env.repository();
    repo.task(&["--task", "t1"], "echo 'x = 1' > x.py").exits(0);
    repo
}

fn file(env: &TestEnv, name: &str) -> PathBuf {
    env.task_folder("t1").join("evidence").join(name)
}

#[test]
fn evidence_names_what_was_judged_and_verifies() {
    let env = TestEnv::new();
    let repo = delivered(&env);
    let object = repo.show("t1");
    let shown = repo
        .airlock(&["evidence", "show", "t1", "--json"])
        .run()
        .exits(0)
        .json();
    assert_eq!(shown["_type"], "https://in-toto.io/Statement/v1");
    let text = shown.to_string();
    for fact in ["commit", "tree", "base"] {
        assert!(
            text.contains(object[fact].as_str().unwrap()),
            "{fact}: {text}"
        );
    }
    assert_eq!(object["evidence"]["signed"], true);
    repo.airlock(&["evidence", "verify", "t1"]).run().exits(0);
    repo.airlock(&["evidence", "verify", object["commit"].as_str().unwrap()])
        .run()
        .exits(0);
    let html = fs::read_to_string(file(&env, "report.html")).unwrap();
    assert!(html.contains("x.py") && html.contains("Content-Security-Policy"));
}

/// Changes one byte in the middle of a file of the evidence.
fn change(env: &TestEnv, name: &str) {
    let path = file(env, name);
    let mut bytes = fs::read(&path).unwrap();
    let place = bytes.len() / 2;
    bytes[place] = if bytes[place] == b'a' { b'b' } else { b'a' };
    fs::write(&path, bytes).unwrap();
}

#[test]
fn a_changed_byte_in_the_statement_is_found() {
    let env = TestEnv::new();
    let repo = delivered(&env);
    change(&env, "statement.json");
    repo.airlock(&["evidence", "verify", "t1"]).run().exits(13);
}

#[test]
fn a_changed_byte_in_the_envelope_is_found() {
    let env = TestEnv::new();
    let repo = delivered(&env);
    change(&env, "envelope.json");
    repo.airlock(&["evidence", "verify", "t1"]).run().exits(13);
    repo.airlock(&["merge", "t1"]).run().exits(13);
    assert!(
        !repo.path().join("x.py").exists(),
        "nothing lands on evidence that does not hold"
    );
}

#[test]
fn evidence_of_another_key_does_not_hold() {
    let env = TestEnv::new();
    let repo = delivered(&env);
    let forger = TestEnv::new();
    let theirs = delivered(&forger);
    theirs.airlock(&["evidence", "verify", "t1"]).run().exits(0);
    for name in ["statement.json", "envelope.json"] {
        fs::copy(file(&forger, name), file(&env, name)).unwrap();
    }
    repo.airlock(&["evidence", "verify", "t1"]).run().exits(13);
}

#[test]
fn evidence_that_is_not_there_is_not_found() {
    let env = TestEnv::new();
    let repo = delivered(&env);
    let base = repo.head();
    repo.airlock(&["evidence", "verify", &base]).run().exits(3);
    repo.airlock(&["evidence", "show", "nobody"]).run().exits(3);
    fs::remove_file(file(&env, "statement.json")).unwrap();
    fs::remove_file(file(&env, "envelope.json")).unwrap();
    let run = repo.airlock(&["evidence", "verify", "t1"]).run();
    assert!(matches!(run.code, Some(3 | 13)), "{run}");
    assert_ne!(repo.airlock(&["merge", "t1"]).run().code, Some(0));
    assert!(
        !repo.path().join("x.py").exists(),
        "nothing lands without evidence"
    );
}

#[test]
fn the_public_key_is_printed_and_the_private_one_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::new();
    let repo = delivered(&env);
    let key = repo.airlock(&["evidence", "key"]).run().exits(0).stdout;
    assert!(key.contains("PUBLIC KEY"), "{key}");
    let private = env.state().join("signing.key");
    assert_eq!(
        fs::metadata(&private).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(
        !key.contains(
            fs::read_to_string(&private)
                .unwrap()
                .lines()
                .nth(1)
                .unwrap()
        )
    );
}

#[test]
fn a_landed_commit_can_be_checked_without_the_task() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--merge", "--task", "t1"], "echo 'x = 1' > x.py")
        .exits(0);
    repo.airlock(&["rm", "t1"]).run().exits(0);
    repo.airlock(&["evidence", "verify", "HEAD"]).run().exits(0);
    let note: Value = serde_json::from_str(
        repo.git(&["notes", "--ref", "airlock", "show", "HEAD"])
            .lines()
            .last()
            .unwrap(),
    )
    .unwrap();
    assert!(note.is_object(), "{note}");
}

#[test]
fn a_refusal_has_evidence_too() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--task", "t1"], "echo '# nothing' > x.py")
        .exits(10);
    repo.airlock(&["evidence", "verify", "t1"]).run().exits(0);
    let shown = repo
        .airlock(&["evidence", "show", "t1", "--json"])
        .run()
        .exits(0)
        .stdout;
    assert!(
        shown.contains("rejected") || shown.contains("fail"),
        "{shown}"
    );
}

#[test]
fn evidence_of_another_task_does_not_stand_in() {
    let env = TestEnv::new();
    let repo = delivered(&env);
    repo.task(&["--task", "t2"], "echo '# nothing' > y.py")
        .exits(10);
    for name in ["envelope.json", "statement.json"] {
        let good = env.task_folder("t1").join("evidence").join(name);
        fs::copy(good, env.task_folder("t2").join("evidence").join(name)).unwrap();
    }
    repo.airlock(&["evidence", "verify", "t2"]).run().exits(13);
}
