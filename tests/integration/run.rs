//! The way of a task that goes well: worktree, room, agent, seal, gates, evidence, landing, clean-up,
//! and what people and scripts are told about it.

use serde_json::json;
use tests::{TestEnv, TestRepo, until};

const CALC: &str = r"printf 'def add(a, b):\n    return a + b\n' > calc.py";

#[test]
fn a_task_lands_and_leaves_nothing_but_its_commit() {
    let env = TestEnv::new();
    let repo = env.repository();
    let base = repo.head();
    let object = repo
        .task(&["--merge", "--task", "t1"], CALC)
        .exits(0)
        .json();
    assert_eq!(object["schema"], 1);
    assert_eq!(object["task"], "t1");
    assert_eq!(object["state"], "landed");
    assert_eq!(object["exit"], 0);
    assert_eq!(object["base"], base.as_str());
    assert_eq!(object["modified_files"], json!(["calc.py"]));
    assert_eq!(
        object["diff_stat"],
        json!({"files": 1, "insertions": 2, "deletions": 0})
    );
    assert_eq!(object["isolation"]["mode"], "sandbox");
    assert_eq!(object["isolation"]["confined"], true);
    assert_eq!(object["isolation"]["cleanup_status"], "removed");
    assert_eq!(object["agent"]["outcome"], "exited");
    assert_eq!(object["agent"]["code"], 0);
    assert_eq!(object["agent"]["attempts"], 1);
    assert_eq!(object["merge"]["target"], "main");
    assert_eq!(object["merge"]["result"], "landed");
    assert_eq!(object["merge"]["commit"], repo.head().as_str());
    let gates: Vec<_> = object["gates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["gate"].clone())
        .collect();
    assert_eq!(gates, ["commit", "tree", "stub", "audit", "diagram"]);
    let file = &object["files"][0];
    assert_eq!(
        (&file["path"], &file["change"]),
        (&json!("calc.py"), &json!("added"))
    );
    assert_eq!((&file["bytes"], &file["lines"]), (&json!(32), &json!(2)));
    assert_eq!(
        (&file["language"], &file["syntax"]),
        (&json!("python"), &json!("ok"))
    );
    assert_eq!(
        file["blob"],
        repo.git(&["rev-parse", "HEAD:calc.py"]).as_str()
    );
    assert_eq!(repo.read("calc.py"), "def add(a, b):\n    return a + b\n");
    assert_eq!(repo.status(), "");
    repo.is_clean();
}

#[test]
fn the_commit_is_the_engines_and_names_task_and_run() {
    let env = TestEnv::new();
    let repo = env.repository();
    let base = repo.head();
    let object = repo
        .task(&["--merge", "--task", "t1"], CALC)
        .exits(0)
        .json();
    let commit = object["commit"].as_str().unwrap();
    assert_eq!(repo.git(&["log", "-1", "--format=%P", commit]), base);
    assert_eq!(
        repo.git(&["log", "-1", "--format=%T", commit]),
        object["tree"].as_str().unwrap()
    );
    assert_ne!(repo.git(&["log", "-1", "--format=%cn", commit]), "A Person");
    let trailers = repo.git(&["log", "-1", "--format=%(trailers)", commit]);
    let run = object["run"].as_str().unwrap();
    assert!(trailers.contains("Airlock-Task: t1"), "{trailers}");
    assert!(
        trailers.contains(&format!("Airlock-Run: {run}")),
        "{trailers}"
    );
    let note = repo.git(&["notes", "--ref", "airlock", "show", commit]);
    assert!(
        note.contains(object["evidence"]["digest"].as_str().unwrap()),
        "{note}"
    );
}

#[test]
fn without_merge_the_delivery_waits_on_a_branch() {
    let env = TestEnv::new();
    let repo = env.repository();
    let base = repo.head();
    let object = repo.task(&["--task", "t1"], CALC).exits(0).json();
    assert_eq!(object["state"], "accepted");
    let branch = object["isolation"]["branch"].as_str().unwrap();
    assert_eq!(
        branch,
        format!("airlock/{}/t1", object["run"].as_str().unwrap())
    );
    assert_eq!(
        repo.tip(&format!("refs/heads/{branch}")).as_deref(),
        object["commit"].as_str()
    );
    assert_eq!(repo.head(), base);
    let listed = repo.git(&["worktree", "list"]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    repo.git(&["worktree", "prune"]);
    assert_eq!(
        repo.git(&["worktree", "list"]),
        listed,
        "the user's own prune must not take it"
    );
    repo.airlock(&["merge", "t1"]).run().exits(0);
    assert_eq!(repo.show("t1")["state"], "landed");
    assert_eq!(repo.read("calc.py"), "def add(a, b):\n    return a + b\n");
    repo.is_clean();
}

#[test]
fn the_branch_does_not_move_before_acceptance() {
    let env = TestEnv::new();
    let repo = env.repository();
    let object = repo
        .task(&["--task", "t1"], "echo '# only a comment' > a.py")
        .exits(10)
        .json();
    assert_eq!(object["state"], "rejected");
    let branch = object["isolation"]["branch"].as_str().unwrap();
    let tip = repo.tip(&format!("refs/heads/{branch}"));
    assert!(
        tip.is_none() || tip.as_deref() == object["base"].as_str(),
        "{tip:?}"
    );
    let kept = repo.tip("refs/airlock/rejected/t1");
    assert_eq!(
        kept.as_deref(),
        object["commit"].as_str(),
        "a refused delivery stays reachable"
    );
    repo.airlock(&["rm", "t1"]).run().exits(4).says("a.py");
    repo.airlock(&["rm", "t1", "--discard"]).run().exits(0);
    repo.is_clean();
}

#[test]
fn events_are_recorded_in_order() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--merge", "--task", "t1"], CALC).exits(0);
    let events: Vec<String> = repo
        .events("t1")
        .into_iter()
        .filter(|event| event != "land_step")
        .collect();
    let expected = [
        "queued",
        "preparing",
        "prepared",
        "started",
        "ended",
        "sealing",
        "sealed",
        "gating",
        "judged",
        "recorded",
        "accepted",
        "landing",
        "landed",
        "checkout",
    ];
    assert_eq!(events, expected);
}

#[test]
fn people_see_what_happened_and_where_to_look() {
    let env = TestEnv::new();
    let repo = env.repository();
    let run = repo
        .airlock(&["run", "--merge", "--task", "t1", "--", "sh", "-c"])
        .arg(format!("{CALC}; echo working"))
        .run()
        .exits(0);
    assert_eq!(
        run.stdout.matches("working").count() + run.stderr.matches("working").count(),
        1,
        "{run}"
    );
    for text in ["calc.py", "main", "t1"] {
        assert!(
            run.stdout.contains(text) || run.stderr.contains(text),
            "{text}\n{run}"
        );
    }
    repo.airlock(&["ls", "--all"])
        .run()
        .exits(0)
        .prints("t1")
        .prints("landed");
    repo.airlock(&["show", "t1"])
        .run()
        .exits(0)
        .prints("calc.py");
    repo.airlock(&["show", "t1", "--markdown"])
        .run()
        .exits(0)
        .prints("calc.py");
    repo.airlock(&["events", "t1"])
        .run()
        .exits(0)
        .prints("main is now at");
    repo.airlock(&["diff", "t1"])
        .run()
        .exits(0)
        .prints("+def add(a, b):");
    assert_eq!(repo.log_of("t1"), "working\n");
}

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
fn a_task_can_start_in_a_subfolder_of_the_checkout() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("sub/a.txt", "a\n");
    repo.commit("sub");
    let run = env
        .airlock(&repo.path().join("sub"))
        .args(["run", "--merge", "--", "sh", "-c", CALC])
        .run();
    run.exits(0);
    repo.is_clean();
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
fn an_untouched_tree_is_empty_whatever_the_agent_says() {
    let env = TestEnv::new();
    let repo = env.repository();
    let object = repo
        .task(&["--merge", "--task", "t1"], "echo done, all tests pass")
        .exits(11)
        .json();
    assert_eq!(object["state"], "empty");
    assert_eq!(object["commit"], json!(null));
    repo.is_clean();
}

#[test]
fn modes_links_and_ignored_files_are_kept_as_git_would() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write(".gitignore", "*.log\nbuild/\n");
    repo.commit("ignore");
    let script = "printf '#!/bin/sh\\necho hi\\n' > tool; chmod 755 tool; ln -s tool link; ln -s /etc/passwd out; \
                  echo noise > x.log; mkdir build; echo y > build/y; echo text > plain.txt";
    let object = repo.task(&["--merge"], script).exits(0).json();
    let listed = repo.git(&[
        "ls-tree",
        "-r",
        "--format=%(objectmode) %(path)",
        object["commit"].as_str().unwrap(),
    ]);
    assert_eq!(
        listed,
        "100644 .gitignore\n100644 README.md\n120000 link\n120000 out\n100644 plain.txt\n100755 tool"
    );
    assert_eq!(repo.status(), "");
}

