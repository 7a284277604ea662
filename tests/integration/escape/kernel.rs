//! The kernel: privileges, mounts, namespaces, settings, and the calls that the filter refuses.

use std::fs;

use tests::TestEnv;

use super::{attack, steps};

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
fn no_call_of_the_list_passes() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = r"
zero = ctypes.create_string_buffer(256)
machine = 0 if os.uname().machine == 'x86_64' else 1
calls = {
    'ptrace': (101, 117, 0x4206, 0x7ffffff0, 0, 0), 'process_vm_readv': (310, 270, 1, zero, 0, zero, 0, 0), 'process_vm_writev': (311, 271, 1, zero, 0, zero, 0, 0),
    'pidfd_getfd': (438, 438, -1, 0, 0), 'kcmp': (312, 272, os.getpid(), os.getpid(), 2, 0, 0), 'process_madvise': (440, 440, -1, zero, 0, 4, 0),
    'mount': (165, 40, b'x', b'/tmp', b'tmpfs', 0, 0), 'umount2': (166, 39, b'/tmp', 2), 'pivot_root': (155, 41, b'.', b'.'), 'chroot': (161, 51, b'.'), 'setns': (308, 268, 0, 0),
    'keyctl': (250, 219, 0, -3, 0), 'add_key': (248, 217, b'user', b'a', b'a', 1, -4), 'request_key': (249, 218, b'user', b'a', 0, 0),
    'bpf': (321, 280, 0, zero, 72), 'perf_event_open': (298, 241, zero, 0, -1, -1, 0), 'userfaultfd': (323, 282, 1), 'fanotify_init': (300, 262, 0, 0),
    'quotactl': (179, 60, 0x800002, b'/dev/vda', 0, zero), 'acct': (163, 89, b'x'), 'syslog': (103, 116, 3, zero, 100), 'swapon': (167, 224, b'x', 0), 'swapoff': (168, 225, b'x'),
    'reboot': (169, 142, 0xfee1dead, 672274793, 0, 0), 'kexec_load': (246, 104, 0, 0, 0, 0), 'kexec_file_load': (320, 294, -1, -1, 0, 0, 0),
    'init_module': (175, 105, zero, 0, zero), 'finit_module': (313, 273, -1, zero, 0), 'delete_module': (176, 106, b'x', 0),
    'settimeofday': (164, 170, zero, 0), 'clock_settime': (227, 112, 0, zero), 'sethostname': (170, 161, b'x', 1), 'setdomainname': (171, 162, b'x', 1), 'vhangup': (153, 58),
    'migrate_pages': (256, 238, 0, 0, 0, 0), 'move_pages': (279, 239, 0, 0, 0, 0, 0, 0), 'iopl': (172, None, 3), 'ioperm': (173, None, 0x70, 1, 1), 'modify_ldt': (154, None, 0, zero, 16),
    'io_uring_setup': (425, 425, 1, zero), 'io_uring_enter': (426, 426, -1, 0, 0, 0, 0, 0), 'io_uring_register': (427, 427, -1, 0, 0, 0),
    'open_tree': (428, 428, -100, b'/', 1), 'move_mount': (429, 429, -1, b'', -1, b'', 0), 'fsopen': (430, 430, b'tmpfs', 0), 'fsconfig': (431, 431, -1, 0, 0, 0, 0), 'fsmount': (432, 432, -1, 0, 0),
    'fspick': (433, 433, -100, b'/', 0), 'mount_setattr': (442, 442, -1, b'', 0, zero, 32), 'open_tree_attr': (467, 467, -100, b'/', 1, zero, 32),
    'personality': (135, 92, 0x0040000), 'unshare time': (272, 97, 0x80), 'clone3': (435, 435, zero, 88), 'openat2': (437, 437, -100, b'.', zero, 24),
}
for name, (x86, arm, *arguments) in calls.items():
    number = (x86, arm)[machine]
    if number is None: continue
    answer, error = call(number, *arguments)
    if answer >= 0 or error not in (errno.EPERM, errno.ENOSYS): print('OPEN', name, answer, errno.errorcode.get(error, error))
for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000):
    if call((272, 97)[machine], flag)[0] != -1: print('OPEN unshare', hex(flag))
    answer, error = call((56, 220)[machine], flag | 17, 0, 0, 0, 0)
    if answer == 0: os._exit(0)
    if answer > 0: os.waitpid(answer, 0); print('OPEN clone', hex(flag))
if machine == 0:
    # The numbers of the other two interfaces of this machine lead nowhere.
    if call(0x40000000 + 165, b'x', b'/tmp', b'tmpfs', 0, 0) != (-1, errno.ENOSYS): print('OPEN x32')
";
    assert_eq!(attack(&repo, "t1", &[], script), "");
}

#[test]
fn no_word_is_put_into_a_terminal() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = r"
import pty, termios
master, slave = pty.openpty()
child = os.fork()
if child == 0:
    os.setsid(); fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for request in (0x5412, 0x100005412, 0xffffffff00005412, 0x541c, 0x5423):
        if libc.ioctl(slave, ctypes.c_ulong(request), b'x') != -1: os.write(1, b'OPEN %x\n' % request)
    os._exit(0)
os.waitpid(child, 0)
for number in range(3):
    if os.isatty(number): print('OPEN a terminal of the host', number)
tries('the terminal of the session', lambda: os.open('/dev/tty', os.O_RDWR))
";
    assert_eq!(attack(&repo, "t1", &[], script), "");
}

