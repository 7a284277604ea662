//! The command line as scripts see it: every documented exit code with a test that provokes it, and
//! help that helps.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use tests::{Role, TestEnv, until};

#[test]
fn exit_0_accepted() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--merge"], "echo 'x = 1' > x.py").exits(0);
}

#[test]
fn exit_1_internal() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--task", "t1"], "echo 'x = 1' > x.py").exits(0);
    for process in env.of_role(Role::Supervisor) {
        process.kill();
    }
    for name in ["state.db-wal", "state.db-shm"] {
        fs::remove_file(env.state_folder().join(name)).ok();
    }
    fs::write(
        env.state_folder().join("state.db"),
        "this is no database, and it is long enough to be read as one".repeat(80),
    )
    .unwrap();
    repo.airlock(&["ls"]).run().exits(1).says("state.db");
    repo.airlock(&["run", "--", "true"])
        .run()
        .exits(1)
        .says("state.db");
}

#[test]
fn exit_2_usage() {
    let env = TestEnv::new();
    let repo = env.repository();
    for words in [
        &["frobnicate"][..],
        &["run"],
        &["run", "--no-such-flag", "--", "true"],
        &["run", "--timeout", "10", "--", "true"],
        &["run", "--attempts", "0", "--", "true"],
        &["run", "--task", "../x", "--", "true"],
        &["run", "--agent", "nobody", "--prompt", "x"],
        &["run", "--spec", "missing.json"],
        &["run", "--isolation", "jail", "--", "true"],
        &["show"],
        &["ls", "-q", "-v"],
        &["-C", "nowhere", "ls"],
    ] {
        let run = repo.airlock(words).run().exits(2);
        assert!(!run.stderr.is_empty(), "{run}");
    }
}

#[test]
fn exit_3_not_found() {
    let env = TestEnv::new();
    let repo = env.repository();
    for verb in [
        "show", "logs", "events", "diff", "deliver", "merge", "resume", "rm", "stop",
    ] {
        repo.airlock(&[verb, "nobody"])
            .run()
            .exits(3)
            .says("nobody");
    }
    repo.airlock(&["run", "--base", "nowhere", "--", "true"])
        .run()
        .exits(3)
        .says("nowhere");
    repo.airlock(&["evidence", "verify", "HEAD"]).run().exits(3);
}

#[test]
fn exit_4_conflict() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--task", "t1"], "echo changed > README.md")
        .exits(0);
    repo.write("README.md", "my own\n");
    repo.airlock(&["merge", "t1"])
        .run()
        .exits(4)
        .says("README.md");
    repo.airlock(&["run", "--task", "t1", "--", "true"])
        .run()
        .exits(4);
}

#[test]
fn exit_10_gate_failed() {
    let env = TestEnv::new();
    let repo = env.repository();
    let object = repo
        .task(&["--merge"], "echo '# nothing' > a.py")
        .exits(10)
        .json();
    assert_eq!(object["exit"], 10);
    assert_eq!(repo.status(), "");
}

#[test]
fn exit_11_empty() {
    let env = TestEnv::new();
    let repo = env.repository();
    assert_eq!(repo.task(&["--merge"], "true").exits(11).json()["exit"], 11);
}

#[test]
fn exit_12_merge_conflict() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--task", "t1"], "echo theirs > README.md")
        .exits(0);
    repo.write("README.md", "ours\n");
    repo.commit("ours");
    repo.airlock(&["merge", "t1"])
        .run()
        .exits(12)
        .says("README.md");
}

#[test]
fn exit_13_evidence_invalid() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--task", "t1"], "echo 'x = 1' > x.py").exits(0);
    let statement = env.task_folder("t1").join("evidence/statement.json");
    let text = fs::read_to_string(&statement).unwrap();
    fs::write(&statement, text.replacen("x.py", "y.py", 1)).unwrap();
    repo.airlock(&["evidence", "verify", "t1"]).run().exits(13);
}

