//! A test for each promise about the room: what an agent tries, and what of it shows on the host.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use tests::{Run, TestEnv, TestRepo};

/// Runs steps of the scripted agent in a room and returns what it said.
#[track_caller]
pub(crate) fn steps(env: &TestEnv, repo: &TestRepo<'_>, id: &str, steps: &[&str]) -> String {
    let agent = env.fake_agent();
    let folder = agent.parent().unwrap().to_str().unwrap().to_owned();
    let call = repo
        .airlock(&["run", "--json", "--task", id, "--ro", &folder, "--"])
        .arg(&agent)
        .args(steps);
    let _judged_elsewhere: Run = call.run();
    repo.log_of(id)
}

#[test]
fn nothing_outside_can_be_written() {
    let env = TestEnv::new();
    let repo = env.repository();
    let outside = env.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let targets = [
        outside.join("x"),
        env.home().join("x"),
        env.state().join("x"),
        repo.path().join(".git/hooks/x"),
        Path::new("/etc/airlock-test").to_owned(),
        Path::new("/usr/airlock-test").to_owned(),
        Path::new("/airlock-test").to_owned(),
        Path::new("/dev/airlock-test").to_owned(),
        Path::new("/run/airlock-test").to_owned(),
        Path::new("/proc/self/root/usr/airlock-test").to_owned(),
    ];
    let attempts = targets.iter().map(|target| {
        let target = target.display();
        format!(
            "(echo x > '{target}') 2>/dev/null && test -s '{target}' && echo wrote {target}\n\
             ln -f README.md '{target}' 2>/dev/null && echo linked {target}\n\
             cp README.md m; mv m '{target}' 2>/dev/null && test -e '{target}' && echo moved {target}\n"
        )
    });
    let mut script: String = attempts.collect();
    script.push_str("ln -s /usr up; (echo x > up/airlock-test) 2>/dev/null && echo wrote; echo x > /tmp/mine && echo own tmp works; rm -f m up; echo 'x = 1' > x.py");
    let run = repo.task(&["--task", "t1"], &script);
    for target in &targets {
        assert!(
            !target.exists(),
            "{} is on the host\n{run}",
            target.display()
        );
    }
    assert_eq!(repo.log_of("t1"), "own tmp works\n");
    assert!(!Path::new("/tmp/mine").exists());
    assert!(!Path::new("/usr/airlock-test").exists());
}

#[test]
fn the_hosts_homes_keys_and_state_cannot_be_read() {
    let env = TestEnv::new();
    let repo = env.repository();
    fs::create_dir(env.home().join(".ssh")).unwrap();
    fs::write(env.home().join(".ssh/id_ed25519"), "PRIVATE KEY").unwrap();
    fs::write(env.home().join(".netrc"), "PRIVATE KEY").unwrap();
    let script = format!(
        "cat {home}/.ssh/id_ed25519 {home}/.netrc; cat {state}/signing.key; find {state} / -name signing.key 2>/dev/null; \
         find / -name state.db 2>/dev/null; find / -name '*.lock' -path '*locks*' 2>/dev/null; \
         cat /etc/shadow; ls -d /root/* /root/.ssh {home} 2>/dev/null; cat {repo}/.git/config; echo HOME=$HOME; ls -A $HOME",
        home = env.home().display(),
        state = env.state().display(),
        repo = repo.path().display(),
    );
    let run = repo.task(&["--task", "t1"], &format!("({script}) 2>/dev/null; true"));
    run.exits(11);
    assert_eq!(repo.log_of("t1"), "HOME=/home/agent\n");
}

#[test]
fn no_secret_of_the_host_is_in_the_environment_of_any_process() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; tr '\\0' '\\n' < $p/cmdline; done 2>/dev/null; echo looked";
    let call = repo.airlock(&["run", "--task", "t1", "--", "sh", "-c", script]);
    call.env("HOST_TOKEN", "s3cr3t-of-the-host").run().exits(11);
    let log = repo.log_of("t1");
    assert!(
        log.ends_with("looked\n") && log.contains("HOME=/home/agent"),
        "{log}"
    );
    assert!(!log.contains("s3cr3t-of-the-host"), "{log}");
    assert!(!log.contains(env.home().to_str().unwrap()), "{log}");
}

#[test]
fn hooks_and_config_of_the_repository_stay_as_they_were() {
    let env = TestEnv::new();
    let repo = env.repository();
    let marker = env.path().join("ran");
    let before = repo.read(".git/config");
    let script = format!(
        "mkdir -p .git/hooks; echo 'touch {0}' > .git/hooks/pre-commit; git config core.fsmonitor 'touch {0}'; \
         git config core.hooksPath {1}; git config alias.status '!touch {0}'; git config diff.external 'touch {0}'; \
         g=$(git rev-parse --git-dir); mkdir -p $g/hooks; echo 'touch {0}' > $g/hooks/post-checkout; chmod +x $g/hooks/post-checkout; \
         echo 'touch {0}' > post-checkout; chmod +x post-checkout; echo 'x = 1' > x.py; git add -A; git commit -qm x",
        marker.display(),
        repo.path().display(),
    );
    repo.task(&["--merge", "--task", "t1"], &script).exits(0);
    assert_eq!(repo.read(".git/config"), before);
    repo.status();
    repo.git(&["diff", "HEAD~1"]);
    repo.git(&["checkout", "-q", "HEAD~0"]);
    repo.git(&["switch", "-q", "main"]);
    assert!(!marker.exists());
}

