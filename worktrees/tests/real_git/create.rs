//! Making and removing worktrees: what git shows of them, what is refused before anything happens, and what the
//! shadow git directory can do in a room.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use worktrees::{
    BranchFate, CreateError, History, OpenError, POINTER, RefError, Worktree, object_mount,
};

use crate::fixture::{Fixture, git_in, git_output, read, request, write};

fn refused(fixture: &Fixture, branch: &str) -> CreateError {
    let (tree, shadow) = (fixture.state().join("no"), fixture.state().join("no.git"));
    let before = listing(&fixture.repo.join(".git"));
    let lock = fixture.lock();
    let request = request("no", branch, fixture.rev("HEAD"), &tree, &shadow, &lock);
    let error = fixture.repository().create_worktree(&request).unwrap_err();
    assert!(!tree.exists() && !shadow.exists());
    assert_eq!(before, listing(&fixture.repo.join(".git")));
    error
}

fn listing(folder: &Path) -> String {
    let output = Command::new("find").arg(folder).output().unwrap();
    let mut lines: Vec<_> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines.join("\n")
}

#[test]
fn git_shows_it_and_the_configuration_is_untouched() {
    let fixture = Fixture::with(&[("a.txt", "a\n"), ("d/b.sh", "b\n")]);
    let config = read(&fixture.repo.join(".git/config"));
    // A held lock of the configuration is no obstacle, since it is never written.
    write(&fixture.repo.join(".git/config.lock"), "");
    let worktree = fixture.worktree("t1");
    let list = fixture.git(["worktree", "list", "--porcelain"]);
    assert!(
        list.contains(&format!("worktree {}", worktree.tree.display())),
        "{list}"
    );
    assert!(list.contains("branch refs/heads/airlock/run/t1"), "{list}");
    assert!(list.contains("locked airlock task t1"), "{list}");
    assert_eq!(read(&fixture.repo.join(".git/config")), config);
    assert_eq!(fixture.rev("airlock/run/t1"), worktree.base);
    assert!(!fixture.repo.join(".git/logs/refs/heads/airlock").exists());
    assert_eq!(git_in(&worktree.tree, ["status", "--porcelain"]), "");
    fixture.git(["worktree", "prune"]);
    assert!(fixture.repo.join(".git/worktrees/t1/HEAD").exists());
    fixture.git(["fsck", "--strict"]);
}

#[test]
fn a_clash_is_refused_before_anything_is_made() {
    let fixture = Fixture::with(&[("a", "a")]);
    fixture.git(["branch", "feat"]);
    fixture.git(["branch", "deep/er"]);
    fixture.git(["pack-refs", "--all"]);
    assert!(matches!(
        refused(&fixture, "feat/x"),
        CreateError::Branch {
            source: RefError::Clash { .. },
            ..
        }
    ));
    assert!(matches!(
        refused(&fixture, "deep"),
        CreateError::Branch {
            source: RefError::Clash { .. },
            ..
        }
    ));
    assert!(matches!(
        refused(&fixture, "feat"),
        CreateError::BranchExists { .. }
    ));
    assert!(matches!(
        refused(&fixture, "a..b"),
        CreateError::Branch {
            source: RefError::InvalidName { .. },
            ..
        }
    ));
    write(&fixture.repo.join(".git/refs/heads/free.lock"), "");
    assert!(matches!(
        refused(&fixture, "free"),
        CreateError::Branch {
            source: RefError::Locked { .. },
            ..
        }
    ));
    write(&fixture.repo.join(".git/packed-refs.lock"), "");
    assert!(matches!(
        refused(&fixture, "other"),
        CreateError::Branch {
            source: RefError::Locked { .. },
            ..
        }
    ));
}

#[test]
fn a_base_that_tracks_reserved_names_or_encodings_is_refused() {
    let fixture = Fixture::with(&[(".bg/x", "a")]);
    assert!(matches!(
        refused(&fixture, "b"),
        CreateError::Base {
            source: OpenError::ReservedName { .. },
            ..
        }
    ));
    let fixture = Fixture::with(&[(".gitattributes", "*.txt working-tree-encoding=UTF-16\n")]);
    assert!(matches!(
        refused(&fixture, "b"),
        CreateError::Base {
            source: OpenError::Unsupported { .. },
            ..
        }
    ));
}

#[test]
fn a_failed_checkout_leaves_nothing() {
    let fixture = Fixture::with(&[("a", "a"), ("z", "z")]);
    let blob = fixture.rev("HEAD:z").to_string();
    let (folder, file) = blob.split_at(2);
    fs::remove_file(fixture.repo.join(".git/objects").join(folder).join(file)).unwrap();
    assert!(matches!(
        refused(&fixture, "b"),
        CreateError::Checkout { .. }
    ));
}

