//! What a command in the room cannot do.

use sandbox::Exit;

use crate::runner::{Task, Test, start};

pub(crate) const TESTS: &[Test] = &[
    ("no_privileges", no_privileges),
    ("not_root", not_root),
    ("landlock_is_on", landlock_is_on),
    ("filter_answers", filter_answers),
    ("namespaces_are_its_own", namespaces_are_its_own),
    ("root_is_curated", root_is_curated),
    ("proc_is_covered", proc_is_covered),
    ("memory_is_sized", memory_is_sized),
    ("git_pointer_stays", git_pointer_stays),
    ("mount_points_stay", mount_points_stay),
    ("init_cannot_be_reached", init_cannot_be_reached),
    ("no_set_id", no_set_id),
    ("devices_work", devices_work),
    ("session_is_read_only", session_is_read_only),
    ("network_of_the_host", network_of_the_host),
];

fn no_privileges() {
    let (_, log) = Task::new()
        .run("grep -E '^(Cap...|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'");
    let none = "0000000000000000";
    assert_eq!(
        log,
        format!(
            "CapInh:{none}CapPrm:{none}CapEff:{none}CapBnd:{none}CapAmb:{none}NoNewPrivs:1Seccomp:2"
        )
    );
}

fn not_root() {
    let task = Task::new();
    let (_, log) = task.run("id -u; id -G; stat -c %U a.txt; touch made");
    let mut lines = log.lines();
    let uid: u32 = lines.next().unwrap().parse().unwrap();
    assert_ne!(uid, 0);
    assert!(!lines.next().unwrap().split(' ').any(|group| group == "0"));
    assert_eq!(lines.next(), Some("agent"));
    let owner = std::os::unix::fs::MetadataExt::uid(
        &std::fs::metadata(task.spec.tree.join("made")).unwrap(),
    );
    assert_eq!(owner, uid);
}

fn landlock_is_on() {
    let seen = sandbox::probe().unwrap();
    for wall in &seen.walls {
        // A delegated cgroup is a matter of the host's.
        assert!(
            wall.state != sandbox::WallState::Off || wall.name == "cgroup",
            "{wall:?}"
        );
    }
    assert!(!seen.version.is_empty());
}

/// Each line of the script prints a name; a wall that is missing prints it with `OPEN`.
fn held(script: &str) {
    let task = Task::new();
    let room = task.open();
    let (outcome, log) = task.wait(
        start(&room, &task.job("py", &["/usr/bin/python3", "-c", script])),
        "py",
    );
    assert_eq!(outcome.exit, Exit::Code(0), "{log}");
    assert!(!log.contains("OPEN"), "{log}");
    assert!(log.contains("end"), "{log}");
}

fn filter_answers() {
    held(
        r"
import ctypes, errno, socket, fcntl, os
libc = ctypes.CDLL(None, use_errno=True)
def call(name, number, want, *args):
    r = libc.syscall(number, *args)
    e = ctypes.get_errno()
    if r != -1 or e != want: print('OPEN', name, r, errno.errorcode.get(e))
call('ptrace', 101, errno.EPERM, 0, 0, 0, 0)
call('mount', 165, errno.EPERM, 0, 0, 0, 0, 0)
call('bpf', 321, errno.EPERM, 0, 0, 0)
call('keyctl', 250, errno.EPERM, 0, 0, 0)
call('io_uring', 425, errno.ENOSYS, 0, 0)
call('clone3', 435, errno.ENOSYS, 0, 0)
call('unshare', 272, errno.EPERM, 0x10000000)
call('userfaultfd', 323, errno.EPERM, 0)
for family in (40, 38, 17, 44, 30):
    try: socket.socket(family, socket.SOCK_STREAM); print('OPEN family', family)
    except OSError as e: assert e.errno == errno.EAFNOSUPPORT, e
try: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print('OPEN raw')
except OSError as e: assert e.errno == errno.EPERM, e
for request in (0x5412, 0x100005412, 0x541c):
    r = libc.ioctl(0, ctypes.c_ulong(request), b'x')
    if r != -1 or ctypes.get_errno() != errno.EPERM: print('OPEN', hex(request))
socket.socketpair(); socket.if_nameindex()
print('end')",
    );
}

fn namespaces_are_its_own() {
    let task = Task::new();
    let (_, log) = task
        .run("cd /proc/self/ns; for n in user mnt pid net ipc uts cgroup; do readlink $n; done");
    for line in log.lines() {
        let kind = line.split(':').next().unwrap();
        let host = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        assert_ne!(host.to_str().unwrap(), line, "{kind} is the host's");
    }
    assert_eq!(log.lines().count(), 7);
}

fn root_is_curated() {
    let (_, log) = Task::new().run(
        "ls / | tr '\\n' ' '; ls -A /root /home /run /mnt /opt /sys 2>&1; cat /etc/shadow 2>&1",
    );
    let mut expected = String::new();
    for name in [
        "bin", "dev", "etc", "home", "lib", "lib64", "mnt", "opt", "proc", "root", "run", "sbin",
        "srv", "tmp", "usr", "var",
    ] {
        expected += name;
        expected.push(' ');
    }
    let (first, rest) = log.split_once('/').unwrap();
    let without: Vec<_> = first
        .split(' ')
        .filter(|name| !matches!(*name, "lib32" | "libx32" | "ls:"))
        .collect();
    assert!(without.join(" ").starts_with(expected.trim_end()), "{log}");
    assert!(rest.contains("agent\nsomeone\n"), "{log}");
    assert!(rest.contains("airlock\nlock\n"), "{log}");
    assert_eq!(log.matches("No such file").count(), 2, "{log}");
}

