//! Landing: what happens to the target, to its checkout, and to a person's edits in it; when it is
//! refused, and that a refusal changes nothing.

use std::fs;

use tests::{TestEnv, TestRepo};

/// An accepted task `t1` that changes `code.py`, on a repository that has more files than that.
fn accepted(env: &TestEnv) -> TestRepo<'_> {
    let repo = env.repository();
    repo.write("code.py", "a = 1\n\n\n\n\nb = 2\n");
    repo.write("other.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
    repo.commit("two files");
    repo.task(
        &["--task", "t1"],
        "sed -i 's/a = 1/a = 10/' code.py; echo new > new.txt",
    )
    .exits(0);
    repo
}

#[test]
fn a_clean_checkout_is_updated() {
    let env = TestEnv::new();
    let repo = accepted(&env);
    repo.airlock(&["merge", "t1"]).run().exits(0);
    assert_eq!(repo.read("code.py"), "a = 10\n\n\n\n\nb = 2\n");
    assert_eq!(repo.read("new.txt"), "new\n");
    assert_eq!(repo.status(), "");
    repo.is_clean();
}

#[test]
fn the_configured_style_is_that_of_a_later_merge_too() {
    let env = TestEnv::new();
    env.configure("[merge]\nstyle = \"merge\"\n");
    let repo = accepted(&env);
    repo.airlock(&["merge", "t1"]).run().exits(0);
    let parents = repo.git(&["rev-list", "--parents", "-n1", "main"]);
    assert_eq!(parents.split_whitespace().count(), 3, "{parents}");
}

#[test]
fn edits_in_other_files_survive() {
    let env = TestEnv::new();
    let repo = accepted(&env);
    repo.write("other.txt", "my edit\n");
    repo.write("mine.txt", "untracked\n");
    repo.airlock(&["merge", "t1"]).run().exits(0);
    assert_eq!(repo.read("other.txt"), "my edit\n");
    assert_eq!(repo.status(), " M other.txt\n?? mine.txt");
    assert_eq!(repo.read("code.py"), "a = 10\n\n\n\n\nb = 2\n");
}

#[test]
fn what_stands_in_the_way_is_named_and_nothing_changes() {
    type Edit = fn(&TestRepo<'_>);
    let edits: [(&str, &str, Edit); 4] = [
        ("overlapping edit", "code.py", |repo| {
            repo.write("code.py", "a = 3\n");
        }),
        ("staged edit", "code.py", |repo| {
            repo.write("code.py", "a = 3\n");
            repo.git(&["add", "code.py"]);
        }),
        ("untracked file in the way", "new.txt", |repo| {
            repo.write("new.txt", "mine\n");
        }),
        ("deleted file", "code.py", |repo| {
            fs::remove_file(repo.path().join("code.py")).unwrap();
        }),
    ];
    for (what, named, edit) in edits {
        let env = TestEnv::new();
        let repo = accepted(&env);
        let head = repo.head();
        edit(&repo);
        let status = repo.status();
        repo.airlock(&["merge", "t1"]).run().exits(4).says(named);
        assert_eq!((repo.head(), repo.status()), (head, status), "{what}");
        assert_eq!(repo.show("t1")["state"], "accepted", "{what}");
        repo.is_sound();
    }
}

#[test]
fn a_staged_edit_elsewhere_is_refused_or_survives() {
    let env = TestEnv::new();
    let repo = accepted(&env);
    repo.write("other.txt", "staged\n");
    repo.git(&["add", "other.txt"]);
    let run = repo.airlock(&["merge", "t1"]).run();
    match run.code {
        Some(0) => assert_eq!(repo.status(), "M  other.txt"),
        _ => drop(run.exits(4).says("other.txt")),
    }
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "other.txt");
}

#[test]
fn a_target_that_is_checked_out_elsewhere_is_refused() {
    let env = TestEnv::new();
    let repo = accepted(&env);
    let elsewhere = env.path().join("elsewhere");
    repo.git(&["switch", "-q", "-c", "mine"]);
    repo.git(&["worktree", "add", "-q", elsewhere.to_str().unwrap(), "main"]);
    let main = repo.tip("refs/heads/main");
    repo.airlock(&["merge", "t1"])
        .run()
        .exits(4)
        .says("elsewhere");
    assert_eq!(repo.tip("refs/heads/main"), main);
}

#[test]
fn a_persons_own_rebase_is_left_alone() {
    let env = TestEnv::new();
    let repo = accepted(&env);
    repo.git(&["switch", "-q", "-c", "side"]);
    repo.write("other.txt", "side\n");
    repo.commit("side");
    repo.git(&["switch", "-q", "main"]);
    repo.write("other.txt", "main\n");
    repo.commit("main");
    assert!(
        !repo.git_agrees(&["rebase", "side"]),
        "the rebase has to stop at the conflict"
    );
    let before = repo.status();
    repo.airlock(&["merge", "t1"]).run().exits(4).says("rebase");
    assert_eq!(repo.status(), before);
    repo.git(&["rebase", "--abort"]);
    repo.airlock(&["merge", "t1"]).run().exits(0);
}

