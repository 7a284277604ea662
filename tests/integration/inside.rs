//! What an agent finds in its room, under every isolation mode: its place, its environment, its git,
//! and that all of it stays there.

use serde_json::json;
use tests::TestEnv;

const CALC: &str = r"printf 'def add(a, b):\n    return a + b\n' > calc.py";

#[test]
fn the_worktree_appears_at_the_repositorys_own_path() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(
        &["--task", "t1"],
        "pwd; git rev-parse --show-toplevel; echo x = 1 > x.py",
    )
    .exits(0);
    let path = repo.path().display();
    assert_eq!(repo.log_of("t1"), format!("{path}\n{path}\n"));
}

#[test]
fn the_agents_environment_is_made_of_nothing_but_the_allow_list() {
    let env = TestEnv::new();
    let repo = env.repository();
    let run = repo
        .airlock(&[
            "run",
            "--json",
            "--task",
            "t1",
            "--env",
            "PLAIN=value",
            "--env",
            "PASSED",
            "--",
            "env",
        ])
        .env("PASSED", "by name")
        .env("SECRET", "s3cr3t")
        .env("LD_LIBRARY_PATH", "/nowhere")
        .run();
    run.exits(11);
    let log = repo.log_of("t1");
    let mut names: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    names.sort_unstable();
    let expected = [
        "AIRLOCK_ATTEMPT",
        "AIRLOCK_NOTE",
        "AIRLOCK_OUTBOX",
        "AIRLOCK_TASK",
        "CI",
        "GIT_EDITOR",
        "GIT_PAGER",
        "GIT_SEQUENCE_EDITOR",
        "GIT_TERMINAL_PROMPT",
        "HOME",
        "LANG",
        "LOGNAME",
        "NO_COLOR",
        "PAGER",
        "PASSED",
        "PATH",
        "PLAIN",
        "SHELL",
        "TERM",
        "TMPDIR",
        "USER",
    ];
    let unexpected: Vec<_> = names
        .iter()
        .filter(|name| !expected.contains(*name) && **name != "PWD")
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:?}\n{log}");
    let missing: Vec<_> = expected
        .iter()
        .filter(|name| !names.contains(*name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}\n{log}");
    let store = std::fs::read(env.state_folder().join("state.db")).unwrap();
    assert!(
        !store.windows(7).any(|window| window == b"by name"),
        "a passed value must never be stored"
    );
}

#[test]
fn standard_input_is_empty() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.airlock(&["run", "--json", "--", "cat"])
        .stdin("must not reach the agent")
        .run()
        .exits(11);
}

#[test]
fn an_agent_that_leaves_children_ends_when_it_ends() {
    let env = TestEnv::new();
    let repo = env.repository();
    let object = repo
        .task(&["--task", "t1"], "sleep 987 & echo hi; echo x = 1 > x.py")
        .exits(0)
        .json();
    assert_eq!(object["state"], "accepted");
    assert_eq!(repo.log_of("t1"), "hi\n");
    env.is_quiet();
}

#[test]
fn output_is_kept_within_its_cap_from_both_ends() {
    let env = TestEnv::new();
    env.configure("[sandbox]\noutput = \"1M\"\n");
    let repo = env.repository();
    let script = "echo first; i=0; while [ $i -lt 60000 ]; do echo 'a line of fifty characters, more or less, really'; \
                  i=$((i+1)); done; echo last";
    repo.task(&["--task", "t1"], script).exits(11);
    let log = repo.log_of("t1");
    assert!(
        log.starts_with("first\n") && log.ends_with("last\n"),
        "both ends are kept"
    );
    assert!(log.len() < (1 << 20) + 4096, "{} bytes", log.len());
}

#[test]
fn session_brings_back_its_note_and_its_files() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = r#"echo 'README.md says too little' > "$AIRLOCK_NOTE"; mkdir "$AIRLOCK_OUTBOX/plots"
                    echo 1234 > "$AIRLOCK_OUTBOX/plots/sizes.csv"; ln -s /etc/passwd "$AIRLOCK_OUTBOX/link"; mkfifo "$AIRLOCK_OUTBOX/pipe""#;
    let run = repo
        .task(&["--isolation", "session", "--task", "t1"], script)
        .exits(0);
    let returned = &run.json()["returned"];
    assert_eq!(returned["note"], "README.md says too little\n");
    assert_eq!(
        returned["artifacts"],
        serde_json::json!([{"path": "plots/sizes.csv", "bytes": 5}])
    );
    let outbox = std::path::PathBuf::from(returned["outbox"].as_str().unwrap());
    assert_eq!(
        std::fs::read_to_string(outbox.join("plots/sizes.csv")).unwrap(),
        "1234\n"
    );
    assert!(
        !outbox.join("pipe").exists(),
        "what makes a host tool hang is not left lying there"
    );
    repo.airlock(&["show", "t1"])
        .run()
        .exits(0)
        .prints("README.md says too little")
        .prints("plots/sizes.csv (5 bytes)");
    repo.airlock(&["rm", "t1"]).run().exits(0);
    assert!(!outbox.exists());
    env.is_quiet();
}

#[test]
fn session_gives_a_look_but_no_pen() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "cat README.md; echo x > README.md || echo held; echo x > new || echo held";
    repo.task(&["--isolation", "session", "--task", "t1"], script)
        .exits(0);
    assert_eq!(repo.log_of("t1").matches("held").count(), 2);
    assert_eq!(repo.status(), "");
    assert_eq!(repo.show("t1")["isolation"]["confined"], true);
    env.is_quiet();
}

