//! The rules of the source itself: sizes, names, who may use what, and that README tells the truth.
//! A rule that nobody checks is a wish.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tests::TestEnv;

const CRATES: [&str; 5] = ["runner", "sandbox", "gates", "worktrees", "tests"];
const LONGEST_FILE: usize = 500;
const LONGEST_FUNCTION: usize = 80;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// A Rust file of the workspace.
struct Source {
    name: String,
    text: String,
}

impl Source {
    /// What is built into the product.
    fn production(&self) -> &str {
        self.text
            .split("#[cfg(test)]\nmod ")
            .next()
            .unwrap_or_default()
    }

    /// Production code with comments and the content of literals blanked out.
    fn code(&self) -> String {
        blank(self.production())
    }
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = CRATES.iter().map(|name| root().join(name)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir()
                && path
                    .file_name()
                    .is_some_and(|name| name != "target" && name != "data")
            {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                found.push(Source {
                    name,
                    text: fs::read_to_string(&path).unwrap(),
                });
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(found.len() > 50, "the sources are somewhere else");
    found
}

/// Replaces comments, strings and character literals by blanks; lines stay where they are.
fn blank(text: &str) -> String {
    let bytes: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = bytes.get(at) {
        let end = match c {
            '/' if bytes.get(at + 1) == Some(&'/') => line_end(&bytes, at),
            '/' if bytes.get(at + 1) == Some(&'*') => comment_end(&bytes, at),
            '"' => string_end(&bytes, at),
            'r' | 'b' | 'c' if !word_before(&bytes, at) => raw_end(&bytes, at).unwrap_or(at + 1),
            '\'' => character_end(&bytes, at),
            _ => at + 1,
        };
        if end == at + 1 {
            out.push(c);
        } else {
            out.extend(
                bytes[at..end]
                    .iter()
                    .map(|c| if *c == '\n' { '\n' } else { ' ' }),
            );
        }
        at = end;
    }
    out
}

fn word_before(text: &[char], at: usize) -> bool {
    at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_')
}

fn line_end(text: &[char], at: usize) -> usize {
    text[at..]
        .iter()
        .position(|c| *c == '\n')
        .map_or(text.len(), |length| at + length)
}

fn comment_end(text: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while at + 1 < text.len() {
        match (text[at], text[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn string_end(text: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// The end of `r"…"`, `r#"…"#`, `b"…"`, `br#"…"#` and the like.
fn raw_end(text: &[char], start: usize) -> Option<usize> {
    let mut at = start;
    while at < text.len() && at < start + 2 && "rbc".contains(text[at]) {
        at += 1;
    }
    let raw = text[start..at].contains(&'r');
    let hashes = text[at..].iter().take_while(|c| **c == '#').count();
    if text.get(at + hashes) != Some(&'"') || (hashes > 0 && !raw) {
        return None;
    }
    if !raw {
        return Some(string_end(text, at));
    }
    let close: Vec<char> = std::iter::once('"')
        .chain(std::iter::repeat_n('#', hashes))
        .collect();
    let body = at + hashes + 1;
    let found = text[body..]
        .windows(close.len())
        .position(|window| window == close)?;
    Some(body + found + close.len())
}

fn character_end(text: &[char], start: usize) -> usize {
    match (text.get(start + 1), text.get(start + 2)) {
        (Some('\\'), _) => {
            let rest = text[start + 3..].iter().position(|c| *c == '\'');
            rest.map_or(text.len(), |length| start + 3 + length + 1)
        }
        (Some(_), Some('\'')) => start + 3,
        _ => start + 1,
    }
}

/// Name and number of lines of each function.
fn functions(code: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let starts = code
        .match_indices("fn ")
        .map(|(at, word)| code.split_at(at + word.len()));
    for (before, rest) in starts {
        let inside_a_word = before
            .chars()
            .rev()
            .nth(3)
            .is_some_and(|c| c.is_alphanumeric() || c == '_');
        let name: String = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let (Some(open), end) = (rest.find('{'), rest.find(';')) else {
            continue;
        };
        if inside_a_word || name.is_empty() || end.is_some_and(|end| end < open) {
            continue;
        }
        let (mut depth, mut lines) = (0, 1);
        for c in rest.chars() {
            lines += usize::from(c == '\n');
            depth += i32::from(c == '{') - i32::from(c == '}');
            if c == '}' && depth == 0 {
                found.push((name, lines));
                break;
            }
        }
    }
    found
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
    for source in sources() {
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
    let beside = |source: &&Source| {
        root()
            .join(Path::new(&source.name).with_extension(""))
            .is_dir()
    };
    let offences: Vec<String> = all
        .iter()
        .filter(beside)
        .map(|source| source.name.clone())
        .collect();
    none("foo.rs beside foo/", &offences);
}

#[test]
fn each_thing_is_done_in_its_own_place() {
    let all = sources();
    none(
        "tokio outside the runner",
        &words(&all, &["tokio::"], |name| name.starts_with("runner/")),
    );
    none(
        "unsafe outside sandbox/src/sys.rs",
        &words(&all, &["unsafe "], |name| name == "sandbox/src/sys.rs"),
    );
    let print = ["println!", "print!", "eprintln!", "eprint!", "dbg!"];
    none(
        "printing outside the reporter",
        &words(&all, &print, |name| {
            name.starts_with("runner/src/reporter/") || name.starts_with("tests/")
        }),
    );
    none(
        "sleeping in tests",
        &words(&all, &["thread::sleep"], |name| {
            name == "tests/src/waiting.rs" || !name.starts_with("tests/")
        }),
    );
    none(
        "left for later",
        &words(&all, &["todo!", "unimplemented!", "#[ignore"], |_| false),
    );
    none(
        "allow instead of expect",
        &words(&all, &["#[allow(", "#![allow("], |_| false),
    );
    none(
        "SQL outside the store",
        &words(&all, &["rusqlite::"], |name| {
            name.starts_with("runner/src/store")
        }),
    );
    none(
        "git outside worktrees",
        &words(&all, &["git2::"], |name| name.starts_with("worktrees/")),
    );
}

#[test]
fn no_test_is_skipped_in_silence() {
    let offences: Vec<String> = sources()
        .iter()
        .filter(|source| source.text.contains(concat!("#[", "ignore")))
        .map(|source| source.name.clone())
        .collect();
    none("ignored tests", &offences);
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
        0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 30, 31, 130,
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
