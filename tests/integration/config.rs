//! Who may say what: flags, the user's file, the repository's file from the base commit, and trust.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use tests::TestEnv;

#[test]
fn an_unknown_key_is_an_error_with_file_line_and_remedy() {
    let env = TestEnv::new();
    let repo = env.repository();
    env.configure("[task]\ntimeout = \"10s\"\nbrnach = \"x\"\n");
    let run = repo.airlock(&["run", "--", "true"]).run().exits(2);
    run.says("config.toml:3").says("branch");
    env.configure("[task]\ntimeout = 10\n");
    repo.airlock(&["run", "--", "true"])
        .run()
        .exits(2)
        .says("config.toml:2");
    env.configure("this is not TOML\n");
    repo.airlock(&["run", "--", "true"])
        .run()
        .exits(2)
        .says("config.toml:1");
    env.configure("");
    repo.write("airlock.toml", "[tsak]\n");
    repo.commit("a typo");
    repo.airlock(&["run", "--", "true"])
        .run()
        .exits(2)
        .says("airlock.toml:1")
        .says("task");
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_file_that_others_can_write_gives_no_orders() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::new();
    let repo = env.repository();
    env.configure("[sandbox]\nnet = \"host\"\n");
    let file = env.path().join("config/airlock/config.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    repo.airlock(&["run", "--", "true"])
        .run()
        .exits(2)
        .says("config.toml");
}

#[test]
fn the_repositorys_file_counts_as_it_was_in_the_base() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("airlock.toml", "[task]\nbranch = \"from-base/{task}\"\n");
    repo.commit("a template");
    repo.write(
        "airlock.toml",
        "[task]\nbranch = \"from-checkout/{task}\"\n",
    );
    let object = repo
        .task(&["--task", "t1"], "echo 'x = 1' > x.py")
        .exits(0)
        .json();
    assert_eq!(object["isolation"]["branch"], "from-base/t1");
}

#[test]
fn what_widens_needs_trust_and_again_after_a_change() {
    let env = TestEnv::new();
    let repo = env.repository();
    let shared = env.shared();
    fs::write(shared.join("file"), "shared\n").unwrap();
    let toml = format!("[sandbox]\nro = [\"{}\"]\n", shared.display());
    repo.write("airlock.toml", &toml);
    repo.commit("asks for a path");
    let script = format!("cat {}/file", shared.display());
    repo.airlock(&["run", "--task", "t1", "--", "sh", "-c", &script])
        .run()
        .exits(2)
        .says("trust");
    repo.airlock(&["trust", "--yes"]).run().exits(0);
    repo.airlock(&["run", "--task", "t2", "--", "sh", "-c", &script])
        .run()
        .exits(11);
    assert_eq!(repo.log_of("t2"), "shared\n");
    repo.write("airlock.toml", format!("{toml}net = \"host\"\n"));
    repo.commit("asks for more");
    repo.airlock(&["run", "--task", "t3", "--", "true"])
        .run()
        .exits(2)
        .says("net");
}

#[test]
fn what_narrows_needs_nobody() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write(
        "airlock.toml",
        "[sandbox]\ntmp = \"1M\"\n[task]\ntimeout = \"1s\"\n",
    );
    repo.commit("narrow");
    repo.task(&["--task", "t1"], "sleep 977").exits(21);
    repo.task(
        &["--task", "t2"],
        "head -c 3000000 /dev/zero > /tmp/x || echo full; true",
    )
    .exits(11);
    assert!(repo.log_of("t2").contains("full"));
}

#[test]
fn the_users_file_sets_defaults_and_flags_beat_it() {
    let env = TestEnv::new();
    let repo = env.repository();
    env.configure("[task]\nbranch = \"mine/{task}\"\ncleanup = \"never\"\nattempts = 2\n[merge]\nstyle = \"merge\"\n[gates]\nstub = \"warn\"\n");
    let object = repo
        .task(&["--task", "t1", "--merge"], "echo '# nothing' > a.py")
        .exits(0)
        .json();
    assert_eq!(object["isolation"]["branch"], "mine/t1");
    assert_eq!(object["isolation"]["cleanup_status"], "kept");
    assert_eq!(
        repo.git(&["log", "-1", "--format=%P"]).split(' ').count(),
        2
    );
    repo.task(
        &["--task", "t2", "--gate", "stub=fail"],
        "echo '# nothing' > b.py",
    )
    .exits(10);
}

#[test]
fn an_agent_has_a_name_and_a_prompt() {
    let env = TestEnv::new();
    let repo = env.repository();
    env.configure("[agent.scribe]\ncommand = [\"sh\", \"-c\", \"printf '%s' \\\"$0\\\" > told.txt\", \"{prompt}\"]\n");
    let object = repo
        .airlock(&[
            "run",
            "--json",
            "--agent",
            "scribe",
            "--prompt",
            "write; it's \"done\" $HOME",
        ])
        .run()
        .exits(0)
        .json();
    assert_eq!(object["agent"]["name"], "scribe");
    assert_eq!(
        repo.file_in(object["commit"].as_str().unwrap(), "told.txt"),
        "write; it's \"done\" $HOME"
    );
    repo.airlock(&["run", "--agent", "scrib", "--prompt", "x"])
        .run()
        .exits(2)
        .says("scribe");
}

#[test]
fn bad_branch_templates_are_refused() {
    let env = TestEnv::new();
    let repo = env.repository();
    for template in ["same", "a b/{task}", "x/{nothing}", "../{task}"] {
        env.configure(&format!("[task]\nbranch = \"{template}\"\n"));
        repo.airlock(&["run", "--", "true"])
            .run()
            .exits(2)
            .says("branch");
    }
}

#[test]
fn a_program_installed_below_the_home_folder_starts_in_a_room() {
    let env = TestEnv::new();
    let repo = env.repository();
    let program = |path: &str, text: &str| {
        let path = env.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    program(
        "tools/node_modules/scribe/cli.js",
        "#!/usr/bin/env some-interpreter\n",
    );
    program(
        ".nvm/versions/v1/bin/some-interpreter",
        "#!/bin/sh\ncat \"$(dirname \"$1\")/beside\" > told.txt\nls -A \"$2\" > home.txt\n",
    );
    program("tools/node_modules/scribe/beside", "from beside\n");
    fs::create_dir_all(env.home().join(".local/bin")).unwrap();
    symlink(
        "../../tools/node_modules/scribe/cli.js",
        env.home().join(".local/bin/scribe"),
    )
    .unwrap();
    let path = format!(
        "{0}/.local/bin:{0}/.nvm/versions/v1/bin:/usr/bin:/bin",
        env.home().display()
    );
    let home = env.home().display().to_string();
    let object = repo
        .airlock(&["run", "--json", "--", "scribe", &home])
        .env("PATH", path)
        .run()
        .exits(0)
        .json();
    let commit = object["commit"].as_str().unwrap();
    assert_eq!(object["agent"]["name"], "scribe");
    assert_eq!(repo.file_in(commit, "told.txt"), "from beside\n");
    assert_eq!(
        repo.file_in(commit, "home.txt"),
        ".nvm\ntools\n",
        "of the home folder the room has the programs and nothing else"
    );
}