#[test]
fn a_rejected_delivery_goes_back_with_the_reasons() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = r#"
        if [ -z "$AIRLOCK_FEEDBACK" ]; then echo '# done, 400 lines' > a.py; exit 0; fi
        echo "attempt $AIRLOCK_ATTEMPT"; cat "$AIRLOCK_FEEDBACK"
        echo changed > "$AIRLOCK_FEEDBACK" && echo 'the feedback can be written'
        test -f a.py && echo 'the tree is the same'
        echo 'x = 1' > a.py
    "#;
    let object = repo
        .task(&["--merge", "--attempts", "3", "--task", "t1"], script)
        .exits(0)
        .json();
    assert_eq!(object["agent"]["attempts"], 2);
    assert_eq!(object["state"], "landed");
    let log = repo.log_of("t1");
    for text in ["attempt 2", "a.py", "the tree is the same"] {
        assert!(log.contains(text), "{text}\n{log}");
    }
    assert!(!log.contains("can be written"), "{log}");
    assert_eq!(repo.read("a.py"), "x = 1\n");
    repo.is_clean();
}

#[test]
fn attempts_end() {
    let env = TestEnv::new();
    let repo = env.repository();
    let object = repo
        .task(&["--merge", "--attempts", "2"], "echo '# nothing' > a.py")
        .exits(10)
        .json();
    assert_eq!(object["agent"]["attempts"], 2);
    assert_eq!(repo.status(), "");
}

