//! A command of a person's own in the room of a task: its streams, its code, its end, and that nothing is judged by a
//! seal of before.

use std::fs;

use nix::sys::signal::Signal;
use tests::{Role, Running, TestEnv, TestRepo, until};

const WORKS: &str =
    "echo 'x = 1' > x.py; touch here; while ! test -e go; do sleep 0.02; done; rm here go";
const CALC: &str = r"printf 'def add(a, b):\n    return a + b\n' > calc.py";

/// Starts a task and waits until its agent is at work.
fn at_work(env: &TestEnv, repo: &TestRepo<'_>) -> Running {
    let running = repo
        .airlock(&["run", "--json", "--task", "t1", "--", "sh", "-c", WORKS])
        .spawn();
    env.at_work("t1");
    running
}

/// A task that rests with a kept tree.
fn at_rest(repo: &TestRepo<'_>) {
    repo.task(&["--task", "t1"], CALC).exits(0);
}

fn exec(repo: &TestRepo<'_>, script: &str) -> tests::Call {
    repo.airlock(&["exec", "t1", "--", "sh", "-c", script])
}

#[test]
fn streams_and_codes_pass_through_beside_the_agent() {
    let env = TestEnv::new();
    let repo = env.repository();
    let running = at_work(&env, &repo);
    let run = exec(&repo, "cat; echo err >&2; cat x.py; exit 7")
        .stdin("in\n")
        .run()
        .exits(7);
    assert_eq!(
        (run.stdout.as_str(), run.stderr.as_str()),
        ("in\nx = 1\n", "err\n")
    );
    let many = "x".repeat(3_000_000);
    let run = exec(&repo, "cat").stdin(many.as_str()).run().exits(0);
    assert!(run.stdout == many, "{} bytes came back", run.stdout.len());
    exec(&repo, "kill -9 $$").run().exits(137);
    exec(&repo, "kill -15 $$").run().exits(143);
    // A command that reads nothing does not keep its caller waiting.
    exec(&repo, ":").stdin(many).run().exits(0);
    let elsewhere = env.path().to_owned();
    env.airlock(&elsewhere)
        .args(["-C", "project", "exec", "t", "--", "echo", "found"])
        .run()
        .exits(0)
        .prints("found");
    env.let_go("t1");
    let run = running.wait().exits(0);
    assert_eq!(
        run.json()["agent"]["code"],
        0,
        "the agent was left alone\n{run}"
    );
    env.is_quiet();
}

#[test]
fn what_was_not_the_commands_own_end_is_told_apart() {
    let env = TestEnv::new();
    let repo = env.repository();
    at_rest(&repo);
    let airlock = |args: &[&str]| repo.airlock(args).run();
    airlock(&["exec", "t1", "--", "nosuch"])
        .exits(127)
        .says("error: the command was never started");
    airlock(&["exec", "t1", "--", "/usr"])
        .exits(126)
        .says("error: the command was never started");
    airlock(&["exec", "t1", "--timeout", "200ms", "--", "sleep", "977"])
        .exits(21)
        .says("error:");
    airlock(&["exec", "nobody", "--", "true"])
        .exits(3)
        .says("error:");
    airlock(&["exec", "t1"]).exits(2);
    airlock(&["exec", "t1", "--tty", "--", "true"])
        .exits(2)
        .says("terminal");
    airlock(&["exec", "t1", "--env", "GIT_DIR=x", "--", "true"]).exits(2);
    let run = airlock(&[
        "exec",
        "t1",
        "--json",
        "--",
        "sh",
        "-c",
        "echo out; echo err >&2; exit 4",
    ]);
    let lines = run.exits(4).json_lines();
    let end = lines.last().unwrap();
    assert_eq!(
        (&end["outcome"], &end["code"], &end["task"]),
        (&"exited".into(), &4.into(), &"t1".into())
    );
    let said = |stream: &str| {
        let pieces = lines.iter().filter(|line| line["stream"] == stream);
        pieces
            .map(|line| line["text"].as_str().unwrap())
            .collect::<String>()
    };
    assert_eq!(
        (said("stdout").as_str(), said("stderr").as_str()),
        ("out\n", "err\n")
    );
    let end = airlock(&["exec", "t1", "--json", "--", "nosuch"])
        .exits(127)
        .json_lines();
    assert_eq!(end.last().unwrap()["outcome"], "not_started");
    env.is_quiet();
}

