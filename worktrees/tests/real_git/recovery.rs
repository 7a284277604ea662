//! Landings that are cut off: by a journal that fails, by a kill at each step, and what a recovery makes of it.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Command;

use worktrees::{
    JournalError, LandError, LandKind, LandPlan, LandStep, MergeStyle, Oid, Recovered, RefError,
    Repository,
};

use crate::fixture::{Fixture, WHEN, read, write};
use crate::land::{Case, STEPS};

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
        .args(["--exact", "recovery::killed_child"])
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

#[test]
fn only_a_lock_that_a_dead_process_of_ours_left_is_taken_away() {
    let fixture = Fixture::with(&[("a", "1\n")]);
    let base = fixture.commit("base");
    let repository = fixture.repository();
    let lock = fixture.repo.join(".git/refs/heads/ours/t1.lock");
    let make = |bytes: &str| {
        fs::create_dir_all(lock.parent().unwrap()).unwrap();
        write(&lock, bytes);
    };
    make("locked by airlock\n");
    repository.set_branch("ours/t1", base, None).unwrap();
    assert!(!lock.exists());
    // Somebody's git, also one that has written what it is about to publish.
    for foreign in ["", &format!("{base}\n")] {
        make(foreign);
        repository.release_left_behind("ours/t1").unwrap();
        assert!(lock.exists(), "{foreign:?}");
        let refused = repository.delete_ref("refs/heads/ours/t1", base);
        assert!(
            matches!(refused, Err(RefError::Locked { .. })),
            "{refused:?}"
        );
        fs::remove_file(&lock).unwrap();
    }
    // One of ours that lives.
    make("locked by airlock\n");
    let alive = fs::File::open(&lock).unwrap();
    alive.lock().unwrap();
    repository.release_left_behind("ours/t1").unwrap();
    assert!(lock.exists());
    drop(alive);
    repository.delete_ref("refs/heads/ours/t1", base).unwrap();
    assert_eq!(repository.branch_tip("ours/t1").unwrap(), None);
    assert!(!lock.parent().unwrap().exists(), "empty folders of refs go");
}
