//! That the tests see what they have to see: a check that is blind is no check.

use tests::{Role, TestEnv, until};

#[test]
fn a_process_that_was_left_behind_is_seen_and_ended() {
    let env = TestEnv::new();
    let script = "(cd /; setsid sleep 971 > /dev/null 2>&1 < /dev/null &)";
    env.program("sh", env.path())
        .args(["-c", script])
        .run()
        .exits(0);
    let left = until("the process that was left", || {
        env.of_role(Role::Agent).pop()
    });
    assert!(
        left.command.contains("sleep 971") && left.lives(),
        "{left:?}"
    );
    left.kill();
    until("its end", || (!left.lives()).then_some(()));
    env.is_quiet();
}

#[test]
fn a_process_in_a_namespace_of_its_own_is_seen() {
    let env = TestEnv::new();
    let path = env.path().to_str().unwrap().to_owned();
    let room = [
        "--ro-bind",
        "/usr",
        "/usr",
        "--symlink",
        "usr/lib64",
        "/lib64",
        "--symlink",
        "usr/lib",
        "/lib",
        "--bind",
        &path,
        "/there",
        "--unshare-all",
        "--clearenv",
        "--",
        "/usr/bin/sleep",
        "969",
    ];
    let running = env
        .program("bwrap", std::path::Path::new("/"))
        .args(room)
        .spawn();
    let inside = until("the process inside", || {
        env.processes()
            .into_iter()
            .find(|process| process.command.contains("/usr/bin/sleep"))
    });
    for process in env.of_role(Role::Bubblewrap) {
        process.kill();
    }
    inside.kill();
    assert_eq!(running.wait().code, None);
}

#[test]
fn environments_do_not_see_each_other() {
    let (one, two) = (TestEnv::new(), TestEnv::new());
    let running = one.program("sleep", one.path()).arg("968").spawn();
    until("the process", || one.processes().pop());
    assert!(two.processes().is_empty());
    one.processes().iter().for_each(tests::Process::kill);
    assert_eq!(running.wait().code, None);
}
