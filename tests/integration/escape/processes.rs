//! Processes: the host's, another task's, those that outlive their task; their environments and descriptors.

use std::fs;
use std::process::{Child, Command};

use tests::{Role, TestEnv};

use super::{attack, steps};

/// A process of the host that lives as long as the value.
pub(crate) struct Bystander(Child);

impl Bystander {
    pub(crate) fn new() -> Self {
        Self(Command::new("sleep").arg("986").spawn().unwrap())
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether nobody has ended it.
    pub(crate) fn lives(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
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
fn no_descriptor_of_the_host_is_open_inside() {
    let env = TestEnv::new();
    let repo = env.repository();
    let secret = env.path().join("secret");
    fs::write(&secret, "secret\n").unwrap();
    let wrapper = format!("exec 7<{0} 8<{0}; exec \"$0\" \"$@\"", secret.display());
    let run = env
        .airlock_under(&["sh", "-c", &wrapper], repo.path())
        .args([
            "run",
            "--task",
            "t1",
            "--",
            "sh",
            "-c",
            "for fd in /proc/self/fd/*; do echo ${fd##*/} $(readlink $fd); done",
        ])
        .run();
    run.exits(11);
    let log = repo.log_of("t1");
    let numbers: Vec<&str> = log
        .lines()
        .filter(|line| line.contains(' '))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(
        numbers
            .iter()
            .all(|fd| fd.parse::<u32>().unwrap() <= 2 || log.contains(&format!("{fd} /proc/"))),
        "{log}"
    );
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn nothing_the_agent_starts_outlives_it() {
    let env = TestEnv::new();
    let repo = env.repository();
    let agent = env.fake_agent();
    let folder = agent.parent().unwrap().to_str().unwrap().to_owned();
    let script = format!(
        "{0} daemon alive; while ! test -s alive; do :; done; nohup setsid sh -c 'trap \"\" TERM HUP; sleep 985' >/dev/null 2>&1 & \
         (setsid sleep 984 &) ; echo started",
        agent.display()
    );
    repo.task(&["--task", "t1", "--ro", &folder], &script)
        .exits(0);
    assert!(repo.log_of("t1").contains("started"));
    env.is_quiet();
}

#[test]
fn processes_of_the_host_can_be_neither_seen_nor_touched() {
    let env = TestEnv::new();
    let repo = env.repository();
    let bystander = Bystander::new();
    let pid = bystander.id().to_string();
    let said = steps(
        &env,
        &repo,
        "t1",
        &[
            "memory-of",
            &pid,
            "kill",
            &pid,
            "read",
            &format!("/proc/{pid}/environ"),
        ],
    );
    assert_eq!(said.matches("refused").count(), 3, "{said}");
    assert!(bystander.lives());
    repo.task(&["--task", "t2"], "cat /proc/[0-9]*/comm | sort -u")
        .exits(11);
    let seen = repo.log_of("t2");
    assert!(seen.lines().count() <= 5, "{seen}");
    assert!(
        !seen.contains("integration") && !seen.contains("systemd"),
        "{seen}"
    );
}

#[test]
fn two_tasks_that_run_together_do_not_see_each_other() {
    let env = TestEnv::new();
    let repo = env.repository();
    let start = |id: &str| {
        let script = format!(
            "echo mine-{id} > mine.txt; echo {id} > /tmp/mine; echo x > $HOME/mine; touch here; \
             while ! test -e go; do sleep 0.02; done; cat mine.txt /tmp/mine; \
             cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -o 'mine-[a-z][a-z]*' | sort -u; \
             find / -path '*/tasks/one*' -o -path '*/tasks/two*' 2>/dev/null | head -3"
        );
        repo.airlock(&["run", "--task", id, "--", "sh", "-c", &script])
            .spawn()
    };
    let runs = [start("one"), start("two")];
    env.at_work("one");
    env.at_work("two");
    env.let_go("one");
    env.let_go("two");
    for run in runs {
        run.wait().exits(0);
    }
    for id in ["one", "two"] {
        assert_eq!(repo.log_of(id), format!("mine-{id}\n{id}\nmine-{id}\n"));
    }
}

#[test]
fn shared_memory_and_queues_of_the_host_are_not_there() {
    let env = TestEnv::new();
    let repo = env.repository();
    let said = env
        .program("ipcmk", env.path())
        .args(["-p", "0666", "-M", "4096"])
        .run()
        .exits(0)
        .stdout;
    let id = said.rsplit(' ').next().unwrap().trim().to_owned();
    let script = format!(
        "
print(len(open('/proc/sysvipc/shm').read().splitlines()), 'lines')
for identity in ({id}, 0):
    if libc.shmat(identity, 0, 0) not in (-1, 0xffffffff): print('OPEN shared memory', identity)
print(os.listdir('/dev/mqueue') if os.path.exists('/dev/mqueue') else 'no queues')
"
    );
    let log = attack(&repo, "t1", &[], &script);
    env.program("ipcrm", env.path())
        .args(["-m", &id])
        .run()
        .exits(0);
    assert_eq!(log, "1 lines\nno queues\n");
}

#[test]
fn no_process_of_a_room_belongs_to_a_user_of_the_host() {
    use std::os::unix::fs::MetadataExt as _;
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "touch here; id -u; id -G; while ! test -e go; do sleep 0.02; done";
    let running = repo
        .airlock(&["run", "--task", "t1", "--", "sh", "-c", script])
        .spawn();
    let here = env.at_work("t1");
    let me = nix::unistd::geteuid();
    for role in [Role::Holder, Role::Bubblewrap, Role::Warden, Role::Agent] {
        let mut looked_at = 0;
        for process in env.of_role(role) {
            // The agent's own short-lived commands come and go.
            let Ok(status) = fs::read_to_string(format!("/proc/{}/status", process.pid)) else {
                continue;
            };
            looked_at += 1;
            let line = status
                .lines()
                .find(|line| line.starts_with("Uid:"))
                .unwrap();
            let uids: Vec<u32> = line
                .split_ascii_whitespace()
                .skip(1)
                .map(|uid| uid.parse().unwrap())
                .collect();
            assert!(uids.iter().all(|uid| *uid == uids[0]), "{role:?} {line}");
            if me.is_root() {
                assert_ne!(uids[0], 0, "{role:?} {process:?}");
                let passwd = fs::read_to_string("/etc/passwd").unwrap();
                let known = passwd
                    .lines()
                    .any(|entry| entry.split(':').nth(2) == Some(&uids[0].to_string()));
                assert!(!known, "{role:?} is {} of the host", uids[0]);
            } else {
                assert_eq!(uids[0], me.as_raw(), "{role:?}");
            }
        }
        assert!(looked_at > 0, "no {role:?}");
    }
    assert_ne!(fs::metadata(here).unwrap().uid(), 0);
    env.let_go("t1");
    running.wait().exits(0);
    let log = repo.log_of("t1");
    assert!(
        log.lines().all(|line| !line.split(' ').any(|id| id == "0")),
        "{log}"
    );
}

#[test]
fn the_first_process_tells_nothing_of_the_host() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = r"
for name in ('cmdline', 'environ', 'mountinfo', 'cgroup', 'status', 'comm', 'wchan'):
    try: print(open('/proc/1/' + name, errors='replace').read().replace('\0', ' '))
    except OSError: pass
for link in ('exe', 'cwd', 'root'):
    tries('read ' + link, lambda: os.readlink('/proc/1/' + link))
tries('environ', lambda: open('/proc/1/environ').read())
";
    let log = attack(&repo, "t1", &[], script);
    for secret in [env.state(), env.home(), env.path().join("tmp")] {
        assert!(
            !log.contains(secret.to_str().unwrap()),
            "{}\n{log}",
            secret.display()
        );
    }
    assert!(log.contains("/run/airlock/bin/airlock"), "{log}");
}
