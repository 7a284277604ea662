//! Any edit of any small tree seals to git's own tree, and the differences say exactly what differs.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use worktrees::ChangeKind;

use crate::fixture::{Fixture, write};

/// A few names, so that files, folders and links meet at the same paths.
const NAMES: [&str; 8] = ["a", "a.b", "a0", "b/x.txt", "b/y.log", "b/c/z", "a/in", "b"];

#[derive(Debug, Clone)]
enum Act {
    Write(usize, Vec<u8>),
    Remove(usize),
    Link(usize, usize),
}

fn act() -> impl Strategy<Value = Act> {
    let bytes = prop_oneof![
        Just(b"x\n".to_vec()),
        Just(b"x\r\ny\r\n".to_vec()),
        Just(b"x\r\ny\n".to_vec()),
        Just(b"\0\r\n".to_vec()),
        Just(b"$Id: z $\r\n".to_vec()),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    prop_oneof![
        4 => (0..NAMES.len(), bytes).prop_map(|(name, bytes)| Act::Write(name, bytes)),
        2 => (0..NAMES.len()).prop_map(Act::Remove),
        1 => (0..NAMES.len(), 0..NAMES.len()).prop_map(|(name, target)| Act::Link(name, target)),
    ]
}

fn clear(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Makes room for a path, so that every act can be done.
fn prepare(root: &Path, name: &str) {
    if let Some((folder, _)) = name.rsplit_once('/') {
        let mut path = root.to_path_buf();
        for part in folder.split('/') {
            path.push(part);
            if !fs::symlink_metadata(&path).is_ok_and(|facts| facts.is_dir()) {
                clear(&path);
                fs::create_dir(&path).unwrap();
            }
        }
    }
    clear(&root.join(name));
}

fn perform(root: &Path, acts: &[Act]) {
    for act in acts {
        match act {
            Act::Write(name, bytes) => {
                prepare(root, NAMES[*name]);
                fs::write(root.join(NAMES[*name]), bytes).unwrap();
            }
            Act::Remove(name) => clear(&root.join(NAMES[*name])),
            Act::Link(name, target) => {
                prepare(root, NAMES[*name]);
                // Not to each other: git takes a ring of links for an error and keeps what was there.
                std::os::unix::fs::symlink(format!("to-{target}"), root.join(NAMES[*name]))
                    .unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn seals_like_git(
        base in prop::collection::vec(act(), 0..8),
        edit in prop::collection::vec(act(), 0..8),
        rules in prop::sample::select(vec!["", "* text=auto\n", "*.txt text eol=crlf\n*.log -text ident\n", "* ident\n"]),
        autocrlf in prop::sample::select(vec!["false", "true", "input"]),
        ignore in prop::sample::select(vec!["", "*.log\n", "b/\n", "a*\n!a0\n"]),
    ) {
        let fixture = Fixture::empty();
        perform(&fixture.repo, &base);
        write(&fixture.repo.join(".gitattributes"), rules);
        write(&fixture.repo.join(".gitignore"), ignore);
        fixture.git(["add", "-f", "-A"]);
        fixture.git(["commit", "-q", "-m", "base"]);
        fixture.git(["config", "core.autocrlf", autocrlf]);
        let worktree = fixture.worktree("t1");
        prop_assert_eq!(fixture.seal(&worktree).commit, None);
        perform(&worktree.tree, &edit);
        let seal = fixture.seal(&worktree);
        let plain = fixture.plain_tree(&|tree: &Path| perform(tree, &edit));
        prop_assert_eq!(seal.tree, plain);
        let changes = fixture.repository().changes(worktree.base, seal.tree).unwrap();
        let ours: Vec<_> = changes
            .iter()
            .filter(|change| !matches!(change.kind, ChangeKind::Renamed { .. }))
            .map(|change| worktrees::shown(&change.path))
            .collect();
        let base = worktree.base.to_string();
        let theirs = fixture.git(["diff-tree", "-r", "--no-renames", "--name-only", &base, &seal.tree.to_string()]);
        for path in &ours {
            prop_assert!(theirs.lines().any(|line| line == path), "{} not in {}", path, theirs);
        }
        let renamed = changes.len() - ours.len();
        prop_assert_eq!(theirs.lines().count(), ours.len() + 2 * renamed);
        let patch = fixture.repository().patch(worktree.base, seal.tree).unwrap();
        prop_assert_eq!(patch.is_empty(), changes.is_empty());
    }
}