#[test]
fn twenty_parallel_starts_all_succeed() {
    let fixture = Fixture::with(&[("a", "a"), ("b/c", "c")]);
    thread::scope(|scope| {
        for number in 0..20 {
            let fixture = &fixture;
            scope.spawn(move || fixture.worktree(&format!("t{number}")));
        }
    });
    assert_eq!(fixture.git(["worktree", "list"]).lines().count(), 21);
    thread::scope(|scope| {
        for number in 0..20 {
            let fixture = &fixture;
            scope.spawn(move || {
                let id = format!("t{number}");
                let branch = format!("airlock/run/{id}");
                let (tree, shadow) = (
                    fixture.state().join(&id),
                    fixture.state().join(format!("{id}.git")),
                );
                let lock = fixture.lock();
                let request = request(&id, &branch, fixture.rev("HEAD"), &tree, &shadow, &lock);
                let repository = fixture.repository();
                let worktree = repository.worktree_at(&request);
                repository
                    .remove_worktree(&worktree, BranchFate::DeleteIfAt(worktree.base))
                    .unwrap()
            });
        }
    });
    assert_eq!(fixture.git(["worktree", "list"]).lines().count(), 1);
    assert_eq!(fixture.git(["branch", "--list", "airlock/*"]), "");
    assert!(!fixture.repo.join(".git/worktrees").exists());
}

#[test]
fn removal_is_idempotent_and_keeps_a_moved_branch() {
    let fixture = Fixture::with(&[("a", "a")]);
    let worktree = fixture.worktree("t1");
    let other = fixture.commit("more");
    fixture.git([
        "update-ref",
        "refs/heads/airlock/run/t1",
        &other.to_string(),
    ]);
    let fate = BranchFate::DeleteIfAt(worktree.base);
    let removed = fixture
        .repository()
        .remove_worktree(&worktree, fate)
        .unwrap();
    assert!(removed.tree && removed.shadow && removed.registration && !removed.branch);
    let again = fixture
        .repository()
        .remove_worktree(&worktree, BranchFate::DeleteIfAt(other))
        .unwrap();
    assert!(again.branch && !again.tree && !again.registration);
    let last = fixture
        .repository()
        .remove_worktree(&worktree, fate)
        .unwrap();
    assert_eq!(last, worktrees::Removed::default());
}

#[test]
fn another_worktree_under_the_same_id_is_not_removed() {
    let fixture = Fixture::with(&[("a", "a")]);
    let worktree = fixture.worktree("t1");
    let stranger = Worktree {
        tree: fixture.state().join("elsewhere"),
        ..worktree.clone()
    };
    assert!(
        fixture
            .repository()
            .remove_worktree(&stranger, BranchFate::Keep)
            .is_err()
    );
    assert!(worktree.tree.join("a").exists());
}

/// Runs git with the tree and the shadow where a room has them.
fn in_room(fixture: &Fixture, worktree: &Worktree, script: &str) -> std::process::Output {
    let repository = fixture.repository();
    let pointer = fixture.state().join("pointer");
    fs::write(&pointer, POINTER).unwrap();
    let room = repository.room_path();
    let mut bwrap = Command::new("/usr/bin/bwrap");
    bwrap.args([
        "--ro-bind",
        "/usr",
        "/usr",
        "--symlink",
        "usr/bin",
        "/bin",
        "--symlink",
        "usr/lib",
        "/lib",
    ]);
    bwrap.args([
        "--symlink",
        "usr/lib64",
        "/lib64",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
    ]);
    bwrap.arg("--bind").arg(&worktree.tree).arg(&room);
    bwrap.arg("--ro-bind").arg(&pointer).arg(room.join(".git"));
    bwrap
        .arg("--bind")
        .arg(&worktree.shadow)
        .arg("/run/airlock/git");
    for (index, objects) in repository.object_dirs().unwrap().iter().enumerate() {
        bwrap.arg("--ro-bind").arg(objects).arg(object_mount(index));
    }
    bwrap.arg("--chdir").arg(&room).args([
        "--clearenv",
        "--setenv",
        "PATH",
        "/usr/bin",
        "--setenv",
        "HOME",
        "/tmp",
    ]);
    bwrap.args(["--unshare-user", "--unshare-pid", "--die-with-parent"]);
    bwrap.args(["sh", "-ec", script]).output().unwrap()
}

#[test]
fn git_works_in_the_room_and_leaves_nothing_outside() {
    let fixture = Fixture::with(&[("a.txt", "a\n"), ("d/b.sh", "b\n"), (".gitignore", "*.o\n")]);
    fixture.git(["tag", "-a", "-m", "one", "v1"]);
    let worktree = fixture.worktree("t1");
    let before = fixture.git(["for-each-ref"]);
    let script = "test -z \"$(git status --porcelain)\"
        test \"$(git describe)\" = v1
        echo new > new.txt; git add new.txt; git commit -qm one
        echo more >> a.txt; git diff --exit-code && exit 1
        git stash -q; git stash list | grep -q stash; git stash pop -q
        git log --oneline | grep -q base
        git branch other; git branch | grep -q other
        git fsck --strict
        git checkout -q -b feature; git commit -qam two; git log -1 --format=%ae | grep -qx agent@localhost
        git gc -q";
    let output = in_room(&fixture, &worktree, script);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(fixture.git(["for-each-ref"]), before);
    assert_eq!(fixture.git(["stash", "list"]), "");
    let seal = fixture.seal(&worktree);
    let commit = seal.commit.unwrap();
    let paths: Vec<_> = fixture.repository().changes(worktree.base, commit).unwrap();
    let paths: Vec<_> = paths
        .iter()
        .map(|change| worktrees::shown(&change.path))
        .collect();
    assert_eq!(paths, ["a.txt", "new.txt"]);
    fixture.git(["fsck", "--strict"]);
}

