//! Many at once: tasks of one repository, also from several processes, and beside a person's own git.

use std::collections::BTreeSet;

use tests::{TestEnv, within};

#[test]
fn twenty_parallel_runs_all_succeed() {
    let env = TestEnv::new();
    let repo = env.repository();
    let config = repo.read(".git/config");
    let runs: Vec<_> = (0..20)
        .map(|number| {
            let script = format!("echo 'x = {number}' > file_{number}.py");
            repo.airlock(&["run", "--json", "--", "sh", "-c", &script])
                .spawn()
        })
        .collect();
    let objects: Vec<_> = runs
        .into_iter()
        .map(|run| run.wait().exits(0).json())
        .collect();
    let branches: BTreeSet<_> = objects
        .iter()
        .map(|object| object["isolation"]["branch"].to_string())
        .collect();
    assert_eq!(branches.len(), 20);
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 21);
    assert_eq!(
        repo.read(".git/config"),
        config,
        "the configuration of the repository is never written"
    );
    for object in &objects {
        let commit = object["commit"].as_str().unwrap();
        assert!(
            repo.git_agrees(&["notes", "--ref", "airlock", "show", commit]),
            "no note is lost"
        );
    }
    repo.is_sound();
}

#[test]
fn tasks_that_deliver_the_same_files_do_not_disturb_each_other() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "for i in 1 2 3 4 5 6 7 8; do echo \"x = $i\" > file_$i.py; : > empty_$i; done";
    let start = || {
        repo.airlock(&["run", "--json", "--", "sh", "-c", script])
            .spawn()
    };
    let runs: Vec<_> = (0..10).map(|_| start()).collect();
    let trees: BTreeSet<_> = runs
        .into_iter()
        .map(|run| run.wait().exits(0).json()["tree"].to_string())
        .collect();
    assert_eq!(trees.len(), 1);
    repo.is_sound();
}

#[test]
fn parallel_landings_on_one_branch_all_land() {
    let env = TestEnv::new();
    let repo = env.repository();
    let runs: Vec<_> = (0..6)
        .map(|number| {
            let script = format!("echo 'x = {number}' > file_{number}.py");
            repo.airlock(&["run", "--json", "--merge", "--", "sh", "-c", &script])
                .spawn()
        })
        .collect();
    for run in runs {
        assert_eq!(run.wait().exits(0).json()["state"], "landed");
    }
    for number in 0..6 {
        assert_eq!(
            repo.read(&format!("file_{number}.py")),
            format!("x = {number}\n")
        );
    }
    assert_eq!(repo.status(), "");
    repo.is_clean();
}

#[test]
fn a_held_config_lock_does_not_matter() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write(".git/config.lock", "");
    repo.task(&["--merge"], "echo 'x = 1' > x.py").exits(0);
    std::fs::remove_file(repo.path().join(".git/config.lock")).unwrap();
    repo.is_clean();
}

#[test]
fn a_held_ref_lock_fails_before_anything_is_made() {
    let env = TestEnv::new();
    let repo = env.repository();
    env.configure("[task]\nbranch = \"wip/{task}\"\n");
    repo.write(".git/refs/heads/wip/t1.lock", "");
    let before = repo.references();
    repo.airlock(&["run", "--task", "t1", "--", "true"])
        .run()
        .exits(4);
    assert_eq!(repo.references(), before);
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
    std::fs::remove_file(repo.path().join(".git/refs/heads/wip/t1.lock")).unwrap();
    repo.is_sound();
}

#[test]
fn branches_that_exclude_each_other_are_refused_before_anything_is_made() {
    let cases = [
        ("feat", "feat/{task}"),
        ("feat/t1/x", "feat/{task}"),
        ("feat/t1", "feat/{task}"),
    ];
    for (existing, template) in cases {
        let env = TestEnv::new();
        let repo = env.repository();
        env.configure(&format!("[task]\nbranch = \"{template}\"\n"));
        repo.git(&["branch", existing]);
        let before = repo.references();
        repo.airlock(&["run", "--task", "t1", "--", "true"])
            .run()
            .exits(4)
            .says("feat");
        assert_eq!(repo.references(), before, "{existing}");
        assert_eq!(
            repo.git(&["worktree", "list"]).lines().count(),
            1,
            "{existing}"
        );
        repo.is_clean();
    }
}

#[test]
fn an_id_is_given_once() {
    let env = TestEnv::new();
    let repo = env.repository();
    let runs: Vec<_> = (0..4)
        .map(|_| {
            repo.airlock(&[
                "run",
                "--task",
                "same",
                "--",
                "sh",
                "-c",
                "echo 'x = 1' > x.py",
            ])
            .spawn()
        })
        .collect();
    let mut codes: Vec<_> = runs.into_iter().map(|run| run.wait().code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(4), Some(4), Some(4)]);
}

#[test]
fn a_person_may_commit_while_tasks_land() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.git(&["branch", "target"]);
    let runs: Vec<_> = (0..4)
        .map(|number| {
            let script = format!("echo 'x = {number}' > file_{number}.py");
            repo.airlock(&[
                "run", "--merge", "--base", "target", "--into", "target", "--", "sh", "-c", &script,
            ])
            .spawn()
        })
        .collect();
    for number in 0..10 {
        repo.write(&format!("mine_{number}.txt"), "mine\n");
        repo.commit("mine");
    }
    for run in runs {
        run.wait().exits(0);
    }
    let listed = repo.git(&["ls-tree", "--name-only", "target"]);
    assert_eq!(
        listed
            .lines()
            .filter(|name| name.starts_with("file_"))
            .count(),
        4,
        "{listed}"
    );
    repo.is_clean();
}

#[test]
fn the_supervisor_goes_when_there_is_nothing_to_do() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(&["--merge"], "echo 'x = 1' > x.py").exits(0);
    let gone = within(std::time::Duration::from_secs(15), || {
        env.processes().is_empty()
    });
    assert!(gone, "{:#?}", env.processes());
}
