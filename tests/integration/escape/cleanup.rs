//! Clean-up of what an agent has made to resist it: by descriptor, never through a link, never out of the tree.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tests::{Role, TestEnv, until};

use super::attack;

/// Everything that has stopped a removal somewhere.
const RESISTANCE: &str = r"
os.makedirs('closed/x/y'); open('closed/x/y/f', 'w').close()
os.makedirs('links'); os.symlink(outside, 'links/out'); os.symlink('/', 'links/root'); os.symlink('self', 'links/self'); os.symlink(outside + '/canary', 'links/file')
os.symlink(outside, 'out'); os.link('links/../README.md', 'links/hard')
os.makedirs('odd'); os.chdir('odd')
for name in (b'new\nline', b'bad\xff\xfeutf8', b'-rf', b'--', b' ', b'\x1b[31mred', b'x' * 255, b'$(touch ran)', b'*', b'.airlock-removing-1', b'a\\b'):
    open(name, 'w').close()
os.mkfifo('pipe'); socket.socket(socket.AF_UNIX).bind('socket')
with open('sparse', 'wb') as file: file.truncate(32 << 20)
os.chdir('..')
# Deeper than any path, and wider than one reading.
os.makedirs('deep'); os.chdir('deep')
for _ in range(600): os.mkdir('d' * 100); os.chdir('d' * 100)
open('bottom', 'w').close()
os.chdir(top)
os.makedirs('wide')
for number in range(4000):
    os.mkdir('wide/%d' % number) if number % 2 else open('wide/%d' % number, 'w').close()
for number in range(0, 40): os.makedirs('wide/%d/in/ner' % (number * 2 + 1))
for path, mode in (('closed/x/y/f', 0), ('closed/x/y', 0o500), ('closed/x', 0), ('closed', 0o500), ('wide', 0), ('odd', 0o100), ('deep', 0o400), ('links', 0)):
    os.chmod(path, mode)
";

#[test]
fn a_tree_that_resists_goes_and_nothing_else() {
    let env = TestEnv::new();
    let repo = env.repository();
    let outside = env.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("canary"), "canary\n").unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o710)).unwrap();
    fs::set_permissions(outside.join("canary"), fs::Permissions::from_mode(0o640)).unwrap();
    let script = format!("outside = {outside:?}; top = os.getcwd()\n{RESISTANCE}");
    attack(&repo, "t1", &["--cleanup", "never"], &script);
    let tree = env.task_folder("t1").join("tree");
    assert!(tree.join("wide").exists());
    repo.airlock(&["rm", "t1", "--discard"]).run().exits(0);
    assert!(!tree.exists(), "the tree is still there");
    let mode = |name: &str| {
        let facts = fs::metadata(outside.join(name)).unwrap();
        facts.permissions().mode() & 0o7777
    };
    assert_eq!((mode(""), mode("canary")), (0o710, 0o640));
    assert_eq!(
        fs::read_to_string(outside.join("canary")).unwrap(),
        "canary\n"
    );
    // The next run is not disturbed.
    repo.task(&["--task", "t2", "--merge"], "echo 'x = 1' > x.py")
        .exits(0);
    repo.is_clean();
    env.is_quiet();
}

#[test]
fn what_a_person_mounted_in_a_kept_tree_is_not_emptied() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(
        &["--task", "t1", "--cleanup", "never"],
        "mkdir there; echo x > there/own; exit 3",
    )
    .exits(20);
    let tree = env.task_folder("t1").join("tree");
    without_supervisor(&env);
    // Another file system in the middle of the tree, as one call alone sees it.
    let private = if nix::unistd::geteuid().is_root() {
        "-m"
    } else {
        "-Urm"
    };
    let script = format!(
        "mount -t tmpfs tmpfs '{0}/there'; echo kept > '{0}/there/kept'; \"$0\" \"$@\"; code=$?; cat '{0}/there/kept'; exit $code",
        tree.display()
    );
    let run = env
        .airlock_under(&["unshare", private, "sh", "-c", &script], repo.path())
        .args(["rm", "t1", "--discard"])
        .run();
    assert!(
        run.stdout.ends_with("kept\n"),
        "what was mounted is gone\n{run}"
    );
    assert_ne!(run.code, Some(0), "{run}");
    without_supervisor(&env);
    repo.airlock(&["rm", "t1", "--discard"]).run().exits(0);
    assert!(!tree.exists());
}

/// The next command starts one that sees what this command sees.
fn without_supervisor(env: &TestEnv) {
    for process in env.of_role(Role::Supervisor) {
        process.kill();
    }
    until("the end of the supervisor", || {
        env.of_role(Role::Supervisor).is_empty().then_some(())
    });
}
