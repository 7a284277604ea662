//! `[setup]`: commands run once in a room on a fresh base, and every task gets a private copy of what they leave.

use std::fs;
use std::path::{Path, PathBuf};

use tests::{Role, TestEnv, TestRepo, until};

/// Leaves a folder whose content tells one run of the setup from another.
const INSTALL: &str =
    "mkdir -p node_modules/one; head -c 16 /dev/urandom | od -An -tx1 > node_modules/one/id";

/// A repository whose base has a setup.
fn with_setup<'e>(env: &'e TestEnv, setup: &str) -> TestRepo<'e> {
    let repo = env.empty_repository("project");
    repo.write("airlock.toml", format!("[setup]\n{setup}\n"));
    repo.write("package-lock.json", "{}\n");
    repo.write(".gitignore", "node_modules\n.venv/\n");
    repo.commit("base");
    repo
}

fn commands(commands: &[&str]) -> String {
    format!("commands = {}", serde_json::to_string(commands).unwrap())
}

/// What a task whose agent changes nothing reads in the copy, and how it came there.
fn id_in(repo: &TestRepo<'_>, task: &str) -> (String, String) {
    repo.task(
        &["--task", task],
        "cat node_modules/one/id; git status --porcelain",
    )
    .exits(11);
    let result = repo.show(task)["setup"]["result"].clone();
    (repo.log_of(task), result.as_str().unwrap().to_owned())
}