#[test]
fn the_git_pointer_cannot_be_replaced() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "rm -f .git && echo removed; mv .git g && echo moved; (echo 'gitdir: /tmp' > .git) && echo written; \
                  ln -sf /tmp .git && echo linked; rm -rf .bg .sub && echo removed; mv .bg b && echo moved; \
                  (echo x > .bg/x) && echo written; mkdir /tmp/n && mv /tmp/n .sub/n && echo moved; cat .git; true";
    repo.task(&["--task", "t1"], &format!("({script}) 2>/dev/null"))
        .exits(11);
    assert_eq!(repo.log_of("t1"), "gitdir: /run/airlock/git\n");
    repo.is_clean();
}

#[test]
fn mounts_cannot_be_changed() {
    let env = TestEnv::new();
    let repo = env.repository();
    let git = repo.path().join(".git");
    let said = steps(
        &env,
        &repo,
        "t1",
        &[
            "remount",
            "/",
            "remount",
            "/usr",
            "remount",
            git.to_str().unwrap(),
            "unmount",
            git.to_str().unwrap(),
            "unmount",
            "/usr",
        ],
    );
    assert_eq!(said.matches("refused").count(), 5, "{said}");
}

#[test]
fn no_user_namespace_can_be_made_inside() {
    let env = TestEnv::new();
    let repo = env.repository();
    let said = steps(&env, &repo, "t1", &["user-namespace"]);
    assert!(said.contains("user-namespace: refused"), "{said}");
    repo.task(
        &["--task", "t2"],
        "unshare -U true && echo made; bwrap --ro-bind / / true && echo made; true",
    )
    .exits(11);
    assert!(!repo.log_of("t2").contains("made"), "{}", repo.log_of("t2"));
}

#[test]
fn no_capability_and_no_new_privilege() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(
        &["--task", "t1"],
        "grep -E '^(CapEff|CapPrm|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status; id -u",
    )
    .exits(11);
    let log = repo.log_of("t1");
    let value = |name: &str| {
        let line = log
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("{name}\n{log}"));
        line.split_once(':').unwrap().1.trim().to_owned()
    };
    for set in ["CapEff", "CapPrm", "CapAmb"] {
        assert_eq!(value(set), "0000000000000000", "{set}");
    }
    assert_eq!(
        (value("NoNewPrivs"), value("Seccomp")),
        ("1".to_owned(), "2".to_owned())
    );
    assert_ne!(log.lines().last(), Some("0"), "never the root user");
}

#[test]
fn kernel_settings_cannot_be_written() {
    let env = TestEnv::new();
    let repo = env.repository();
    let before = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let script = "(echo '|/bin/sh' > /proc/sys/kernel/core_pattern) && echo written; (echo 0 > /proc/sys/vm/swappiness) && echo written; \
                  (echo 1 > /proc/sys/net/ipv4/ip_forward) && echo written; (echo b > /proc/sysrq-trigger) && echo written; \
                  ls /sys | grep . && echo seen; true";
    repo.task(&["--task", "t1"], &format!("({script}) 2>/dev/null"))
        .exits(11);
    assert_eq!(repo.log_of("t1"), "");
    assert_eq!(
        fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap(),
        before
    );
}

#[test]
fn limits_on_processes_files_and_memory_folders_hold() {
    let env = TestEnv::new();
    env.configure("[sandbox]\ntmp = \"4M\"\nhome = \"4M\"\nfile_size = \"2M\"\n");
    let repo = env.repository();
    let script = "head -c 8000000 /dev/zero > /tmp/big || echo tmp is full; head -c 8000000 /dev/zero > $HOME/big || echo home is full; \
                  head -c 3000000 /dev/zero > big || echo file is too large; rm -f big; \
                  for i in $(seq 100); do sleep 983 & done 2>/dev/null || echo too many; true";
    let run = repo.task(&["--task", "t1", "--pids", "40"], script);
    assert!(matches!(run.code, Some(11 | 20 | 23)), "{run}");
    let log = repo.log_of("t1");
    for text in ["tmp is full", "home is full", "file is too large"] {
        assert!(log.contains(text), "{text}\n{log}");
    }
    env.is_quiet();
}

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
fn what_a_person_opens_is_open_and_nothing_more() {
    let env = TestEnv::new();
    let repo = env.repository();
    for folder in ["readable", "writable"] {
        fs::create_dir(env.shared().join(folder)).unwrap();
        fs::write(env.shared().join(folder).join("given.txt"), "given\n").unwrap();
    }
    if nix::unistd::geteuid().is_root() {
        // The agent is nobody in particular there: what it may write says so itself.
        Command::new("chmod")
            .arg("777")
            .arg(env.shared().join("writable"))
            .status()
            .unwrap();
    }
    let (readable, writable) = (env.shared().join("readable"), env.shared().join("writable"));
    let script = format!(
        "cat {0}/given.txt; (echo x > {0}/new) 2>/dev/null && echo wrote; cat {1}/given.txt; echo x > {1}/new && echo wrote; echo 'x = 1' > x.py",
        readable.display(),
        writable.display()
    );
    let flags = [
        "--task",
        "t1",
        "--ro",
        readable.to_str().unwrap(),
        "--rw",
        writable.to_str().unwrap(),
    ];
    repo.task(&flags, &script).exits(0);
    assert_eq!(repo.log_of("t1"), "given\ngiven\nwrote\n");
    assert!(writable.join("new").exists() && !readable.join("new").exists());
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
fn a_task_below_a_folder_that_only_its_owner_enters_has_a_room() {
    let env = TestEnv::new();
    let repo = env.repository();
    for folder in [env.path(), repo.path()] {
        Command::new("chmod")
            .arg("700")
            .arg(folder)
            .status()
            .unwrap();
    }
    repo.task(
        &["--merge"],
        "echo 'x = 1' > x.py; git log --oneline; git status",
    )
    .exits(0);
    repo.is_clean();
}
