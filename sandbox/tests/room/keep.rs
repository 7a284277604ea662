//! Ends: timeouts, orders, killed keepers and supervisors, and that nothing is left.

use std::ffi::OsString;
use std::process::{Command, ExitCode, Stdio};

use sandbox::{Attached, ControlError, Exit, Meta, Order, Room, RoomError};

use crate::runner::{Task, Test, holds_for, processes, start, unique, until};

pub(crate) const TESTS: &[Test] = &[
    ("timeout", timeout),
    ("grace_is_used", grace_is_used),
    ("stop", stop),
    ("leaked_pipe", leaked_pipe),
    ("daemon_dies_with_the_command", daemon_dies_with_the_command),
    ("last_words_of_a_filter", last_words_of_a_filter),
    ("keeper_killed", keeper_killed),
    ("keeper_killed_early", keeper_killed_early),
    ("keeper_told_to_end", keeper_told_to_end),
    ("bwrap_killed", bwrap_killed),
    ("supervisor_killed", supervisor_killed),
    ("freeze", freeze),
    ("freeze_is_not_the_jobs_time", freeze_is_not_the_jobs_time),
    ("busy", busy),
    ("closed_room", closed_room),
    ("sweep", sweep),
    ("strangers_are_left_alone", strangers_are_left_alone),
    ("attach_to_nothing", attach_to_nothing),
    ("fork_storm", fork_storm),
    ("unconfined", unconfined),
    ("unconfined_timeout", unconfined_timeout),
    ("unconfined_freeze", unconfined_freeze),
    ("taken_up", taken_up),
    ("ends_of_children_ignored", ends_of_children_ignored),
    ("program_replaced", program_replaced),
    ("only_root_is_mapped", only_root_is_mapped),
    ("bwrap_that_fails", bwrap_that_fails),
];

fn timeout() {
    let mark = unique("mark-timeout");
    let task = Task::new();
    let room = task.open();
    let script = format!(
        "trap '' TERM; echo before; (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done; : {mark}' &); while :; do sleep 1; done; : {mark}"
    );
    let mut job = task.script("x", &script);
    job.timeout_ms = Some(300);
    let keeper = start(&room, &job);
    until("it runs", || processes(&mark).len() >= 2);
    let (outcome, log) = task.wait(keeper, "x");
    assert_eq!(
        (outcome.exit, outcome.signal, log.as_str()),
        (Exit::TimedOut, Some(9), "before\n")
    );
    assert!(outcome.elapsed_ms >= 600, "{}", outcome.elapsed_ms);
    assert_eq!(processes(&mark), Vec::<u32>::new());
}

fn grace_is_used() {
    let task = Task::new();
    let room = task.open();
    let script = "trap 'echo bye; exit 7' TERM; (setsid sh -c 'trap \"sleep 0.2; echo child; exit\" TERM; while :; do sleep 0.02; done' &); while :; do sleep 0.02; done";
    let mut job = task.script("x", script);
    job.timeout_ms = Some(400);
    job.grace_ms = 10_000;
    let (outcome, log) = task.wait(start(&room, &job), "x");
    assert_eq!((outcome.exit, outcome.code), (Exit::TimedOut, Some(7)));
    // The shells speak of their own children's end.
    let words: Vec<_> = log
        .lines()
        .filter(|line| !matches!(*line, "Terminated" | ""))
        .collect();
    assert_eq!(words, ["bye", "child"]);
}

fn order(by: &str) -> Order {
    Order::Stop {
        by: by.into(),
        reason: "a test".into(),
        grace_ms: 200,
    }
}

fn stop() {
    let mark = unique("mark-stop");
    let task = Task::new();
    let room = task.open();
    let keeper = start(&room, &task.script("x", &format!("sleep 100; : {mark}")));
    until("it runs", || !processes(&mark).is_empty());
    sandbox::control(&task.spec.locks, "t", "x", order("me")).unwrap();
    let (outcome, _) = task.wait(keeper, "x");
    assert_eq!(
        outcome.exit,
        Exit::Stopped {
            by: "me".into(),
            reason: "a test".into()
        }
    );
    assert_eq!(outcome.signal, Some(15));
    assert_eq!(processes(&mark), Vec::<u32>::new());
    let error = sandbox::control(&task.spec.locks, "t", "x", order("me")).unwrap_err();
    assert!(matches!(error, ControlError::NotRunning { .. }), "{error}");
}

