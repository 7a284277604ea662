//! The rules of the source itself: sizes, names, who may use what, and that README tells the truth.
//! A rule that nobody checks is a wish.

mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tests::TestEnv;

use source::{Source, blank, functions, sources};

const CRATES: [&str; 5] = ["runner", "sandbox", "gates", "worktrees", "tests"];
const LONGEST_FILE: usize = 500;
const LONGEST_FUNCTION: usize = 80;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

#[track_caller]
fn none(what: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{what}:\n  {}", offences.join("\n  "));
}

/// Lines of code outside `allowed` that hold one of the words.
fn words(sources: &[Source], words: &[&str], allowed: impl Fn(&str) -> bool) -> Vec<String> {
    let mut offences = Vec::new();
    for source in sources.iter().filter(|source| !allowed(&source.name)) {
        for (number, line) in source.code().lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(*word)) {
                offences.push(format!("{}:{}: {word}", source.name, number + 1));
            }
        }
    }
    offences
}

#[test]
fn the_rules_can_be_checked() {
    let text = "fn a() { let x = \"}\"; // }\n let y = '}'; let l: &'static str = r#\"}\"#; }\nfn b() {}\n";
    assert_eq!(
        functions(&blank(text)),
        [("a".to_owned(), 2), ("b".to_owned(), 1)]
    );
    assert!(!blank("/* unsafe /* x */ */ \"unsafe\" b'\\'' 'u'").contains("unsafe"));
}

#[test]
fn files_and_functions_are_short() {
    let mut offences = Vec::new();
    let of_a_crate =
        |source: &Source| source.name.starts_with("tests/") || !source.name.contains("/tests/");
    for source in sources().into_iter().filter(of_a_crate) {
        let lines = source.production().lines().count();
        if lines > LONGEST_FILE {
            offences.push(format!("{}: {lines} lines", source.name));
        }
        for (name, lines) in functions(&source.code()) {
            if lines > LONGEST_FUNCTION {
                offences.push(format!("{}: fn {name} has {lines} lines", source.name));
            }
        }
    }
    none("too long", &offences);
}

#[test]
fn files_say_first_what_they_hold() {
    let offences: Vec<String> = sources()
        .iter()
        .filter(|source| !source.text.starts_with("//! "))
        .map(|source| source.name.clone())
        .collect();
    none("files that do not open with //!", &offences);
}

#[test]
fn names_come_from_the_domain() {
    let empty_words = [
        "util", "utils", "helper", "helpers", "common", "misc", "shared",
    ];
    let mut offences = Vec::new();
    for source in sources() {
        let path = Path::new(&source.name);
        let parts = path.with_extension("");
        if parts.iter().any(|part| {
            empty_words
                .iter()
                .any(|word| part.eq_ignore_ascii_case(word))
        }) {
            offences.push(source.name.clone());
        }
        for line in source.code().lines() {
            let words: Vec<&str> = line
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .collect();
            for pair in words
                .windows(2)
                .filter(|pair| ["struct", "enum", "trait", "type"].contains(&pair[0]))
            {
                if ["Manager", "Service", "Handler"]
                    .iter()
                    .any(|end| pair[1].ends_with(end))
                {
                    offences.push(format!("{}: {}", source.name, pair[1]));
                }
            }
        }
    }
    none("names that say nothing", &offences);
}

#[test]
fn modules_are_folders_with_a_mod_file() {
    let all = sources();
    let is_there = |name: &str| all.iter().any(|source| source.name.starts_with(name));
    let beside = |source: &&Source| is_there(&format!("{}/", source.name.trim_end_matches(".rs")));
    let offences = all
        .iter()
        .filter(beside)
        .map(|source| source.name.clone())
        .collect::<Vec<_>>();
    none("foo.rs beside foo/", &offences);
}

