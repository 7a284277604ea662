//! Who may open a room further: what flags, configuration and a cloned repository ask for in vain.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

use tests::{TestEnv, TestRepo};

#[test]
fn what_would_open_the_room_is_refused_before_anything_runs() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--task", "first"], "true").exits(11);
    let folder = env.state_folder();
    let git = repo.path().join(".git");
    let socket = env.path().join("daemon.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    let marker = env.path().join("marker");
    fs::create_dir(&marker).unwrap();
    let everything = env.path().to_owned();
    let config = env.path().join("config/airlock");
    for path in [
        Path::new("/"),
        &env.state(),
        &folder,
        &folder.join("locks"),
        &git,
        &git.join("hooks"),
        &socket,
        &everything,
        &config,
    ] {
        for flag in ["--ro", "--rw"] {
            let call = repo.airlock(&["run", flag]).arg(path).args([
                "--",
                "sh",
                "-c",
                "echo x > /tmp/x; echo 'x = 1' > x.py",
            ]);
            let run = call.run();
            assert_eq!(run.code, Some(2), "{flag} {}\n{run}", path.display());
        }
    }
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
    repo.is_clean();
}

#[test]
fn a_sandbox_program_from_the_path_is_never_used() {
    let env = TestEnv::new();
    let repo = env.repository();
    let bin = env.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let marker = env.path().join("fake-was-used");
    let fake = TestRepo::at(&env, bin.clone());
    fake.write_program(
        "bwrap",
        &format!("#!/bin/sh\ntouch {}\nexit 1\n", marker.display()),
    );
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    repo.airlock(&["run", "--merge", "--", "sh", "-c", "echo x = 1 > x.py"])
        .env("PATH", path)
        .run()
        .exits(0);
    assert!(!marker.exists());
}

#[test]
fn a_cloned_repository_that_asks_for_more_gets_nothing() {
    let env = TestEnv::new();
    let origin = env.repository();
    let shared = env.shared().to_str().unwrap().to_owned();
    let marker = env.shared().join("ran");
    let home = env.home().join(".ssh");
    fs::create_dir(&home).unwrap();
    let wishes = [
        "[sandbox]\nnet = \"host\"\n".to_owned(),
        format!("[sandbox]\nrw = [\"{shared}\"]\n"),
        format!("[sandbox]\nro = [\"{}\"]\n", home.display()),
        "[sandbox]\nro = [\"/\"]\n".to_owned(),
        "[sandbox]\nenv = [\"SECRET_TOKEN\"]\n".to_owned(),
        "[sandbox]\nenv = [\"LD_PRELOAD=/tmp/x.so\"]\n".to_owned(),
        "[sandbox]\npids = 100000\n".to_owned(),
        "[sandbox]\nfile_size = \"900G\"\n".to_owned(),
        "[sandbox]\ntmp = \"900G\"\n".to_owned(),
        "[task]\nisolation = \"none\"\n".to_owned(),
        "[task]\nisolation = \"worktree\"\n".to_owned(),
        "[protect]\nallow = [\".github/**\"]\n".to_owned(),
    ];
    for (number, toml) in wishes.iter().enumerate() {
        origin.write("airlock.toml", toml);
        origin.commit("asks for more");
        let clone = TestRepo::at(&env, env.path().join(format!("clone{number}")));
        origin.git(&["clone", "-q", ".", clone.path().to_str().unwrap()]);
        let run = clone
            .airlock(&["run", "--", "touch", marker.to_str().unwrap()])
            .env("SECRET_TOKEN", "s3cr3t")
            .run();
        assert_eq!(run.code, Some(2), "{toml}\n{run}");
        let refused = ["airlock trust", "can never be set"];
        let refused = refused.iter().any(|words| run.stderr.contains(words));
        assert!(refused, "{toml}\n{run}");
        assert!(!marker.exists(), "{toml}\n{run}");
        clone.is_clean();
    }
}

#[test]
fn an_agent_does_not_write_the_rules_that_it_is_judged_by() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "printf '[gates]\\nstub = \"off\"\\n[protect]\\nallow = [\"**\"]\\n' > airlock.toml; printf 'def f():\\n    pass\\n' > f.py";
    let object = repo.task(&["--task", "t1"], script).exits(10).json();
    assert_eq!(object["state"], "rejected", "{object}");
    let gates = object["gates"].to_string();
    assert!(gates.contains("airlock.toml"), "{gates}");
    repo.airlock(&["merge", "t1"])
        .run()
        .exits(4)
        .says("rejected");
    assert!(!repo.path().join("airlock.toml").exists());
}

#[test]
fn a_folder_with_a_socket_in_it_is_not_shown() {
    let env = TestEnv::new();
    let repo = env.repository();
    let folder = env.shared().join("agent");
    fs::create_dir(&folder).unwrap();
    let _listener = UnixListener::bind(folder.join("S.agent")).unwrap();
    for flag in ["--ro", "--rw"] {
        let call = repo
            .airlock(&["run", flag])
            .arg(&folder)
            .args(["--", "true"]);
        call.run().exits(2).says("S.agent");
        // Where daemons listen, whatever is there now.
        let call = repo.airlock(&["run", flag, "/run/lock", "--", "true"]);
        call.run().exits(2).says("/run");
    }
}
