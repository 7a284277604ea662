//! What cannot be in a commit is named, and what is hostile in a tree does no harm.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use worktrees::ProblemCode;

use crate::fixture::{Fixture, git_in, write};

#[test]
fn what_cannot_be_sealed_is_named() {
    let fixture = Fixture::with(&[
        ("a", "a\n"),
        ("tracked", "t\n"),
        (".gitignore", "ignored/\n"),
    ]);
    let worktree = fixture.worktree("t1");
    let tree = &worktree.tree;
    for name in ["app", "ignored/dep"] {
        fs::create_dir_all(tree.join(name)).unwrap();
        git_in(&tree.join(name), ["init", "-q"]);
        write(&tree.join(name).join("file"), "f\n");
    }
    write(&tree.join("file-git/.git"), "gitdir: /elsewhere\n");
    write(&tree.join(".GIT/config"), "x\n");
    fs::remove_file(tree.join("tracked")).unwrap();
    nix::unistd::mkfifo(&tree.join("tracked"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree.join("sock")).unwrap();
    write(&tree.join("suid"), "s\n");
    fs::set_permissions(tree.join("suid"), fs::Permissions::from_mode(0o4755)).unwrap();
    let sparse = fs::File::create(tree.join("huge")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    write(&tree.join("fine"), "fine\n");
    let seal = fixture.seal(&worktree);
    let found: Vec<_> = seal
        .problems
        .iter()
        .map(|problem| (problem.path.as_str(), problem.code))
        .collect();
    assert_eq!(
        found,
        [
            (".GIT", ProblemCode::NestedGit),
            ("app/.git", ProblemCode::NestedGit),
            ("file-git/.git", ProblemCode::NestedGit),
            ("huge", ProblemCode::TooLarge),
            ("sock", ProblemCode::Socket),
            ("suid", ProblemCode::SetId),
            ("tracked", ProblemCode::Fifo),
        ]
    );
    let names = fixture.git(["ls-tree", "-r", "--name-only", &seal.tree.to_string()]);
    assert_eq!(
        names.lines().collect::<Vec<_>>(),
        [".gitignore", "a", "app/file", "fine", "suid", "tracked"]
    );
}

#[test]
fn unreadable_is_named_and_kept() {
    let fixture = Fixture::with(&[("secret", "a\n"), ("d/x", "x\n"), ("b", "b\n")]);
    let worktree = fixture.worktree("t1");
    for name in ["secret", "d"] {
        fs::set_permissions(worktree.tree.join(name), fs::Permissions::from_mode(0o0)).unwrap();
    }
    write(&worktree.tree.join("b"), "changed\n");
    let seal = fixture.seal(&worktree);
    let changed = fixture
        .repository()
        .changes(worktree.base, seal.commit.unwrap())
        .unwrap();
    assert_eq!(
        changed
            .iter()
            .map(|change| change.path.as_slice())
            .collect::<Vec<_>>()
            .last(),
        Some(&b"b".as_slice())
    );
    if nix::unistd::geteuid().is_root() {
        // Root reads everything: nothing is lost either way.
        assert_eq!(seal.problems, []);
    } else {
        let found: Vec<_> = seal
            .problems
            .iter()
            .map(|problem| (problem.path.as_str(), problem.code))
            .collect();
        assert_eq!(
            found,
            [
                ("d", ProblemCode::Unreadable),
                ("secret", ProblemCode::Unreadable)
            ]
        );
        assert_eq!(changed.len(), 1);
    }
    worktrees::remove_tree(&worktree.tree).unwrap();
}

#[test]
fn submodules_are_kept_and_edits_in_them_are_named() {
    let inner = Fixture::with(&[("i", "i\n")]);
    let fixture = Fixture::with(&[("a", "a\n")]);
    for path in ["sub", "other", "third"] {
        let url = inner.repo.to_str().unwrap();
        fixture.git([
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "add",
            "-q",
            url,
            path,
        ]);
    }
    fixture.commit("submodules");
    let worktree = fixture.worktree("t1");
    assert_eq!(fixture.seal(&worktree).commit, None);
    write(&worktree.tree.join("sub/file"), "x\n");
    git_in(&worktree.tree.join("other"), ["init", "-q"]);
    let seal = fixture.seal(&worktree);
    let found: Vec<_> = seal
        .problems
        .iter()
        .map(|problem| (problem.path.as_str(), problem.code))
        .collect();
    assert_eq!(
        found,
        [
            ("other", ProblemCode::SubmoduleEdit),
            ("sub", ProblemCode::SubmoduleEdit)
        ]
    );
    assert_eq!(seal.commit, None);
    fs::remove_dir(worktree.tree.join("third")).unwrap();
    let seal = fixture.seal(&worktree);
    let gone = fixture
        .repository()
        .changes(worktree.base, seal.commit.unwrap())
        .unwrap();
    assert_eq!(gone.len(), 1);
}

#[test]
fn a_path_longer_than_the_system_takes_is_named() {
    let fixture = Fixture::with(&[("a", "a\n")]);
    let worktree = fixture.worktree("t1");
    let name = "d".repeat(200);
    let mut folder = worktree.tree.clone();
    // Deeper than a path may be long, so the parts are made one inside the other and then moved together.
    let mut tails = Vec::new();
    for part in 0..4 {
        let start = worktree.tree.join(format!("part{part}"));
        folder = start.clone();
        for _ in 0..10 {
            folder = folder.join(&name);
        }
        fs::create_dir_all(&folder).unwrap();
        write(&folder.join("file"), format!("{part}\n"));
        tails.push((start, folder.clone()));
    }
    for pair in (1..4).rev() {
        fs::rename(&tails[pair].0, tails[pair - 1].1.join("next")).unwrap();
    }
    assert!(folder.as_os_str().len() > 1000);
    let seal = fixture.seal(&worktree);
    // Landed, it would keep git from looking at the checkout of its target.
    let codes: Vec<_> = seal.problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, [ProblemCode::TooLong]);
    let entries = fixture.repository().tree_entries(seal.tree).unwrap();
    assert_eq!(entries.len(), 3, "the rest is sealed");
    assert!(entries.iter().all(|entry| entry.path.len() < 4096));
    worktrees::remove_tree(&worktree.tree).unwrap();
    assert!(!worktree.tree.exists());
}

#[test]
fn links_to_the_outside_are_never_followed() {
    let fixture = Fixture::with(&[("d/x", "x\n"), (".gitattributes", "*.txt text\n")]);
    let outside = fixture.state().join("outside");
    write(&outside.join("x"), "secret\n");
    write(&outside.join("rules"), "* eol=crlf\n");
    let worktree = fixture.worktree("t1");
    fs::remove_dir_all(worktree.tree.join("d")).unwrap();
    symlink(&outside, worktree.tree.join("d")).unwrap();
    fs::remove_file(worktree.tree.join(".gitattributes")).unwrap();
    symlink(outside.join("rules"), worktree.tree.join(".gitattributes")).unwrap();
    let seal = fixture.seal(&worktree);
    let modes = fixture.git(["ls-tree", "-r", &seal.tree.to_string()]);
    assert_eq!(modes.lines().count(), 2);
    assert!(
        modes.lines().all(|line| line.starts_with("120000")),
        "{modes}"
    );
    worktrees::remove_tree(&worktree.tree).unwrap();
    assert!(outside.join("x").exists());
}

#[test]
fn a_flood_of_problems_is_cut_short() {
    let fixture = Fixture::with(&[("a", "a\n")]);
    let worktree = fixture.worktree("t1");
    for number in 0..1500 {
        let fifo = worktree.tree.join(format!("fifo{number}"));
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let seal = fixture.seal(&worktree);
    assert_eq!(seal.problems.len(), 1001);
    let more = &seal.problems[0];
    assert_eq!(more.code, ProblemCode::TooMany);
    assert!(more.message.contains("500"), "{}", more.message);
}