#[test]
fn status_in_the_room_reads_no_file() {
    let fixture = Fixture::with(&[("a.txt", "a\n")]);
    let worktree = fixture.worktree("t1");
    // Same size and time, other bytes: a status that read the file would notice.
    let script = "touch -r a.txt /tmp/stamp; printf 'b\\n' > a.txt; touch -r /tmp/stamp a.txt; git status --porcelain";
    let output = in_room(&fixture, &worktree, script);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn without_history_only_the_base_is_shown() {
    let fixture = Fixture::with(&[("a.txt", "a\n")]);
    fixture.commit("second");
    let (tree, shadow, lock) = (
        fixture.state().join("t"),
        fixture.state().join("t.git"),
        fixture.lock(),
    );
    let mut request = request("t", "airlock/t", fixture.rev("HEAD"), &tree, &shadow, &lock);
    request.history = History::None;
    let worktree = fixture.repository().create_worktree(&request).unwrap();
    let output = in_room(
        &fixture,
        &worktree,
        "git log --oneline | wc -l; git fsck > /dev/null",
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "1");
}

#[test]
fn a_hidden_bare_repository_is_called_after_its_folder() {
    let fixture = Fixture::with(&[("a", "a\n")]);
    let project = fixture.state().join("project");
    let bare = project.join(".bare");
    fixture.git([
        "clone".as_ref(),
        "-q".as_ref(),
        "--bare".as_ref(),
        fixture.repo.as_os_str(),
        bare.as_os_str(),
    ]);
    let linked = project.join("topic");
    git_in(
        &bare,
        [
            "worktree".as_ref(),
            "add".as_ref(),
            "-q".as_ref(),
            linked.as_os_str(),
        ],
    );
    for start in [&bare, &linked] {
        let found = worktrees::Repository::discover(start).unwrap();
        assert_eq!(
            (found.name(), found.common_dir()),
            ("project", bare.as_path())
        );
    }
}

#[test]
fn bare_linked_and_subfolder_are_found() {
    let fixture = Fixture::with(&[("a/b", "a\n")]);
    let bare = fixture.state().join("bare.git");
    fixture.git([
        "clone".as_ref(),
        "-q".as_ref(),
        "--bare".as_ref(),
        fixture.repo.as_os_str(),
        bare.as_os_str(),
    ]);
    let linked = fixture.state().join("linked");
    git_in(
        &bare,
        [
            "worktree".as_ref(),
            "add".as_ref(),
            "-q".as_ref(),
            linked.as_os_str(),
        ],
    );
    let found = worktrees::Repository::discover(&bare).unwrap();
    assert_eq!((found.checkout(), found.name()), (None, "bare"));
    assert_eq!(found.room_path(), Path::new("/workspace/bare"));
    let found = worktrees::Repository::discover(&linked.join("a")).unwrap();
    assert_eq!(
        (found.checkout(), found.common_dir()),
        (Some(linked.as_path()), bare.as_path())
    );
    assert_eq!(found.head_branch().unwrap().as_deref(), Some("linked"));
    assert_eq!(found.name(), "bare", "one repository, one name");
    assert_eq!(found.room_path(), linked);
    let found = worktrees::Repository::discover(&fixture.repo.join(".git")).unwrap();
    assert_eq!(found.checkout(), Some(fixture.repo.as_path()));
    assert_eq!(found.resolve("HEAD").unwrap(), fixture.rev("HEAD"));
    assert!(matches!(
        worktrees::Repository::discover(Path::new("/")),
        Err(OpenError::NotARepository { .. })
    ));
}

#[test]
fn formats_that_cannot_be_read_are_named() {
    let fixture = Fixture::empty();
    for (option, word) in [
        ("--object-format=sha256", "sha256"),
        ("--ref-format=reftable", "reftable"),
    ] {
        let place = fixture.state().join(word);
        let made = git_output(
            &fixture.repo,
            [
                "init".as_ref(),
                "-q".as_ref(),
                option.as_ref(),
                place.as_os_str(),
            ],
        );
        assert!(made.status.success());
        let error = worktrees::Repository::discover(&place).unwrap_err();
        assert!(
            matches!(&error, OpenError::Unsupported { feature, .. } if feature.contains(word)),
            "{error}"
        );
    }
    let repository = fixture.repository();
    assert!(matches!(
        repository.head_branch(),
        Err(RefError::Unborn { .. })
    ));
    assert!(matches!(
        repository.resolve("HEAD"),
        Err(RefError::Unborn { .. })
    ));
    assert!(matches!(
        repository.resolve("nowhere"),
        Err(RefError::NoSuchRevision { .. })
    ));
}
