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
    assert!(note.contains("payloadType"), "{note}");
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
    repo.is_clean_but_for(&["refs/airlock/rejected/t1"]);
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
