//! Limits: each one that is passed ends the agent with its name and exit code, and just below it nothing happens.

use serde_json::{Value, json};
use tests::{TestEnv, TestRepo};

/// Runs a Python script as the agent.
fn python(repo: &TestRepo<'_>, flags: &[&str], script: &str) -> tests::Run {
    let mut args = vec!["run", "--json"];
    args.extend(flags);
    args.extend(["--", "/usr/bin/python3", "-c", script]);
    repo.airlock(&args).run()
}

/// The agent was ended by this limit.
#[track_caller]
fn over(run: tests::Run, limit: &str) -> Value {
    let object = run.exits(23).json();
    assert_eq!(object["state"], "over_limit", "{object:#}");
    assert_eq!(object["agent"]["outcome"], "over_limit", "{object:#}");
    assert_eq!(object["agent"]["reason"], limit, "{object:#}");
    object
}

/// The agent ended by itself and delivered nothing.
#[track_caller]
fn fine(run: tests::Run) {
    let object = run.exits(11).json();
    assert_eq!(object["agent"]["code"], 0, "{object:#}");
    assert_eq!(object["refusals"], 0, "{object:#}");
}

#[test]
fn an_agent_that_does_nothing_is_ended() {
    let env = TestEnv::new();
    let repo = env.repository();
    let run = repo.task(
        &["--task", "t1", "--idle-timeout", "700ms"],
        "echo begins; exec sleep 600",
    );
    let object = run.exits(22).json();
    assert_eq!(object["state"], "timeout");
    assert_eq!(object["agent"]["outcome"], "idle_timed_out");
    assert_eq!(object["limits"]["idle_ms"], 700);
    let summary = object["summary"].as_str().unwrap();
    assert!(summary.contains("did nothing for 700ms"), "{summary}");
    repo.airlock(&["show", "t1"])
        .run()
        .exits(0)
        .prints("why t1")
        .prints("resume t1");
    assert!(repo.log_of("t1").contains("begins"));
}

#[test]
fn output_files_and_work_are_signs_of_life() {
    let env = TestEnv::new();
    let repo = env.repository();
    for script in [
        "import time\nfor i in range(15): print(i, flush=True); time.sleep(0.2)",
        "import os, time\nfor i in range(15): os.close(os.open('f%d' % i, os.O_CREAT)); time.sleep(0.2)\n\
         for i in range(15): os.unlink('f%d' % i)",
        "import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: pass",
    ] {
        fine(python(&repo, &["--idle-timeout", "2s"], script));
    }
}

#[test]
fn memory_that_is_held_is_found_wherever_it_is() {
    let env = TestEnv::new();
    let repo = env.repository();
    let hold = "\nimport time\ntime.sleep(600)";
    for (what, script) in [
        ("private", "x = bytearray(b'x') * (256 << 20)"),
        (
            "shared",
            "import mmap\nm = mmap.mmap(-1, 256 << 20)\nfor i in range(0, 256 << 20, 4096): m[i] = 1",
        ),
        (
            "in six processes",
            "import os\nfor i in range(6):\n  if os.fork() == 0: break\nx = bytearray(b'x') * (43 << 20)",
        ),
        (
            "in /tmp",
            "open('/tmp/x', 'wb').write(b'x' * (100 << 20)); open('/tmp/y', 'wb').write(b'x' * (100 << 20))",
        ),
        (
            "in HOME, /dev/shm and itself",
            "import os\nopen(os.environ['HOME'] + '/x', 'wb').write(b'x' * (60 << 20))\n\
             open('/dev/shm/x', 'wb').write(b'x' * (50 << 20))\nx = bytearray(b'x') * (60 << 20)",
        ),
        (
            "in a file without a name",
            "import os\nf = os.memfd_create('x')\nfor i in range(256): os.write(f, b'x' * (1 << 20))",
        ),
        (
            "in a segment that nobody has attached",
            "import ctypes\nc = ctypes.CDLL(None)\nc.shmat.restype = ctypes.c_void_p\n\
             for i in range(4):\n  s = c.shmget(0, 64 << 20, 0o1600)\n  p = c.shmat(s, None, 0)\n  \
             ctypes.memset(p, 1, 64 << 20)\n  c.shmdt(ctypes.c_void_p(p))",
        ),
    ] {
        let run = python(&repo, &["--memory", "128M"], &format!("{script}{hold}"));
        let object = over(run, "memory");
        assert_eq!(object["limits"]["memory"], 128 << 20, "{what}");
    }
}

