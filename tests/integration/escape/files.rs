//! Files of the host: what of them can be written, read or named from a room.

use std::fs;
use std::path::Path;
use std::process::Command;

use tests::TestEnv;

use super::attack;

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

#[test]
fn a_file_of_the_host_cannot_be_reached_by_another_way_than_its_name() {
    let env = TestEnv::new();
    let repo = env.repository();
    let secret = env.path().join("secret");
    fs::write(&secret, "the secret\n").unwrap();
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&secret).unwrap());
    let script = format!(
        r"
secret = {secret:?}
for way in (secret, '/proc/self/root' + secret, '/proc/1/root' + secret, '/proc/self/cwd/../..' + secret,
            '/proc/thread-self/root' + secret, '/dev/fd/../../../..' + secret, './' + '../' * 40 + secret):
    tries('read ' + way, lambda: open(way).read())
    os.symlink(way, 'link'); tries('link to ' + way, lambda: open('link').read()); os.unlink('link')
    tries('hard link', lambda: os.link(way, 'linked'))
# By handle: inode {inode} of whatever file system the worktree is on.
handle = struct.pack('<IiII', 8, 1, {inode} & 0xffffffff, 0)
for number in (304, 265):
    here = os.open('.', os.O_RDONLY)
    if call(number, here, handle, 0)[0] >= 0 and os.uname().machine == ('x86_64' if number == 304 else 'aarch64'): print('OPEN by handle')
for device, kind in (((8, 0), stat.S_IFBLK), ((1, 1), stat.S_IFCHR), ((1, 2), stat.S_IFCHR), ((259, 0), stat.S_IFBLK), ((10, 229), stat.S_IFCHR)):
    tries('device', lambda: os.mknod('device', 0o600 | kind, os.makedev(*device)))
for name in ('/dev/mem', '/dev/kmsg', '/dev/sda', '/dev/vda', '/dev/loop-control', '/dev/fuse', '/dev/kvm', '/dev/net/tun', '/dev/ptmx0', '/dev/console'):
    tries(name, lambda: os.open(name, os.O_RDONLY | os.O_NONBLOCK))
"
    );
    attack(&repo, "t1", &[], &script);
}

#[test]
fn a_protected_path_stays_whatever_is_done_around_it() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("proj/conf/locked.cfg", "locked\n");
    repo.write("proj/conf/other.cfg", "other\n");
    repo.write("proj/folder/inner", "inner\n");
    repo.commit("conf");
    let script = r"
locked = 'proj/conf/locked.cfg'
for place in (locked, 'proj/folder/inner', 'proj/folder/new'):
    writes(place); tries('append', lambda: open(place, 'a')); tries('truncate', lambda: os.truncate(place, 0))
for place in (locked, 'proj/conf', 'proj', 'proj/folder'):
    tries('rename ' + place, lambda: os.rename(place, place + '-moved'))
    tries('remove ' + place, lambda: os.rmdir(place) if os.path.isdir(place) else os.unlink(place))
    tries('exchange ' + place, lambda: call({'x86_64': 316, 'aarch64': 276}[os.uname().machine], -100, place.encode(), -100, b'README.md', 2)[0] and os.stat('/nowhere'))
    os.makedirs('another', exist_ok=True)
    tries('replace ' + place, lambda: os.rename('another', place))
    tries('link over ' + place, lambda: os.symlink('/tmp', place))
tries('hard link', lambda: os.link(locked, 'linked'))
os.rmdir('another')
# Beside it, work goes on.
open('proj/conf/other.cfg', 'a').write('more\n'); open('proj/conf/new.cfg', 'w').write('new\n')
print(open(locked).read())
";
    let flags = [
        "--ro",
        "proj/conf/locked.cfg",
        "--ro",
        "proj/folder",
        "--merge",
    ];
    let log = attack(&repo, "t1", &flags, script);
    assert_eq!(log, "locked\n\n");
    assert_eq!(repo.read("proj/conf/locked.cfg"), "locked\n");
    assert_eq!(repo.read("proj/conf/other.cfg"), "other\nmore\n");
    assert_eq!(repo.read("proj/conf/new.cfg"), "new\n");
}

#[test]
fn mounting_leaves_nothing_behind() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("conf/locked", "locked\n");
    repo.commit("conf");
    let names = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    };
    let (checkout, shared) = (names(repo.path()), names(env.shared()));
    let extra = env.shared().to_str().unwrap().to_owned();
    let kept = ["--cleanup", "never", "--ro", "conf/locked", "--rw", &extra];
    repo.task(&[&kept[..], &["--task", "ended"]].concat(), "exit 3")
        .exits(20);
    // Paths that are not there, and a room that is killed with everything around it.
    for absent in ["conf/absent", "absent/file", &format!("{extra}/absent")] {
        repo.task(&["--ro", absent], "true").exits(2);
    }
    let flags = [
        &["run", "--task", "killed"],
        &kept[..],
        &["--", "sh", "-c", "touch here; sleep 988"],
    ]
    .concat();
    let running = repo.airlock(&flags).spawn();
    env.at_work("killed");
    for process in env.processes() {
        process.kill();
    }
    // Killed as well, or told of the end of all others before its own.
    assert!(matches!(running.wait().code, None | Some(31)));
    env.is_quiet();
    for (id, expected) in [
        ("ended", &[".bg", ".git", ".sub", "README.md", "conf"][..]),
        (
            "killed",
            &[".bg", ".git", ".sub", "README.md", "conf", "here"],
        ),
    ] {
        let tree = env.task_folder(id).join("tree");
        assert_eq!(names(&tree), expected, "{id}");
        assert_eq!(names(&tree.join("conf")), ["locked"], "{id}");
        for view in [".bg", ".sub"] {
            assert_eq!(names(&tree.join(view)), Vec::<String>::new(), "{id}");
        }
    }
    assert_eq!(
        (names(repo.path()), names(env.shared())),
        (checkout, shared)
    );
    assert_eq!(
        repo.git(&[
            "status",
            "--porcelain",
            "--ignored",
            "--untracked-files=all"
        ]),
        ""
    );
}
