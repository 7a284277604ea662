//! Refused system calls: the keeper is told of each, counts them, and is not hurt by many.

use sandbox::{Denial, DenialKind, Denials, Exit};

use crate::runner::{Task, Test, start};

pub(crate) const TESTS: &[Test] = &[
    ("refused_calls_are_told", refused_calls_are_told),
    ("a_flood_of_refusals", a_flood_of_refusals),
    ("nothing_refused_nothing_told", nothing_refused_nothing_told),
    ("nobody_listens_inside", nobody_listens_inside),
    ("frozen_in_a_refused_call", frozen_in_a_refused_call),
];

fn told(task: &Task) -> Vec<(String, u64)> {
    let denials = Denials::read(&task.denials()).unwrap();
    assert_eq!((denials.broken, denials.full), (0, false));
    let of = |denial: &Denial| {
        assert_eq!(denial.kind, DenialKind::Syscall);
        assert_eq!(denial.job.as_deref(), Some("py"));
        (denial.what.clone(), denial.count)
    };
    denials.records.iter().map(of).collect()
}

fn python(task: &Task, script: &str) -> String {
    let room = task.open();
    let job = task.job("py", &["/usr/bin/python3", "-c", script]);
    let (outcome, log) = task.wait(start(&room, &job), "py");
    assert_eq!(outcome.exit, Exit::Code(0), "{log}");
    log
}

fn refused_calls_are_told() {
    let task = Task::new();
    let log = python(
        &task,
        r"
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
for _ in range(3):
    if libc.umount(b'/usr') != -1 or ctypes.get_errno() != errno.EPERM: print('OPEN umount')
if libc.unshare(0x10000000) != -1 or ctypes.get_errno() != errno.EPERM: print('OPEN unshare')
if libc.syscall(425, 1, 0) != -1 or ctypes.get_errno() != errno.ENOSYS: print('OPEN io_uring')
try: socket.socket(40, socket.SOCK_STREAM); print('OPEN vsock')
except OSError as e:
    if e.errno != errno.EAFNOSUPPORT: print('OPEN', e)
open('x', 'w').close()
try: os.chmod('x', 0o4755); print('OPEN chmod')
except PermissionError: pass
# Whoever comes after the first process is told of as well.
if os.fork() == 0:
    os.setsid(); libc.umount(b'/usr'); os._exit(0)
os.wait()
print('end')",
    );
    assert_eq!(log, "end\n");
    let expected = [
        ("umount2", 4),
        ("unshare (new namespace)", 1),
        ("io_uring_setup", 1),
        ("socket (AF_VSOCK)", 1),
        ("fchmodat", 1),
    ];
    let seen = told(&task);
    let seen: Vec<_> = seen
        .iter()
        .map(|(what, count)| (if what == "chmod" { "fchmodat" } else { what }, *count))
        .collect();
    assert_eq!(seen, expected);
}

/// The keeper goes on reading output, and answers every call, whoever many there are.
fn a_flood_of_refusals() {
    let task = Task::new();
    let log = python(
        &task,
        r"
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
for child in range(8):
    if os.fork() == 0:
        for n in range(500):
            if libc.umount(b'/usr') != -1 or ctypes.get_errno() != errno.EPERM: print('OPEN')
        os._exit(0)
for child in range(8): os.wait()
print('x' * 300000)
print('end')",
    );
    assert!(log.ends_with("end\n") && !log.contains("OPEN"), "{log}");
    assert_eq!(told(&task), [("umount2".to_owned(), 4000)]);
    let lines = std::fs::read_to_string(task.denials()).unwrap();
    assert!(lines.lines().count() < 20, "{lines}");
}

fn nothing_refused_nothing_told() {
    let task = Task::new();
    let log = python(
        &task,
        "import threading, subprocess, socket; t = threading.Thread(target=print, args=('thread',)); t.start(); t.join(); subprocess.run(['true']); socket.if_nameindex()",
    );
    assert_eq!(log, "thread\n");
    assert!(!task.denials().exists());
}

fn nobody_listens_inside() {
    let task = Task::new();
    let log = python(
        &task,
        r"
import ctypes, errno, struct, os
libc = ctypes.CDLL(None, use_errno=True)
number = {'x86_64': 317, 'aarch64': 277}[os.uname().machine]
code = ctypes.create_string_buffer(struct.pack('<HBBI', 6, 0, 0, 0x7fc00000))
class Program(ctypes.Structure): _fields_ = [('len', ctypes.c_ushort), ('code', ctypes.c_void_p)]
program = Program(1, ctypes.addressof(code))
for flags in (8, 8 | 32, 8 | 2):
    if libc.syscall(number, 1, flags, ctypes.byref(program)) >= 0: print('OPEN', flags)
print(errno.errorcode[ctypes.get_errno()])",
    );
    assert_eq!(log, "EBUSY\n");
}

/// A process that waits for an answer can be stopped, and goes on where it was.
fn frozen_in_a_refused_call() {
    let task = Task::new();
    let room = task.open();
    let script = r"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
open('here', 'w').close()
while not os.path.exists('go'): libc.umount(b'/usr')
print('end')";
    let keeper = start(&room, &task.job("py", &["/usr/bin/python3", "-c", script]));
    crate::runner::until("it runs", || task.spec.tree.join("here").exists());
    let order = |order| sandbox::control(&task.spec.locks, "t", "py", order).unwrap();
    for _ in 0..20 {
        order(sandbox::Order::Freeze);
        order(sandbox::Order::Thaw);
    }
    std::fs::write(task.spec.tree.join("go"), "").unwrap();
    let (outcome, log) = task.wait(keeper, "py");
    assert_eq!((outcome.exit, log.as_str()), (Exit::Code(0), "end\n"));
}