#[test]
fn memory_below_the_limit_is_not_touched() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "import os, time\nx = bytearray(b'x') * (40 << 20)\nopen('/tmp/x', 'wb').write(b'x' * (20 << 20))\n\
                  children = [os.fork() for i in range(1)]\ntime.sleep(1)\n\
                  if 0 in children: os._exit(0)\nos.wait()";
    fine(python(&repo, &["--memory", "128M"], script));
    // Six processes that share their pages with their parent hold them once.
    let script = "import os, time\nx = bytearray(b'x') * (60 << 20)\n\
                  for i in range(6):\n  if os.fork() == 0: time.sleep(1); os._exit(0)\n\
                  for i in range(6): os.wait()";
    fine(python(&repo, &["--memory", "128M"], script));
}

#[test]
fn processes_are_counted() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = |count: u32| {
        format!(
            "import os, time\nn = 0\ntry:\n  while n < {count}:\n    if os.fork() == 0: time.sleep(600)\n    n += 1\n\
             except OSError: time.sleep(600)\nprint(n)\nimport signal\nos.kill(-1, signal.SIGKILL)\nfor i in range(n): os.wait()"
        )
    };
    over(python(&repo, &["--pids", "64"], &script(100)), "pids");
    let below =
        "import os\nfor i in range(50): os.fork() or os._exit(0)\nfor i in range(50): os.wait()";
    fine(python(&repo, &["--pids", "64"], below));
}

#[test]
fn the_worktree_has_a_size() {
    let env = TestEnv::new();
    let repo = env.repository();
    let hold = "\nimport time\ntime.sleep(600)";
    for (what, script) in [
        ("a file", "open('big', 'wb').write(b'x' * (24 << 20))"),
        (
            "many files",
            "for i in range(24): open('f%d' % i, 'wb').write(b'x' * (1 << 20))",
        ),
        (
            "a closed folder",
            "import os\nos.mkdir('d'); open('d/big', 'wb').write(b'x' * (24 << 20)); os.chmod('d', 0)",
        ),
        (
            "a file that was removed",
            "import os\nf = open('big', 'wb'); os.unlink('big'); f.write(b'x' * (24 << 20)); f.flush()",
        ),
        (
            "its git folder",
            "open('/run/airlock/git/big', 'wb').write(b'x' * (24 << 20))",
        ),
        (
            "its outbox",
            "open('/run/airlock/outbox/big', 'wb').write(b'x' * (24 << 20))",
        ),
    ] {
        let run = python(&repo, &["--disk", "16M"], &format!("{script}{hold}"));
        let object = over(run, "disk");
        assert_eq!(object["limits"]["disk"], 16 << 20, "{what}");
    }
    over(
        python(
            &repo,
            &["--disk", "16M"],
            "open('big', 'wb').write(b'x' * (24 << 20))",
        ),
        "disk",
    );
    let below = "import os\nopen('big', 'wb').write(b'x' * (12 << 20))\nos.unlink('big')\n\
                 os.truncate(os.open('sparse', os.O_CREAT | os.O_RDWR), 200 << 20)\nos.unlink('sparse')";
    fine(python(&repo, &["--disk", "16M"], below));
}

#[test]
fn files_are_counted() {
    let env = TestEnv::new();
    let repo = env.repository();
    let make = |count: u32| {
        format!(
            "import os\nos.mkdir('d')\nfor i in range({count}): os.close(os.open('d/%d' % i, os.O_CREAT))\n"
        )
    };
    over(python(&repo, &["--files", "500"], &make(600)), "files");
    let clean = "for i in range(300): os.unlink('d/%d' % i)\nos.rmdir('d')";
    fine(python(&repo, &["--files", "500"], &(make(300) + clean)));
    let deep = "import os\nfor i in range(3000): os.mkdir('d'); os.chdir('d')";
    over(python(&repo, &["--files", "5000"], deep), "files");
}