fn leaked_pipe() {
    let task = Task::new();
    let began = std::time::Instant::now();
    let (outcome, log) = task.run("sleep 300 & echo hi; exit 3");
    assert_eq!(
        (outcome.exit, outcome.leaked, log.as_str()),
        (Exit::Code(3), true, "hi\n")
    );
    assert!(began.elapsed().as_secs() < 10);
}

fn daemon_dies_with_the_command() {
    let mark = unique("mark-daemon");
    let task = Task::new();
    let script = format!("setsid sh -c 'sleep 300; : {mark}' >/dev/null 2>&1 </dev/null & exit 0");
    let (outcome, _) = task.run(&script);
    assert_eq!((outcome.exit, outcome.leaked), (Exit::Code(0), false));
    assert_eq!(processes(&mark), Vec::<u32>::new());
}

fn last_words_of_a_filter() {
    let task = Task::new();
    let (outcome, log) = task.run("exec > /tmp/x; (sleep 0.1; echo late) >&2 & exit 0");
    assert_eq!(
        (outcome.exit, outcome.leaked, log.as_str()),
        (Exit::Code(0), false, "late\n")
    );
}

fn attached(task: &Task, job: &str) -> Attached {
    sandbox::attach(
        &task.spec.locks,
        &task.spec.task,
        job,
        &task.spec.bg.join(job),
    )
}

fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

fn keeper_killed() {
    let mark = unique("mark-keeper");
    let task = Task::new();
    let room = task.open();
    let script = format!("(setsid sh -c 'sleep 300; : {mark}' &); sleep 300; : {mark}");
    let keeper = start(&room, &task.script("x", &script));
    until("it runs", || processes(&mark).len() >= 2);
    assert!(matches!(attached(&task, "x"), Attached::Running(_)));
    kill(keeper.pid(), "-KILL");
    let outcome = keeper.wait();
    assert_eq!(outcome.exit, Exit::Lost);
    until("all are gone", || processes(&mark).is_empty());
    assert!(matches!(attached(&task, "x"), Attached::Ended(outcome) if outcome.exit == Exit::Lost));
    let meta = Meta::read(&task.spec.bg.join("x")).unwrap().unwrap();
    assert_eq!(meta.state, sandbox::JobState::Lost);
}

fn keeper_killed_early() {
    let task = Task::named(&unique("early"));
    let room = task.open();
    for round in 0..20_u64 {
        let mark = unique("mark-early");
        let name = format!("j{round}");
        let keeper = start(&room, &task.script(&name, &format!("sleep 300; : {mark}")));
        let begun = std::time::Instant::now();
        while begun.elapsed() < std::time::Duration::from_micros(round * 300) {}
        kill(keeper.pid(), "-KILL");
        assert_eq!(keeper.wait().exit, Exit::Lost);
        until("all are gone", || processes(&mark).is_empty());
    }
}

fn keeper_told_to_end() {
    let task = Task::new();
    let room = task.open();
    let keeper = start(&room, &task.script("x", "sleep 300"));
    kill(keeper.pid(), "-HUP");
    kill(keeper.pid(), "-INT");
    kill(keeper.pid(), "-TERM");
    let outcome = keeper.wait();
    assert!(
        matches!(&outcome.exit, Exit::Stopped { by, .. } if by == "signal"),
        "{outcome:?}"
    );
}

fn bwrap_killed() {
    let mark = unique("mark-bwrap");
    let task = Task::new();
    let room = task.open();
    let keeper = start(&room, &task.script("x", &format!("sleep 300; : {mark}")));
    until("it runs", || !processes(&mark).is_empty());
    let bwrap =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", keeper.pid())).unwrap();
    kill(bwrap.trim().parse().unwrap(), "-KILL");
    assert_eq!(keeper.wait().exit, Exit::Lost);
    until("all are gone", || processes(&mark).is_empty());
}

/// The other halves of tests that need a process of their own.
pub(crate) fn other_half(args: &[OsString]) -> Option<ExitCode> {
    supervise(args).or_else(|| once(args))
}

