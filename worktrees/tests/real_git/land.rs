//! Landing: what moves, what survives, what refuses, and what a crash at any point leaves.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use worktrees::{
    JournalError, LandError, LandKind, LandPlan, LandRequest, LandStep, Landing, MergeStyle, Oid,
    Recovered, Repository,
};

use crate::fixture::{Fixture, WHEN, git_in, git_output, read, write};

type Edit = fn(&Path);

const STEPS: [LandStep; 4] = [
    LandStep::Starting,
    LandStep::FilesWritten,
    LandStep::IndexWritten,
    LandStep::RefMoved,
];

/// A repository, and a delivery that changes `a.txt`, adds `new/n.txt`, removes `gone.txt`, and makes the file
/// `swap` a folder and the folder `dir` a file.
struct Case {
    fixture: Fixture,
    base: Oid,
    delivery: Oid,
}

impl Case {
    fn new() -> Self {
        let fixture = Fixture::with(&[
            ("a.txt", "a\nb\nc\nd\ne\nf\ng\n"),
            ("other.txt", "o\n"),
            ("gone.txt", "g\n"),
            ("swap", "s\n"),
            ("dir/x", "x\n"),
        ]);
        let base = fixture.rev("HEAD");
        let worktree = fixture.worktree("t1");
        let tree = &worktree.tree;
        write(&tree.join("a.txt"), "a\nb\nc\nd\ne\nf\nG\n");
        write(&tree.join("new/n.txt"), "n\n");
        fs::remove_file(tree.join("gone.txt")).unwrap();
        fs::remove_file(tree.join("swap")).unwrap();
        write(&tree.join("swap/in"), "s\n");
        fs::remove_dir_all(tree.join("dir")).unwrap();
        write(&tree.join("dir"), "d\n");
        let delivery = fixture.seal(&worktree).commit.unwrap();
        Self {
            fixture,
            base,
            delivery,
        }
    }

    fn repository(&self) -> Repository {
        self.fixture.repository()
    }

    fn plan(&self, style: MergeStyle) -> Result<LandPlan, LandError> {
        self.repository().plan_landing(&LandRequest {
            target: "main",
            delivery: self.delivery,
            base: self.base,
            style,
            message: "land it",
            when: WHEN,
        })
    }

    fn land(&self, style: MergeStyle) -> Result<Landing, LandError> {
        self.repository().land(&self.plan(style)?, &mut |_| Ok(()))
    }

    /// Nothing has moved: branch, files and index are what they were.
    #[track_caller]
    fn assert_refused(&self, what: &str) -> LandError {
        let state = |case: &Self| {
            let tip = case.fixture.rev("main");
            (
                tip,
                case.fixture.git(["status", "--porcelain"]),
                files(&case.fixture.repo),
            )
        };
        let before = state(self);
        let error = self.land(MergeStyle::Auto).unwrap_err();
        assert_eq!(state(self), before, "{what}");
        error
    }

    #[track_caller]
    fn assert_landed(&self) {
        assert_eq!(self.fixture.git(["status", "--porcelain"]), "");
        assert_eq!(self.fixture.git(["diff", "HEAD"]), "");
        assert!(
            self.repository()
                .is_ancestor(self.delivery, self.fixture.rev("main"))
                .unwrap()
        );
        assert_eq!(read(&self.fixture.repo.join("swap/in")), "s\n");
        assert!(!self.fixture.repo.join(".git/index.lock").exists());
        self.fixture.git(["fsck", "--strict"]);
    }

    #[track_caller]
    fn assert_untouched(&self) {
        assert_eq!(self.fixture.rev("main"), self.base);
        assert_eq!(self.fixture.git(["status", "--porcelain"]), "");
        assert_eq!(self.fixture.git(["diff", "HEAD"]), "");
        assert!(!self.fixture.repo.join(".git/index.lock").exists());
        let rest: Vec<_> = files(&self.fixture.repo);
        assert!(
            rest.iter().all(|name| !name.contains("airlock")),
            "{rest:?}"
        );
    }
}

