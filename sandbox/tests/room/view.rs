//! What a command in the room sees and what comes back of it.

use sandbox::Exit;

use crate::runner::{Task, Test};

pub const TESTS: &[Test] = &[("plain", plain), ("code", code)];

fn plain() {
    let task = Task::new();
    let (outcome, log) = task.run("pwd; id -un; cat a.txt .git; echo made > b.txt; echo $HOME");
    assert_eq!(outcome.exit, Exit::Code(0), "{log}");
    assert_eq!(
        log,
        "/home/someone/project\nagent\na\ngitdir: /run/airlock/git\n/home/agent\n"
    );
    assert_eq!(
        std::fs::read(task.spec.tree.join("b.txt")).unwrap(),
        b"made\n"
    );
    assert_eq!(outcome.output_bytes, u64::try_from(log.len()).unwrap());
}

fn code() {
    let (outcome, _) = Task::new().run("exit 7");
    assert_eq!(
        (outcome.exit, outcome.code, outcome.signal),
        (Exit::Code(7), Some(7), None)
    );
}
