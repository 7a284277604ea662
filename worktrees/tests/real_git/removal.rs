//! Removing what a task has written, whatever it has written.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use worktrees::{Disarmament, RemoveError, disarm, remove_tree};

use crate::fixture::{Fixture, git_in, write};

#[test]
fn modes_links_and_odd_files_do_not_stop_it() {
    let fixture = Fixture::empty();
    let tree = fixture.state().join("tree");
    let outside = fixture.state().join("outside");
    write(&outside.join("kept"), "k\n");
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o750)).unwrap();
    write(&tree.join("a/b/c"), "c\n");
    write(&tree.join("x\ny"), "c\n");
    symlink(&outside, tree.join("a/link")).unwrap();
    symlink(&outside, tree.join("link")).unwrap();
    nix::unistd::mkfifo(&tree.join("fifo"), Mode::empty()).unwrap();
    for number in 0..2000 {
        write(&tree.join(format!("many/{number}")), "");
    }
    for locked in ["a/b/c", "a/b", "a", "many", ""] {
        fs::set_permissions(tree.join(locked), fs::Permissions::from_mode(0o0)).unwrap();
    }
    remove_tree(&tree).unwrap();
    assert!(!tree.exists());
    assert!(outside.join("kept").exists());
    assert_eq!(
        fs::metadata(&outside).unwrap().permissions().mode() & 0o777,
        0o750
    );
    remove_tree(&tree).unwrap();
}

#[test]
fn the_folder_itself_may_not_be_a_link() {
    let fixture = Fixture::empty();
    let outside = fixture.state().join("outside");
    write(&outside.join("kept"), "k\n");
    let link = fixture.state().join("link");
    symlink(&outside, &link).unwrap();
    assert!(matches!(remove_tree(&link), Err(RemoveError::Open { .. })));
    assert!(outside.join("kept").exists());
}

#[test]
fn any_depth_is_removed() {
    let fixture = Fixture::empty();
    let tree = fixture.state().join("tree");
    fs::create_dir(&tree).unwrap();
    // Far beyond what a path may name.
    let mut folder = fs::File::open(&tree).unwrap();
    for _ in 0..3000 {
        nix::sys::stat::mkdirat(&folder, "d", Mode::S_IRWXU).unwrap();
        let next = nix::fcntl::openat(&folder, "d", OFlag::O_DIRECTORY, Mode::empty());
        folder = fs::File::from(next.unwrap());
    }
    drop(folder);
    remove_tree(&tree).unwrap();
    assert!(!tree.exists());
}

#[test]
fn a_wide_tree_is_removed_in_one_reading() {
    let fixture = Fixture::empty();
    let tree = fixture.state().join("tree");
    // Folders beside each other, some with more in them, and files between.
    for number in 0..10_000 {
        let folder = tree.join(number.to_string());
        fs::create_dir_all(&folder).unwrap();
        if number % 7 == 0 {
            write(&folder.join("in/ner/file"), "");
        }
        write(&tree.join(format!("file{number}")), "");
    }
    // Deeper than levels are kept open, with names there that removal itself uses.
    let deep = tree.join("7").join(vec!["d"; 250].join("/"));
    for name in [".airlock-removing-1", ".airlock-removing-2", "x"] {
        fs::create_dir_all(deep.join(name)).unwrap();
    }
    fs::create_dir(tree.join(".airlock-removing-1")).unwrap();
    remove_tree(&tree).unwrap();
    assert!(!tree.exists());
}

#[test]
fn what_cannot_be_removed_is_listed_and_the_rest_goes() {
    let fixture = Fixture::empty();
    let tree = fixture.state().join("tree");
    write(&tree.join("d/stuck"), "s\n");
    write(&tree.join("d/other"), "o\n");
    write(&tree.join("e/f"), "f\n");
    let immutable = Command::new("chattr")
        .arg("+i")
        .arg(tree.join("d/stuck"))
        .output();
    if !immutable.is_ok_and(|output| output.status.success()) {
        // Only root on a file system with that flag can make such a file; nobody else meets one.
        remove_tree(&tree).unwrap();
        return;
    }
    let error = remove_tree(&tree).unwrap_err();
    Command::new("chattr")
        .arg("-i")
        .arg(tree.join("d/stuck"))
        .status()
        .unwrap();
    let RemoveError::Left { count, first, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!((count, first.path.as_str()), (1, "d/stuck"));
    assert!(!tree.join("e").exists() && !tree.join("d/other").exists());
    remove_tree(&tree).unwrap();
}

#[test]
fn a_kept_tree_is_made_harmless() {
    let fixture = Fixture::with(&[("a", "a\n")]);
    let worktree = fixture.worktree("t1");
    let tree = &worktree.tree;
    fs::create_dir_all(tree.join("app/deep")).unwrap();
    git_in(&tree.join("app/deep"), ["init", "-q"]);
    fs::create_dir(tree.join("bare")).unwrap();
    git_in(&tree.join("bare"), ["init", "-q", "--bare"]);
    nix::unistd::mkfifo(&tree.join("fifo"), Mode::S_IRWXU).unwrap();
    write(&tree.join("suid"), "s\n");
    fs::set_permissions(tree.join("suid"), fs::Permissions::from_mode(0o4755)).unwrap();
    symlink("/", tree.join("link")).unwrap();
    let mut found: Vec<_> = disarm(tree)
        .unwrap()
        .into_iter()
        .map(|one| (one.path, one.what))
        .collect();
    found.sort_by(|left, right| left.0.cmp(&right.0));
    assert_eq!(
        found,
        [
            ("app/deep/.git".to_owned(), Disarmament::Renamed),
            (
                "app/deep/.git.airlock-disarmed/HEAD".to_owned(),
                Disarmament::Renamed
            ),
            ("bare/HEAD".to_owned(), Disarmament::Renamed),
            ("fifo".to_owned(), Disarmament::Removed),
            ("suid".to_owned(), Disarmament::Demoted),
        ]
    );
    assert_eq!(disarm(tree).unwrap(), []);
    assert!(tree.join(".git").exists());
    assert_eq!(
        fs::metadata(tree.join("suid"))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777,
        0o755
    );
    // Whoever stands in there is in the worktree, and in no repository of the agent's.
    for place in ["app/deep", "bare"] {
        let top = git_in(&tree.join(place), ["rev-parse", "--show-toplevel"]);
        assert_eq!(top, tree.display().to_string());
    }
}