#[test]
fn one_file_has_a_size() {
    let env = TestEnv::new();
    env.configure("[sandbox]\nfile_size = \"1M\"\n");
    let repo = env.repository();
    let run = repo.task(&["--task", "t1"], "head -c 2000000 /dev/zero > big");
    let object = over(run, "file_size");
    assert_eq!(object["limits"]["file_size"], 1 << 20);
    repo.airlock(&["why", "t1"])
        .run()
        .exits(0)
        .prints("file_size = \"2M\"");
    fine(repo.task(&[], "head -c 1000000 /dev/zero > big; rm big"));
}

#[test]
fn dropped_output_is_noted_and_ends_nothing() {
    let env = TestEnv::new();
    env.configure("[sandbox]\noutput = \"64K\"\n");
    let repo = env.repository();
    let script = "i=0; while [ $i -lt 3000 ]; do echo 'forty bytes of output on a line, or more'; i=$((i+1)); done";
    let object = repo.task(&["--task", "t1"], script).exits(11).json();
    assert_eq!(object["refusals"], 1);
    assert!(repo.log_of("t1").contains("bytes of output dropped here"));
    repo.airlock(&["why", "t1"])
        .run()
        .exits(0)
        .prints("output = \"128K\"");
}

#[test]
fn limits_come_from_the_task_file_and_from_configuration_too() {
    let env = TestEnv::new();
    env.configure("[task]\nidle_timeout = \"10m\"\n[sandbox]\nmemory = \"256M\"\ndisk = \"1G\"\nfiles = 7000\n");
    let repo = env.repository();
    let spec = json!({"task_id": "s1", "command": ["true"], "memory": "64M", "files": 6000, "idle_timeout": "30s"});
    let run = repo
        .airlock(&["run", "--json", "--disk", "512M", "--spec", "-"])
        .stdin(spec.to_string())
        .run();
    let limits = run.exits(11).json()["limits"].clone();
    assert_eq!(limits["memory"], 64 << 20);
    assert_eq!(limits["files"], 6000);
    assert_eq!(limits["idle_ms"], 30_000);
    assert_eq!(limits["disk"], 512 << 20);
    repo.write("airlock.toml", "[sandbox]\nmemory = \"9G\"\n");
    repo.commit("more");
    repo.task(&[], "true").exits(11);
    env.configure("");
    repo.task(&[], "true").exits(2).says("sandbox.memory");
}

#[test]
fn who_goes_on_is_told_which_limit_it_was() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "if [ -z \"$AIRLOCK_FEEDBACK\" ]; then echo 'x = 1' > x.py; dd if=/dev/zero of=big bs=1M count=192; exit 0; fi; \
                  cat \"$AIRLOCK_FEEDBACK\"; rm big";
    // So large that what others write on this disk meanwhile makes nobody count before the file is gone.
    let object = over(
        repo.task(&["--task", "t1", "--disk", "128M"], script),
        "disk",
    );
    assert!(
        object["summary"].as_str().unwrap().contains("disk (128M)"),
        "{object:#}"
    );
    repo.airlock(&["resume", "t1"]).run().exits(0);
    let log = repo.log_of("t1");
    assert!(log.contains("it passed its limit of disk (128M)"), "{log}");
}

/// Control groups of the task `id`, anywhere.
fn groups(id: &str) -> Vec<String> {
    let name = format!("airlock-{id}-");
    let mut found = Vec::new();
    let mut folders = vec![std::path::PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(&name) {
                    found.push(entry.path().display().to_string());
                }
                folders.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn no_control_group_is_left() {
    let env = TestEnv::new();
    let repo = env.repository();
    let id = format!("group-{}", std::process::id());
    repo.task(&["--task", &id], "true").exits(11);
    assert_eq!(groups(&id), Vec::<String>::new(), "after a run");
    let id = format!("killed-{}", std::process::id());
    let run = repo
        .airlock(&[
            "run",
            "--task",
            &id,
            "--",
            "sh",
            "-c",
            "touch here; exec sleep 600",
        ])
        .spawn();
    env.at_work(&id);
    for role in [tests::Role::Supervisor, tests::Role::Keeper] {
        for process in env.of_role(role) {
            process.kill();
        }
    }
    drop(run.wait());
    repo.airlock(&["rm", &id, "--discard"]).run().exits(0);
    assert_eq!(groups(&id), Vec::<String>::new(), "after kill -9 and rm");
}