#[test]
fn it_runs_behind_the_walls_of_its_task() {
    let env = TestEnv::new();
    let repo = env.repository();
    at_rest(&repo);
    let secret = env.home().join("secret");
    fs::write(&secret, "hidden").unwrap();
    let run = repo
        .airlock(&[
            "exec",
            "t1",
            "--env",
            "WORD=given",
            "--env",
            "PASSED",
            "--",
            "sh",
            "-c",
        ])
        .arg(format!(
            "cat {}; env; cat /proc/self/status; ls /proc/self/fd",
            secret.display()
        ))
        .env("PASSED", "on")
        .env("NOT_PASSED", "there")
        .run()
        .exits(0);
    assert!(
        !run.stdout.contains("hidden") && !run.stdout.contains("NOT_PASSED"),
        "{run}"
    );
    for text in [
        "WORD=given",
        "PASSED=on",
        "AIRLOCK_TASK=t1",
        "Seccomp:\t2",
        "NoNewPrivs:\t1",
        "CapBnd:\t0000000000000000",
    ] {
        assert!(run.stdout.contains(text), "{text}\n{run}");
    }
    assert!(
        run.stdout.ends_with("0\n1\n2\n3\n"),
        "a descriptor too many\n{run}"
    );
    repo.task(
        &[
            "--task",
            "t2",
            "--isolation",
            "worktree",
            "--cleanup",
            "never",
        ],
        CALC,
    )
    .exits(0);
    repo.airlock(&["exec", "t2", "--", "true"])
        .run()
        .exits(4)
        .says("no room");
}

#[test]
fn a_file_of_the_caller_is_never_within_reach() {
    let env = TestEnv::new();
    let repo = env.repository();
    at_rest(&repo);
    let log = env.path().join("log");
    fs::write(&log, "before\n").unwrap();
    let script = "echo more; : > /proc/self/fd/1; readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 >&2";
    let run = env
        .airlock_under(
            &["sh", "-c", "timeout 60 \"$@\" < log >> log", "sh"],
            env.path(),
        )
        .args(["-C", "project", "exec", "t1", "--", "sh", "-c", script])
        .run();
    let seen: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(seen.len(), 3, "{run}");
    assert!(seen.iter().all(|path| path.starts_with("pipe:")), "{run}");
    assert_eq!(fs::read_to_string(&log).unwrap(), "before\nmore\n");
}

#[test]
fn ctrl_c_ends_the_whole_tree_and_leaves_the_task_alone() {
    let env = TestEnv::new();
    env.configure("[sandbox]\ngrace = \"300ms\"\n");
    let repo = env.repository();
    let running = at_work(&env, &repo);
    let scripts = [
        "touch begun; exec sleep 976",
        "trap '' TERM INT HUP; (trap '' TERM; setsid sleep 976) & touch begun; while :; do sleep 976; done",
    ];
    let begun = env.task_folder("t1").join("tree/begun");
    for script in scripts {
        let command = exec(&repo, script).spawn();
        until("the command", || begun.exists().then_some(()));
        command.signal(Signal::SIGINT);
        command.wait().exits(130);
        let left = env.of_role(Role::Agent);
        assert!(
            left.iter().all(|process| !process.command.contains("976")),
            "{left:#?}"
        );
        fs::remove_file(&begun).unwrap();
    }
    env.let_go("t1");
    running.wait().exits(0);
    env.is_quiet();
}