/// Opens a room, runs one job, says how it ended or what stood in the way.
fn once(args: &[OsString]) -> Option<ExitCode> {
    let role = args.get(1)?.to_str()?;
    if !role.starts_with("once") {
        return None;
    }
    if role == "once-replaced" {
        std::fs::remove_file(std::env::current_exe().unwrap()).unwrap();
    }
    let spec: sandbox::RoomSpec = serde_json::from_str(args.get(2)?.to_str()?).unwrap();
    let job: sandbox::JobSpec = serde_json::from_str(args.get(3)?.to_str()?).unwrap();
    let ended = Room::open(&spec).and_then(|room| Ok(room.start(&job)?.wait()));
    match ended {
        Ok(outcome) => println!("{:?}", outcome.exit),
        Err(error) => println!("{error}"),
    }
    Some(ExitCode::SUCCESS)
}

/// What `once` says when it is started by `shell`, in which it is `"$@"`.
fn once_in(
    shell: &[&str],
    role: &str,
    program: &std::path::Path,
    task: &Task,
    job: &sandbox::JobSpec,
) -> String {
    let (first, rest) = shell.split_first().unwrap();
    let output = Command::new(first)
        .args(rest)
        .arg("shell")
        .arg(program)
        .arg(role)
        .arg(serde_json::to_string(&task.spec).unwrap())
        .arg(serde_json::to_string(job).unwrap())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    String::from_utf8_lossy(&output.stdout).into_owned() + &error
}

fn myself() -> std::path::PathBuf {
    std::env::current_exe().unwrap()
}

fn ends_of_children_ignored() {
    let task = Task::new();
    let shell = ["sh", "-c", "trap '' CHLD HUP PIPE TERM; exec \"$@\""];
    let said = once_in(
        &shell,
        "once",
        &myself(),
        &task,
        &task.script("x", "sh -c 'exit 3'; exit $(($? + 4))"),
    );
    assert_eq!(said, "Code(7)\n");
}

fn program_replaced() {
    let task = Task::new();
    let copy = task.folder.path().join("copy");
    std::fs::copy(myself(), &copy).unwrap();
    let shell = ["sh", "-c", "exec \"$@\""];
    let said = once_in(
        &shell,
        "once-replaced",
        &copy,
        &task,
        &task.script("x", "exit 9"),
    );
    assert_eq!(said, "Code(9)\n");
}

/// In a private mount namespace, where this user is root whoever he is.
const PRIVATE: [&str; 4] = ["unshare", "-rm", "sh", "-c"];

fn only_root_is_mapped() {
    let task = Task::new();
    let shell = [PRIVATE.as_slice(), &["exec \"$@\""]].concat();
    let said = once_in(
        &shell,
        "once",
        &myself(),
        &task,
        &task.script("x", "exit $(id -u | grep -c 1000)"),
    );
    if std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0 {
        // The host's root with nobody to become.
        assert!(said.contains("root has no ordinary user id"), "{said}");
    } else {
        assert_eq!(said, "Code(1)\n");
    }
}

fn bwrap_that_fails() {
    if std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0 {
        return failing_bwrap(&["unshare", "-m", "sh", "-c"]);
    }
    failing_bwrap(&PRIVATE);
}

fn failing_bwrap(shell: &[&str]) {
    let table = [
        ("bwrap: setting up uid map: Permission denied", "cause: "),
        ("bwrap: No permissions to create new namespace", "container"),
        (
            "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
            "used up",
        ),
        (
            "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
            "masks parts of /proc",
        ),
        ("bwrap: Unknown option --disable-userns", "too old"),
    ];
    for (words, cause) in table {
        let task = Task::new();
        let script = task.folder.path().join("bwrap");
        std::fs::write(
            &script,
            format!("#!/bin/sh\necho \"{words}\" >&2\nexit 1\n"),
        )
        .unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, mode).unwrap();
        let cover = format!(
            "mount --bind {} /usr/bin/bwrap && exec \"$@\"",
            script.display()
        );
        let shell = [shell, &[cover.as_str()]].concat();
        let job = task.script("x", "touch ran");
        let said = once_in(&shell, "once", &myself(), &task, &job);
        assert!(said.starts_with("sandbox unavailable: "), "{said}");
        assert!(
            said.contains(words.trim_start_matches("bwrap: ")) && said.contains(cause),
            "{said}"
        );
        assert!(said.contains("\nfix: "), "{said}");
        assert!(!task.spec.tree.join("ran").exists());
        let meta = Meta::read(&job.dir).unwrap().unwrap();
        assert_eq!(meta.state, sandbox::JobState::FailedToStart);
        assert_eq!(task.lock_files(), Vec::<String>::new());
    }
}