/// The folder of results.
fn results(env: &TestEnv) -> Vec<PathBuf> {
    let entries = fs::read_dir(env.state_folder().join("setup"))
        .into_iter()
        .flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_setup_runs_once_and_again_when_an_input_changes() {
    let env = TestEnv::new();
    let repo = with_setup(&env, &commands(&[INSTALL, "echo made by setup"]));
    let (first, how) = id_in(&repo, "t1");
    assert_eq!(
        (first.lines().count(), how.as_str()),
        (1, "made"),
        "{first}"
    );
    assert_eq!(id_in(&repo, "t2"), (first.clone(), "reused".to_owned()));
    let log = repo.airlock(&["logs", "t1", "setup"]).run().exits(0);
    log.prints("$ mkdir -p node_modules/one")
        .prints("made by setup");
    let events = repo.events("t2");
    assert!(!events.contains(&"setting_up".to_owned()), "{events:?}");
    assert!(repo.events("t1").contains(&"setting_up".to_owned()));

    repo.write("README.md", "no input\n");
    repo.commit("something else");
    assert_eq!(id_in(&repo, "t3").0, first);
    repo.write("package-lock.json", "{ }\n");
    repo.commit("another input");
    let (second, how) = id_in(&repo, "t4");
    assert!(second != first && how == "made", "{second}");
    let report = repo.airlock(&["show", "t4"]).run().exits(0);
    report
        .prints("setup made: node_modules")
        .prints("airlock.toml:2 of the base commit");
    repo.is_clean();
}

#[test]
fn each_task_has_a_copy_of_its_own() {
    let env = TestEnv::new();
    let repo = with_setup(
        &env,
        &commands(&[INSTALL, "ln node_modules/one/id node_modules/again"]),
    );
    let script =
        "echo changed > node_modules/one/id; rm node_modules/again; mkdir node_modules/two";
    repo.task(&["--task", "t1", "--cleanup", "never"], script)
        .exits(11);
    repo.task(
        &["--task", "t2"],
        "cat node_modules/one/id; ls node_modules",
    )
    .exits(11);
    let log = repo.log_of("t2");
    assert!(
        !log.contains("changed") && log.contains("again") && !log.contains("two"),
        "{log}"
    );
    let kept = results(&env).remove(0).join("kept/node_modules/one/id");
    assert!(!fs::read_to_string(kept).unwrap().contains("changed"));
    let mine = env.task_folder("t1").join("tree/node_modules/one/id");
    assert_eq!(fs::read_to_string(mine).unwrap(), "changed\n");
}

#[test]
fn a_virtual_environment_works_where_it_was_made() {
    let env = TestEnv::new();
    let repo = with_setup(&env, &commands(&["python3 -m venv --without-pip .venv"]));
    let script = ".venv/bin/python -c 'import sys; print(sys.prefix)'";
    repo.task(&["--task", "t1"], script).exits(11);
    assert_eq!(
        repo.log_of("t1"),
        format!("{}/.venv\n", repo.path().display())
    );
}

#[test]
fn a_setup_that_fails_is_told_with_its_log_and_nothing_else_runs() {
    let env = TestEnv::new();
    let repo = with_setup(
        &env,
        &commands(&[
            "echo first",
            "echo no such package >&2; exit 3",
            "echo third",
        ]),
    );
    let run = repo.task(&["--task", "t1"], "touch ran");
    run.exits(24)
        .says("the setup of task t1 exited with code 3")
        .says("no such package");
    let log = repo.airlock(&["logs", "t1", "setup"]).run().exits(0);
    assert!(!log.stdout.contains("third"), "{log}");
    let events = repo.events("t1");
    assert!(!events.contains(&"started".to_owned()), "{events:?}");
    assert_eq!(repo.show("t1")["state"], "failed");
    assert_eq!(
        results(&env),
        Vec::<PathBuf>::new(),
        "nothing of it is kept"
    );
    repo.airlock(&["rm", "t1"]).run().exits(0);
    repo.is_clean();
    repo.task(&["--task", "t2", "--no-setup"], "true").exits(11);
    assert!(repo.show("t2")["setup"].is_null());
}

#[test]
fn a_setup_has_a_time_of_its_own() {
    let env = TestEnv::new();
    let setup = format!("{}\ntimeout = \"1s\"", commands(&["sleep 977"]));
    let repo = with_setup(&env, &setup);
    repo.task(&["--task", "t1"], "true")
        .exits(24)
        .says("the setup of task t1 ran out of time");
}

#[test]
fn a_setup_that_failed_is_done_again() {
    let env = TestEnv::new();
    // Whether it succeeds is up to what this host shows.
    let repo = with_setup(
        &env,
        &commands(&["test -e ~/.cache/pip/ready", "mkdir node_modules"]),
    );
    repo.write("pyproject.toml", "");
    repo.commit("python");
    fs::create_dir_all(env.home().join(".cache/pip")).unwrap();
    repo.task(&["--task", "t1"], "ls -d node_modules").exits(24);
    fs::write(env.home().join(".cache/pip/ready"), "").unwrap();
    repo.airlock(&["resume", "t1"]).run().exits(11);
    assert_eq!(repo.log_of("t1"), "node_modules\n");
}

#[test]
fn two_tasks_at_once_run_a_setup_once() {
    let env = TestEnv::new();
    let repo = with_setup(&env, &commands(&[INSTALL]));
    let start = |id: &str| {
        let script = "cat node_modules/one/id";
        repo.airlock(&["run", "--task", id, "--", "sh", "-c", script])
            .spawn()
    };
    let ids = ["t1", "t2", "t3"];
    for running in ids.map(start) {
        running.wait().exits(11);
    }
    let made = ids
        .iter()
        .filter(|id| repo.show(id)["setup"]["result"] == "made");
    assert_eq!(made.count(), 1);
    assert_eq!(repo.log_of("t1"), repo.log_of("t2"));
    assert_eq!(repo.log_of("t1"), repo.log_of("t3"));
}

/// The tree in which a task's setup is at work.
#[track_caller]
fn at_work(env: &TestEnv, task: &str) -> PathBuf {
    let end = format!(".new-{task}");
    until("a setup at work", || {
        let states = fs::read_dir(env.state()).ok()?.flatten();
        let makings = states.flat_map(|state| {
            fs::read_dir(state.path().join("setup"))
                .into_iter()
                .flatten()
                .flatten()
        });
        let making = makings
            .map(|entry| entry.path())
            .find(|path| path.display().to_string().ends_with(&end))?;
        Some(making.join("tree")).filter(|tree| tree.join("here").exists())
    })
}

#[test]
fn what_a_killed_engine_left_of_a_setup_is_never_used() {
    let env = TestEnv::new();
    let wait = "mkdir -p node_modules/one; echo half > node_modules/one/id; touch here; while ! test -e go; do sleep 0.02; done";
    let repo = with_setup(&env, &commands(&[wait, INSTALL]));
    let start = |id: &str| {
        repo.airlock(&["run", "--task", id, "--", "cat", "node_modules/one/id"])
            .spawn()
    };
    let first = start("t1");
    at_work(&env, "t1");
    for process in env.of_role(Role::Supervisor) {
        process.kill();
    }
    drop(first.wait());
    let second = start("t2");
    let tree = at_work(&env, "t2");
    fs::write(tree.join("go"), "").unwrap();
    second.wait().exits(11);
    let log = repo.log_of("t2");
    assert!(!log.contains("half") && log.lines().count() == 1, "{log}");
    assert_eq!(repo.show("t2")["setup"]["result"], "made");
    let state = until("the end of t1", || {
        Some(repo.show("t1")["state"].clone()).filter(|state| *state != "preparing")
    });
    assert_eq!(state, "lost");
    let left: Vec<PathBuf> = results(&env)
        .into_iter()
        .filter(|path| path.display().to_string().contains(".new-"))
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new());
    env.is_quiet();
}

