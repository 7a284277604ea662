//! Stopping: by Ctrl-C, by order, by the clock, or because the caller goes away. Nothing is left alive,
//! and what the agent had done is kept.

use std::fs;
use std::time::Instant;

use nix::sys::signal::Signal;
use tests::{Role, Running, TestEnv, TestRepo, until};

const ENDLESS: &str = "echo begun; echo 'half = 1' > half.py; touch here; sleep 982";

/// Starts a task and waits until its agent is at work.
fn at_work(env: &TestEnv, repo: &TestRepo<'_>, script: &str) -> Running {
    let running = repo
        .airlock(&["run", "--json", "--task", "t1", "--", "sh", "-c", script])
        .spawn();
    env.at_work("t1");
    running
}

#[test]
fn ctrl_c_stops_the_task_and_keeps_its_work() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let env = TestEnv::new();
        let repo = env.repository();
        let running = at_work(&env, &repo, ENDLESS);
        running.signal(signal);
        let run = running.wait().exits(130);
        assert_eq!(run.json()["state"], "stopped", "{run}");
        env.is_quiet();
        assert_eq!(
            fs::read_to_string(env.task_folder("t1").join("tree/half.py")).unwrap(),
            "half = 1\n"
        );
        assert_eq!(repo.log_of("t1"), "begun\n");
        repo.is_sound();
        repo.airlock(&["rm", "t1"]).run().exits(4).says("half.py");
        repo.airlock(&["rm", "t1", "--discard"]).run().exits(0);
        repo.is_clean();
    }
}

#[test]
fn an_agent_that_ignores_the_wish_is_ended_after_its_grace() {
    let env = TestEnv::new();
    env.configure("[sandbox]\ngrace = \"300ms\"\n");
    let repo = env.repository();
    let script = "trap '' TERM INT HUP; (trap '' TERM; setsid sleep 981) & touch here; while :; do sleep 980; done";
    let running = at_work(&env, &repo, script);
    let began = Instant::now();
    repo.airlock(&["stop", "t1", "--reason", "enough"])
        .run()
        .exits(0);
    assert!(began.elapsed().as_secs() < 30);
    let run = running.wait();
    assert_eq!(run.json()["state"], "stopped", "{run}");
    assert!(
        run.stdout.contains("enough"),
        "who and why is on record\n{run}"
    );
    env.is_quiet();
}

#[test]
fn the_wall_clock_ends_the_whole_tree_and_keeps_work_and_log() {
    let env = TestEnv::new();
    env.configure("[sandbox]\ngrace = \"200ms\"\n");
    let repo = env.repository();
    let script = "echo begun; echo 'half = 1' > half.py; (setsid sleep 979 &); sleep 978";
    let object = repo
        .task(&["--timeout", "1s", "--task", "t1"], script)
        .exits(21)
        .json();
    assert_eq!(
        (&object["state"], &object["agent"]["outcome"]),
        (&"timeout".into(), &"timed_out".into())
    );
    env.is_quiet();
    assert!(env.task_folder("t1").join("tree/half.py").exists());
    assert_eq!(repo.log_of("t1"), "begun\n");
    repo.airlock(&["deliver", "t1"]).run().exits(0);
}

#[test]
fn a_caller_that_dies_does_not_take_the_task_with_it() {
    for signal in [Signal::SIGKILL, Signal::SIGHUP] {
        let env = TestEnv::new();
        let repo = env.repository();
        let script =
            "touch here; while ! test -e go; do sleep 0.02; done; rm here go; echo 'x = 1' > x.py";
        let running = repo
            .airlock(&["run", "--merge", "--task", "t1", "--", "sh", "-c", script])
            .spawn();
        env.at_work("t1");
        running.signal(signal);
        assert_ne!(running.wait().code, Some(0));
        if signal == Signal::SIGKILL {
            env.let_go("t1");
            until("the landing", || {
                (repo.show("t1")["state"] == "landed").then_some(())
            });
            repo.is_clean();
        } else {
            env.of_role(Role::Command)
                .iter()
                .for_each(tests::Process::kill);
            until("a task that goes on or rests", || {
                env.let_go("t1");
                let state = repo.show("t1")["state"].as_str()?.to_owned();
                ["landed", "stopped"]
                    .contains(&state.as_str())
                    .then_some(())
            });
        }
        env.is_quiet();
    }
}

#[test]
fn stop_needs_something_that_runs() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--task", "t1"], "echo 'x = 1' > x.py").exits(0);
    repo.airlock(&["stop", "t1"]).run().exits(4);
    repo.airlock(&["stop", "nobody"]).run().exits(3);
}

#[test]
fn a_caller_that_ignores_signals_does_not_spoil_the_exit_code() {
    let env = TestEnv::new();
    let repo = env.repository();
    let wrapper = "trap '' CHLD PIPE INT; exec \"$0\" \"$@\"";
    let run = env
        .airlock_under(&["sh", "-c", wrapper], repo.path())
        .args(["run", "--json", "--", "sh", "-c", "exit 7"])
        .run();
    let run = run.exits(20);
    assert_eq!(run.json()["agent"]["code"], 7, "{run}");
    env.is_quiet();
}

#[test]
fn a_busy_task_refuses_a_second_hand() {
    let env = TestEnv::new();
    let repo = env.repository();
    let running = at_work(&env, &repo, ENDLESS);
    for verb in ["merge", "rm", "deliver"] {
        repo.airlock(&[verb, "t1"]).run().exits(4);
    }
    repo.airlock(&["stop", "t1"]).run().exits(0);
    let run = running.wait();
    assert_ne!(run.code, Some(0));
}
