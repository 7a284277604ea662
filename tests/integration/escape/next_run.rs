//! Files of the next run: what an agent leaves where the next room is mounted, or where the engine reads.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tests::{TestEnv, TestRepo};

use super::attack;

/// A task that has failed and can go on, and a folder outside that must stay as it is.
fn kept(
    env: &TestEnv,
    repo: &TestRepo<'_>,
    flags: &[&str],
) -> (std::path::PathBuf, std::path::PathBuf) {
    repo.write("conf/locked", "locked\n");
    repo.commit("conf");
    let outside = env.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("locked"), "outside\n").unwrap();
    let flags = [&["--task", "t1"], flags].concat();
    let script = "if test -e again; then echo written > conf/locked; echo x > .bg/x; echo x > .sub/x; touch conf/new; else touch again; exit 3; fi";
    repo.task(&flags, script).exits(20);
    (env.task_folder("t1").join("tree"), outside)
}

#[track_caller]
fn untouched(outside: &Path) {
    let names: Vec<_> = fs::read_dir(outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["locked"]);
    assert_eq!(
        fs::read_to_string(outside.join("locked")).unwrap(),
        "outside\n"
    );
}

#[test]
fn a_link_where_the_next_room_is_mounted_is_refused() {
    for name in [".bg", ".sub", ".git"] {
        let env = TestEnv::new();
        let repo = env.repository();
        let (tree, outside) = kept(&env, &repo, &[]);
        let place = tree.join(name);
        if place.is_dir() {
            fs::remove_dir(&place).unwrap();
        } else {
            fs::remove_file(&place).unwrap();
        }
        symlink(&outside, &place).unwrap();
        let run = repo.airlock(&["resume", "t1"]).run();
        assert!(matches!(run.code, Some(2 | 4)), "{name}\n{run}");
        assert!(run.stderr.contains(name), "{run}");
        untouched(&outside);
        repo.airlock(&["rm", "t1", "--discard"]).run().exits(0);
        untouched(&outside);
    }
}

#[test]
fn a_link_on_the_way_to_a_protected_path_is_refused() {
    for (planted, target) in [("conf", ""), ("conf/locked", "locked")] {
        let env = TestEnv::new();
        let repo = env.repository();
        let (tree, outside) = kept(&env, &repo, &["--ro", "conf/locked"]);
        let place = tree.join(planted);
        if place.is_dir() {
            fs::remove_dir_all(&place).unwrap();
        } else {
            fs::remove_file(&place).unwrap();
        }
        symlink(outside.join(target), &place).unwrap();
        let run = repo.airlock(&["resume", "t1"]).run();
        assert_eq!(run.code, Some(2), "{planted}\n{run}");
        assert!(run.stderr.contains("conf"), "{run}");
        untouched(&outside);
    }
}

#[test]
fn a_link_of_the_base_where_a_path_is_shown_leads_nowhere() {
    let env = TestEnv::new();
    let repo = env.repository();
    let outside = env.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("locked"), "outside\n").unwrap();
    symlink(&outside, repo.path().join("vendor")).unwrap();
    repo.commit("a link that leads out");
    for flag in ["--ro", "--rw"] {
        for path in ["vendor", "vendor/locked"] {
            let script = "echo x > vendor/new; echo x > vendor/locked; cat vendor/locked";
            let run = repo.task(&[flag, path], script);
            assert_eq!(run.code, Some(2), "{flag} {path}\n{run}");
            untouched(&outside);
        }
    }
}

#[test]
fn what_is_read_after_a_run_neither_stalls_nor_leaks() {
    let env = TestEnv::new();
    let repo = env.repository();
    fs::create_dir(env.home().join(".ssh")).unwrap();
    let key = env.home().join(".ssh/id");
    fs::write(&key, "PRIVATE-KEY-OF-A-PERSON\n").unwrap();
    repo.write("report.json", "{}\n");
    repo.write("note.md", "note\n");
    repo.commit("report");
    let makers = [
        ("pipe", "os.mkfifo(name)"),
        ("link", "os.symlink(key, name)"),
        ("folder", "os.mkdir(name)"),
        (
            "sparse",
            "f = open(name, 'wb'); f.truncate((32 << 20) if name == 'note.md' else 1)",
        ),
        ("socket", "socket.socket(socket.AF_UNIX).bind(name)"),
        (
            "way",
            "os.mkdir('d'); os.rename('d', name + '.d'); os.symlink(os.path.dirname(key), name)",
        ),
    ];
    for (id, make) in makers {
        let script = format!(
            "key = {key:?}\nfor name in ('report.json', 'note.md', 'README.md'):\n    os.unlink(name); {make}\n"
        );
        let script = format!("{script}open('x.py', 'w').write('x = 1\\n')");
        let flags = ["--cleanup", "never", "--note-file", "note.md"];
        attack(&repo, id, &flags, &script);
        for verb in ["show", "diff", "logs", "events"] {
            let run = repo.airlock(&[verb, id]).run();
            assert!(!format!("{run}").contains("PRIVATE-KEY"), "{run}");
        }
        let kept = grep(&env.state(), b"PRIVATE-KEY");
        assert_eq!(kept, Vec::<String>::new(), "{id}");
    }
}

/// Regular files below a folder that hold these bytes.
fn grep(folder: &Path, word: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(grep(&entry.path(), word));
        } else if kind.is_file() && entry.metadata().unwrap().len() < 16 << 20 {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            if bytes.windows(word.len()).any(|window| window == word) {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}