#[test]
fn a_locked_index_is_refused_and_kept() {
    let env = TestEnv::new();
    let repo = accepted(&env);
    let head = repo.head();
    repo.write(".git/index.lock", "");
    repo.airlock(&["merge", "t1"])
        .run()
        .exits(4)
        .says("index.lock");
    assert_eq!(repo.head(), head);
    fs::remove_file(repo.path().join(".git/index.lock")).unwrap();
    repo.airlock(&["merge", "t1"]).run().exits(0);
    repo.is_clean();
}

#[test]
fn a_target_that_moved_is_merged_judged_and_then_landed() {
    let env = TestEnv::new();
    let repo = accepted(&env);
    repo.write("code.py", "a = 1\n\n\n\n\nb = 20\n");
    let theirs = repo.commit("meanwhile");
    let object = repo
        .airlock(&["merge", "t1", "--json"])
        .run()
        .exits(0)
        .json();
    let parents = repo.git(&["log", "-1", "--format=%P", "main"]);
    assert_eq!(
        parents,
        format!("{theirs} {}", object["commit"].as_str().unwrap())
    );
    assert_eq!(repo.read("code.py"), "a = 10\n\n\n\n\nb = 20\n");
    assert_eq!(repo.status(), "");
    repo.airlock(&["evidence", "verify", "t1"]).run().exits(0);
    repo.is_clean();
}

#[test]
fn a_conflict_changes_nothing_and_names_the_files() {
    let env = TestEnv::new();
    let repo = accepted(&env);
    repo.write("code.py", "a = 99\n\n\n\n\nb = 2\n");
    repo.commit("meanwhile");
    let (head, references) = (repo.head(), repo.references());
    let run = repo
        .airlock(&["merge", "t1", "--json"])
        .run()
        .exits(12)
        .says("code.py");
    assert_eq!(run.json()["state"], "accepted");
    assert_eq!(
        (repo.head(), repo.status(), repo.references()),
        (head, String::new(), references)
    );
    assert_eq!(repo.show("t1")["exit"], 12);
    repo.is_sound();
}

/// Each half is fine alone; together a string ends where the other one begins.
#[test]
fn two_green_deliveries_that_break_each_other_do_not_both_land() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write(
        "code.py",
        "A = 1\n# one\n# two\n# three\n# four\n# five\n# six\n# seven\nB = 2\n",
    );
    repo.commit("code");
    let wrap = "sed -i -e '1a X = \"\"\"' -e '8a \"\"\"' code.py";
    let insert = "sed -i -e '4a Y = \"\"\"doc\"\"\"' code.py";
    repo.task(&["--task", "first"], wrap).exits(0);
    repo.task(&["--task", "second"], insert).exits(0);
    repo.airlock(&["merge", "first"]).run().exits(0);
    let head = repo.head();
    repo.airlock(&["merge", "second"])
        .run()
        .exits(10)
        .says("code.py");
    assert_eq!((repo.head(), repo.status()), (head, String::new()));
    assert_eq!(repo.show("second")["state"], "accepted");
}

#[test]
fn every_style_makes_the_history_that_it_names() {
    for (style, parents, subject_is_the_engines) in
        [("squash", 1, true), ("rebase", 1, true), ("merge", 2, true)]
    {
        let env = TestEnv::new();
        let repo = accepted(&env);
        repo.write("other.txt", "meanwhile\n");
        let theirs = repo.commit("meanwhile");
        repo.airlock(&["merge", "t1", "--style", style])
            .run()
            .exits(0);
        let line = repo.git(&["log", "-1", "--format=%P", "main"]);
        assert_eq!(line.split(' ').count(), parents, "{style}: {line}");
        assert!(line.starts_with(&theirs), "{style}: {line}");
        assert!(subject_is_the_engines && repo.git(&["log", "-1", "--format=%s"]) != "meanwhile");
        assert_eq!(
            (repo.read("new.txt"), repo.status()),
            ("new\n".to_owned(), String::new()),
            "{style}"
        );
        repo.is_sound();
    }
}

#[test]
fn fast_forward_only_means_it() {
    let env = TestEnv::new();
    let repo = accepted(&env);
    repo.write("other.txt", "meanwhile\n");
    let head = repo.commit("meanwhile");
    repo.airlock(&["merge", "t1", "--style", "ff"])
        .run()
        .exits(12)
        .says("fast-forward");
    assert_eq!(repo.head(), head);
}

