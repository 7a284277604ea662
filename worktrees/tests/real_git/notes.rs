//! Notes by compare-and-swap: git shows them, and many writers at once lose nothing.

use std::thread;

use crate::fixture::Fixture;

#[test]
fn git_shows_notes_and_keeps_other_peoples() {
    let fixture = Fixture::with(&[("a", "a\n")]);
    let head = fixture.rev("HEAD");
    let repository = fixture.repository();
    assert_eq!(repository.read_note(head).unwrap(), None);
    repository.add_note(&[head], b"first\n").unwrap();
    repository.add_note(&[head], b"second\n").unwrap();
    repository.add_note(&[head], b"second\n").unwrap();
    assert_eq!(
        fixture.git(["notes", "--ref=airlock", "show", "HEAD"]),
        "first\n\nsecond"
    );
    assert_eq!(
        repository.read_note(head).unwrap().unwrap(),
        b"first\n\nsecond\n"
    );
    let other = fixture.commit("other");
    fixture.git(["notes", "--ref=airlock", "add", "-m", "by hand", "HEAD"]);
    assert_eq!(repository.read_note(other).unwrap().unwrap(), b"by hand\n");
    repository.add_note(&[other], b"by us\n").unwrap();
    assert_eq!(
        fixture.git(["notes", "--ref=airlock", "show", "HEAD"]),
        "by hand\n\nby us"
    );
    fixture.git(["fsck", "--strict"]);
}

#[test]
fn many_writers_lose_nothing() {
    let fixture = Fixture::with(&[("a", "a\n")]);
    let commits: Vec<_> = (0..20)
        .map(|number| fixture.commit(&format!("c{number}")))
        .collect();
    thread::scope(|scope| {
        for commit in &commits {
            let repository = fixture.repository();
            scope.spawn(move || {
                repository
                    .add_note(&[*commit], commit.to_string().as_bytes())
                    .unwrap();
            });
        }
    });
    for commit in commits {
        let note = fixture.git(["notes", "--ref=airlock", "show", &commit.to_string()]);
        assert_eq!(note, commit.to_string());
    }
    assert_eq!(
        fixture.git(["rev-list", "--count", "refs/notes/airlock"]),
        "20"
    );
}

#[test]
fn refs_move_only_from_where_they_are_expected() {
    let fixture = Fixture::with(&[("a", "a\n")]);
    let (first, repository) = (fixture.rev("HEAD"), fixture.repository());
    let second = fixture.commit("second");
    repository
        .set_branch("refs/airlock/rescued/x", first, None)
        .unwrap();
    assert!(
        repository
            .set_branch("refs/airlock/rescued/x", second, None)
            .is_err()
    );
    assert!(
        repository
            .set_branch("refs/airlock/rescued/x", second, Some(second))
            .is_err()
    );
    fixture.git(["pack-refs", "--all"]);
    repository
        .set_branch("refs/airlock/rescued/x", second, Some(first))
        .unwrap();
    assert_eq!(fixture.rev("refs/airlock/rescued/x"), second);
    assert!(
        repository
            .delete_ref("refs/airlock/rescued/x", first)
            .is_err()
    );
    repository
        .delete_ref("refs/airlock/rescued/x", second)
        .unwrap();
    assert!(
        repository
            .delete_ref("refs/airlock/rescued/x", second)
            .is_err()
    );
    fixture.git(["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    assert!(repository.set_branch("alias", first, Some(second)).is_err());
    // Where folders of former refs are left, a ref of that name can still be made.
    std::fs::create_dir_all(fixture.repo.join(".git/refs/heads/old/deep")).unwrap();
    repository.set_branch("old", first, None).unwrap();
    assert_eq!(fixture.rev("old"), first);
}
