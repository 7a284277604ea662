//! How a job ended, what it wrote and what state it is in: nothing inside can say otherwise.

use std::fs;

use tests::{Role, TestEnv, until};

use super::{attack, attack_that_ends};

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
fn an_exit_code_cannot_be_forged() {
    let env = TestEnv::new();
    let repo = env.repository();
    // Every way to the keeper's socket that a process has: the first process's descriptors, a descriptor that was
    // left open, another's descriptor by its number, a socket by its name.
    let script = r#"
word = b'{"nonce":"","report":{"Exited":{"code":0}}}'
for number in range(64):
    for way in ('/proc/1/fd/%d', '/proc/1/map_files/%d', '/dev/fd/../../1/fd/%d'):
        writes(way % number)
    if number > 2:
        tries('descriptor %d' % number, lambda: os.write(number, word))
tries('list', lambda: os.listdir('/proc/1/fd'))
pidfd = call(434, 1, 0)[0]
for number in range(64):
    if call(438, pidfd, number, 0)[0] >= 0: print('OPEN pidfd_getfd', number)
for line in open('/proc/net/unix').read().split('\n')[1:]:
    if len(line.split()) > 7:
        print('OPEN a socket with a name', line)
for process in glob.glob('/proc/[0-9]*'):
    for entry in glob.glob(process + '/fd/*'):
        try: to = os.readlink(entry)
        except OSError: continue
        if 'socket' in to: print('OPEN', process, to)
print('tried everything'); sys.stdout.flush(); os._exit(7)"#;
    let object = attack_that_ends(&repo, "t1", &[], script, 20);
    assert_eq!(object["agent"]["code"], 7, "{object}");
    assert_eq!(object["state"], "failed", "{object}");
}

#[test]
fn the_first_process_cannot_be_rewritten() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = r"
for name in ('mem', 'maps', 'auxv', 'syscall', 'stack', 'clear_refs', 'oom_score_adj', 'coredump_filter', 'timerslack_ns'):
    writes('/proc/1/' + name, '1'); writes('/proc/1/task/1/' + name, '1')
tries('read memory', lambda: os.open('/proc/1/mem', os.O_RDONLY))
for number in ({'x86_64': (101, 310, 311, 312), 'aarch64': (117, 270, 271, 272)}[os.uname().machine]):
    for request in (0x10, 0x4206):
        if call(number, request if number in (101, 117) else 1, 1, 0, 0, 0, 0)[0] >= 0: print('OPEN call', number)
for signal in range(1, 65):
    try: os.kill(1, signal)
    except OSError: pass
libc.prctl(1, 0, 0, 0, 0)
for child in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(3): os.close(number)
            while True:
                with open('alive', 'w') as file: file.write(repr(time.time()))
        os._exit(0)
while not os.path.exists('alive'): pass
";
    let log = attack(&repo, "t1", &["--cleanup", "never"], script);
    assert_eq!(log, "");
    // Nobody is left, so nobody writes any more.
    env.is_quiet();
    assert!(env.task_folder("t1").join("tree/alive").exists());
}

#[test]
fn a_file_that_is_shown_cannot_be_locked_or_changed() {
    let env = TestEnv::new();
    let repo = env.repository();
    // Locks and leases are held to the end: whoever of us needed one would stand still.
    let script = r"
held = []
for folder in ('.bg', '.sub', '/run/airlock/feedback', '/run/airlock/objects', '/etc'):
    for path, folders, files in os.walk(folder):
        for name in files + ['new', '.']:
            place = os.path.join(path, name)
            writes(place) if name != '.' else None
            tries('truncate ' + place, lambda: os.truncate(place, 0))
            tries('unlink ' + place, lambda: os.unlink(place))
            tries('rename ' + place, lambda: os.rename(place, '/tmp/taken'))
            tries('link ' + place, lambda: os.link(place, '/tmp/linked'))
            tries('chmod ' + place, lambda: os.chmod(place, 0o777))
            tries('times ' + place, lambda: os.utime(place, (1, 1), follow_symlinks=False))
            tries('attribute ' + place, lambda: os.setxattr(place, 'user.x', b'x'))
            try: file = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
            except OSError: continue
            held.append(file)
            for lock in (lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB), lambda: fcntl.fcntl(file, 1024, 0)):
                try: lock()
                except OSError: pass
names = [os.readlink('/proc/self/fd/%d' % file) for file in held]
print('held', any(name.endswith('/output.log') for name in names), any(name.endswith('/meta.json') for name in names))
print('tried everything'); sys.stdout.flush(); os._exit(7)";
    let object = attack_that_ends(&repo, "t1", &[], script, 20);
    assert_eq!(object["agent"]["code"], 7, "{object}");
    assert_eq!(repo.log_of("t1"), "held True True\ntried everything\n");
    let meta = env.task_folder("t1").join("bg/agent/meta.json");
    let meta: serde_json::Value = serde_json::from_str(&fs::read_to_string(meta).unwrap()).unwrap();
    assert_eq!(meta["code"], 7, "{meta}");
}

#[test]
fn a_job_cannot_cut_or_reorder_its_log() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = r"
print('first'); sys.stdout.flush()
for number in (1, 2):
    for name in ('/proc/self/fd/%d' % number, '/dev/fd/%d' % number):
        tries('truncate', lambda: os.truncate(name, 0))
    tries('cut', lambda: os.ftruncate(number, 0))
    tries('seek', lambda: os.lseek(number, 0, 0))
    tries('at', lambda: os.pwrite(number, b'forged', 0))
for name in ('/dev/stdout', '/proc/self/fd/1'):
    with open(name, 'w') as file: file.write('second\n')
";
    assert_eq!(attack(&repo, "t1", &[], script), "first\nsecond\nsecond\n");
}

#[test]
fn our_own_program_can_be_neither_changed_nor_turned_against_us() {
    let env = TestEnv::new();
    let repo = env.repository();
    let program = env.airlock_program();
    let before = fs::read(&program).unwrap();
    let script = r"
own = '/run/airlock/bin/airlock'
for place in (own, '/proc/1/exe', '/run/airlock/filter', '/run/airlock/pointer'):
    writes(place); tries('append', lambda: open(place, 'ab')); tries('unlink', lambda: os.unlink(place))
child = subprocess.Popen([own, '--help'], stdout=subprocess.DEVNULL)
writes('/proc/%d/exe' % child.pid); child.wait()
for role in ('__holder', '__keeper', '__warden', '__judge', '__supervisor'):
    for text in (b'', b'{}', b'not JSON'):
        subprocess.run([own, role, '3', '4', '5'], input=text, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
";
    attack(&repo, "t1", &[], script);
    assert!(
        fs::read(&program).unwrap() == before,
        "the program was changed"
    );
    env.is_quiet();
}

#[test]
fn a_keeper_that_is_killed_takes_its_job_along_and_says_lost() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "touch here; while :; do date +%N > alive; done";
    let running = repo
        .airlock(&["run", "--json", "--task", "t1", "--", "sh", "-c", script])
        .spawn();
    env.at_work("t1");
    let keeper = until("the keeper", || env.of_role(Role::Keeper).pop());
    keeper.kill();
    let run = running.wait().exits(31);
    assert_eq!(run.json()["agent"]["outcome"], "lost", "{run}");
    env.is_quiet();
}
