//! What the engine reads out of a tree: the same objects as `git add -A` in a plain checkout, under
//! every configuration; and what a commit cannot hold is named, never dropped.

use std::os::unix::fs::PermissionsExt as _;

use tests::{TestEnv, TestRepo};

/// Changes of every kind; run by the task in its room, and by a shell in a plain clone.
const CHANGES: &str = r"
set -e
printf 'one\r\ntwo\r\n' > crlf.txt
printf 'one\ntwo\n' > lf.txt
printf 'mixed\r\nends\n' > mixed.txt
printf '\000\001\002' > binary.dat
printf 'no newline at the end' > tail.txt
: > empty
printf '#!/bin/sh\n' > tool; chmod 755 tool
ln -s lf.txt link; ln -s /nowhere/at/all dangling
mkdir -p deep/er/est; echo deep > deep/er/est/file; echo two > deep/er/two
printf 'plain\r\n' > forced.crlf; printf 'plain\n' > forced.lf; printf 'id $Id: old $\n' > ident.c
echo ignored > x.log; mkdir -p build; echo y > build/y; echo kept > build/kept.txt
echo again >> tracked.txt
rm gone.txt
mv moved.txt renamed.txt
mkdir -p 'a folder'; echo sp > 'a folder/a file'; echo u > 'ümlaut-文字'
chmod 644 was-tool
mkdir empty-folder
";

type Setting = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

const SETTINGS: &[Setting] = &[
    ("defaults", &[], ""),
    ("autocrlf true", &[("core.autocrlf", "true")], ""),
    (
        "autocrlf input",
        &[("core.autocrlf", "input")],
        "*.dat binary\n",
    ),
    ("eol crlf", &[("core.eol", "crlf")], "* text=auto\n"),
    (
        "attributes",
        &[],
        "* text=auto\n*.crlf text eol=crlf\n*.lf text eol=lf\nident.c ident\nbinary.dat -text\n",
    ),
    ("no file mode", &[("core.fileMode", "false")], ""),
    (
        "everything",
        &[("core.autocrlf", "true"), ("core.fileMode", "false")],
        "*.txt text\nident.c ident\n",
    ),
];

fn prepare<'e>(env: &'e TestEnv, config: &[(&str, &str)], attributes: &str) -> TestRepo<'e> {
    let repo = env.empty_repository("project");
    repo.write("tracked.txt", "one\n");
    repo.write("gone.txt", "gone\n");
    repo.write("moved.txt", "moved\n");
    repo.write("legacy.txt", "committed\r\nwith\r\n");
    repo.write_program("was-tool", "#!/bin/sh\n");
    repo.write(".gitignore", "*.log\nbuild/*\n!build/kept.txt\n");
    if !attributes.is_empty() {
        repo.write(".gitattributes", attributes);
    }
    repo.commit("base");
    for (key, value) in config {
        repo.git(&["config", key, value]);
    }
    repo
}

#[test]
fn the_tree_is_that_of_git_add_under_every_configuration() {
    for (name, config, attributes) in SETTINGS {
        let env = TestEnv::new();
        let repo = prepare(&env, config, attributes);
        let plain = TestRepo::at(&env, env.path().join("plain"));
        repo.git(&[
            "clone",
            "-q",
            "--no-local",
            ".",
            plain.path().to_str().unwrap(),
        ]);
        for (key, value) in *config {
            plain.git(&["config", key, value]);
        }
        plain.git(&["rm", "-q", "-r", "--cached", "."]);
        plain.git(&["reset", "-q", "--hard"]);
        env.program("sh", plain.path())
            .args(["-c", CHANGES])
            .run()
            .exits(0);
        plain.git(&["add", "-A"]);
        let expected = plain.git(&["write-tree"]);
        let object = repo.task(&["--task", "t1"], CHANGES).exits(0).json();
        let sealed = object["tree"].as_str().unwrap();
        if sealed != expected {
            let list = |repo: &TestRepo<'_>, tree: &str| repo.git(&["ls-tree", "-r", tree]);
            assert_eq!(list(&repo, sealed), list(&plain, &expected), "{name}");
        }
        assert_eq!(sealed, expected, "{name}");
    }
}

#[test]
fn an_untouched_tree_is_empty_under_every_configuration() {
    for (name, config, attributes) in SETTINGS {
        let env = TestEnv::new();
        let repo = prepare(&env, config, attributes);
        let run = repo.task(&[], "git status --short; touch tracked.txt");
        assert_eq!(run.code, Some(11), "{name}\n{run}");
        repo.is_clean();
    }
}

