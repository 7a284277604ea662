//! Landing: what moves, what survives, what refuses, and what a crash at any point leaves.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use worktrees::{
    LandError, LandKind, LandPlan, LandRequest, LandStep, Landing, MergeStyle, Oid, Repository,
};

use crate::fixture::{Fixture, WHEN, git_in, read, write};

pub const STEPS: [LandStep; 4] = [
    LandStep::Starting,
    LandStep::FilesWritten,
    LandStep::IndexWritten,
    LandStep::RefMoved,
];

/// A repository, and a delivery that changes `a.txt`, adds `new/n.txt`, removes `gone.txt`, and makes the file
/// `swap` a folder and the folder `dir` a file.
pub struct Case {
    pub fixture: Fixture,
    pub base: Oid,
    pub delivery: Oid,
}

impl Case {
    pub fn new() -> Self {
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

    pub fn repository(&self) -> Repository {
        self.fixture.repository()
    }

    pub fn plan(&self, style: MergeStyle) -> Result<LandPlan, LandError> {
        self.repository().plan_landing(&LandRequest {
            target: "main",
            delivery: self.delivery,
            base: self.base,
            style,
            message: "land it",
            when: WHEN,
        })
    }

    pub fn land(&self, style: MergeStyle) -> Result<Landing, LandError> {
        self.repository().land(&self.plan(style)?, &mut |_| Ok(()))
    }

    /// Nothing has moved: branch, files and index are what they were.
    #[track_caller]
    pub fn assert_refused(&self, what: &str) -> LandError {
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
    pub fn assert_landed(&self) {
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
    pub fn assert_untouched(&self) {
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

pub fn files(folder: &Path) -> Vec<String> {
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