#[test]
fn each_thing_is_done_in_its_own_place() {
    let all = sources();
    let of_tests = |name: &str| name.starts_with("tests/") || name.contains("/tests/");
    let in_runner = |name: &str| name.starts_with("runner/");
    none(
        "tokio outside the runner",
        &words(&all, &["tokio::"], in_runner),
    );
    let system_calls = |name: &str| name == "sandbox/src/sys.rs";
    none(
        "unsafe outside sandbox/src/sys.rs",
        &words(&all, &["unsafe "], system_calls),
    );
    let print = ["println!", "print!", "eprintln!", "eprint!", "dbg!"];
    // A build script speaks to Cargo in this way.
    let reporter = |name: &str| {
        name.starts_with("runner/src/reporter/") || name == "runner/build.rs" || of_tests(name)
    };
    none(
        "printing outside the reporter",
        &words(&all, &print, reporter),
    );
    let awake = |name: &str| name == "tests/src/waiting.rs" || !of_tests(name);
    none("sleeping in tests", &words(&all, &["thread::sleep"], awake));
    let later = ["todo!", "unimplemented!", "#[ignore"];
    none("left for later", &words(&all, &later, |_| false));
    let silenced = ["#[allow(", "#![allow("];
    none(
        "allow instead of expect",
        &words(&all, &silenced, |_| false),
    );
    let store = |name: &str| name.starts_with("runner/src/store");
    none(
        "SQL outside the store",
        &words(&all, &["rusqlite::"], store),
    );
    let worktrees = |name: &str| name.starts_with("worktrees/");
    none(
        "git outside worktrees",
        &words(&all, &["git2::"], worktrees),
    );
}

#[test]
fn crates_depend_in_one_direction() {
    let allowed: [(&str, &[&str], &[&str]); 4] = [
        (
            "worktrees",
            &[],
            &["tokio", "rusqlite", "clap", "sandbox", "gates", "runner"],
        ),
        (
            "sandbox",
            &[],
            &[
                "tokio",
                "rusqlite",
                "clap",
                "git2",
                "worktrees",
                "gates",
                "runner",
            ],
        ),
        (
            "gates",
            &[],
            &[
                "tokio",
                "rusqlite",
                "clap",
                "git2",
                "nix",
                "rustix",
                "worktrees",
                "sandbox",
                "runner",
            ],
        ),
        (
            "runner",
            &["worktrees", "sandbox", "gates"],
            &["git2", "tests"],
        ),
    ];
    for (name, wanted, forbidden) in allowed {
        let text = fs::read_to_string(root().join(name).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        let dependencies: BTreeSet<&str> = manifest["dependencies"]
            .as_table()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        for wanted in wanted {
            assert!(dependencies.contains(wanted), "{name} should use {wanted}");
        }
        for forbidden in forbidden {
            assert!(
                !dependencies.contains(forbidden),
                "{name} must not use {forbidden}"
            );
        }
        assert!(
            manifest["lints"]["workspace"].as_bool().unwrap(),
            "{name} has lints of its own"
        );
    }
}

#[test]
fn the_top_level_holds_what_it_should_and_nothing_is_generated() {
    let env = TestEnv::new();
    let tracked = env
        .program("git", &root())
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .run()
        .exits(0)
        .stdout;
    let names: Vec<&str> = tracked
        .split('\0')
        .filter(|name| !name.is_empty())
        .collect();
    let top: BTreeSet<&str> = names
        .iter()
        .filter_map(|name| name.split('/').next())
        .collect();
    let expected = ["Cargo.toml", "Cargo.lock", "README.md"];
    let offences: Vec<String> = top
        .iter()
        .filter(|name| !name.starts_with('.') && !name.starts_with("LICENSE"))
        .filter(|name| !expected.contains(*name) && !CRATES.contains(*name))
        .map(|name| (*name).to_owned())
        .collect();
    none("at the top level", &offences);
    let generated = [
        ".snap",
        ".pending-snap",
        ".orig",
        ".rej",
        ".bak",
        ".log",
        ".pyc",
    ];
    let offences: Vec<String> = names
        .iter()
        .filter(|name| {
            generated.iter().any(|end| name.ends_with(end)) || name.starts_with("target/")
        })
        .map(|name| (*name).to_owned())
        .collect();
    none("generated files", &offences);
}

#[test]
fn the_readme_names_every_crate_verb_and_exit_code() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(
        readme.lines().count() < 150,
        "{} lines",
        readme.lines().count()
    );
    let mut missing: Vec<String> = Vec::new();
    for name in CRATES {
        if !readme.contains(&format!("`{name}`")) {
            missing.push(name.to_owned());
        }
    }
    let env = TestEnv::new();
    for verb in crate::cli::verbs(&env)
        .into_iter()
        .filter(|verb| verb != "help")
    {
        let named = readme
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| word == verb);
        if !named {
            missing.push(verb);
        }
    }
    for code in [
        0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24, 30, 31, 130,
    ] {
        if !readme.contains(&format!("| {code} |")) {
            missing.push(format!("exit code {code}"));
        }
    }
    none("not in README.md", &missing);
}