fn proc_is_covered() {
    held(
        r"
import os, glob
for p in ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname', '/proc/sysrq-trigger', '/proc/sys/vm/overcommit_memory', '/proc/sys/net/ipv4/ip_forward', '/proc/sys/user/max_user_namespaces']:
    try: os.close(os.open(p, os.O_WRONLY)); print('OPEN', p)
    except OSError: pass
for p in ['/proc/keys', '/proc/key-users', '/proc/kallsyms', '/proc/timer_list', '/proc/kcore']:
    try:
        if open(p).read(10): print('OPEN', p)
    except OSError: pass
if len([p for p in os.listdir('/proc') if p.isdigit()]) > 2: print('OPEN processes', os.listdir('/proc'))
print('end')",
    );
}

fn memory_is_sized() {
    held(
        r"
import os
for d in ['/tmp', '/home/agent', '/dev/shm', '/var/tmp']:
    s = os.statvfs(d)
    if s.f_blocks * s.f_frsize > 64 << 20 or s.f_files > 300000: print('OPEN', d, s)
for d in ['/', '/dev', '/etc', '/run', '/var', '/home', '/run/airlock', '/proc']:
    try: open(d + '/x', 'w'); print('OPEN', d)
    except OSError: pass
print('end')",
    );
}

fn git_pointer_stays() {
    let task = Task::new();
    let (_, log) = task.run(
        "for c in 'rm -f .git' 'mv .git g' 'ln -f a.txt .git' 'sh -c \"echo x > .git\"' 'mv a.txt .git'; do eval $c 2>/dev/null && echo OPEN $c; done; cat .git",
    );
    assert_eq!(log, "gitdir: /run/airlock/git\n");
    assert_eq!(
        std::fs::read(task.spec.tree.join(".git")).unwrap(),
        b"gitdir: /nowhere\n"
    );
}

fn mount_points_stay() {
    let mut task = Task::new();
    std::fs::create_dir_all(task.spec.tree.join("conf/deep")).unwrap();
    std::fs::write(task.spec.tree.join("conf/deep/locked"), "locked\n").unwrap();
    task.spec
        .ro
        .push(task.spec.mount_at.join("conf/deep/locked"));
    let (_, log) = task.run(
        "for c in 'mv conf c2' 'mv conf/deep conf/d2' 'rm -rf conf/deep' 'mv .bg b' 'mv .sub s' 'rmdir .bg' 'sh -c \"echo x > conf/deep/locked\"'; do eval $c 2>/dev/null && echo OPEN $c; done; touch conf/deep/new conf/new; cat conf/deep/locked",
    );
    assert_eq!(log, "locked\n");
    assert!(task.spec.tree.join("conf/deep/new").exists());
}

fn init_cannot_be_reached() {
    held(
        r"
import os, errno
for f in ['mem', 'fd', 'environ', 'maps', 'exe', 'cwd', 'root', 'ns/mnt', 'syscall', 'stack', 'map_files', 'fdinfo']:
    p = '/proc/1/' + f
    try:
        if os.path.isdir(p): os.listdir(p)
        elif f in ('exe', 'cwd', 'root', 'ns/mnt'): os.readlink(p)
        else: open(p, 'rb').read(1)
        if f not in ('environ',): print('OPEN', f)
    except OSError: pass
for s in (9, 15, 19, 17, 11):
    try: os.kill(1, s)
    except OSError: pass
open('/proc/1/status').read()
print('end')",
    );
}

fn no_set_id() {
    held(
        r"
import os, stat, subprocess
open('x', 'w').close()
for mode in (0o4755, 0o2755, 0o6755):
    for act in (lambda: os.chmod('x', mode), lambda: os.fchmod(os.open('x', os.O_RDONLY), mode), lambda: os.open('y%o' % mode, os.O_CREAT | os.O_WRONLY, mode), lambda: os.mknod('z%o' % mode, mode | stat.S_IFREG)):
        try: act(); print('OPEN', oct(mode))
        except OSError: pass
os.chmod('x', 0o1755); os.chmod('x', 0o755)
print('end')",
    );
}

fn devices_work() {
    let (outcome, log) = Task::new().run(
        "set -e; echo x > /dev/null; head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; test -e /dev/full; echo a > /dev/shm/x; python3 -c 'import pty,os; m,s=pty.openpty(); os.write(s,b\"hi\"); print(os.read(m,9), os.ttyname(s))'; ls /dev | tr '\\n' ' '; echo err > /dev/stderr",
    );
    assert_eq!(outcome.exit, Exit::Code(0), "{log}");
    assert!(log.starts_with("3\n3\nb'hi' /dev/pts/0\n"), "{log}");
    assert!(log.ends_with("err\n"), "{log}");
}

fn session_is_read_only() {
    let mut task = Task::new();
    task.spec.writable = false;
    task.spec.git = None;
    std::fs::remove_file(task.spec.tree.join(".git")).unwrap();
    std::fs::create_dir(task.spec.tree.join(".git")).unwrap();
    std::fs::write(task.spec.tree.join(".git/config"), "secret").unwrap();
    let before = crate::runner::names(&task.spec.tree);
    let (_, log) = task.run("cat a.txt; ls -A .git; touch b 2>&1; touch ~/b && echo home");
    assert_eq!(
        log,
        "a\ntouch: cannot touch 'b': Read-only file system\nhome\n"
    );
    assert_eq!(crate::runner::names(&task.spec.tree), before);
}

fn network_of_the_host() {
    let mut task = Task::new();
    task.spec.net = sandbox::Net::Host;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\",{port})); print(1)' 2>&1 | tail -1"
    );
    let (_, log) = task.run(&script);
    assert_eq!(log, "1\n");
    task.spec.net = sandbox::Net::None;
    let (_, log) = task.run(&script);
    assert!(log.contains("refused"), "{log}");
}