#[test]
fn the_agents_note_is_read_and_compared() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = r#"echo 'x = 1' > a.py; echo 'wrote 17141 characters to a.py' > "$AIRLOCK_NOTE""#;
    let object = repo.task(&[], script).exits(10).json();
    let claim = &object["claims"][0];
    assert_eq!(
        (&claim["claimed"], &claim["measured"]),
        (&json!(17141), &json!(6))
    );
    assert_eq!(claim["verdict"], "differs");
}

#[test]
fn a_spec_on_standard_input_is_as_good_as_flags() {
    let env = TestEnv::new();
    let repo = env.repository();
    let spec = json!({"task_id": "s1", "goal": "Write a calculator", "command": ["sh", "-c", CALC],
        "isolation_mode": "sandbox", "workspace_strategy": "ephemeral", "allow_merge_back": true,
        "cleanup_policy": "on-success", "merge": "ff"});
    let run = repo
        .airlock(&["run", "--json", "--spec", "-"])
        .stdin(spec.to_string())
        .run()
        .exits(0);
    assert_eq!(run.json()["state"], "landed");
    assert_eq!(
        repo.git(&["log", "-1", "--format=%s"]),
        "Write a calculator"
    );
    let unknown = json!({"goal": "x", "command": ["true"], "frobnicate": 1});
    let run = repo
        .airlock(&["run", "--spec", "-"])
        .stdin(unknown.to_string())
        .run();
    run.exits(2).says("frobnicate");
}

#[test]
fn allow_merge_back_false_makes_merge_refuse() {
    let env = TestEnv::new();
    let repo = env.repository();
    let spec = json!({"task_id": "s1", "command": ["sh", "-c", CALC], "allow_merge_back": false});
    repo.airlock(&["run", "--spec", "-"])
        .stdin(spec.to_string())
        .run()
        .exits(0);
    repo.airlock(&["merge", "s1"])
        .run()
        .exits(4)
        .says("allow_merge_back");
}

