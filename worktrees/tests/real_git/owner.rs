//! Whose files the engine makes. Needs root to have two users; an ordinary user is refused other people's.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use worktrees::{BranchFate, LandRequest, MergeStyle, OpenError, Repository};

use crate::fixture::{Fixture, WHEN, write};

/// Nobody's user here.
const OTHER: u32 = 54321;

#[test]
fn root_makes_files_for_the_owner_of_the_repository() {
    let fixture = Fixture::with(&[("a", "a\n"), ("d/b", "b\n")]);
    if !nix::unistd::geteuid().is_root() {
        // The other half: a repository of root's is refused.
        if fs::metadata("/root").is_ok_and(|facts| facts.uid() == 0) {
            let error = Repository::discover(Path::new("/")).unwrap_err();
            assert!(matches!(
                error,
                OpenError::NotARepository { .. } | OpenError::OtherOwner { .. }
            ));
        }
        return;
    }
    let owned = |path: &Path| {
        Command::new("chown")
            .args(["-R", &format!("{OTHER}:{OTHER}")])
            .arg(path)
            .status()
            .unwrap();
    };
    owned(&fixture.repo);
    let base = Repository::discover(&fixture.repo)
        .unwrap()
        .resolve("HEAD")
        .unwrap();
    let (tree, shadow, lock) = (
        fixture.state().join("t"),
        fixture.state().join("t.git"),
        fixture.lock(),
    );
    // The state folder is root's alone, as it is below /var/lib.
    fs::set_permissions(fixture.state(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(
        fixture.state().parent().unwrap(),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let request = crate::fixture::request("t", "airlock/r/t", base, &tree, &shadow, &lock);
    let repository = Repository::discover(&fixture.repo).unwrap();
    let worktree = repository.create_worktree(&request).unwrap();
    assert!(strangers(&tree).is_empty() && strangers(&shadow).is_empty());
    write(&worktree.tree.join("new/file"), "n\n");
    let delivery = fixture.seal(&worktree).commit.unwrap();
    repository.add_note(&[delivery], b"note\n").unwrap();
    let plan = repository.plan_landing(&LandRequest {
        target: "main",
        delivery,
        base,
        style: MergeStyle::Merge,
        message: "m",
        when: WHEN,
    });
    repository.land(&plan.unwrap(), &mut |_| Ok(())).unwrap();
    let removed = repository
        .remove_worktree(&worktree, BranchFate::DeleteIfAt(base))
        .unwrap();
    assert!(removed.branch && removed.registration);
    assert_eq!(strangers(&fixture.repo), Vec::<String>::new());
    assert_eq!(fs::read(fixture.repo.join("new/file")).unwrap(), b"n\n");
    assert!(nix::unistd::geteuid().is_root());
    // This thread is root again.
    write(&fixture.state().join("mine"), "m\n");
    assert_eq!(fs::metadata(fixture.state().join("mine")).unwrap().uid(), 0);
}

/// What in a folder does not belong to the owner.
fn strangers(folder: &Path) -> Vec<String> {
    let output = Command::new("find")
        .arg(folder)
        .args(["-not", "-uid", &OTHER.to_string()])
        .output()
        .unwrap();
    // The pointer in the tree is the engine's own and is not for the room to change.
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter(|line| !line.ends_with("/t/.git"))
        .map(str::to_owned)
        .collect()
}