/// The other half of `supervisor_killed`: opens a room, starts a job, says so, waits to be killed.
fn supervise(args: &[OsString]) -> Option<ExitCode> {
    if args.get(1)? != "supervise" {
        return None;
    }
    let words: Vec<sandbox::JobSpec> = serde_json::from_str(args.get(3)?.to_str()?).unwrap();
    let room = Room::open(&serde_json::from_str(args.get(2)?.to_str()?).unwrap()).unwrap();
    let keepers: Vec<_> = words.iter().map(|job| room.start(job).unwrap()).collect();
    println!("started");
    for keeper in keepers {
        keeper.wait();
    }
    Some(ExitCode::SUCCESS)
}

/// Kills a supervisor that has opened a room and started `jobs` in it.
fn orphan(task: &Task, jobs: &[sandbox::JobSpec]) {
    use std::io::{BufRead as _, BufReader};
    let mut supervisor = Command::new("/proc/self/exe")
        .arg("supervise")
        .arg(serde_json::to_string(&task.spec).unwrap())
        .arg(serde_json::to_string(jobs).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(supervisor.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "started\n");
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
}

fn supervisor_killed() {
    let task = Task::named(&unique("orphan"));
    let jobs = [
        task.script(
            "short",
            "while ! test -e go; do sleep 0.02; done; echo on; exit 5",
        ),
        {
            let mut job = task.script("long", "sleep 300");
            job.timeout_ms = Some(900);
            job
        },
    ];
    orphan(&task, &jobs);
    let Attached::Running(short) = attached(&task, "short") else {
        panic!("not running")
    };
    let Attached::Running(long) = attached(&task, "long") else {
        panic!("not running")
    };
    std::fs::write(task.spec.tree.join("go"), "").unwrap();
    let (outcome, log) = task.wait(short, "short");
    assert_eq!((outcome.exit, log.as_str()), (Exit::Code(5), "on\n"));
    assert_eq!(long.wait().exit, Exit::TimedOut);
    assert!(
        matches!(attached(&task, "short"), Attached::Ended(outcome) if outcome.code == Some(5))
    );
    // With the last keeper the holder goes: nobody holds its pipe any more.
    let lock = task
        .spec
        .locks
        .join(format!("{}.holder.lock", task.spec.task));
    until("the holder is gone", || !sandbox::HeldLock::is_held(&lock));
    assert_eq!(
        sandbox::sweep(&task.spec.locks, &task.spec.task),
        sandbox::Swept::default()
    );
    assert_eq!(task.lock_files(), Vec::<String>::new());
}

fn taken_up() {
    let task = Task::named(&unique("taken"));
    orphan(&task, &[task.script("first", "sleep 300")]);
    let room = Room::take_up(&task.spec.locks, &task.spec.task)
        .unwrap()
        .unwrap();
    let (outcome, log) = task.wait(
        start(&room, &task.script("second", "echo same room")),
        "second",
    );
    assert_eq!((outcome.exit, log.as_str()), (Exit::Code(0), "same room\n"));
    let swept = sandbox::sweep(&task.spec.locks, &task.spec.task);
    assert_eq!((swept.holder, swept.jobs), (true, vec!["first".to_owned()]));
    let Attached::Ended(outcome) = attached(&task, "first") else {
        panic!("not ended")
    };
    assert!(matches!(outcome.exit, Exit::Stopped { .. }), "{outcome:?}");
    drop(room);
    assert_eq!(task.lock_files(), Vec::<String>::new());
}

fn count(task: &Task, name: &str) -> usize {
    std::fs::read(task.spec.tree.join(name)).map_or(0, |content| content.len())
}

const COUNTING: &str = "(setsid sh -c 'while :; do printf x >> b; done' &); while :; do printf x >> a; /bin/true; done";

fn freeze() {
    let task = Task::new();
    let room = task.open();
    let keeper = start(&room, &task.script("x", COUNTING));
    let locks = &task.spec.locks;
    until("it runs", || count(&task, "a") > 3 && count(&task, "b") > 3);
    for _ in 0..3 {
        sandbox::control(locks, "t", "x", &Order::Freeze).unwrap();
        let still = (count(&task, "a"), count(&task, "b"));
        holds_for(50, || (count(&task, "a"), count(&task, "b")) == still);
        sandbox::control(locks, "t", "x", &Order::Thaw).unwrap();
        until("it goes on", || {
            count(&task, "a") > still.0 && count(&task, "b") > still.1
        });
    }
    // Stopped while it stands still.
    sandbox::control(locks, "t", "x", &Order::Freeze).unwrap();
    sandbox::control(locks, "t", "x", order("me")).unwrap();
    let outcome = keeper.wait();
    assert!(matches!(outcome.exit, Exit::Stopped { .. }), "{outcome:?}");
}

fn freeze_is_not_the_jobs_time() {
    let task = Task::new();
    let room = task.open();
    let mut job = task.script("x", "while ! test -e go; do sleep 0.01; done; echo done");
    job.timeout_ms = Some(600);
    let keeper = start(&room, &job);
    sandbox::control(&task.spec.locks, "t", "x", &Order::Freeze).unwrap();
    holds_for(900, || task.log("x").is_empty());
    std::fs::write(task.spec.tree.join("go"), "").unwrap();
    sandbox::control(&task.spec.locks, "t", "x", &Order::Thaw).unwrap();
    let (outcome, log) = task.wait(keeper, "x");
    assert_eq!((outcome.exit, log.as_str()), (Exit::Code(0), "done\n"));
}

fn busy() {
    let task = Task::new();
    let room = task.open();
    assert!(matches!(
        Room::open(&task.spec),
        Err(RoomError::Busy { .. })
    ));
    let keeper = start(&room, &task.script("x", "sleep 300"));
    let error = room.start(&task.script("x", "true")).unwrap_err();
    assert!(matches!(error, RoomError::Busy { .. }), "{error}");
    sandbox::control(&task.spec.locks, "t", "x", order("me")).unwrap();
    keeper.wait();
    // The name is free again at once.
    assert_eq!(
        start(&room, &task.script("x", "exit 4")).wait().exit,
        Exit::Code(4)
    );
}

fn closed_room() {
    let task = Task::new();
    let room = task.open();
    let keeper = start(&room, &task.script("x", "sleep 0.3; echo end"));
    room.close();
    // A job that runs keeps its walls and its end.
    let (outcome, log) = task.wait(keeper, "x");
    assert_eq!((outcome.exit, log.as_str()), (Exit::Code(0), "end\n"));
    let again = task.open();
    assert_eq!(
        start(&again, &task.script("y", "true")).wait().exit,
        Exit::Code(0)
    );
}

fn sweep() {
    let task = Task::named(&unique("sweep"));
    let room = task.open();
    let keepers =
        ["a", "b"].map(|name| start(&room, &task.script(name, "trap '' TERM; sleep 300")));
    let swept = sandbox::sweep(&task.spec.locks, &task.spec.task);
    assert_eq!(
        (swept.holder, swept.jobs, swept.unproven),
        (true, vec!["a".into(), "b".into()], vec![])
    );
    for keeper in keepers {
        assert!(matches!(keeper.wait().exit, Exit::Stopped { .. }));
    }
    assert!(matches!(
        room.start(&task.script("c", "true")),
        Err(RoomError::Gone { .. })
    ));
    assert_eq!(task.lock_files(), Vec::<String>::new());
}

fn strangers_are_left_alone() {
    let task = Task::named(&unique("stranger"));
    let path = task.spec.locks.join(format!("{}.x.lock", task.spec.task));
    let lock = sandbox::HeldLock::acquire(&path).unwrap();
    let me = std::process::id();
    // A record of this very process with another start time: what a reused pid looks like.
    std::fs::write(
        &path,
        format!("{{\"pid\":{me},\"start_ticks\":1,\"boot\":\"x\"}}"),
    )
    .unwrap();
    let swept = sandbox::sweep(&task.spec.locks, &task.spec.task);
    assert_eq!(swept.unproven, [path]);
    assert!(matches!(attached(&task, "x"), Attached::Unreadable { .. }));
    drop(lock);
}

fn attach_to_nothing() {
    let task = Task::new();
    assert!(matches!(attached(&task, "x"), Attached::NeverStarted));
    let dir = task.spec.bg.join("x");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("meta.json"), "{\"schema\": 1, \"ta").unwrap();
    assert!(matches!(attached(&task, "x"), Attached::Unreadable { .. }));
}

