//! Landings that are refused, and that nothing has changed then.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use worktrees::{LandError, LandKind, LandPlan, LandRequest, LandStep, MergeStyle, Repository};

use crate::fixture::{WHEN, git_in, git_output, write};
use crate::land::Case;

type Edit = fn(&Path);

#[test]
fn a_conflict_names_the_files_and_changes_nothing() {
    let case = Case::new();
    write(&case.fixture.repo.join("a.txt"), "a\nb\nc\nd\ne\nf\nX\n");
    case.fixture.commit("meanwhile");
    let error = case.assert_refused("conflict");
    assert!(
        matches!(&error, LandError::Conflict { paths } if paths == &["a.txt"]),
        "{error}"
    );
}

#[test]
fn overlapping_edits_and_files_in_the_way_refuse() {
    let edits: [(&str, &str, Edit); 8] = [
        ("edited", "a.txt", |repo| {
            write(&repo.join("a.txt"), "mine\n");
        }),
        ("deleted", "a.txt", |repo| {
            fs::remove_file(repo.join("a.txt")).unwrap();
        }),
        ("edited, to be removed", "gone.txt", |repo| {
            write(&repo.join("gone.txt"), "mine\n");
        }),
        ("untracked in the way", "new/n.txt", |repo| {
            write(&repo.join("new/n.txt"), "mine\n");
        }),
        ("a file where a folder comes", "new/n.txt", |repo| {
            write(&repo.join("new"), "mine\n");
        }),
        ("a link where a folder comes", "new/n.txt", |repo| {
            std::os::unix::fs::symlink("dir", repo.join("new")).unwrap();
        }),
        ("untracked in a folder that goes", "dir", |repo| {
            write(&repo.join("dir/mine"), "mine\n");
        }),
        ("executable", "a.txt", |repo| {
            fs::set_permissions(repo.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
        }),
    ];
    for (what, path, edit) in edits {
        let case = Case::new();
        edit(&case.fixture.repo);
        let error = case.assert_refused(what);
        assert!(
            matches!(&error, LandError::DirtyTarget { paths, .. } if paths == &[path]),
            "{what}: {error}"
        );
    }
}

#[test]
fn staged_changes_refuse() {
    for (name, args) in [
        ("other.txt", ["add", "other.txt"]),
        ("fresh", ["add", "-N"]),
    ] {
        let case = Case::new();
        write(&case.fixture.repo.join(name), "staged\n");
        case.fixture.git(
            args.iter()
                .copied()
                .chain((name == "fresh").then_some(name)),
        );
        let error = case.assert_refused(name);
        assert!(
            matches!(&error, LandError::Staged { paths, .. } if paths == &[name]),
            "{error}"
        );
    }
}

#[test]
fn unfinished_work_and_locks_refuse() {
    let case = Case::new();
    write(&case.fixture.repo.join(".git/index.lock"), "");
    assert!(matches!(
        case.assert_refused("lock"),
        LandError::IndexLocked { .. }
    ));
    fs::remove_file(case.fixture.repo.join(".git/index.lock")).unwrap();
    write(&case.fixture.repo.join(".git/refs/heads/main.lock"), "");
    assert!(matches!(
        case.assert_refused("ref lock"),
        LandError::Ref { .. }
    ));
    fs::remove_file(case.fixture.repo.join(".git/refs/heads/main.lock")).unwrap();
    case.land(MergeStyle::Auto).unwrap();

    let case = Case::new();
    case.fixture.git(["checkout", "-q", "-b", "side"]);
    write(&case.fixture.repo.join("a.txt"), "side\n");
    case.fixture.commit("side");
    case.fixture.git(["checkout", "-q", "main"]);
    write(&case.fixture.repo.join("a.txt"), "main\n");
    case.fixture.commit("main");
    assert!(
        !git_output(&case.fixture.repo, ["merge", "side"])
            .status
            .success()
    );
    assert!(matches!(unfinished(&case), "merge"));
    case.fixture.git(["merge", "--abort"]);
    assert!(
        !git_output(&case.fixture.repo, ["rebase", "side"])
            .status
            .success()
    );
    assert!(matches!(unfinished(&case), "rebase"));
    case.fixture.git(["rebase", "--abort"]);
    assert!(
        !git_output(&case.fixture.repo, ["cherry-pick", "side"])
            .status
            .success()
    );
    assert!(matches!(unfinished(&case), "cherry-pick"));
    case.fixture.git(["cherry-pick", "--abort"]);
    case.fixture.git(["bisect", "start"]);
    assert!(matches!(unfinished(&case), "bisect"));
}

#[track_caller]
fn unfinished(case: &Case) -> &'static str {
    let plan = case.plan(MergeStyle::Squash);
    // The tip conflicts with the delivery: the state of the checkout is asked for with a plan of its own.
    let plan = plan.unwrap_or_else(|_| LandPlan {
        target: "main".to_owned(),
        expected: case.fixture.rev("main"),
        result: case.delivery,
        tree: case.delivery,
        kind: LandKind::FastForward,
        judged_as_is: true,
        delivery: case.delivery,
        when: WHEN,
    });
    match case.repository().land(&plan, &mut |_| Ok(())) {
        Err(LandError::Busy { state, path }) => {
            assert_eq!(path, case.fixture.repo);
            state
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_target_that_another_checkout_has_is_refused() {
    let case = Case::new();
    let other = case.fixture.state().join("other");
    case.fixture.git(["checkout", "-q", "--detach"]);
    git_in(
        &case.fixture.repo,
        [
            "worktree".as_ref(),
            "add".as_ref(),
            "-q".as_ref(),
            other.as_os_str(),
            "main".as_ref(),
        ],
    );
    let error = case.assert_refused("elsewhere");
    assert!(
        matches!(&error, LandError::CheckedOutElsewhere { path, .. } if path == &other),
        "{error}"
    );
    // From there it lands.
    let there = Repository::discover(&other).unwrap();
    let plan = case.plan(MergeStyle::Auto).unwrap();
    assert_eq!(
        there.land(&plan, &mut |_| Ok(())).unwrap().checkout,
        Some(other.clone())
    );
    assert_eq!(git_in(&other, ["status", "--porcelain"]), "");
}

#[test]
fn a_target_that_moved_after_the_plan_refuses() {
    let case = Case::new();
    let plan = case.plan(MergeStyle::Auto).unwrap();
    write(&case.fixture.repo.join("late"), "l\n");
    let late = case.fixture.commit("late");
    let error = case.repository().land(&plan, &mut |_| Ok(())).unwrap_err();
    assert!(matches!(error, LandError::Moved { found, .. } if found == Some(late)));

    // Moved by a push in the middle of the landing: everything is taken back.
    let case = Case::new();
    let plan = case.plan(MergeStyle::Auto).unwrap();
    let error = case.repository().land(&plan, &mut |step| {
        if step == LandStep::IndexWritten {
            let tree = case.fixture.git(["rev-parse", "main^{tree}"]);
            let pushed = case
                .fixture
                .git(["commit-tree", "-p", "main", "-m", "pushed", &tree]);
            case.fixture.git(["update-ref", "refs/heads/main", &pushed]);
        }
        Ok(())
    });
    assert!(matches!(error, Err(LandError::Moved { .. })), "{error:?}");
    assert_eq!(case.fixture.git(["status", "--porcelain"]), "");
    assert!(!case.fixture.repo.join("new").exists());
    assert!(matches!(
        case.repository().plan_landing(&LandRequest {
            target: "nowhere",
            delivery: case.delivery,
            base: case.base,
            style: MergeStyle::Auto,
            message: "",
            when: WHEN
        }),
        Err(LandError::NoBranch { .. })
    ));
}

#[test]
fn indexes_that_cannot_be_kept_whole_are_named() {
    let setups: [(&str, &[&[&str]]); 3] = [
        (
            "sparse checkout",
            &[&["sparse-checkout", "set", "--no-cone", "/*", "!/dir/"]],
        ),
        (
            "sparse index",
            &[&["sparse-checkout", "set", "--cone", "--sparse-index", "new"]],
        ),
        ("split index", &[&["update-index", "--split-index"]]),
    ];
    for (feature, commands) in setups {
        let case = Case::new();
        for command in commands {
            case.fixture.git(command.iter());
        }
        let error = case.assert_refused(feature);
        assert!(
            matches!(&error, LandError::UnsupportedIndex { feature: found, .. } if found.contains(feature)),
            "{error}"
        );
    }
}
