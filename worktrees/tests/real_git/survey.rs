//! What the agent's own git directory is said to hold, also when it is a trap.

use std::fs;
use std::os::unix::fs::symlink;

use worktrees::Oid;

use crate::fixture::{Fixture, git_command, write};

/// git in the shadow, as the agent would use it.
fn agent(fixture: &Fixture, worktree: &worktrees::Worktree, args: &[&str]) {
    let objects = fixture.repo.join(".git/objects");
    let output = git_command(&worktree.tree)
        .env("GIT_DIR", &worktree.shadow)
        .env("GIT_WORK_TREE", &worktree.tree)
        .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects)
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn commits_branches_and_stashes_are_listed() {
    let fixture = Fixture::with(&[("a", "a\n")]);
    fixture.git(["tag", "v1"]);
    let worktree = fixture.worktree("t1");
    let repository = fixture.repository();
    assert_eq!(
        repository.survey_shadow(&worktree.shadow, worktree.base),
        worktrees::ShadowSurvey::default()
    );
    write(&worktree.tree.join("a"), "b\n");
    agent(&fixture, &worktree, &["commit", "-qam", "one\n\nbody"]);
    write(&worktree.tree.join("a"), "c\n");
    agent(&fixture, &worktree, &["stash", "-q"]);
    agent(&fixture, &worktree, &["branch", "side"]);
    agent(&fixture, &worktree, &["tag", "mine"]);
    agent(&fixture, &worktree, &["pack-refs", "--all"]);
    let survey = repository.survey_shadow(&worktree.shadow, worktree.base);
    let names: Vec<_> = survey
        .references
        .iter()
        .map(|found| found.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "refs/heads/airlock/run/t1",
            "refs/heads/side",
            "refs/stash",
            "refs/tags/mine"
        ]
    );
    assert_eq!(survey.stashes, 1);
    assert_eq!(
        survey
            .commits
            .iter()
            .filter(|commit| commit.subject == "one")
            .count(),
        1
    );
    assert_eq!(
        survey.commits.len(),
        3,
        "the commit, the stash and its index: {:?}",
        survey.commits
    );
    assert_eq!(survey.unreadable, None);
}

#[test]
fn traps_are_named_and_never_followed() {
    let fixture = Fixture::with(&[("a", "a\n")]);
    let worktree = fixture.worktree("t1");
    let shadow = &worktree.shadow;
    let outside = fixture.state().join("outside");
    write(&outside.join("main"), format!("{}\n", "1".repeat(40)));
    fs::remove_dir_all(shadow.join("refs/tags")).unwrap();
    symlink(&outside, shadow.join("refs/tags")).unwrap();
    symlink(outside.join("main"), shadow.join("refs/heads/link")).unwrap();
    nix::unistd::mkfifo(
        &shadow.join("refs/heads/fifo"),
        nix::sys::stat::Mode::S_IRWXU,
    )
    .unwrap();
    let missing = Oid::from_str(&"2".repeat(40)).unwrap();
    write(&shadow.join("refs/heads/missing"), format!("{missing}\n"));
    // A bomb under the name of a commit, and an object that lies about its name.
    write(
        &shadow.join("refs/heads/lie"),
        format!("{}\n", "3".repeat(40)),
    );
    write(
        &shadow.join(format!("objects/33/{}", "3".repeat(38))),
        [0x78, 0x9c, 0x03, 0, 0, 0, 0, 1],
    );
    fs::File::create(shadow.join("packed-refs.big")).unwrap();
    let survey = fixture.repository().survey_shadow(shadow, worktree.base);
    let names: Vec<_> = survey
        .references
        .iter()
        .map(|found| found.name.as_str())
        .collect();
    assert_eq!(names, ["refs/heads/lie", "refs/heads/missing"]);
    assert_eq!(survey.commits, []);
    assert!(survey.unreadable.is_some());
    fs::File::options()
        .write(true)
        .open(shadow.join("packed-refs"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    assert!(
        fixture
            .repository()
            .survey_shadow(shadow, worktree.base)
            .unreadable
            .is_some()
    );
    let gone = fixture
        .repository()
        .survey_shadow(&fixture.state().join("nowhere"), worktree.base);
    assert!(gone.unreadable.is_some());
}

#[test]
fn a_flood_of_refs_is_cut_short() {
    use std::fmt::Write as _;
    let fixture = Fixture::with(&[("a", "a\n")]);
    let worktree = fixture.worktree("t1");
    let mut packed = String::new();
    for number in 1..=200_000 {
        writeln!(packed, "{number:040x} refs/heads/b{number}").unwrap();
    }
    writeln!(packed, "{:040x} refs/heads/{}", 1, "n".repeat(4000)).unwrap();
    write(&worktree.shadow.join("packed-refs"), packed);
    let survey = fixture
        .repository()
        .survey_shadow(&worktree.shadow, worktree.base);
    assert_eq!(survey.references.len(), 1000);
    assert!(survey.references.iter().all(|found| found.name.len() < 100));
    assert!(survey.unreadable.is_some(), "it says that there is more");
}