#[test]
fn the_readme_gives_two_commands_and_they_are_there() {
    use std::os::unix::fs::PermissionsExt as _;
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let fenced: Vec<&str> = readme
        .split("```sh\n")
        .skip(1)
        .filter_map(|part| part.split("\n```").next())
        .collect();
    assert_eq!(fenced, [".ci/demo", ".ci/run"], "exactly two commands");
    for script in fenced {
        let path = root().join(script);
        assert!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o111 != 0,
            "{script} cannot be executed"
        );
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("#!/usr/bin/env bash\n") && text.contains("set -euo pipefail"),
            "{script}"
        );
    }
}

/// Where a test lies that a document names, and its own name.
fn place_of(test: &str) -> Option<(PathBuf, &str)> {
    let (module, name) = test.rsplit_once("::")?;
    let file = format!("{}.rs", module.replace("::", "/"));
    let below = [
        root().join("tests/integration"),
        root().join("sandbox/tests"),
        root().join("sandbox/src"),
    ];
    let file = file.strip_prefix("sandbox/").unwrap_or(&file).to_owned();
    let path = below.iter().map(|folder| folder.join(&file));
    Some((path.into_iter().find(|path| path.exists())?, name))
}

#[test]
fn each_promise_of_the_room_names_tests_that_there_are_and_each_test_has_a_promise() {
    let text = fs::read_to_string(root().join("sandbox/README.md")).unwrap();
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| promise"));
    let mut named = BTreeSet::new();
    let mut offences = Vec::new();
    for row in rows {
        let tests: Vec<&str> = row
            .split('`')
            .filter(|word| word.contains("::") && !word.contains(' '))
            .collect();
        if tests.is_empty() {
            offences.push(format!("no test: {row}"));
        }
        for test in tests {
            let found = place_of(test).is_some_and(|(path, name)| {
                fs::read_to_string(path)
                    .unwrap()
                    .contains(&format!("fn {name}("))
            });
            if !found {
                offences.push(format!("there is no {test}"));
            }
            named.insert(test.to_owned());
        }
    }
    let suite = |name: &str| {
        name.starts_with("tests/integration/escape/") || name == "tests/integration/unavailable.rs"
    };
    for source in sources().iter().filter(|source| suite(&source.name)) {
        let module = source
            .name
            .trim_start_matches("tests/integration/")
            .trim_end_matches(".rs")
            .replace('/', "::");
        for part in source.text.split("#[test]\nfn ").skip(1) {
            let test = format!("{module}::{}", part.split('(').next().unwrap_or_default());
            if !named.contains(&test) {
                offences.push(format!("{test} has no promise"));
            }
        }
    }
    assert!(named.len() > 50, "the table is somewhere else");
    none("sandbox/README.md", &offences);
}