#[test]
fn a_command_goes_with_its_caller() {
    let env = TestEnv::new();
    let repo = env.repository();
    at_rest(&repo);
    let begun = env.task_folder("t1").join("tree/begun");
    let command = exec(&repo, "touch begun; sleep 975").spawn();
    until("the command", || begun.exists().then_some(()));
    command.signal(Signal::SIGKILL);
    assert_eq!(command.wait().code, None);
    env.is_quiet();
    until("its end on record", || {
        repo.events("t1")
            .contains(&"exec_ended".to_owned())
            .then_some(())
    });
}

#[test]
fn a_command_outlives_its_supervisor_and_is_still_heard() {
    let env = TestEnv::new();
    let repo = env.repository();
    at_rest(&repo);
    let tree = env.task_folder("t1").join("tree");
    let command = exec(
        &repo,
        "touch begun; while ! test -e go; do sleep 0.02; done; echo on; exit 5",
    )
    .spawn();
    until("the command", || tree.join("begun").exists().then_some(()));
    for supervisor in env.of_role(Role::Supervisor) {
        supervisor.kill();
    }
    fs::write(tree.join("go"), "").unwrap();
    command.wait().exits(5).prints("on");
    env.is_quiet();
    repo.airlock(&["exec", "t1", "--", "rm", "go", "begun"])
        .run()
        .exits(0);
    until("both ends on record", || {
        let ends = repo.events("t1");
        (ends.iter().filter(|event| *event == "exec_ended").count() == 2).then_some(())
    });
    env.is_quiet();
}

#[test]
fn nothing_is_judged_by_a_seal_of_before() {
    let env = TestEnv::new();
    let repo = env.repository();
    let red = repo
        .task(&["--task", "t1"], "echo '# nothing' > a.py")
        .exits(10)
        .json();
    // To look around changes nothing.
    exec(&repo, "cat a.py").run().exits(0).prints("# nothing");
    exec(&repo, "echo 'y = 2' > a.py").run().exits(0);
    let accept = ["accept", "t1", "--override", "stub", "--reason", "r"];
    repo.airlock(&accept)
        .run()
        .exits(4)
        .says("airlock deliver t1");
    assert_eq!(repo.show("t1")["state"], "rejected");
    let green = repo
        .airlock(&["deliver", "t1", "--json"])
        .run()
        .exits(0)
        .json();
    assert_ne!(green["tree"], red["tree"]);
    let commit = green["commit"].as_str().unwrap();
    assert_eq!(repo.file_in(commit, "a.py"), "y = 2\n");
    exec(&repo, "echo 'z = 3' > a.py").run().exits(0);
    let again = repo
        .airlock(&["deliver", "t1", "--json"])
        .run()
        .exits(0)
        .json();
    assert_eq!(
        repo.file_in(again["commit"].as_str().unwrap(), "a.py"),
        "z = 3\n"
    );
    exec(&repo, "echo 'late = 4' > late.py").run().exits(0);
    let landed = repo
        .airlock(&["merge", "t1", "--json"])
        .run()
        .exits(0)
        .json();
    assert_eq!(
        landed["isolation"]["cleanup_status"], "kept",
        "the late edit is nowhere else"
    );
    assert_eq!(repo.read("a.py"), "z = 3\n");
}

#[test]
fn a_tree_is_sealed_while_a_command_stands_still_and_goes_on() {
    let env = TestEnv::new();
    let repo = env.repository();
    let running = repo
        .airlock(&[
            "run", "--json", "--merge", "--task", "t1", "--", "sh", "-c", WORKS,
        ])
        .spawn();
    env.at_work("t1");
    let tree = env.task_folder("t1").join("tree");
    let command = exec(
        &repo,
        "touch /tmp/begun begun.py; while ! test -e end; do sleep 0.02; done; exit 6",
    )
    .spawn();
    until("the command", || {
        tree.join("begun.py").exists().then_some(())
    });
    env.let_go("t1");
    let run = running.wait();
    assert_eq!(
        run.json()["isolation"]["cleanup_status"],
        "kept",
        "somebody is in it\n{run}"
    );
    fs::write(tree.join("end"), "").unwrap();
    command.wait().exits(6);
    env.is_quiet();
}