#[test]
fn a_setup_can_be_stopped() {
    let env = TestEnv::new();
    let repo = with_setup(&env, &commands(&["touch here; sleep 976"]));
    let running = repo.airlock(&["run", "--task", "t1", "--", "true"]).spawn();
    at_work(&env, "t1");
    repo.airlock(&["stop", "t1"]).run().exits(0);
    running.wait().exits(130);
    assert_eq!(repo.show("t1")["state"], "stopped");
    assert_eq!(results(&env), Vec::<PathBuf>::new());
    env.is_quiet();
}

#[test]
fn links_in_what_is_kept_are_never_followed() {
    let env = TestEnv::new();
    let outside = env.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "SECRET").unwrap();
    let links = format!(
        "mkdir -p node_modules/a; ln -s {0} node_modules/folder; ln -s {0}/secret node_modules/file; ln -s ../b node_modules/a/b",
        outside.display()
    );
    let repo = with_setup(&env, &commands(&[&links]));
    let script = "readlink node_modules/folder node_modules/file node_modules/a/b; echo x > node_modules/new";
    repo.task(&["--task", "t1", "--cleanup", "never"], script)
        .exits(11);
    let out = outside.display();
    assert_eq!(repo.log_of("t1"), format!("{out}\n{out}/secret\n../b\n"));
    let copy = env.task_folder("t1").join("tree/node_modules");
    for name in ["folder", "file"] {
        assert!(
            copy.join(name).symlink_metadata().unwrap().is_symlink(),
            "{name}"
        );
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    repo.airlock(&["rm", "t1"]).run().exits(0);
    assert_eq!(
        fs::read_to_string(outside.join("secret")).unwrap(),
        "SECRET"
    );
}

#[test]
fn what_is_no_folder_or_no_file_is_not_kept() {
    let env = TestEnv::new();
    for (command, said) in [
        (
            "ln -s /etc node_modules",
            "node_modules is a link, which cannot be kept",
        ),
        (
            "echo x > node_modules",
            "node_modules is a file, which cannot be kept",
        ),
        (
            "mkdir node_modules; mkfifo node_modules/p",
            "node_modules/p is a pipe, which cannot be kept",
        ),
    ] {
        let repo = TestRepo::at(&env, env.path().join("project"));
        if !repo.path().exists() {
            with_setup(&env, &commands(&["true"]));
        }
        repo.write(
            "airlock.toml",
            format!("[setup]\n{}\n", commands(&[command])),
        );
        repo.commit(command);
        let id = format!("t{}", command.len());
        repo.task(&["--task", &id], "true").exits(24).says(said);
    }
}