#[test]
fn exit_14_could_not_check() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("a.py", "x = 1\n");
    repo.commit("before");
    let before = repo.git(&["rev-parse", "HEAD:a.py"]);
    repo.write("a.py", "x = 2\n");
    repo.commit("after");
    let (folder, file) = before.split_at(2);
    let object = repo.path().join(".git/objects").join(folder).join(file);
    let mut bytes = fs::read(&object).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::remove_file(&object).unwrap();
    fs::write(&object, bytes).unwrap();
    let run = repo
        .airlock(&["gate", "--base", "HEAD~1", "--format", "json"])
        .run()
        .exits(14);
    assert!(run.stdout.contains("could_not_check"), "{run}");
}

#[test]
fn exit_20_agent_failed_in_three_different_ways() {
    let env = TestEnv::new();
    let repo = env.repository();
    let code = repo.task(&[], "exit 7").exits(20).json();
    assert_eq!(
        (&code["agent"]["outcome"], &code["agent"]["code"]),
        (&"exited".into(), &7.into())
    );
    let signal = repo.task(&[], "kill -9 $$").exits(20).json();
    assert_eq!(
        (&signal["agent"]["outcome"], &signal["agent"]["signal"]),
        (&"signalled".into(), &9.into())
    );
    let never = repo
        .airlock(&["run", "--json", "--", "no-such-program"])
        .run()
        .exits(20)
        .json();
    assert_eq!(never["agent"]["outcome"], "not_started");
    assert_eq!(never["agent"]["code"], serde_json::Value::Null);
    let lookalike = repo.task(&[], "exit 137").exits(20).json();
    assert_eq!(
        (&lookalike["agent"]["outcome"], &lookalike["agent"]["code"]),
        (&"exited".into(), &137.into())
    );
}

#[test]
fn exit_21_timeout() {
    let env = TestEnv::new();
    let repo = env.repository();
    assert_eq!(
        repo.task(&["--timeout", "300ms"], "sleep 976")
            .exits(21)
            .json()["state"],
        "timeout"
    );
}

#[test]
fn exit_23_over_limit() {
    let env = TestEnv::new();
    env.configure("[sandbox]\nfile_size = \"1M\"\n");
    let repo = env.repository();
    let over = repo
        .task(&[], "exec dd if=/dev/zero of=big bs=64k count=64")
        .exits(23)
        .json();
    assert_eq!(over["state"], "over_limit");
    assert_eq!(over["agent"]["reason"], "file_size");
}

#[test]
fn exit_30_sandbox_unavailable() {
    let env = TestEnv::new();
    let repo = env.repository();
    let without = [
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        "--tmpfs",
        "/usr/bin",
        "--tmpfs",
        "/usr/local/bin",
        "--",
    ];
    let marker = repo.path().join("ran");
    let run = env
        .airlock_under(&without, repo.path())
        .args(["run", "--", "/bin/sh", "-c", "touch ran"])
        .run();
    run.exits(30).prints("bubblewrap");
    assert!(!marker.exists());
    let call = env.airlock_under(&without, repo.path()).args([
        "run",
        "--json",
        "--isolation",
        "session",
        "--",
        "true",
    ]);
    call.run().exits(30);
    env.airlock_under(&without, repo.path())
        .arg("doctor")
        .run()
        .exits(30);
    repo.is_sound();
}

#[test]
fn exit_31_lost() {
    let env = TestEnv::new();
    let repo = env.repository();
    let running = repo
        .airlock(&[
            "run",
            "--json",
            "--task",
            "t1",
            "--",
            "sh",
            "-c",
            "touch here; sleep 975",
        ])
        .spawn();
    env.at_work("t1");
    let keeper = until("a keeper", || env.of_role(Role::Keeper).pop());
    keeper.kill();
    let run = running.wait().exits(31);
    assert_eq!(run.json()["state"], "lost", "{run}");
    assert_eq!(run.json()["agent"]["outcome"], "lost", "{run}");
    env.is_quiet();
    repo.airlock(&["rm", "t1", "--discard"]).run().exits(0);
    repo.is_clean();
}

#[test]
fn exit_130_interrupted() {
    let env = TestEnv::new();
    let repo = env.repository();
    let running = repo
        .airlock(&["run", "--task", "t1", "--", "sh", "-c", "sleep 974"])
        .spawn();
    until("an agent", || env.of_role(Role::Agent).pop());
    running.signal(Signal::SIGINT);
    let run = running.wait();
    run.exits(130);
}