fn fork_storm() {
    let mark = unique("mark-storm");
    let task = Task::new();
    let room = task.open();
    let script =
        format!("f() {{ while :; do (setsid sh -c 'sleep 0.05; : {mark}' &); done; }}; f & f & f");
    let mut job = task.script("x", &script);
    job.timeout_ms = Some(500);
    job.grace_ms = 50;
    assert_eq!(start(&room, &job).wait().exit, Exit::TimedOut);
    assert_eq!(processes(&mark), Vec::<u32>::new());
}

fn bare(task: &Task, name: &str, script: &str) -> sandbox::JobSpec {
    let mut job = task.script(name, script);
    job.cwd.clone_from(&task.spec.tree);
    job
}

fn unconfined() {
    let task = Task::new();
    let run = |name: &str, script: &str| {
        let keeper =
            sandbox::start_unconfined(&task.spec.locks, "t", &bare(&task, name, script)).unwrap();
        task.wait(keeper, name)
    };
    let (outcome, log) = run("a", "pwd; exit 7");
    assert_eq!(
        (outcome.exit, log),
        (Exit::Code(7), format!("{}\n", task.spec.tree.display()))
    );
    assert_eq!(run("b", "kill -9 $$").0.exit, Exit::Signal(9));
    let mark = unique("mark-bare");
    let script = format!("(setsid sh -c 'sleep 300; : {mark}' &); echo x; exit 1");
    let (outcome, log) = run("c", &script);
    assert_eq!(
        (outcome.exit, outcome.leaked, log.as_str()),
        (Exit::Code(1), true, "x\n")
    );
    assert_eq!(processes(&mark), Vec::<u32>::new());
    let mut job = task.job("d", &["no-such-program"]);
    job.cwd.clone_from(&task.spec.tree);
    let outcome = sandbox::start_unconfined(&task.spec.locks, "t", &job)
        .unwrap()
        .wait();
    assert!(
        matches!(outcome.exit, Exit::NotStarted { .. }),
        "{outcome:?}"
    );
    assert_eq!(task.lock_files(), Vec::<String>::new());
}