#[test]
fn only_what_git_ignores_is_kept() {
    let env = TestEnv::new();
    let repo = with_setup(
        &env,
        &format!("{}\nkeep = [\"vendor\"]", commands(&["mkdir vendor"])),
    );
    repo.task(&[], "true")
        .exits(2)
        .says("no .gitignore of the base covers it");
    repo.write("vendor/x", "");
    repo.commit("vendored");
    repo.task(&[], "true")
        .exits(2)
        .says("the base has it as part of its tree");
    repo.write(
        "airlock.toml",
        "[setup]\ncommands = [\"true\"]\nkeep = [\"../x\"]\n",
    );
    repo.commit("outside");
    repo.task(&[], "true")
        .exits(2)
        .says("is not a path within the worktree");
    // Deeper down, by the rules of the folder itself.
    repo.write(
        "airlock.toml",
        format!(
            "[setup]\n{}\nkeep = [\"web/deps/\"]\n",
            commands(&["mkdir -p web/deps; echo 1 > web/deps/x"])
        ),
    );
    repo.write("web/.gitignore", "/deps\n");
    repo.write("web/index.html", "<p>\n");
    repo.commit("web");
    repo.task(&["--task", "t1"], "cat web/deps/x; ls web")
        .exits(11);
    assert_eq!(repo.log_of("t1"), "1\ndeps\nindex.html\n");
}

#[test]
fn a_setup_has_less_than_an_agent_and_asks_for_more_in_vain() {
    let env = TestEnv::new();
    let shared = env.shared().join("writable");
    fs::create_dir(&shared).unwrap();
    let script = format!(
        "env; ls -d {}; cat /run/airlock/feedback/* /proc/net/dev; git log --oneline",
        shared.display()
    );
    let repo = with_setup(&env, &commands(&[&format!("({script}) 2>&1 || true")]));
    let run = |id: &str| {
        repo.airlock(&[
            "run",
            "--task",
            id,
            "--rw",
            shared.to_str().unwrap(),
            "--env",
            "PASSED",
            "--env",
            "SET=plain",
            "--prompt",
            "the prompt",
            "--",
            "cat",
            "{prompt_file}",
        ])
        .env("PASSED", "s3cret")
        .run()
    };
    run("t1").exits(11);
    let log = repo.airlock(&["logs", "t1", "setup"]).run().exits(0).stdout;
    for hidden in ["s3cret", "SET=plain", "the prompt", "eth0", "AIRLOCK_TASK"] {
        assert!(!log.contains(hidden), "{hidden}\n{log}");
    }
    assert!(
        log.contains("No such file or directory") && log.contains(" base"),
        "{log}"
    );
    repo.write(
        "airlock.toml",
        format!(
            "[setup]\n{}\nnet = \"host\"\ntimeout = \"9h\"\n",
            commands(&["true"])
        ),
    );
    repo.commit("more");
    run("t2")
        .exits(2)
        .says("setup.net = host")
        .says("setup.timeout = 9h");
    repo.airlock(&["trust", "--yes"]).run().exits(0);
    run("t3").exits(11);
    assert_eq!(repo.show("t3")["setup"]["net"], "host");
}

#[test]
fn prune_removes_setups_that_nobody_uses() {
    let env = TestEnv::new();
    let repo = with_setup(&env, &commands(&[INSTALL]));
    id_in(&repo, "t1");
    repo.airlock(&["prune"]).run().exits(0);
    assert_eq!(results(&env).len(), 1);
    let pruned = repo
        .airlock(&["prune", "--json", "--setup-age", "0s"])
        .run()
        .exits(0)
        .json();
    assert_eq!(pruned["setups"].as_array().unwrap().len(), 1);
    assert_eq!(results(&env), Vec::<PathBuf>::new());
    assert_eq!(id_in(&repo, "t2").1, "made");
}

#[test]
fn evidence_says_what_was_shown_and_set_up() {
    let env = TestEnv::new();
    let repo = with_setup(&env, &commands(&[INSTALL]));
    repo.task(&["--task", "t1"], "echo 'x = 1' > x.py").exits(0);
    let statement = repo.show("t1")["evidence"]["statement"]
        .as_str()
        .unwrap()
        .to_owned();
    let text = fs::read_to_string(Path::new(&statement)).unwrap();
    let key = repo.show("t1")["setup"]["key"].as_str().unwrap().to_owned();
    assert!(
        text.contains(&key) && text.contains("head -c 16 /dev/urandom"),
        "{text}"
    );
}