#[test]
fn every_verb_has_help_with_an_example() {
    let env = TestEnv::new();
    let verbs = verbs(&env);
    assert!(verbs.len() >= 18, "{verbs:?}");
    for verb in verbs.iter().filter(|verb| *verb != "help") {
        let text = env
            .airlock(env.path())
            .args([verb.as_str(), "--help"])
            .run()
            .exits(0)
            .stdout;
        assert!(
            text.contains("Example") && text.contains(&format!("airlock {verb}")),
            "{verb}:\n{text}"
        );
        for option in ["--json", "--quiet", "--verbose", "-C"] {
            assert!(text.contains(option), "{verb} {option}");
        }
    }
    env.airlock(env.path())
        .arg("--version")
        .run()
        .exits(0)
        .prints("airlock");
}

/// The verbs that the program itself lists.
pub(crate) fn verbs(env: &TestEnv) -> Vec<String> {
    let help = env.airlock(env.path()).arg("--help").run().exits(0).stdout;
    let listed = help
        .split("Commands:")
        .nth(1)
        .and_then(|text| text.split("\n\n").next())
        .unwrap_or_default();
    let entries = listed
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    entries
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn data_goes_to_standard_output_and_talk_to_standard_error() {
    let env = TestEnv::new();
    let repo = env.repository();
    let run = repo
        .task(
            &["--merge", "--task", "t1"],
            "echo talk of the agent; echo 'x = 1' > x.py",
        )
        .exits(0);
    assert_eq!(
        run.stdout.lines().count(),
        1,
        "one object on one line\n{run}"
    );
    let quiet = repo
        .airlock(&[
            "run",
            "-q",
            "--merge",
            "--",
            "sh",
            "-c",
            "echo 'y = 1' > y.py",
        ])
        .run()
        .exits(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    for words in [
        &["ls", "--all", "--json"][..],
        &["show", "t1", "--json"],
        &["prune", "--json"],
        &["doctor", "--json"],
    ] {
        let run = repo.airlock(words).run().exits(0);
        assert!(run.json().is_object() || run.json().is_array(), "{run}");
    }
    let failure = repo.airlock(&["show", "nobody"]).run().exits(3);
    assert_eq!(failure.stdout, "");
}

#[test]
fn a_failure_says_what_why_and_what_next() {
    let env = TestEnv::new();
    let repo = env.repository();
    let run = env.airlock(env.path()).arg("ls").run().exits(2);
    let run = run.says("no git repository").says("-C DIR");
    assert!(!run.stderr.contains("Error {"), "{run}");
    repo.airlock(&["show", "nobody"])
        .run()
        .exits(3)
        .says("airlock ls");
}

#[test]
fn the_start_of_an_id_is_enough_when_it_is_unique() {
    let env = TestEnv::new();
    let repo = env.repository();
    for id in ["alpha-1", "alpha-2", "beta-1"] {
        repo.task(&["--task", id], "echo 'x = 1' > x.py").exits(0);
    }
    repo.airlock(&["show", "b"]).run().exits(0).prints("beta-1");
    repo.airlock(&["show", "alpha"])
        .run()
        .exits(2)
        .says("alpha-2");
}

#[test]
fn nothing_waits_for_ever() {
    let env = TestEnv::new();
    let repo = env.repository();
    let began = std::time::Instant::now();
    repo.task(&["--merge"], "echo 'x = 1' > x.py").exits(0);
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "a trivial task takes {:?}",
        began.elapsed()
    );
}

#[test]
fn names_that_github_would_obey_are_put_between_marks() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "echo x=1 > ::add-mask::a.py; echo 1 > ::stop-commands::pwn";
    let run = repo
        .airlock(&["run", "--task", "t1", "--", "sh", "-c", script])
        .env("GITHUB_ACTIONS", "true")
        .run()
        .exits(0);
    let mut guard: Option<String> = None;
    let mut named = 0;
    for line in run.stdout.lines() {
        if guard
            .as_ref()
            .is_some_and(|word| line == format!("::{word}::"))
        {
            guard = None;
        } else if let (None, Some(word)) = (&guard, line.strip_prefix("::stop-commands::")) {
            guard = Some(word.to_owned());
        } else if line.trim_start().starts_with("::") {
            assert!(guard.is_some(), "unguarded: {line}");
            named += 1;
        }
    }
    assert!(named >= 2, "both files are listed: {}", run.stdout);
}
