//! kill -9 of every process at every moment. Whatever was struck, afterwards no process and no mount
//! is left, the repository is sound, no branch is half made, `ls` explains, and `resume` or `rm`
//! settles it so that nothing of the task is left in the repository.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use tests::{Growth, Role, Run, TestEnv, TestRepo, until};

use crate::escape::processes::Bystander;

/// An agent that lives long enough to be struck, and not longer than that.
const SCRIPT: &str = "echo begun; echo 'x = 1' > x.py; sleep 0.2; echo 'y = 1' > y.py; echo done";

/// Nothing more is written once a task has been at rest for this long.
const REST: Duration = Duration::from_secs(2);

/// What the store's journal grows by: one page with its header.
const PAGE: u64 = 4096 + 24;

/// Who is struck.
#[derive(Debug, Clone, Copy)]
enum Victim {
    One(Role),
    Everybody,
}

impl Victim {
    fn strike(self, env: &TestEnv) {
        for process in env.processes() {
            let meant = match self {
                Self::One(role) => process.role == role,
                Self::Everybody => true,
            };
            if meant {
                process.kill();
            }
        }
    }
}

/// A repository in whose state folder a task has already run, so that the store is there to be watched.
fn begun(env: &TestEnv) -> TestRepo<'_> {
    let repo = env.repository();
    repo.task(&["--task", "before"], "true").exits(11);
    repo.airlock(&["rm", "before"]).run().exits(0);
    repo
}

/// Runs a task, strikes when the store has grown by `moment` pages, and says what was recorded last; none
/// when the task was at rest before that.
fn struck_at(env: &TestEnv, repo: &TestRepo<'_>, victim: Victim, moment: u64) -> Option<String> {
    let store = Growth::of(env.state_folder().join("state.db-wal"));
    let running = repo
        .airlock(&[
            "run", "--json", "--merge", "--task", "t1", "--", "sh", "-c", SCRIPT,
        ])
        .spawn();
    let reached = store.reaches(moment * PAGE, REST);
    victim.strike(env);
    let run = running.wait();
    assert!(!run.stderr.contains("panicked"), "{run}");
    let listed = repo
        .airlock(&["ls", "--all", "--json"])
        .run()
        .exits(0)
        .stdout;
    if !listed.contains("\"t1\"") {
        return reached.then(|| "nothing".to_owned());
    }
    let last = repo.events("t1").last().cloned();
    last.filter(|_| reached)
}

/// Removes the task, as soon as the supervisor that this command starts has taken it up.
#[track_caller]
fn discard(repo: &TestRepo<'_>) -> Run {
    until("a supervisor that is done with taking the task up", || {
        let run = repo.airlock(&["rm", "t1", "--discard"]).run();
        (!run.stderr.contains("is being worked on")).then_some(run)
    })
}

/// What must hold right after the blow, and after the task was settled.
#[track_caller]
fn settle(env: &TestEnv, repo: &TestRepo<'_>, by_resume: bool) {
    env.is_quiet();
    repo.git(&["fsck", "--strict", "--no-dangling"]);
    branch_is_whole(repo);
    let listed = repo.airlock(&["ls", "--all"]).run().exits(0);
    if listed.stdout.contains("t1") {
        let object = repo.show("t1");
        let state = object["state"].as_str().unwrap().to_owned();
        assert!(!object["summary"].as_str().unwrap().is_empty(), "{object}");
        if by_resume && !["landed", "empty", "discarded"].contains(&state.as_str()) {
            let run = repo.airlock(&["resume", "t1", "--json"]).run();
            assert!(
                matches!(run.code, Some(0 | 4 | 11 | 20 | 31)),
                "{state}\n{run}"
            );
            at_rest(repo);
        }
        let run = discard(repo);
        assert!(matches!(run.code, Some(0 | 3)), "{state}\n{run}");
    }
    env.is_quiet();
    assert_eq!(repo.status(), "");
    repo.is_clean();
    let registered = repo.path().join(".git/worktrees");
    let left: Vec<_> = fs::read_dir(&registered)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    repo.task(&["--merge", "--task", "after"], "echo 'z = 1' > z.py")
        .exits(0);
}

/// A branch of a task, if there is one, names a commit with everything below it.
#[track_caller]
fn branch_is_whole(repo: &TestRepo<'_>) {
    for line in repo.references() {
        let (name, oid) = line.split_once(' ').unwrap();
        if name.starts_with("refs/heads/airlock/") {
            repo.git(&["rev-list", "--objects", "--quiet", oid]);
        }
    }
}

#[track_caller]
fn at_rest(repo: &TestRepo<'_>) -> Value {
    until("a task at rest", || {
        let object = repo.show("t1");
        let state = object["state"].as_str()?;
        let busy = [
            "queued",
            "preparing",
            "running",
            "waiting",
            "sealing",
            "gating",
            "landing",
        ];
        (!busy.contains(&state)).then(|| object.clone())
    })
}