#[test]
fn merge_commits_are_made_on_demand_also_without_need() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--merge=merge"], "echo x = 1 > x.py").exits(0);
    assert_eq!(
        repo.git(&["log", "-1", "--format=%P"]).split(' ').count(),
        2
    );
    repo.task(&["--merge=squash"], "echo y = 1 > y.py").exits(0);
    assert_eq!(
        repo.git(&["log", "-1", "--format=%P"]).split(' ').count(),
        1
    );
    assert_eq!(repo.status(), "");
}

#[test]
fn a_branch_that_is_not_checked_out_moves_without_a_checkout() {
    let env = TestEnv::new();
    let repo = accepted(&env);
    repo.git(&["branch", "release", "main"]);
    repo.airlock(&["merge", "t1", "--into", "release"])
        .run()
        .exits(0);
    assert!(!repo.path().join("new.txt").exists());
    assert_eq!(repo.file_in("release", "new.txt"), "new\n");
    assert_eq!(repo.status(), "");
}

#[test]
fn a_target_that_is_not_there_is_said_to_be_missing() {
    let env = TestEnv::new();
    let repo = accepted(&env);
    repo.airlock(&["merge", "t1", "--into", "nowhere"])
        .run()
        .exits(3)
        .says("nowhere");
}

#[test]
fn a_detached_head_has_no_target_unless_one_is_named() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.git(&["checkout", "-q", "--detach"]);
    repo.airlock(&[
        "run",
        "--merge",
        "--task",
        "t1",
        "--",
        "sh",
        "-c",
        "echo x = 1 > x.py",
    ])
    .run()
    .exits(2)
    .says("detached");
    repo.airlock(&[
        "run",
        "--merge",
        "--into",
        "main",
        "--",
        "sh",
        "-c",
        "echo y = 1 > y.py",
    ])
    .run()
    .exits(0);
    assert_eq!(repo.file_in("main", "y.py"), "y = 1\n");
}

#[test]
fn a_branch_that_somebody_moved_is_not_overwritten() {
    let env = TestEnv::new();
    let repo = env.repository();
    let object = repo
        .task(&["--task", "t1"], "echo '# nothing' > a.py")
        .exits(10)
        .json();
    let branch = object["isolation"]["branch"].as_str().unwrap();
    repo.write("mine.txt", "mine\n");
    let mine = repo.commit("mine");
    repo.git(&["update-ref", &format!("refs/heads/{branch}"), &mine]);
    fs::write(env.task_folder("t1").join("tree/a.py"), "x = 1\n").unwrap();
    repo.airlock(&["deliver", "t1"])
        .run()
        .exits(4)
        .says("moved");
    assert_eq!(repo.tip(&format!("refs/heads/{branch}")), Some(mine));
}

#[test]
fn files_are_written_beneath_the_checkout_and_through_no_link() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("sub/a.txt", "a\n");
    repo.commit("sub");
    repo.task(
        &["--task", "t1"],
        "echo changed > sub/a.txt; echo new > sub/b.txt",
    )
    .exits(0);
    let outside = env.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.txt"), "a\n").unwrap();
    fs::remove_dir_all(repo.path().join("sub")).unwrap();
    std::os::unix::fs::symlink(&outside, repo.path().join("sub")).unwrap();
    let head = repo.head();
    repo.airlock(&["merge", "t1"]).run().exits(4);
    assert_eq!(fs::read_to_string(outside.join("a.txt")).unwrap(), "a\n");
    assert!(!outside.join("b.txt").exists());
    assert_eq!(repo.head(), head);
}

#[test]
fn an_edit_made_after_the_judgement_outlives_the_landing() {
    let env = TestEnv::new();
    let repo = accepted(&env);
    let tree = env.task_folder("t1").join("tree");
    fs::write(tree.join("mine.txt"), "mine\n").unwrap();
    repo.airlock(&["merge", "t1"]).run().exits(0);
    assert!(repo.path().join("new.txt").exists());
    assert!(tree.join("mine.txt").exists(), "it is nowhere else");
    repo.airlock(&["rm", "t1"]).run().exits(4).says("mine.txt");
    repo.airlock(&["rm", "t1", "--discard"]).run().exits(0);
}

#[test]
fn a_merge_carries_nothing_to_a_protected_path() {
    let env = TestEnv::new();
    let repo = env.repository();
    let steps = "on: push\njobs:\n  one: 1\n  two: 2\n  three: 3\n";
    repo.write("ci/build.yml", steps);
    repo.commit("not used yet");
    repo.task(&["--task", "t1"], "echo '  evil: 4' >> ci/build.yml")
        .exits(0);
    fs::create_dir_all(repo.path().join(".github/workflows")).unwrap();
    repo.git(&["mv", "ci/build.yml", ".github/workflows/build.yml"]);
    let head = repo.commit("used from now on");
    repo.airlock(&["merge", "t1"])
        .run()
        .exits(10)
        .says(".github/workflows/build.yml");
    assert_eq!(repo.head(), head);
}
