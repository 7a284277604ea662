//! Where worktrees and further paths may stand, and what is refused.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use sandbox::{Exit, Room, RoomError};

use crate::runner::{Task, Test, names, path, whole};

pub(crate) const TESTS: &[Test] = &[
    ("places", places),
    ("deep", deep),
    ("ancestors_are_pinned", ancestors_are_pinned),
    ("planted_links", planted_links),
    ("further_paths", further_paths),
    ("inner_paths_are_pinned", inner_paths_are_pinned),
    ("refused_paths", refused_paths),
    ("owner_of_the_repository", owner_of_the_repository),
    ("no_litter_on_the_host", no_litter_on_the_host),
];

fn at(place: &str) -> (Exit, String) {
    let mut task = Task::new();
    task.spec.mount_at = place.into();
    let (outcome, log) =
        task.run("pwd; cat a.txt; touch made; git rev-parse --git-dir 2>/dev/null; ls -A");
    assert!(task.spec.tree.join("made").exists(), "{place}: {log}");
    (outcome.exit, log)
}

fn places() {
    for place in [
        "/a b/p",
        "/tmp/a/b/p",
        "/var/tmp/p",
        "/home/agent/p",
        "/home/x/p",
        "/root/p",
        "/dev/shm/x/p",
        "/var/lib/x/p",
        "/opt/p",
        "/usr/src",
        "/mnt/p",
        "/run/user/1/p",
        "/nix/p",
    ] {
        let (exit, log) = at(place);
        assert!(
            log.starts_with(&format!("{place}\na\n")),
            "{place}: {exit:?} {log}"
        );
    }
}

fn deep() {
    let place = format!("/{}", vec!["abcdefgh"; 200].join("/"));
    let (_, log) = at(&place);
    assert!(log.starts_with(&place), "{log}");
}

fn ancestors_are_pinned() {
    let mut task = Task::new();
    task.spec.mount_at = "/tmp/one/two/p".into();
    let (_, log) = task.run("cd /tmp; mv one x; mv one/two one/x; cd one/two/p && cat a.txt");
    assert!(log.ends_with("\na\n"), "{log}");
    assert_eq!(log.matches("busy").count(), 2, "{log}");
}

fn planted(name: &str, plant: impl Fn(&std::path::Path)) {
    let task = Task::new();
    let target = task.spec.tree.join(name);
    if target.exists() {
        std::fs::remove_file(&target).unwrap();
    }
    plant(&target);
    let error = Room::open(&task.spec).unwrap_err();
    assert!(
        matches!(error, RoomError::Planted { .. }),
        "{name}: {}",
        whole(&error)
    );
    assert_eq!(
        task.lock_files()
            .iter()
            .filter(|name| name.ends_with("json"))
            .count(),
        0
    );
}

fn planted_links() {
    for name in [".git", ".bg", ".sub"] {
        planted(name, |target| symlink("/etc", target).unwrap());
        planted(name, |target| symlink("nowhere", target).unwrap());
    }
    planted(".bg", |target| std::fs::write(target, "x").unwrap());
    planted(".git", |target| {
        nix_mkfifo(target);
    });
    planted(".git", |_| {});
    let mut task = Task::new();
    symlink("/etc", task.spec.tree.join("conf")).unwrap();
    task.spec.ro.push(task.spec.mount_at.join("conf/passwd"));
    assert!(matches!(
        Room::open(&task.spec),
        Err(RoomError::Planted { .. })
    ));
}

fn nix_mkfifo(target: &std::path::Path) {
    let status = std::process::Command::new("mkfifo")
        .arg(target)
        .status()
        .unwrap();
    assert!(status.success());
}

fn further_paths() {
    let mut task = Task::new();
    let extra = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(extra.path(), open).unwrap();
    let at = |name: &str| extra.path().join(name);
    for name in ["ro", "rw"] {
        std::fs::create_dir(at(name)).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(at(name), open).unwrap();
        std::fs::write(at(name).join("x"), "x\n").unwrap();
    }
    std::fs::write(at("file"), "file\n").unwrap();
    task.spec.ro = vec![at("ro"), at("file")];
    task.spec.rw = vec![at("rw")];
    let script = format!(
        "cd {}; cat ro/x rw/x file; touch ro/y rw/y 2>/dev/null; ls",
        extra.path().display()
    );
    let (_, log) = task.run(&script);
    assert_eq!(log, "x\nx\nfile\nfile\nro\nrw\n");
    assert_eq!(
        (names(&at("ro")), names(&at("rw"))),
        (vec!["x".to_owned()], vec!["x".into(), "y".into()])
    );
}

fn inner_paths_are_pinned() {
    let mut task = Task::new();
    let outer = tempfile::tempdir().unwrap();
    let open = || std::os::unix::fs::PermissionsExt::from_mode(0o777);
    for name in ["", "one", "one/two"] {
        std::fs::create_dir_all(outer.path().join(name)).unwrap();
        std::fs::set_permissions(outer.path().join(name), open()).unwrap();
    }
    let locked = outer.path().join("one/two/locked");
    std::fs::write(&locked, "locked\n").unwrap();
    task.spec.rw = vec![outer.path().to_owned()];
    task.spec.ro = vec![locked.clone()];
    let script = format!(
        "cd {}; mv one x; mv one/two one/x; echo x > one/two/locked; touch one/two/new; cat one/two/locked",
        outer.path().display()
    );
    let (_, log) = task.run(&script);
    assert!(
        log.ends_with("locked\n") && log.matches("busy").count() == 2,
        "{log}"
    );
    assert!(outer.path().join("one/two/new").exists());
}

fn refused_paths() {
    let refused = |ro: PathBuf| {
        let mut task = Task::new();
        let ro = if ro == path("TASK") {
            task.folder.path().join("git")
        } else {
            ro
        };
        task.spec.ro = vec![ro.clone()];
        let error = Room::open(&task.spec).unwrap_err();
        assert!(
            matches!(error, RoomError::Refused { .. }),
            "{}: {}",
            ro.display(),
            whole(&error)
        );
    };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let link = folder.path().join("l");
    symlink("/", &link).unwrap();
    for ro in [
        "/",
        "/run",
        "/proc",
        "/etc",
        "/dev",
        "relative",
        "/usr/../etc",
        "TASK",
    ] {
        refused(path(ro));
    }
    refused(socket);
    refused(link);
}

fn owner_of_the_repository() {
    let mut task = Task::new();
    task.spec.repo_owner = (4711, 4712);
    let (_, log) = task.run("id -u; id -g");
    if log == "4711\n4712\n" {
        return;
    }
    // Not root: nobody can become another.
    let me = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap());
    assert_ne!(me, 0);
    assert!(log.starts_with(&format!("{me}\n")), "{log}");
}

fn no_litter_on_the_host() {
    let mut task = Task::new();
    let extra = tempfile::tempdir().unwrap();
    task.spec.rw = vec![extra.path().to_owned()];
    task.spec.mount_at = extra.path().join("not/there");
    let error = Room::open(&task.spec).unwrap_err();
    assert!(
        matches!(error, RoomError::Refused { .. }),
        "{}",
        whole(&error)
    );
    assert_eq!(names(extra.path()), Vec::<String>::new());
    task.spec.rw.clear();
    task.spec.ro = vec![task.spec.mount_at.join("absent/file")];
    assert!(matches!(
        Room::open(&task.spec),
        Err(RoomError::Refused { .. })
    ));
    assert_eq!(names(&task.spec.tree), [".bg", ".git", ".sub", "a.txt"]);
}