/// Strikes at every moment until the task gets through; says what was recorded last each time.
#[track_caller]
fn strike_at_every_moment(victim: Victim) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for moment in 1.. {
        let env = TestEnv::new();
        let repo = begun(&env);
        let struck = struck_at(&env, &repo, victim, moment);
        let state = repo.airlock(&["show", "--json", "t1"]).run();
        println!(
            "moment {moment}: struck at {struck:?}, then {}",
            state.stdout
        );
        settle(&env, &repo, moment % 2 == 0);
        let Some(last) = struck else { break };
        assert!(moment < 1000, "the task never gets through");
        seen.insert(last);
    }
    seen
}

#[test]
fn the_supervisor_is_killed_at_every_moment() {
    let seen = strike_at_every_moment(Victim::One(Role::Supervisor));
    assert!(seen.len() >= 4, "struck only at {seen:?}");
}

#[test]
fn everybody_is_killed_at_every_moment() {
    let seen = strike_at_every_moment(Victim::Everybody);
    assert!(seen.len() >= 4, "struck only at {seen:?}");
}

#[test]
fn each_process_of_a_running_task_is_killed() {
    let roles = [
        Role::Supervisor,
        Role::Keeper,
        Role::Holder,
        Role::Bubblewrap,
        Role::Warden,
        Role::Command,
    ];
    let victims = roles
        .into_iter()
        .map(Victim::One)
        .chain([Victim::Everybody]);
    for (round, victim) in victims.enumerate() {
        let env = TestEnv::new();
        let repo = begun(&env);
        let script =
            "echo 'x = 1' > x.py; touch here; while ! test -e go; do sleep 0.02; done; rm here go";
        let running = repo
            .airlock(&[
                "run", "--json", "--merge", "--task", "t1", "--", "sh", "-c", script,
            ])
            .spawn();
        env.at_work("t1");
        victim.strike(&env);
        env.let_go("t1");
        let run = running.wait();
        assert!(!run.stderr.contains("panicked"), "{victim:?}\n{run}");
        settle(&env, &repo, round % 2 == 1);
    }
}

#[test]
fn a_task_goes_on_without_its_supervisor_and_is_taken_up() {
    let env = TestEnv::new();
    let repo = begun(&env);
    let script = "echo one; touch here; while ! test -e go; do sleep 0.02; done; rm here go; echo two; echo 'x = 1' > x.py";
    let running = repo
        .airlock(&[
            "run", "--json", "--merge", "--task", "t1", "--", "sh", "-c", script,
        ])
        .spawn();
    env.at_work("t1");
    Victim::One(Role::Supervisor).strike(&env);
    running.wait().exits(31);
    assert!(!env.of_role(Role::Keeper).is_empty(), "the keeper goes on");
    let resumed = repo.airlock(&["resume", "t1", "--json"]).spawn();
    until("a supervisor that took it up", || {
        env.of_role(Role::Supervisor).pop()
    });
    Victim::One(Role::Supervisor).strike(&env);
    let run = resumed.wait();
    assert_ne!(run.code, Some(1), "{run}");
    env.let_go("t1");
    let run = repo.airlock(&["resume", "t1", "--json"]).run().exits(0);
    assert_eq!(run.json()["state"], "landed", "{run}");
    assert_eq!(
        run.json()["agent"]["attempts"],
        1,
        "the agent ran once, through two deaths of its supervisor"
    );
    assert_eq!(repo.log_of("t1"), "one\ntwo\n");
    repo.is_clean();
}

#[test]
fn a_process_that_only_looks_like_ours_is_left_alone() {
    let env = TestEnv::new();
    let repo = begun(&env);
    let running = repo
        .airlock(&[
            "run",
            "--json",
            "--task",
            "t1",
            "--",
            "sh",
            "-c",
            "touch here; sleep 973",
        ])
        .spawn();
    env.at_work("t1");
    Victim::Everybody.strike(&env);
    let run = running.wait();
    assert_ne!(run.code, Some(0), "{run}");
    let bystander = Bystander::new();
    let locks = env.state_folder().join("locks");
    for entry in fs::read_dir(&locks).unwrap().flatten() {
        if !entry.file_type().unwrap().is_file() {
            continue;
        }
        let Ok(text) = fs::read_to_string(entry.path()) else {
            continue;
        };
        let Ok(mut identity) = serde_json::from_str::<Value>(&text) else {
            continue;
        };
        if identity.get("pid").is_some() {
            identity["pid"] = bystander.id().into();
            fs::write(entry.path(), identity.to_string()).unwrap();
        }
    }
    discard(&repo).exits(0);
    assert!(bystander.lives(), "a stranger was killed");
    repo.is_clean();
}

#[test]
fn files_that_were_half_written_are_said_to_be_so() {
    let env = TestEnv::new();
    let repo = begun(&env);
    repo.task(&["--task", "t1"], "echo 'x = 1' > x.py").exits(0);
    for name in ["task.json", "bg/agent/meta.json"] {
        for content in ["", "{\"schema\": 1, \"ta", "\0\0\0\0"] {
            fs::write(env.task_folder("t1").join(name), content).unwrap();
            repo.airlock(&["ls"]).run().exits(0).prints("t1");
            repo.airlock(&["show", "t1"]).run().exits(0);
        }
    }
    repo.airlock(&["merge", "t1"]).run().exits(0);
    repo.is_clean();
}
