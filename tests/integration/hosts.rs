//! Odd repositories and poor hosts: a clear answer with a documented exit code, and nothing half done.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use nix::unistd::geteuid;
use tests::{TestEnv, TestRepo};

const WORK: [&str; 5] = ["run", "--merge", "--", "sh", "-c"];
const SCRIPT: &str = "echo 'x = 1' > x.py";

#[test]
fn not_a_repository() {
    let env = TestEnv::new();
    for verb in [
        &["ls"][..],
        &["run", "--", "true"],
        &["gate", "--base", "HEAD"],
        &["prune"],
        &["init"],
    ] {
        env.airlock(env.path())
            .args(verb)
            .run()
            .exits(2)
            .says("no git repository");
    }
    env.airlock(std::path::Path::new("/"))
        .arg("ls")
        .run()
        .exits(2);
}

#[test]
fn an_empty_repository_has_nothing_to_start_from() {
    let env = TestEnv::new();
    let repo = env.empty_repository("project");
    repo.airlock(&WORK)
        .arg(SCRIPT)
        .run()
        .exits(2)
        .says("commit");
    repo.airlock(&["ls"]).run().exits(0);
    repo.airlock(&["gate", "--base", "HEAD"]).run().exits(2);
    assert!(repo.references().is_empty());
}

#[test]
fn a_detached_head_is_a_fine_base() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.git(&["checkout", "-q", "--detach"]);
    let object = repo.task(&[], SCRIPT).exits(0).json();
    assert_eq!(object["state"], "accepted");
    assert_eq!(object["base"], repo.head().as_str());
}

#[test]
fn a_bare_repository_needs_a_named_target_only() {
    let env = TestEnv::new();
    let origin = env.repository();
    let bare = TestRepo::at(&env, env.path().join("bare.git"));
    origin.git(&["clone", "-q", "--bare", ".", bare.path().to_str().unwrap()]);
    bare.airlock(&["run", "--merge", "--", "sh", "-c", SCRIPT])
        .run()
        .exits(0);
    assert_eq!(bare.file_in("main", "x.py"), "x = 1\n");
    bare.is_sound();
}

#[test]
fn formats_that_are_not_supported_are_named_before_anything_is_made() {
    let env = TestEnv::new();
    let sha256 = TestRepo::at(&env, env.path().join("sha256"));
    fs::create_dir(sha256.path()).unwrap();
    sha256.git(&["init", "-q", "--object-format=sha256"]);
    sha256.write("a", "a\n");
    sha256.commit("a");
    sha256
        .airlock(&WORK)
        .arg(SCRIPT)
        .run()
        .exits(2)
        .says("sha256");
    let reftable = TestRepo::at(&env, env.path().join("reftable"));
    fs::create_dir(reftable.path()).unwrap();
    if reftable.git_agrees(&["init", "-q", "--ref-format=reftable"]) {
        reftable.write("a", "a\n");
        reftable.commit("a");
        reftable
            .airlock(&WORK)
            .arg(SCRIPT)
            .run()
            .exits(2)
            .says("reftable");
    }
    let encoded = env.empty_repository("encoded");
    encoded.write(".gitattributes", "*.txt working-tree-encoding=UTF-16LE\n");
    encoded.commit("a");
    encoded
        .airlock(&WORK)
        .arg(SCRIPT)
        .run()
        .exits(2)
        .says("working-tree-encoding");
    assert_eq!(encoded.git(&["worktree", "list"]).lines().count(), 1);
    let tracked = env.empty_repository("tracked");
    tracked.write(".bg/x", "x\n");
    tracked.commit("a name of ours");
    tracked
        .airlock(&WORK)
        .arg(SCRIPT)
        .run()
        .exits(2)
        .says(".bg");
}

#[test]
fn a_partial_clone_with_missing_objects_is_named() {
    let env = TestEnv::new();
    let origin = env.repository();
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let partial = TestRepo::at(&env, env.path().join("partial"));
    let url = format!("file://{}", origin.path().display());
    origin.git(&[
        "clone",
        "-q",
        "--no-checkout",
        "--filter=blob:none",
        &url,
        partial.path().to_str().unwrap(),
    ]);
    partial
        .airlock(&WORK)
        .arg(SCRIPT)
        .run()
        .exits(2)
        .says("partial");
}

#[test]
fn index_tricks_do_not_matter() {
    for config in [
        &["index.version", "4"][..],
        &["core.splitIndex", "true"],
        &["core.untrackedCache", "true"],
        &["index.skipHash", "true"],
    ] {
        let env = TestEnv::new();
        let repo = env.repository();
        repo.git(&["config", config[0], config[1]]);
        repo.write("more.txt", "more\n");
        repo.commit("an index of another kind");
        let run = repo.task(&["--merge"], SCRIPT);
        assert!(matches!(run.code, Some(0 | 4)), "{config:?}\n{run}");
        assert_eq!(repo.status(), "", "{config:?}");
        repo.is_sound();
    }
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("in/a.txt", "a\n");
    repo.write("out/b.txt", "b\n");
    repo.commit("two folders");
    repo.git(&["sparse-checkout", "set", "--cone", "in"]);
    repo.task(
        &["--task", "t1"],
        "cat in/a.txt out/b.txt; echo 'x = 1' > in/x.py",
    )
    .exits(0);
    assert_eq!(repo.log_of("t1"), "a\nb\n", "a task sees the whole tree");
}

