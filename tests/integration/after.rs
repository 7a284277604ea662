//! What a person does around a task: look, deliver, accept, go on, clean up; and the verbs that help
//! to begin.

use tests::TestEnv;

const CALC: &str = r"printf 'def add(a, b):\n    return a + b\n' > calc.py";

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
fn each_advice_can_be_followed() {
    let env = TestEnv::new();
    let repo = env.repository();
    let empty = repo
        .airlock(&["run", "--task", "t1", "--", "true"])
        .run()
        .exits(11)
        .prints("airlock logs t1");
    assert!(!empty.stdout.contains("airlock resume"), "{empty}");
    repo.airlock(&["resume", "t1"])
        .run()
        .exits(4)
        .says("nothing to go on with");
    repo.airlock(&["run", "--task", "t2", "--", "nosuchprogram"])
        .run()
        .exits(20)
        .prints("airlock deliver t2")
        .prints("airlock resume t2");
    repo.airlock(&["rm", "t2"]).run().exits(0);
    let gone = repo
        .airlock(&["show", "t2"])
        .run()
        .exits(0)
        .prints("worktree  removed");
    assert!(!gone.stdout.contains("what next"), "{gone}");
    repo.airlock(&["resume", "t2"]).run().exits(4);
    repo.task(
        &["--task", "t3", "--note", "wrote 400 lines"],
        "echo '# nothing' > a.py",
    )
    .exits(10);
    repo.airlock(&["rm", "t3"])
        .run()
        .exits(4)
        .says("`airlock diff t3` shows it");
    repo.airlock(&["accept", "t3", "--override", "stub", "--reason", "known"])
        .run()
        .exits(10)
        .says("--override of its own");
    repo.airlock(&["ls", "--state", "lost"])
        .run()
        .exits(0)
        .says("`airlock ls --all`");
    repo.airlock(&["ls", "--state", "loss"])
        .run()
        .exits(2)
        .says("no state is called `loss`; known are `queued`");
    repo.git(&["checkout", "-q", "--detach"]);
    repo.airlock(&[
        "run",
        "--task",
        "t4",
        "--isolation",
        "worktree",
        "--",
        "sh",
        "-c",
    ])
    .arg(CALC)
    .run()
    .exits(0)
    .prints("airlock merge t4 --into BRANCH --allow-unconfined");
    repo.airlock(&["merge", "t4", "--into", "main", "--allow-unconfined"])
        .run()
        .exits(0);
}

#[test]
fn where_nothing_can_be_done_a_way_out_is_named() {
    let env = TestEnv::new();
    for verb in ["init", "gate", "ls"] {
        env.airlock(env.path())
            .arg(verb)
            .run()
            .exits(2)
            .says("-C DIR");
    }
    let bare = env.empty_repository("bare");
    for verb in [&["gate"][..], &["run", "--", "true"]] {
        bare.airlock(verb).run().exits(2).says("first commit");
    }
    let told = env
        .repository()
        .airlock(&["gate", "explain", "stub", "--json"])
        .run()
        .exits(0)
        .json();
    assert_eq!(told["gate"], "stub");
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
    repo.is_clean_but_for(&["refs/airlock/rejected/t1"]);
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
    repo.is_clean_but_for(&["refs/airlock/rejected/t1"]);
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
fn a_tree_that_a_person_removed_stands_in_nobodys_way() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--task", "t1"], "echo 'x = 1' > x.py").exits(0);
    std::fs::remove_dir_all(env.task_folder("t1").join("tree")).unwrap();
    repo.airlock(&["deliver", "t1"]).run().exits(4);
    repo.airlock(&["merge", "t1"]).run().exits(0);
    assert!(
        repo.path().join("x.py").exists(),
        "the delivery is a commit"
    );
    repo.airlock(&["rm", "t1"]).run().exits(0);
    repo.is_clean();
}