#[test]
fn a_detached_task_is_followed_and_found_again() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script =
        format!("echo begins; while ! test -e go; do sleep 0.02; done; rm go; {CALC}; echo ends");
    let run = repo
        .airlock(&[
            "run", "-d", "--json", "--merge", "--task", "d1", "--", "sh", "-c", &script,
        ])
        .run()
        .exits(0);
    assert_eq!(run.json()["task"], "d1");
    until("the agent's first words", || {
        repo.airlock(&["logs", "d1"])
            .run()
            .stdout
            .contains("begins")
            .then_some(())
    });
    repo.airlock(&["ls"])
        .run()
        .exits(0)
        .prints("d1")
        .prints("running");
    let follower = repo.airlock(&["logs", "-f", "d1"]).spawn();
    env.let_go("d1");
    assert_eq!(follower.wait().exits(0).stdout, "begins\nends\n");
    until("the landing", || {
        (repo.show("d1")["state"] == "landed").then_some(())
    });
    repo.is_clean();
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
    let run = repo
        .task(
            &["--isolation", "worktree", "--merge", "--task", "t1"],
            CALC,
        )
        .exits(4)
        .says("NOT confined");
    assert_eq!(run.json()["isolation"]["confined"], false);
    assert_eq!(run.json()["state"], "accepted");
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
fn cleanup_follows_policy_and_never_loses_work() {
    let env = TestEnv::new();
    let repo = env.repository();
    let kept = repo
        .task(&["--merge", "--cleanup", "never", "--task", "t1"], CALC)
        .exits(0)
        .json();
    assert_eq!(kept["isolation"]["cleanup_status"], "kept");
    assert!(env.task_folder("t1").join("tree/calc.py").exists());
    repo.airlock(&["rm", "t1"]).run().exits(0);
    let red = repo
        .task(
            &["--cleanup", "always", "--task", "t2"],
            "echo '# nothing' > a.py",
        )
        .exits(10)
        .json();
    assert_eq!(red["isolation"]["cleanup_status"], "removed");
    assert!(!env.task_folder("t2").join("tree").exists());
    let commit = red["commit"].as_str().unwrap();
    assert_eq!(repo.file_in(commit, "a.py"), "# nothing\n");
    let failed = repo
        .task(
            &["--cleanup", "always", "--task", "t3"],
            "echo 'half = 1' > half.py; exit 3",
        )
        .exits(20);
    let rescued = repo
        .tip("refs/airlock/rescued/t3")
        .unwrap_or_else(|| panic!("nothing was rescued\n{failed}"));
    assert_eq!(repo.file_in(&rescued, "half.py"), "half = 1\n");
}

#[test]
fn prune_takes_what_is_proved_and_keeps_the_rest() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--merge", "--cleanup", "never", "--task", "landed"], CALC)
        .exits(0);
    repo.task(&["--task", "waiting"], "echo y = 1 > y.py")
        .exits(0);
    repo.task(&["--task", "refused"], "echo '# nothing' > z.py")
        .exits(10);
    let dry = repo
        .airlock(&["prune", "--dry-run", "--json"])
        .run()
        .exits(0)
        .json();
    assert_eq!(dry["removed"].as_array().unwrap().len(), 1, "{dry}");
    let object = repo.airlock(&["prune", "--json"]).run().exits(0).json();
    assert_eq!(object["removed"][0]["task"], "landed");
    let kept: Vec<&str> = object["kept"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["task"].as_str())
        .collect();
    assert_eq!(kept, ["waiting", "refused"]);
    assert!(env.task_folder("waiting").join("tree/y.py").exists());
    assert!(env.task_folder("refused").join("tree/z.py").exists());
}

#[test]
fn deliver_seals_and_judges_what_is_there_now() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--task", "t1"], "echo '# nothing' > a.py")
        .exits(10);
    std::fs::write(env.task_folder("t1").join("tree/a.py"), "x = 1\n").unwrap();
    let object = repo
        .airlock(&["deliver", "t1", "--json"])
        .run()
        .exits(0)
        .json();
    assert_eq!(object["state"], "accepted");
    repo.airlock(&["merge", "t1"]).run().exits(0);
    assert_eq!(repo.read("a.py"), "x = 1\n");
    repo.is_clean();
}

