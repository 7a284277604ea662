//! A test for each promise about what lives on the host: sockets, processes, descriptors, other tasks.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Child, Command};

use tests::TestEnv;

use crate::escape::steps;

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
fn the_hosts_sockets_cannot_be_reached() {
    let env = TestEnv::new();
    let repo = env.repository();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let path = env.path().join("daemon.sock");
    let _unix = UnixListener::bind(&path).unwrap();
    let name = format!("airlock-test-{}", std::process::id());
    let _abstract =
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let tcp = tcp.local_addr().unwrap().to_string();
    let to = udp.local_addr().unwrap().to_string();
    let said = steps(
        &env,
        &repo,
        "t1",
        &[
            "tcp",
            &tcp,
            "udp",
            &to,
            "unix",
            path.to_str().unwrap(),
            "abstract",
            &name,
        ],
    );
    for step in ["tcp", "unix", "abstract"] {
        assert!(said.contains(&format!("{step}: refused")), "{said}");
    }
    assert!(
        udp.recv(&mut [0; 16]).is_err(),
        "a datagram came out\n{said}"
    );
}

#[test]
fn a_rooms_own_loopback_works_and_is_nobody_elses() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = |agent: &Path| {
        format!(
            "{0} serve 127.0.0.1:8765; touch here; while ! test -e go; do sleep 0.02; done",
            agent.display()
        )
    };
    let agent = env.fake_agent();
    let folder = agent.parent().unwrap().to_str().unwrap().to_owned();
    let start = |id: &str| {
        repo.airlock(&[
            "run",
            "--task",
            id,
            "--ro",
            &folder,
            "--",
            "sh",
            "-c",
            &script(&agent),
        ])
        .spawn()
    };
    let (one, two) = (start("one"), start("two"));
    for id in ["one", "two"] {
        env.at_work(id);
    }
    for id in ["one", "two"] {
        env.let_go(id);
    }
    one.wait().exits(0);
    two.wait().exits(0);
    for id in ["one", "two"] {
        assert!(repo.log_of(id).contains("serve: ok"), "{}", repo.log_of(id));
    }
}

#[test]
fn only_families_that_a_network_needs_have_sockets() {
    let env = TestEnv::new();
    let repo = env.repository();
    let said = steps(
        &env,
        &repo,
        "t1",
        &["family", "vsock", "family", "packet", "family", "raw"],
    );
    assert_eq!(said.matches("family: refused").count(), 3, "{said}");
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
fn the_first_process_inside_can_be_neither_read_nor_ended() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "kill -9 1; kill -TERM 1; cat /proc/1/environ > /dev/null && echo read; ls -l /proc/1/fd/ && echo listed; \
                  (echo x > /proc/1/mem) && echo written; (echo '{\"exit\":0}' > .bg/agent/meta.json) && echo forged; \
                  (: > .bg/agent/output.log) && echo truncated; exit 7";
    let object = repo
        .task(
            &["--task", "t1"],
            &format!("({script}) 2>/dev/null; exit 7"),
        )
        .exits(20)
        .json();
    assert_eq!(
        (&object["agent"]["outcome"], &object["agent"]["code"]),
        (&"exited".into(), &7.into())
    );
    let log = repo.log_of("t1");
    for word in ["listed", "written", "forged", "truncated"] {
        assert!(!log.contains(word), "{log}");
    }
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