#[test]
fn stop_and_rm_end_what_people_run_in_the_room() {
    let env = TestEnv::new();
    let repo = env.repository();
    at_rest(&repo);
    let begun = env.task_folder("t1").join("tree/begun");
    for verb in [["stop", "t1"].as_slice(), &["rm", "t1", "--discard"]] {
        let command = exec(&repo, "touch begun; sleep 974").spawn();
        until("the command", || begun.exists().then_some(()));
        fs::remove_file(&begun).unwrap();
        repo.airlock(verb).run().exits(0);
        command.wait().exits(130).says("the command was ended by");
        env.is_quiet();
    }
    repo.airlock(&["exec", "t1", "--", "true"]).run().exits(4);
}

#[test]
fn rm_leaves_a_room_alone_in_which_somebody_works_and_what_was_made_there() {
    let env = TestEnv::new();
    let repo = env.repository();
    at_rest(&repo);
    let begun = env.task_folder("t1").join("tree/begun");
    let command = exec(&repo, "echo precious > work.txt; touch begun; while ! test -e go; do sleep 0.02; done; rm begun go").spawn();
    until("the command", || begun.exists().then_some(()));
    repo.airlock(&["rm", "t1"])
        .run()
        .exits(4)
        .says("somebody runs a command in the room");
    fs::write(begun.with_file_name("go"), "").unwrap();
    command.wait().exits(0);
    repo.airlock(&["rm", "t1"]).run().exits(4).says("work.txt");
}

#[test]
fn what_an_exec_makes_of_an_empty_or_landed_tree_is_not_removed_with_it() {
    let env = TestEnv::new();
    let repo = env.repository();
    let running = at_work(&env, &repo);
    let begun = env.task_folder("t1").join("tree/begun");
    let script = "echo precious > work.txt; touch begun; while ! test -e end; do sleep 0.02; done; rm begun end";
    let command = exec(&repo, script).spawn();
    until("the command", || begun.exists().then_some(()));
    env.let_go("t1");
    running.wait().exits(0);
    repo.airlock(&["merge", "t1"]).run().exits(0);
    assert!(
        begun.exists(),
        "the tree stays as long as somebody works in it"
    );
    fs::write(begun.with_file_name("end"), "").unwrap();
    command.wait().exits(0);
    assert_eq!(
        fs::read_to_string(begun.with_file_name("work.txt")).unwrap(),
        "precious\n"
    );
}

#[test]
fn a_kept_tree_is_harmless_again_when_a_command_in_it_ends() {
    let env = TestEnv::new();
    let repo = env.repository();
    at_rest(&repo);
    let plant = "mkdir -p sub/.git/objects sub/.git/refs; echo 'ref: refs/heads/x' > sub/.git/HEAD; mkfifo pipe";
    exec(&repo, plant).run().exits(0);
    let tree = env.task_folder("t1").join("tree");
    assert!(tree.join("sub").is_dir() && !tree.join("sub/.git").exists());
    assert!(!tree.join("pipe").exists());
}

#[test]
fn a_terminal_is_the_commands_own() {
    let env = TestEnv::new();
    let repo = env.repository();
    at_rest(&repo);
    let inner = "test -t 0 && test -t 1 && test -t 2 && echo yes > /dev/tty; stty size; exit 9";
    let outer =
        format!("stty rows 33 cols 77; \"$AIRLOCK\" exec t1 -t -- sh -c '{inner}'; echo code $?");
    let wrapper = "AIRLOCK=$1 exec script -qec \"$0\" /dev/null";
    let run = env
        .airlock_under(&["sh", "-c", wrapper, &outer], repo.path())
        .run();
    assert!(
        run.stdout.contains("yes") && run.stdout.contains("33 77") && run.stdout.contains("code 9"),
        "{run}"
    );
    env.is_quiet();
}