#[test]
fn unconfined_modes_say_so_and_do_not_land_by_themselves() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(
        &["--isolation", "worktree", "--merge", "--task", "t0"],
        CALC,
    )
    .exits(2)
    .says("--allow-unconfined");
    let run = repo
        .task(&["--isolation", "worktree", "--task", "t1"], CALC)
        .exits(0)
        .says("NOT confined");
    assert_eq!(run.json()["isolation"]["confined"], false);
    assert_eq!(run.json()["state"], "accepted");
    repo.airlock(&["merge", "t1"])
        .run()
        .exits(4)
        .prints("--allow-unconfined");
    repo.airlock(&["merge", "t1", "--allow-unconfined"])
        .run()
        .exits(0);
    assert_eq!(repo.read("calc.py"), "def add(a, b):\n    return a + b\n");
    repo.is_clean();
}

#[test]
fn mode_none_runs_in_place_and_seals_nothing() {
    let env = TestEnv::new();
    let repo = env.repository();
    let object = repo
        .task(&["--isolation", "none", "--task", "t1"], "echo x > new.txt")
        .exits(0)
        .says("NOT confined")
        .json();
    assert_eq!(object["commit"], json!(null));
    assert_eq!(repo.status(), "?? new.txt");
    env.is_quiet();
}

#[test]
fn what_git_needs_works_in_the_room_and_stays_there() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("old.txt", "one\n");
    repo.commit("old");
    let before = repo.references();
    let config = repo.read(".git/config");
    let script = "set -e; echo 'x = 1' > x.py; git status; git add -A; git commit -q -m 'inside'; git log --oneline -3; \
                  git diff HEAD~1; echo 'x = 2' > x.py; git stash; git stash list; git stash pop; git commit -q -am 'inside again'; git branch side; \
                  git switch -q -c other; git config user.name Agent; git config core.hooksPath hooks; \
                  git rebase -q HEAD~1; git tag inside; git fsck; git gc -q; git status --short; echo all done";
    let object = repo.task(&["--task", "t1"], script).exits(0).json();
    let log = repo.log_of("t1");
    assert!(log.ends_with("all done\n"), "{log}");
    assert_eq!(repo.read(".git/config"), config);
    assert_eq!(repo.git(&["stash", "list"]), "");
    let branch = format!(
        "refs/heads/{} ",
        object["isolation"]["branch"].as_str().unwrap()
    );
    let mut after = repo.references();
    after.retain(|line| !line.starts_with(&branch) && !line.starts_with("refs/notes/airlock"));
    assert_eq!(after, before, "the agent's references stay in the room");
    let commits = object["gates"][0]["reasons"].to_string();
    assert!(
        commits.contains("inside"),
        "the gate lists what the agent committed: {commits}"
    );
    let everything = repo.git(&[
        "cat-file",
        "--batch-all-objects",
        "--batch-check=%(objecttype) %(objectname)",
    ]);
    for commit in everything
        .lines()
        .filter_map(|line| line.strip_prefix("commit "))
    {
        let subject = repo.git(&["log", "-1", "--format=%s", commit]);
        assert!(
            !subject.contains("inside") && !subject.contains("WIP"),
            "a commit of the agent: {subject}"
        );
    }
    repo.is_sound();
}

#[test]
fn two_tasks_share_neither_stash_nor_files() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(
        &["--task", "a1"],
        "echo a > a.txt; git add -A; git stash; touch /tmp/left \"$HOME/left\"; git stash apply",
    )
    .exits(0);
    let script = "git stash pop && echo popped; ls /tmp \"$HOME\"; test -e a.txt && echo seen; echo b > b.txt";
    repo.task(&["--task", "b1"], script).exits(0);
    let log = repo.log_of("b1");
    for text in ["popped", "left", "seen"] {
        assert!(!log.contains(text), "{text}\n{log}");
    }
    assert_eq!(repo.git(&["stash", "list"]), "");
}

#[test]
fn hooks_and_filters_of_the_repository_never_run() {
    let env = TestEnv::new();
    let repo = env.repository();
    let marker = env.path().join("ran");
    for hook in [
        "post-checkout",
        "pre-commit",
        "post-commit",
        "post-merge",
        "reference-transaction",
        "pre-merge-commit",
        "post-index-change",
    ] {
        repo.write_program(
            &format!(".git/hooks/{hook}"),
            &format!("#!/bin/sh\necho {hook} >> {}\n", marker.display()),
        );
    }
    repo.git(&[
        "config",
        "filter.evil.clean",
        &format!("sh -c 'echo clean >> {}; cat'", marker.display()),
    ]);
    repo.git(&[
        "config",
        "filter.evil.smudge",
        &format!("sh -c 'echo smudge >> {}; cat'", marker.display()),
    ]);
    repo.git(&[
        "config",
        "core.fsmonitor",
        &format!("sh -c 'echo fsmonitor >> {}'", marker.display()),
    ]);
    repo.task(&["--merge"], "echo '*.txt filter=evil' > .gitattributes; echo t > t.txt; echo 'x = 1' > x.py; git add -A; git commit -qm x").exits(10);
    let ran = std::fs::read_to_string(&marker).unwrap_or_default();
    assert_eq!(ran, "", "these ran on the host");
}

#[test]
fn the_users_git_variables_do_not_lead_astray() {
    let env = TestEnv::new();
    let repo = env.repository();
    let other = env.empty_repository("other");
    other.write("a.txt", "a\n");
    let head = other.commit("other");
    let run = repo
        .airlock(&["run", "--merge", "--", "sh", "-c", CALC])
        .env("GIT_DIR", other.path().join(".git"))
        .env("GIT_WORK_TREE", other.path())
        .env("GIT_INDEX_FILE", other.path().join(".git/index"))
        .run();
    run.exits(0);
    assert!(repo.path().join("calc.py").exists());
    assert_eq!((other.head(), other.status()), (head, String::new()));
}
