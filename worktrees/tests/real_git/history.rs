//! Reading commits: what differs, how much, and as which text, independent of attributes and settings.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use worktrees::{ChangeKind, DiffStat, ReadError};

use crate::fixture::{Fixture, git_in, write};

fn two_commits() -> Fixture {
    let fixture = Fixture::with(&[
        ("a.py", "1\n2\n3\n"),
        ("moved", "content\n"),
        ("gone", "g\n"),
        ("mode", "m\n"),
    ]);
    write(&fixture.repo.join("a.py"), "1\ntwo\n3\n4");
    fs::rename(fixture.repo.join("moved"), fixture.repo.join("moved-here")).unwrap();
    fs::remove_file(fixture.repo.join("gone")).unwrap();
    fs::set_permissions(fixture.repo.join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    write(&fixture.repo.join("new dir/odd\n\u{e4}"), "n\n");
    write(&fixture.repo.join("binary"), b"\0\x01");
    // An attribute that hides text from `git diff`.
    write(&fixture.repo.join(".gitattributes"), "*.py -diff\n");
    fixture.commit("second");
    fixture
}

#[test]
fn changes_are_told_apart() {
    let fixture = two_commits();
    let repository = fixture.repository();
    let (base, head) = (fixture.rev("HEAD~1"), fixture.rev("HEAD"));
    let changes = repository.changes(base, head).unwrap();
    let found: Vec<_> = changes
        .iter()
        .map(|change| (worktrees::shown(&change.path), change.kind.clone()))
        .collect();
    assert_eq!(
        found,
        [
            (".gitattributes".to_owned(), ChangeKind::Added),
            ("a.py".to_owned(), ChangeKind::Modified),
            ("binary".to_owned(), ChangeKind::Added),
            ("gone".to_owned(), ChangeKind::Deleted),
            ("mode".to_owned(), ChangeKind::ModeChanged),
            (
                "moved-here".to_owned(),
                ChangeKind::Renamed {
                    from: b"moved".to_vec()
                }
            ),
            ("new dir/odd\n\u{e4}".to_owned(), ChangeKind::Added),
        ]
    );
    let stat = repository.diff_stat(base, head).unwrap();
    assert_eq!(
        stat,
        DiffStat {
            files: 7,
            insertions: 4,
            deletions: 2
        }
    );
    assert_eq!(
        repository.file_at(head, "a.py").unwrap().unwrap(),
        b"1\ntwo\n3\n4"
    );
    assert_eq!(repository.file_at(head, "nothing/here").unwrap(), None);
    assert!(matches!(
        repository.file_at(head, "new dir"),
        Err(ReadError::NotAFile { .. })
    ));
}

#[test]
fn a_patch_can_be_applied_by_git() {
    let fixture = two_commits();
    fs::remove_file(fixture.repo.join("binary")).unwrap();
    fixture.commit("without the binary file, which a patch only mentions");
    let (base, head) = (fixture.rev("HEAD~2"), fixture.rev("HEAD"));
    let patch = fixture.repository().patch(base, head).unwrap();
    let file = fixture.state().join("patch");
    fs::write(&file, patch).unwrap();
    fixture.git(["checkout", "-q", &base.to_string()]);
    git_in(
        &fixture.repo,
        ["apply".as_ref(), "--index".as_ref(), file.as_os_str()],
    );
    assert_eq!(
        fixture.git(["write-tree"]),
        fixture.git(["rev-parse", &format!("{head}^{{tree}}")])
    );
}
