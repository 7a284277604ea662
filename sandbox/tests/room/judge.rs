//! The confinement of the process that reads hostile bytes.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::process::{Command, ExitCode, Stdio};

use sandbox::JudgeLimits;

use crate::runner::Test;

pub(crate) const TESTS: &[Test] = &[
    ("judge_computes_and_nothing_else", computes),
    ("judge_is_limited", limited),
];

/// What the confined process does.
pub(crate) fn other_half(args: &[OsString]) -> Option<ExitCode> {
    if args.get(1)? != "judge" {
        return None;
    }
    let limits = JudgeLimits {
        cpu_seconds: 1,
        address_space: 512 << 20,
    };
    sandbox::confine_judge(&limits).unwrap();
    match args.get(2)?.to_str()? {
        "compute" => compute(),
        "spin" => while std::hint::black_box(true) {},
        "eat" => {
            let mut heap: Vec<Vec<u8>> = Vec::new();
            while heap.len() < 4096 {
                heap.push(vec![1; 1 << 20]);
            }
        }
        _ => return None,
    }
    Some(ExitCode::SUCCESS)
}

fn compute() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let length = std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(move || text.len())
        .unwrap()
        .join()
        .unwrap();
    println!("{length} bytes");
    let refused = [
        ("open", std::fs::File::open("/etc/passwd").is_err()),
        ("write", std::fs::write("/tmp/judge-was-here", "x").is_err()),
        ("list", std::fs::read_dir("/").is_err()),
        (
            "socket",
            std::net::TcpListener::bind("127.0.0.1:0").is_err(),
        ),
        ("process", Command::new("/bin/true").status().is_err()),
        ("link", std::fs::read_link("/proc/self/exe").is_err()),
    ];
    for (name, refused) in refused {
        println!("{name} {refused}");
    }
    std::io::stdout().flush().unwrap();
}

fn run(what: &str, input: &[u8]) -> (String, std::process::ExitStatus) {
    let mut child = Command::new("/proc/self/exe")
        .args(["judge", what])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status)
}

fn computes() {
    let (said, status) = run("compute", &vec![b'x'; 1_000_000]);
    assert_eq!(
        said,
        "1000000 bytes\nopen true\nwrite true\nlist true\nsocket true\nprocess true\nlink true\n"
    );
    assert!(status.success());
}

fn limited() {
    use std::os::unix::process::ExitStatusExt as _;
    let (_, status) = run("spin", b"");
    assert!(matches!(status.signal(), Some(9 | 24)), "{status:?}");
    let (_, status) = run("eat", b"");
    assert_eq!(status.signal(), Some(6), "{status:?}");
}