#[test]
fn external_filters_keep_their_blobs_and_are_named_when_changed() {
    let env = TestEnv::new();
    let repo = env.empty_repository("project");
    let marker = env.path().join("ran");
    repo.git(&[
        "config",
        "filter.lfs.clean",
        &format!("sh -c 'echo >> {}; echo pointer'", marker.display()),
    ]);
    repo.git(&[
        "config",
        "filter.lfs.smudge",
        &format!("sh -c 'echo >> {}; echo big'", marker.display()),
    ]);
    repo.git(&["config", "filter.lfs.required", "true"]);
    repo.write(".gitattributes", "*.bin filter=lfs -text\n");
    repo.write("a.bin", "big content\n");
    repo.write("b.bin", "big content too\n");
    repo.commit("pointers");
    std::fs::remove_file(&marker).unwrap();
    let base = repo.git(&["rev-parse", "HEAD:a.bin"]);
    repo.task(&[], "true").exits(11);
    let run = repo.task(
        &["--task", "t1"],
        "echo new content > b.bin; echo 'x = 1' > x.py",
    );
    assert_eq!(repo.show("t1")["exit"], run.code.unwrap());
    assert!(run.stdout.contains("b.bin"), "the path is named\n{run}");
    let commit = run.json()["commit"].as_str().unwrap().to_owned();
    assert_eq!(
        repo.git(&["rev-parse", &format!("{commit}:a.bin")]),
        base,
        "untouched: its base blob"
    );
    assert!(!marker.exists(), "a filter ran on the host");
}

#[test]
fn a_filter_that_the_agent_adds_does_not_count() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.git(&["config", "filter.hide.clean", "true"]);
    let object = repo
        .task(
            &["--allow", ".gitattributes", "--task", "t1"],
            "echo '*.py filter=hide' > .gitattributes; echo 'x = 1' > x.py",
        )
        .json();
    let commit = object["commit"].as_str().unwrap();
    assert_eq!(
        repo.file_in(commit, "x.py"),
        "x = 1\n",
        "sealed raw, so that it can be judged"
    );
}

#[test]
fn what_a_commit_cannot_hold_is_refused_by_name() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "nested repository",
            "mkdir app; git -C app init -q; echo x = 1 > app/x.py",
            "app",
        ),
        (
            "nested repository with a commit",
            "git init -q app; cd app; echo 1 > f; git add f; git -c user.name=a -c user.email=a@b commit -qm x",
            "app",
        ),
        (
            "nested .git file",
            "mkdir app; echo 'gitdir: /tmp' > app/.git; echo x > app/x",
            "app",
        ),
        (
            "odd case",
            "mkdir -p app/.GIT/hooks; echo x > app/.GIT/config",
            "app",
        ),
        ("fifo", "mkfifo pipe", "pipe"),
        (
            "fifo among files",
            "echo x = 1 > x.py; mkdir d; mkfifo d/pipe",
            "d/pipe",
        ),
        (
            "gitlink",
            "git init -q /tmp/m; cd /tmp/m; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; cd -; git clone -q /tmp/m module",
            "module",
        ),
    ];
    for (name, script, path) in cases {
        let env = TestEnv::new();
        let repo = env.repository();
        let run = repo.task(&["--merge", "--task", "t1"], script);
        assert_eq!(run.code, Some(10), "{name}\n{run}");
        let object = run.json();
        let tree = object["gates"]
            .as_array()
            .unwrap()
            .iter()
            .find(|gate| gate["gate"] == "tree")
            .unwrap();
        assert_eq!(tree["finding"], "fail", "{name}");
        let paths: Vec<&str> = tree["reasons"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|r| r["path"].as_str())
            .collect();
        assert!(
            paths.iter().any(|found| found.starts_with(path)),
            "{name}: {path} in {paths:?}"
        );
        assert!(
            !env.task_folder("t1")
                .join("tree")
                .join(path)
                .join(".git")
                .exists(),
            "{name}: harmless for a host's git"
        );
        repo.airlock(&["rm", "t1", "--discard"]).run().exits(0);
        repo.is_clean();
    }
}

#[test]
fn a_socket_and_a_device_like_file_are_refused_by_name() {
    let env = TestEnv::new();
    let repo = env.repository();
    let agent = env.fake_agent();
    let folder = agent.parent().unwrap().to_str().unwrap().to_owned();
    let run = repo
        .airlock(&["run", "--json", "--task", "t1", "--ro", &folder, "--"])
        .arg(&agent)
        .args(["socket", "listening", "write", "x.py", "x = 1\n"])
        .run()
        .exits(10);
    assert!(
        run.json()["gates"].to_string().contains("listening"),
        "{run}"
    );
}

#[test]
fn set_id_bits_do_not_survive() {
    let env = TestEnv::new();
    let repo = env.repository();
    let run = repo.task(
        &["--task", "t1"],
        "cp /usr/bin/id tool; chmod 4755 tool && echo set; chmod 2755 tool && echo set",
    );
    let tool = env.task_folder("t1").join("tree/tool");
    let mode = std::fs::metadata(&tool).unwrap().permissions().mode();
    let refused = run.code == Some(10) && run.stdout.contains("tool");
    assert!(mode & 0o6000 == 0 || refused, "mode {mode:o}\n{run}");
}