#[test]
fn no_file_gets_a_privilege() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = r"
open('x', 'w').close(); folder = os.open('.', os.O_RDONLY)
for bits in (0o4755, 0o2755, 0o6755, 0o4000):
    tries('chmod', lambda: os.chmod('x', bits)); tries('chmod a folder', lambda: os.chmod('.', bits))
    tries('fchmod', lambda: os.fchmod(os.open('x', os.O_RDONLY), bits))
    tries('fchmodat', lambda: os.chmod('x', bits, dir_fd=folder))
    tries('open', lambda: os.open('y%o' % bits, os.O_CREAT | os.O_WRONLY, bits))
    tries('nameless', lambda: os.open('.', os.O_TMPFILE | os.O_WRONLY, bits))
    tries('mknod', lambda: os.mknod('z%o' % bits, bits | stat.S_IFREG))
    if call(452, -100, b'x', bits, 0)[0] == 0: print('OPEN fchmodat2')
    if call(437, -100, b'w%o' % bits, struct.pack('<QQQ', os.O_CREAT | os.O_WRONLY, bits, 0), 24)[0] >= 0: print('OPEN openat2')
for name in ('security.capability', 'trusted.x'):
    tries(name, lambda: os.setxattr('x', name, b'\1\0\0\2\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0'))
tries('immutable', lambda: fcntl.ioctl(os.open('x', os.O_RDONLY), 0x40086602, struct.pack('l', 0x10)))
for owner in (0, 1, 4711): tries('owner', lambda: os.chown('x', owner, -1)); tries('group', lambda: os.chown('x', -1, owner))
for act in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.setresuid(0, 0, 0), lambda: os.nice(-5),
            lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)), lambda: os.setpriority(os.PRIO_PROCESS, 0, -20)): tries('privilege', act)
for path in subprocess.run(['find', '/usr', '/bin', '/sbin', '-xdev', '-perm', '/6000', '-type', 'f'], capture_output=True, text=True).stdout.split('\n'):
    if path and os.path.basename(path) in ('su', 'mount', 'passwd'):
        seen = subprocess.run(['sh', '-c', 'grep CapEff /proc/self/status; exec %s --version' % path], capture_output=True, text=True).stdout
        if 'CapEff:\t0000000000000000' not in seen: print('OPEN', path, seen)
for path in glob.glob('*'):
    if os.lstat(path).st_mode & 0o6000: print('OPEN', path)
";
    assert_eq!(attack(&repo, "t1", &[], script), "");
}

#[test]
fn every_setting_of_the_kernel_is_read_only_and_nothing_is_told_of_it() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = r"
seen = 0
for folder, folders, files in os.walk('/proc/sys'):
    for name in files:
        seen += 1
        place = os.path.join(folder, name)
        tries(place, lambda: os.open(place, os.O_WRONLY))
        tries(place, lambda: os.chmod(place, 0o666))
if seen < 100: print('OPEN only', seen)
for name in ('sysrq-trigger', 'kmsg', 'irq/default_smp_affinity', 'self/oom_score_adj/x', 'bus', 'scsi/scsi', 'mtrr', 'acpi/wakeup', 'fs', 'driver', 'latency_stats', 'timer_stats'):
    tries(name, lambda: os.open('/proc/' + name, os.O_WRONLY))
for name in ('keys', 'key-users', 'timer_list', 'kallsyms', 'kcore', 'sched_debug', 'kmsg', 'vmallocinfo', 'kpagecount', 'kpageflags', 'pagetypeinfo', 'slabinfo'):
    try:
        with open('/proc/' + name, 'rb') as file:
            if file.read(64).strip(b'0 \n'): print('OPEN', name)
    except OSError: pass
for folder in ('/sys', '/boot', '/lost+found', '/root', '/media', '/snap', '/host', '/var/run/docker.sock', '/var/log/x', '/var/spool', '/var/lib/x'):
    if os.path.isdir(folder) and os.listdir(folder): print('OPEN', folder, os.listdir(folder))
buffer = ctypes.create_string_buffer(4096)
if libc.klogctl(3, buffer, 4096) > 0: print('OPEN the log of the kernel')
";
    assert_eq!(attack(&repo, "t1", &[], script), "");
}

#[test]
fn what_the_filter_refuses_is_recorded_and_a_flood_is_counted() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = r"
for _ in range(3000): libc.umount(b'/usr')
libc.unshare(0x10000000)
tries('vsock', lambda: socket.socket(40, socket.SOCK_STREAM))
";
    attack(&repo, "t1", &["--cleanup", "never"], script);
    let text = fs::read_to_string(env.task_folder("t1").join("deny.ndjson")).unwrap();
    let mut counts = std::collections::BTreeMap::new();
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&line["kind"], &line["job"]),
            (&"syscall".into(), &"agent".into()),
            "{line}"
        );
        let what = line["what"].as_str().unwrap().to_owned();
        *counts.entry(what).or_insert(0) += line["count"].as_u64().unwrap();
    }
    let seen: Vec<(&str, u64)> = counts
        .iter()
        .map(|(what, count)| (what.as_str(), *count))
        .collect();
    assert_eq!(
        seen,
        [
            ("socket (AF_VSOCK)", 1),
            ("umount2", 3000),
            ("unshare (new namespace)", 1)
        ]
    );
    assert!(text.lines().count() < 30, "{text}");
    repo.airlock(&["doctor"])
        .run()
        .exits(0)
        .prints("refused calls are recorded");
}