#[test]
fn a_person_can_let_a_red_gate_pass_with_a_reason() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--task", "t1"], "echo '# nothing' > a.py")
        .exits(10);
    repo.airlock(&["merge", "t1"]).run().exits(4);
    repo.airlock(&["accept", "t1", "--override", "stub"])
        .run()
        .exits(2);
    repo.airlock(&[
        "accept",
        "t1",
        "--override",
        "stub",
        "--reason",
        "a placeholder on purpose",
    ])
    .run()
    .exits(0);
    repo.airlock(&["evidence", "show", "t1"])
        .run()
        .exits(0)
        .prints("a placeholder on purpose");
    repo.airlock(&["merge", "t1"]).run().exits(0);
    repo.airlock(&["evidence", "verify", "t1"]).run().exits(0);
    repo.is_clean();
}

#[test]
fn resume_goes_on_in_the_same_tree() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "if test -e half.py; then echo 'whole = 1' > half.py; else echo 'half = ' > half.py; exit 3; fi";
    repo.task(&["--merge", "--task", "t1"], script).exits(20);
    let object = repo
        .airlock(&["resume", "t1", "--json"])
        .run()
        .exits(0)
        .json();
    assert_eq!(object["state"], "landed");
    assert_eq!(repo.read("half.py"), "whole = 1\n");
    repo.is_clean();
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
                  git diff HEAD~1; echo 'x = 2' > x.py; git stash; git stash list; git stash pop; git branch side; \
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
    let everything = repo.git(&["cat-file", "--batch-all-objects", "--batch-check"]);
    let ours = everything
        .lines()
        .filter(|line| line.contains(" commit "))
        .count();
    assert!(
        ours <= 4,
        "base, old, the delivery, its note, and none of the agent's commits:\n{everything}"
    );
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

#[test]
fn doctor_and_init_help_to_begin() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.airlock(&["doctor"]).run().exits(0).prints("bwrap");
    repo.airlock(&["init"]).run().exits(0);
    assert!(repo.read("airlock.toml").contains('#'));
    repo.airlock(&["init"]).run().exits(4);
    repo.commit("airlock.toml");
    repo.task(&["--merge"], CALC).exits(0);
}

#[test]
fn the_demo_shows_what_is_let_out_and_what_is_held() {
    let env = TestEnv::new();
    let run = env.airlock(env.path()).arg("demo").run().exits(0);
    let told = format!("{}{}", run.stdout, run.stderr);
    for text in ["landed", "rejected"] {
        assert!(told.contains(text), "{text}\n{run}");
    }
    let places: Vec<_> = std::fs::read_dir(env.path().join("tmp"))
        .unwrap()
        .flatten()
        .collect();
    assert!(places.len() <= 1, "one folder to look at: {places:?}");
}

#[test]
fn a_shell_gets_its_completions() {
    let env = TestEnv::new();
    env.airlock(env.path())
        .args(["completions", "bash"])
        .run()
        .exits(0)
        .prints("airlock");
}

#[test]
fn a_reader_that_goes_away_is_no_reason_to_panic() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(
        &["--task", "t1"],
        "echo x = 1 > x.py; i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done",
    )
    .exits(0);
    for verb in ["ls", "show t1", "logs t1", "events t1", "diff t1"] {
        let script = format!("{} {verb} | true", "\"$0\"");
        let run = env.airlock_under(&["sh", "-c", &script], repo.path()).run();
        assert!(!run.stderr.contains("panicked"), "{run}");
    }
}

#[test]
fn a_bare_repository_with_linked_worktrees_is_a_repository() {
    let env = TestEnv::new();
    let origin = env.repository();
    let bare = env.path().join("bare.git");
    origin.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let bare = TestRepo::at(&env, bare);
    let linked = TestRepo::at(&env, env.path().join("linked"));
    bare.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "work",
        linked.path().to_str().unwrap(),
        "main",
    ]);
    let object = linked.task(&["--merge"], CALC).exits(0).json();
    assert_eq!(object["merge"]["target"], "work");
    assert!(linked.path().join("calc.py").exists());
    let object = bare
        .task(&["--merge", "--into", "main"], CALC)
        .exits(0)
        .json();
    assert_eq!(
        bare.tip("refs/heads/main").as_deref(),
        object["merge"]["commit"].as_str()
    );
    assert_eq!(linked.status(), "");
    linked.is_sound();
}