#[test]
fn a_submodule_that_is_edited_is_named() {
    let env = TestEnv::new();
    let module = env.empty_repository("module");
    module.write("m.txt", "m\n");
    module.commit("module");
    let repo = env.repository();
    let url = module.path().to_str().unwrap();
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        url,
        "lib/module",
    ]);
    repo.commit("a submodule");
    repo.task(&[], "true").exits(11);
    let run = repo
        .task(
            &["--task", "t1"],
            "mkdir -p lib/module; echo edit > lib/module/m.txt; echo 'x = 1' > x.py",
        )
        .exits(10);
    assert!(
        run.json()["gates"].to_string().contains("lib/module"),
        "{run}"
    );
}

#[test]
fn links_are_read_and_never_followed() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("sub/a.txt", "a\n");
    repo.commit("sub");
    let secret = env.path().join("secret");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(secret.join("a.txt"), "secret\n").unwrap();
    let script = format!(
        "rm -r sub; ln -s {} sub; ln -s /proc/self/environ environ; ln -s / root",
        secret.display()
    );
    let object = repo.task(&[], &script).exits(0).json();
    let listed = repo.git(&[
        "ls-tree",
        "-r",
        "--format=%(objectmode) %(path)",
        object["commit"].as_str().unwrap(),
    ]);
    assert_eq!(
        listed,
        "100644 README.md\n120000 environ\n120000 root\n120000 sub"
    );
}

#[test]
fn tricks_that_hide_changes_hide_nothing() {
    let cases: &[(&str, &str)] = &[
        (
            "skip-worktree",
            "git update-index --skip-worktree code.py; seq 500 | sed 's/.*/x& = &/' > code.py",
        ),
        (
            "assume-unchanged",
            "git update-index --assume-unchanged code.py; seq 500 | sed 's/.*/x& = &/' > code.py",
        ),
        (
            "exclude",
            "echo '*.py' > \"$(git rev-parse --git-path info/exclude)\"; seq 500 | sed 's/.*/x& = &/' > code.py",
        ),
        (
            "excludesfile",
            "git config --global core.excludesFile /tmp/x; echo '*.py' > /tmp/x; seq 500 | sed 's/.*/x& = &/' > code.py",
        ),
        (
            "same size and time",
            "seq 500 | sed 's/.*/x& = &/' > code.py; touch -d @1 code.py; git add -A; git commit -qm x",
        ),
        (
            "own commits, then a clean tree",
            "seq 500 | sed 's/.*/x& = &/' > code.py; git add -A; git commit -qm x; git status --short",
        ),
        (
            "detached",
            "git checkout -q --detach; seq 500 | sed 's/.*/x& = &/' > code.py; git commit -qam x",
        ),
        (
            "replace",
            "seq 500 | sed 's/.*/x& = &/' > code.py; git replace -f HEAD^{tree} $(git mktree < /dev/null)",
        ),
    ];
    for (name, script) in cases {
        let env = TestEnv::new();
        let repo = env.repository();
        repo.write("code.py", "x = 1\n");
        repo.commit("code");
        let run = repo.task(&["--task", "t1"], script);
        assert_eq!(run.code, Some(0), "{name}\n{run}");
        let object = run.json();
        assert_eq!(
            object["modified_files"],
            serde_json::json!(["code.py"]),
            "{name}\n{run}"
        );
        assert_eq!(object["files"][0]["lines"], 500, "{name}");
    }
}

#[test]
fn an_attribute_that_hides_a_diff_hides_no_measure() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "echo '*.py -diff -text export-ignore' > .gitattributes; seq 500 | sed 's/.*/x& = &/' > code.py";
    let object = repo
        .task(&["--allow", ".gitattributes", "--task", "t1"], script)
        .json();
    let file = object["files"]
        .as_array()
        .unwrap()
        .iter()
        .find(|file| file["path"] == "code.py")
        .unwrap();
    assert_eq!(file["lines"], 500);
    assert_eq!(object["diff_stat"]["insertions"], 501);
}

#[test]
fn odd_names_come_through_unchanged() {
    let env = TestEnv::new();
    let repo = env.repository();
    let agent = env.fake_agent();
    let folder = agent.parent().unwrap().to_str().unwrap().to_owned();
    let in_base = env
        .program(agent.to_str().unwrap(), repo.path())
        .args(["write-odd-names", "base"])
        .run();
    in_base.exits(0);
    repo.commit("odd names in the base");
    let run = repo
        .airlock(&[
            "run", "--json", "--merge", "--task", "t1", "--ro", &folder, "--",
        ])
        .arg(&agent)
        .args(["write-odd-names", "new"])
        .run()
        .exits(0);
    assert_eq!(
        run.json()["modified_files"].as_array().unwrap().len(),
        6,
        "{run}"
    );
    let names = |folder: &str| {
        repo.git(&[
            "ls-tree",
            "-z",
            "--format=%(objectname) %(path)",
            &format!("HEAD:{folder}"),
        ])
    };
    assert_eq!(names("new"), names("base"));
    assert_eq!(repo.status(), "");
    for verb in ["show", "diff", "events"] {
        repo.airlock(&[verb, "t1"]).run().exits(0);
    }
    repo.is_clean();
}
