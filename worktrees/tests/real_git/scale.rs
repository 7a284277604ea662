//! A hundred thousand files: made, sealed, landed and removed without a limit being met.

use std::fs;

use worktrees::{BranchFate, LandRequest, MergeStyle};

use crate::fixture::{Fixture, WHEN, write};

#[test]
fn a_hundred_thousand_files() {
    let fixture = Fixture::with(&[("a", "a\n")]);
    let worktree = fixture.worktree("t1");
    for folder in 0..100 {
        let path = worktree.tree.join(format!("d{folder}"));
        fs::create_dir(&path).unwrap();
        for file in 0..1000 {
            // One blob per folder: it is the files that count here, not the objects.
            fs::write(path.join(file.to_string()), format!("{folder}\n")).unwrap();
        }
    }
    let seal = fixture.seal(&worktree);
    assert_eq!(seal.files, 100_001);
    let delivery = seal.commit.unwrap();
    let repository = fixture.repository();
    assert_eq!(
        repository.changes(worktree.base, delivery).unwrap().len(),
        100_000
    );
    let plan = repository.plan_landing(&LandRequest {
        target: "main",
        delivery,
        base: worktree.base,
        style: MergeStyle::Auto,
        message: "m",
        when: WHEN,
    });
    assert_eq!(
        repository
            .land(&plan.unwrap(), &mut |_| Ok(()))
            .unwrap()
            .files,
        100_000
    );
    assert_eq!(fixture.git(["status", "--porcelain"]), "");
    repository
        .remove_worktree(&worktree, BranchFate::DeleteIfAt(worktree.base))
        .unwrap();
    let second = fixture.worktree("t2");
    write(&second.tree.join("d5/5"), "changed\n");
    let seal = fixture.seal(&second);
    assert_eq!(
        repository
            .changes(second.base, seal.commit.unwrap())
            .unwrap()
            .len(),
        1
    );
}