fn unconfined_timeout() {
    let mark = unique("mark-bare");
    let task = Task::new();
    let script = format!(
        "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 300; : {mark}' >/dev/null 2>&1 &); echo x; sleep 300; : {mark}"
    );
    let mut job = bare(&task, "x", &script);
    job.timeout_ms = Some(300);
    let keeper = sandbox::start_unconfined(&task.spec.locks, "t", &job).unwrap();
    let (outcome, log) = task.wait(keeper, "x");
    assert_eq!((outcome.exit, log.as_str()), (Exit::TimedOut, "x\n"));
    assert_eq!(processes(&mark), Vec::<u32>::new());
}

fn unconfined_freeze() {
    let task = Task::new();
    let keeper =
        sandbox::start_unconfined(&task.spec.locks, "t", &bare(&task, "x", COUNTING)).unwrap();
    until("it runs", || count(&task, "a") > 3 && count(&task, "b") > 3);
    sandbox::control(&task.spec.locks, "t", "x", &Order::Freeze).unwrap();
    let still = (count(&task, "a"), count(&task, "b"));
    holds_for(50, || (count(&task, "a"), count(&task, "b")) == still);
    sandbox::control(&task.spec.locks, "t", "x", &Order::Thaw).unwrap();
    until("it goes on", || {
        count(&task, "a") > still.0 && count(&task, "b") > still.1
    });
    sandbox::control(&task.spec.locks, "t", "x", order("me")).unwrap();
    assert!(matches!(keeper.wait().exit, Exit::Stopped { .. }));
}