#[test]
fn a_repository_of_somebody_else_is_refused() {
    if !geteuid().is_root() {
        // Root's own folders are somebody else's here.
        let env = TestEnv::new();
        let call = env
            .airlock(env.path())
            .args(["-C", "/root", "run", "--", "true"]);
        call.run().exits(2);
        return;
    }
    let env = TestEnv::new();
    let repo = env.repository();
    Command::new("chown")
        .args(["-R", "12345:12345"])
        .arg(repo.path())
        .status()
        .unwrap();
    let run = repo.airlock(&WORK).arg(SCRIPT).run();
    assert!(
        matches!(run.code, Some(0 | 2)),
        "root may work on it, or is told why not\n{run}"
    );
    if run.code == Some(0) {
        use std::os::unix::fs::MetadataExt as _;
        assert_eq!(
            fs::metadata(repo.path().join("x.py")).unwrap().uid(),
            12345,
            "what lands belongs to the owner"
        );
    }
}

#[test]
fn a_full_disk_fails_with_words_and_leaves_a_sound_repository() {
    let env = TestEnv::new();
    let repo = env.repository();
    fs::create_dir(env.state()).unwrap();
    let state = env.state();
    let small = [
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        "--size",
        "3000000",
        "--tmpfs",
        state.to_str().unwrap(),
        "--",
    ];
    let script = "head -c 9000000 /dev/zero > big; echo $?; echo 'x = 1' > x.py";
    let run = env
        .airlock_under(&small, repo.path())
        .args(["run", "--merge", "--", "sh", "-c", script])
        .run();
    assert!(matches!(run.code, Some(1 | 2 | 4 | 20)), "{run}");
    assert!(!run.stderr.contains("panicked"), "{run}");
    env.is_quiet();
    repo.git(&["worktree", "prune", "--expire=now"]);
    repo.git(&["fsck", "--no-dangling"]);
    assert_eq!(repo.status(), "");
}

#[test]
fn a_full_object_store_fails_with_words_and_leaves_a_sound_repository() {
    let env = TestEnv::new();
    let repo = env.repository();
    let place = env.path().join("small");
    fs::create_dir(&place).unwrap();
    let script = format!(
        "set -e; git clone -q {0} {1}/r; cd {1}/r; code=0; \
         \"$0\" run --merge -- sh -c 'head -c 9000000 /dev/urandom > big; echo x = 1 > x.py' || code=$?; \
         git fsck --no-dangling >&2; git status --porcelain >&2; exit $code",
        repo.path().display(),
        place.display()
    );
    let small = [
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        "--size",
        "4000000",
        "--tmpfs",
        place.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        &script,
    ];
    let run = env.airlock_under(&small, env.path()).run();
    assert!(matches!(run.code, Some(1 | 4 | 20)), "{run}");
    let words = run.stderr.to_lowercase();
    assert!(
        words.contains("space") && !words.contains("panicked"),
        "{run}"
    );
    env.is_quiet();
}

#[test]
fn state_that_belongs_to_somebody_else_is_refused() {
    let env = TestEnv::new();
    let repo = env.repository();
    let foreign = if geteuid().is_root() {
        fs::create_dir(env.path().join("foreign")).unwrap();
        Command::new("chown")
            .arg("12345")
            .arg(env.path().join("foreign"))
            .status()
            .unwrap();
        env.path().join("foreign")
    } else {
        std::path::PathBuf::from("/usr")
    };
    repo.airlock(&WORK)
        .arg(SCRIPT)
        .env("AIRLOCK_STATE", &foreign)
        .run()
        .exits(2)
        .says("belongs");
    repo.airlock(&WORK)
        .arg(SCRIPT)
        .env("AIRLOCK_STATE", "relative")
        .run()
        .exits(2);
}

#[test]
fn state_lives_where_the_environment_says() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.airlock(&WORK)
        .arg(SCRIPT)
        .without_env("AIRLOCK_STATE")
        .env("XDG_STATE_HOME", env.path().join("xdg"))
        .run()
        .exits(0);
    assert!(env.path().join("xdg/airlock/signing.key").exists());
    let deep = env.path().join("a".repeat(200)).join("b".repeat(200));
    repo.airlock(&["run", "--", "sh", "-c", "echo y = 1 > y.py"])
        .env("AIRLOCK_STATE", deep)
        .run()
        .exits(0);
}

#[test]
fn a_repository_in_an_odd_place_is_a_repository() {
    let env = TestEnv::new();
    for name in [
        "with blank",
        "quote'\"s",
        "ümlaut",
        "dollar$HOME",
        "-dash",
        "new\nline",
    ] {
        let repo = env.empty_repository(name);
        repo.write("a.txt", "a\n");
        repo.commit("a");
        let run = repo.task(
            &["--merge"],
            &format!("pwd > /dev/null; git status --short; {SCRIPT}"),
        );
        assert_eq!(run.code, Some(0), "{name:?}\n{run}");
        repo.is_clean();
    }
}

#[test]
fn a_hundred_thousand_files_are_no_trouble() {
    let env = TestEnv::new();
    let repo = env.empty_repository("project");
    let mut import = Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(repo.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stream = std::io::BufWriter::new(import.stdin.take().unwrap());
    write!(stream, "blob\nmark :1\ndata 6\nx = 1\n\ncommit refs/heads/main\ncommitter A <a@example.org> 0 +0000\ndata 4\nmany\n").unwrap();
    for number in 0..100_000 {
        writeln!(stream, "M 100644 :1 part{}/file{number}.py", number / 500).unwrap();
    }
    drop(stream);
    assert!(import.wait().unwrap().success());
    repo.git(&["reset", "-q", "--hard"]);
    let object = repo
        .task(
            &["--merge"],
            "echo 'y = 2' > part7/new.py; rm part9/file4500.py; git status --short",
        )
        .exits(0)
        .json();
    assert_eq!(object["diff_stat"]["files"], 2);
    assert_eq!(repo.status(), "");
    repo.is_clean();
}