fn files(folder: &Path) -> Vec<String> {
    let output = Command::new("find")
        .args([".", "-not", "-path", "./.git/*"])
        .current_dir(folder)
        .output()
        .unwrap();
    let mut names: Vec<_> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

#[test]
fn a_clean_checkout_comes_along() {
    let case = Case::new();
    let mut steps = Vec::new();
    let plan = case.plan(MergeStyle::Auto).unwrap();
    assert!(
        plan.judged_as_is && plan.kind == LandKind::FastForward && plan.result == case.delivery
    );
    let landing = case.repository().land(&plan, &mut |step| {
        steps.push(step);
        assert!(
            case.fixture.repo.join(".git/index.lock").exists(),
            "locked at {step:?}"
        );
        Ok(())
    });
    let landing = landing.unwrap();
    assert_eq!(steps, STEPS);
    assert_eq!(
        (landing.commit, landing.checkout),
        (case.delivery, Some(case.fixture.repo.clone()))
    );
    case.assert_landed();
    assert_eq!(
        case.fixture.git(["reflog", "-1", "--format=%gs", "main"]),
        format!("airlock: land {}", case.delivery)
    );
    assert_eq!(
        case.fixture.git(["reflog", "-1", "--format=%gs"]),
        format!("airlock: land {}", case.delivery)
    );
    assert_eq!(
        case.plan(MergeStyle::Auto).unwrap().kind,
        LandKind::AlreadyThere
    );
    assert_eq!(case.land(MergeStyle::Squash).unwrap().files, 0);
}

#[test]
fn styles_when_the_target_stands_still() {
    for (style, kind, parents) in [
        (MergeStyle::FastForward, LandKind::FastForward, 1),
        (MergeStyle::Rebase, LandKind::FastForward, 1),
        (MergeStyle::Squash, LandKind::Squash, 1),
        (MergeStyle::Merge, LandKind::Merge, 2),
    ] {
        let case = Case::new();
        let plan = case.plan(style).unwrap();
        assert_eq!((plan.kind, plan.judged_as_is), (kind, true));
        case.repository().land(&plan, &mut |_| Ok(())).unwrap();
        let facts = case.repository().commit_facts(plan.result).unwrap();
        assert_eq!(facts.parents.len(), parents);
        assert_eq!(case.fixture.git(["status", "--porcelain"]), "");
    }
}

#[test]
fn styles_when_the_target_has_moved() {
    for (style, kind) in [
        (MergeStyle::Auto, LandKind::Merge),
        (MergeStyle::Merge, LandKind::Merge),
        (MergeStyle::Squash, LandKind::Squash),
        (MergeStyle::Rebase, LandKind::Rebase),
    ] {
        let case = Case::new();
        write(&case.fixture.repo.join("a.txt"), "A\nb\nc\nd\ne\nf\ng\n");
        write(&case.fixture.repo.join("more.txt"), "m\n");
        let tip = case.fixture.commit("meanwhile");
        let plan = case.plan(style).unwrap();
        assert_eq!(
            (plan.kind, plan.judged_as_is, plan.expected),
            (kind, false, tip)
        );
        case.repository().land(&plan, &mut |_| Ok(())).unwrap();
        assert_eq!(
            read(&case.fixture.repo.join("a.txt")),
            "A\nb\nc\nd\ne\nf\nG\n"
        );
        assert_eq!(case.fixture.git(["status", "--porcelain"]), "");
        assert_eq!(read(&case.fixture.repo.join("more.txt")), "m\n");
        let facts = case.repository().commit_facts(plan.result).unwrap();
        assert_eq!(
            facts.subject,
            if kind == LandKind::Rebase {
                "the work"
            } else {
                "land it"
            }
        );
        assert_eq!(facts.parents.first(), Some(&tip));
        case.fixture.git(["fsck", "--strict"]);
    }
    let case = Case::new();
    case.fixture.commit("meanwhile");
    assert!(matches!(
        case.plan(MergeStyle::FastForward),
        Err(LandError::NotFastForward { .. })
    ));
}

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
fn a_base_that_the_target_lacks_is_only_squashed() {
    let fixture = Fixture::with(&[("a", "a\n")]);
    fixture.git(["checkout", "-q", "-b", "feature"]);
    write(&fixture.repo.join("foreign"), "f\n");
    let base = fixture.commit("foreign");
    let worktree = fixture.worktree("t1");
    write(&worktree.tree.join("mine"), "m\n");
    let delivery = fixture.seal(&worktree).commit.unwrap();
    let case = Case {
        fixture,
        base,
        delivery,
    };
    assert!(matches!(
        case.plan(MergeStyle::Auto),
        Err(LandError::BaseNotInTarget { .. })
    ));
    let plan = case.plan(MergeStyle::Squash).unwrap();
    case.repository().land(&plan, &mut |_| Ok(())).unwrap();
    assert_eq!(
        case.fixture.git(["ls-tree", "--name-only", "main"]),
        "a\nmine"
    );
}

#[test]
fn unrelated_edits_survive() {
    let case = Case::new();
    write(&case.fixture.repo.join("other.txt"), "edited\n");
    write(&case.fixture.repo.join("untracked"), "u\n");
    write(&case.fixture.repo.join("new/mine"), "m\n");
    case.land(MergeStyle::Auto).unwrap();
    assert_eq!(read(&case.fixture.repo.join("other.txt")), "edited\n");
    assert_eq!(
        case.fixture.git(["status", "--porcelain"]),
        " M other.txt\n?? new/mine\n?? untracked"
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
fn a_branch_that_no_checkout_has_moves_alone() {
    let case = Case::new();
    case.fixture.git(["checkout", "-q", "-b", "elsewhere"]);
    let before = files(&case.fixture.repo);
    let landing = case.land(MergeStyle::Auto).unwrap();
    assert_eq!(landing.checkout, None);
    assert_eq!(case.fixture.rev("main"), case.delivery);
    assert_eq!(files(&case.fixture.repo), before);

    let bare = case.fixture.state().join("bare.git");
    case.fixture.git([
        "clone".as_ref(),
        "-q".as_ref(),
        "--bare".as_ref(),
        case.fixture.repo.as_os_str(),
        bare.as_os_str(),
    ]);
    git_in(
        &bare,
        ["update-ref", "refs/heads/main", &case.base.to_string()],
    );
    let plan = case.plan(MergeStyle::Auto).unwrap();
    let plan = LandPlan {
        expected: case.base,
        kind: LandKind::FastForward,
        ..plan
    };
    Repository::discover(&bare)
        .unwrap()
        .land(&plan, &mut |_| Ok(()))
        .unwrap();
    assert_eq!(
        git_in(&bare, ["rev-parse", "main"]),
        case.delivery.to_string()
    );
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

#[test]
fn line_ends_links_and_modes_arrive_as_git_writes_them() {
    let fixture = Fixture::with(&[
        ("a.txt", "a\n"),
        (".gitattributes", "*.txt text\n*.id ident\n"),
        ("b.id", "$Id$\n"),
    ]);
    fixture.git(["config", "core.autocrlf", "true"]);
    fs::remove_file(fixture.repo.join("a.txt")).unwrap();
    fixture.git(["checkout", "-q", "--", "a.txt"]);
    let base = fixture.rev("HEAD");
    let worktree = fixture.worktree("t1");
    write(&worktree.tree.join("a.txt"), "a\r\nb\r\n");
    write(&worktree.tree.join("sub/c.dat"), "x\n");
    write(&worktree.tree.join("sub/.gitattributes"), "*.dat -text\n");
    write(&worktree.tree.join("b.id"), "$Id$ more\n");
    write(&worktree.tree.join("run"), "#!/bin/sh\n");
    {
        fs::set_permissions(worktree.tree.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::os::unix::fs::symlink("a.txt", worktree.tree.join("link")).unwrap();
    let delivery = fixture.seal(&worktree).commit.unwrap();
    let case = Case {
        fixture,
        base,
        delivery,
    };
    case.land(MergeStyle::Auto).unwrap();
    assert_eq!(case.fixture.git(["status", "--porcelain"]), "");
    let plain = case.fixture.state().join("plain");
    git_in(
        &case.fixture.repo,
        [
            "worktree".as_ref(),
            "add".as_ref(),
            "-q".as_ref(),
            "--detach".as_ref(),
            plain.as_os_str(),
        ],
    );
    for name in ["a.txt", "sub/c.dat", "b.id", "run", "link"] {
        assert_eq!(
            read(&case.fixture.repo.join(name)),
            read(&plain.join(name)),
            "{name}"
        );
        let modes = [&case.fixture.repo, &plain]
            .map(|root| fs::symlink_metadata(root.join(name)).unwrap().mode());
        assert_eq!(modes[0], modes[1], "{name}");
    }
}

#[test]
fn a_journal_that_fails_stops_the_landing() {
    for (at, step) in STEPS.into_iter().enumerate() {
        let case = Case::new();
        let plan = case.plan(MergeStyle::Auto).unwrap();
        let result = case.repository().land(&plan, &mut |now| {
            if now == step {
                Err(JournalError::new("full disk"))
            } else {
                Ok(())
            }
        });
        assert!(
            matches!(result, Err(LandError::Journal { .. })),
            "{result:?}"
        );
        if at < 3 {
            case.assert_untouched();
            assert_eq!(
                case.repository().recover_landing(&plan).unwrap(),
                Recovered::RolledBack
            );
            case.land(MergeStyle::Auto).unwrap();
        }
        case.assert_landed();
        assert_eq!(
            case.repository().recover_landing(&plan).unwrap(),
            Recovered::Completed
        );
    }
}

/// Set for the child process of the test below: the repository, the plan's result and the step to die at.
const KILLED: &str = "WORKTREES_TEST_KILLED_AT";

/// Not a test of its own: the process that is killed in the middle of a landing.
#[test]
fn killed_child() {
    let Ok(order) = std::env::var(KILLED) else {
        return;
    };
    let mut parts = order.split('\n');
    let (repo, step) = (
        PathBuf::from(parts.next().unwrap()),
        parts.next().unwrap().to_owned(),
    );
    let oid = |text: Option<&str>| Oid::from_str(text.unwrap()).unwrap();
    let plan = LandPlan {
        target: "main".to_owned(),
        expected: oid(parts.next()),
        result: oid(parts.next()),
        tree: oid(parts.next()),
        kind: LandKind::FastForward,
        judged_as_is: true,
        delivery: oid(parts.next()),
        when: WHEN,
    };
    let done = Repository::discover(&repo)
        .unwrap()
        .land(&plan, &mut |now| {
            if format!("{now:?}") == step {
                std::process::abort();
            }
            Ok(())
        });
    panic!("it was to die: {done:?}");
}

fn kill_at(case: &Case, step: LandStep) -> LandPlan {
    let plan = case.plan(MergeStyle::Auto).unwrap();
    let order = format!(
        "{}\n{step:?}\n{}\n{}\n{}\n{}",
        case.fixture.repo.display(),
        plan.expected,
        plan.result,
        plan.tree,
        plan.delivery
    );
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child
        .args(["--exact", "land::killed_child"])
        .env(KILLED, order)
        .output()
        .unwrap();
    assert_eq!(
        output.status.signal(),
        Some(6),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(case.fixture.repo.join(".git/index.lock").exists());
    plan
}

#[test]
fn a_killed_landing_is_settled() {
    for (at, step) in STEPS.into_iter().enumerate() {
        let case = Case::new();
        let plan = kill_at(&case, step);
        // Another landing neither takes the lock for its own nor breaks it.
        assert!(case.land(MergeStyle::Squash).is_err() || at == 3);
        let recovered = case.repository().recover_landing(&plan).unwrap();
        if at < 2 {
            assert_eq!(recovered, Recovered::RolledBack);
            case.assert_untouched();
            case.land(MergeStyle::Auto).unwrap();
        }
        assert_eq!(
            case.repository().recover_landing(&plan).unwrap(),
            Recovered::Completed
        );
        case.assert_landed();
    }
}

#[test]
fn recovery_keeps_what_was_edited_after_the_crash() {
    let case = Case::new();
    let plan = kill_at(&case, LandStep::FilesWritten);
    write(&case.fixture.repo.join("a.txt"), "mine\n");
    write(&case.fixture.repo.join("swap/in"), "mine\n");
    // `swap` cannot become a file again without losing an edit: everything else waits for the user.
    assert!(case.repository().recover_landing(&plan).is_err());
    assert!(case.fixture.repo.join(".git/index.lock").exists());
    fs::remove_file(case.fixture.repo.join("swap/in")).unwrap();
    assert_eq!(
        case.repository().recover_landing(&plan).unwrap(),
        Recovered::RolledBack
    );
    assert_eq!(case.fixture.git(["status", "--porcelain"]), " M a.txt");
    assert_eq!(read(&case.fixture.repo.join("a.txt")), "mine\n");
}

#[test]
fn a_strangers_lock_is_not_removed() {
    let case = Case::new();
    let plan = case.plan(MergeStyle::Auto).unwrap();
    write(&case.fixture.repo.join(".git/index.lock"), "a user's git");
    assert_eq!(
        case.repository().recover_landing(&plan).unwrap(),
        Recovered::RolledBack
    );
    assert!(case.fixture.repo.join(".git/index.lock").exists());
}
