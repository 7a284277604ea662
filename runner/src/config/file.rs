//! The sections of `config.toml` and `airlock.toml`, read into [`Wishes`]. Every key that is not
//! listed here is refused; so is a key of the repository's file that only a user may set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gates::Gate;

use super::agents::{self, Agent};
use super::document::{ConfigError, Document, Section, Source};
use super::environment::EnvEntry;
use super::origin::Given;
use super::setup::SetupWishes;
use super::toolchains::Choice;
use super::wishes::{GateWishes, Limits, Wishes};
use super::{branch, credentials, quantity, words};
use crate::task::Net;

/// Reads a file. `home` stands for `~` in paths.
pub fn read(source: Source, bytes: &[u8], home: Option<&Path>) -> Result<Wishes, ConfigError> {
    let document = Document::parse(source, bytes)?;
    let root = document.root();
    root.only(&[
        "task", "setup", "sandbox", "agent", "gates", "protect", "merge",
    ])?;
    let mut wishes = Wishes::default();
    task(&root.section("task")?, &mut wishes, document.source())?;
    sandbox(
        &root.section("sandbox")?,
        &mut wishes,
        (document.source(), home),
    )?;
    wishes.setup = SetupWishes::read(&root.section("setup")?)?;
    let agents = root.section("agent")?;
    for name in agents.keys() {
        let base = base_of(document.source(), &name);
        let agent = Agent::read(&agents.section(&name)?, base.as_ref())?;
        wishes
            .agents
            .insert(name.clone(), Given::new(agent, agents.origin(&name)));
    }
    wishes.gates = gates(&root.section("gates")?)?;
    let protect = root.section("protect")?;
    protect.only(&["paths", "allow"])?;
    wishes.protect = protect.texts("paths")?;
    wishes.allow = protect.texts("allow")?;
    let merge = root.section("merge")?;
    merge.only(&["into", "style"])?;
    wishes.into = merge.read("into", |name| branch::check(name).map(|()| name.to_owned()))?;
    wishes.style = merge.read("style", words::style)?;
    Ok(wishes)
}

/// What a profile changes: the user's own that of the same name, if one comes with the program. A
/// repository's stands for itself, so that it never inherits which credential goes where.
fn base_of(source: &Source, name: &str) -> Option<Agent> {
    match source {
        Source::User(_) => agents::built_in().remove(name).map(|agent| agent.value),
        Source::Repository | Source::BuiltIn(_) => None,
    }
}

fn task(section: &Section<'_>, wishes: &mut Wishes, source: &Source) -> Result<(), ConfigError> {
    section.only(&[
        "agent",
        "attempts",
        "base",
        "branch",
        "cleanup",
        "idle_timeout",
        "isolation",
        "note_file",
        "timeout",
    ])?;
    if *source == Source::Repository {
        for (key, why) in [
            (
                "base",
                "this file is read from the base, so it cannot choose it",
            ),
            (
                "agent",
                "which agent gets your credentials is set in your own config.toml or by --agent",
            ),
        ] {
            if section.text(key)?.is_some() {
                return Err(section.bad(key, &why));
            }
        }
    }
    wishes.agent = section.text("agent")?;
    wishes.base = section.text("base")?;
    wishes.branch = section.read("branch", |template| {
        branch::fill(template, "run", "task", "agent").map(|_| template.to_owned())
    })?;
    wishes.cleanup = section.read("cleanup", words::cleanup)?;
    wishes.isolation = section.read("isolation", words::isolation)?;
    wishes.note_file = section.read("note_file", |path| {
        note_file(path).map(|()| path.to_owned())
    })?;
    wishes.limits.timeout_ms = section.read("timeout", quantity::duration_ms)?;
    wishes.limits.idle_ms = section.read("idle_timeout", quantity::duration_ms)?;
    wishes.attempts = match section.number("attempts")? {
        None => None,
        Some(number) => match attempts(number.value) {
            Ok(count) => Some(Given::new(count, number.origin)),
            Err(problem) => return Err(section.bad("attempts", &problem)),
        },
    };
    Ok(())
}

fn sandbox(
    section: &Section<'_>,
    wishes: &mut Wishes,
    (source, home): (&Source, Option<&Path>),
) -> Result<(), ConfigError> {
    section.only(&[
        "credentials",
        "disk",
        "env",
        "file_size",
        "files",
        "grace",
        "home",
        "memory",
        "net",
        "output",
        "pids",
        "ro",
        "rw",
        "tmp",
        "toolchain",
    ])?;
    wishes.net = net(section)?;
    let credentials = section.section("credentials")?;
    if *source == Source::Repository && !credentials.keys().is_empty() {
        let why = "credentials are set in your own config.toml only";
        return Err(section.bad("credentials", &why));
    }
    wishes.credentials = credentials::read(&credentials, home)?;
    wishes.toolchain = toolchain(section)?;
    wishes.ro = paths(section, "ro", home)?;
    wishes.rw = paths(section, "rw", home)?;
    wishes.env = EnvEntry::list(section, "env")?;
    let pids = section.number("pids")?;
    if let Some(problem) = pids.as_ref().and_then(|pids| pids_problem(pids.value)) {
        return Err(section.bad("pids", &problem));
    }
    let files = section.number("files")?;
    if let Some(problem) = files.as_ref().and_then(|files| files_problem(files.value)) {
        return Err(section.bad("files", &problem));
    }
    wishes.limits = Limits {
        timeout_ms: wishes.limits.timeout_ms.take(),
        idle_ms: wishes.limits.idle_ms.take(),
        grace_ms: section.read("grace", quantity::duration_ms)?,
        pids,
        memory: section.read("memory", memory)?,
        disk: section.read("disk", quantity::bytes)?,
        files,
        home: section.read("home", quantity::bytes)?,
        tmp: section.read("tmp", quantity::bytes)?,
        output: section.read("output", quantity::bytes)?,
        file_size: section.read("file_size", quantity::bytes)?,
    };
    Ok(())
}

/// `net = "allow:npm,example.org"`, or the list alone.
fn net(section: &Section<'_>) -> Result<Option<Given<Net>>, ConfigError> {
    if section.text("net").is_ok() {
        return section.read("net", words::net);
    }
    let entries = section.texts("net")?;
    let net = words::net_list(entries.iter().map(|entry| &entry.value));
    match net {
        Ok(net) => Ok(Some(Given::new(net, section.origin("net")))),
        Err(problem) => Err(section.bad("net", &problem)),
    }
}

/// `toolchain = "auto"`, or a list of words.
fn toolchain(section: &Section<'_>) -> Result<Option<Given<Choice>>, ConfigError> {
    const KEY: &str = "toolchain";
    let words = match section.text(KEY) {
        Ok(None) => return Ok(None),
        Ok(Some(word)) => vec![word],
        Err(not_one) => section.texts(KEY).map_err(|_not_several| not_one)?,
    };
    let origin = words
        .first()
        .map_or_else(|| section.origin(KEY), |word| word.origin.clone());
    let words: Result<Vec<_>, _> = words
        .iter()
        .map(|word| words::toolchain(&word.value))
        .collect();
    let words = words.map_err(|problem| section.bad(KEY, &problem))?;
    let choice = Choice::of(&words).map_err(|problem| section.bad(KEY, &problem))?;
    Ok(Some(Given::new(choice, origin)))
}

fn paths(
    section: &Section<'_>,
    key: &str,
    home: Option<&Path>,
) -> Result<Vec<Given<PathBuf>>, ConfigError> {
    let texts = section.texts(key)?;
    texts
        .into_iter()
        .map(|text| match (text.value.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => Ok(Given::new(home.join(rest), text.origin)),
            (Some(_), None) => Err(section.bad(key, &"HOME is not set, so ~ means nothing")),
            (None, _) if text.value.starts_with('/') => Ok(text.map(PathBuf::from)),
            (None, _) => Err(section.bad(
                key,
                &format!("{:?} is neither absolute nor below ~/", text.value),
            )),
        })
        .collect()
}

/// `[gates] NAME = "MODE"`, or a section `[gates.NAME]` with `mode` and more.
fn gates(section: &Section<'_>) -> Result<GateWishes, ConfigError> {
    let known: Vec<&str> = Gate::ALL
        .iter()
        .map(|gate| gate.name())
        .chain(["skip"])
        .collect();
    section.only(&known)?;
    let mut wishes = GateWishes {
        skip: section.texts("skip")?,
        ..GateWishes::default()
    };
    for gate in Gate::ALL {
        let name = gate.name();
        let word = match section.text(name) {
            Ok(Some(_)) => section.read(name, |word| words::gate_word(gate, word))?,
            Ok(None) => None,
            Err(_not_a_word) => one_gate(&section.section(name)?, gate, &mut wishes)?,
        };
        if let Some(word) = word {
            set(&mut wishes, gate, word);
        }
    }
    Ok(wishes)
}

fn one_gate(
    section: &Section<'_>,
    gate: Gate,
    wishes: &mut GateWishes,
) -> Result<Option<Given<words::GateWord>>, ConfigError> {
    match gate {
        Gate::Stub => {
            section.only(&["mode", "python", "skip"])?;
            wishes.python = section.read("python", str::parse)?;
            wishes.skip.extend(section.texts("skip")?);
        }
        Gate::Audit => {
            section.only(&["mode", "max_file"])?;
            wishes.max_file = section.read("max_file", quantity::bytes)?;
        }
        Gate::Commit | Gate::Tree | Gate::Diagram => section.only(&["mode"])?,
    }
    section.read("mode", |word| words::gate_word(gate, word))
}

/// Sets a gate to a word.
pub fn set(wishes: &mut GateWishes, gate: Gate, word: Given<words::GateWord>) {
    match word.value {
        words::GateWord::Mode(mode) => {
            wishes.modes.insert(gate, Given::new(mode, word.origin));
        }
        words::GateWord::Figures(figures) => {
            wishes.diagram = Some(Given::new(figures, word.origin));
        }
    }
}

/// Attempts within reason.
pub fn attempts(count: u64) -> Result<u32, String> {
    match u32::try_from(count) {
        Ok(count @ 1..=100) => Ok(count),
        Ok(_) | Err(_) => Err(format!("{count} is not from 1 to 100")),
    }
}

/// Why a number of processes makes no sense.
pub fn pids_problem(pids: u64) -> Option<String> {
    let range = 8..=1_000_000;
    (!range.contains(&pids)).then(|| format!("{pids} is not from 8 to 1000000"))
}

/// Why a number of files makes no sense.
pub fn files_problem(files: u64) -> Option<String> {
    let range = 1..=1_000_000_000;
    (!range.contains(&files)).then(|| format!("{files} is not from 1 to 1000000000"))
}

/// Bytes of memory in which a room can be built at all.
pub fn memory(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 16 << 20;
    match quantity::bytes(text) {
        Ok(bytes) if bytes < LEAST => Err(format!("{text:?} is less than 16M")),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// A path within the worktree, such as `notes/done.md`.
pub fn note_file(path: &str) -> Result<(), String> {
    let part_is_bad = |part: &str| {
        part.is_empty() || part == "." || part == ".." || part.eq_ignore_ascii_case(".git")
    };
    if path.contains('\0') || path.split('/').any(part_is_bad) {
        return Err(format!(
            "{path:?} is not a path within the worktree, such as notes/done.md"
        ));
    }
    Ok(())
}

/// Names of all agents that two places and the program know.
pub(super) fn agent_names(places: &[&BTreeMap<String, Given<Agent>>]) -> Vec<String> {
    let mut names: Vec<String> = places
        .iter()
        .flat_map(|agents| agents.keys().cloned())
        .collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Isolation, Style};

    fn user(text: &str) -> Result<Wishes, ConfigError> {
        let source = Source::User(PathBuf::from("/home/a/.config/airlock/config.toml"));
        read(source, text.as_bytes(), Some(Path::new("/home/a")))
    }

    fn repository(text: &str) -> Result<Wishes, ConfigError> {
        read(Source::Repository, text.as_bytes(), None)
    }

    #[test]
    fn every_section_is_read() {
        let wishes = user(
            r#"
            [task]
            branch = "wip/{task}"
            attempts = 3
            timeout = "2h"
            idle_timeout = "10m"
            isolation = "session"
            [sandbox]
            net = "host"
            ro = ["~/.cargo", "/opt/x"]
            env = ["A=1", "B"]
            pids = 100
            memory = "512M"
            disk = "2G"
            files = 5000
            tmp = "64M"
            [agent.mine]
            command = ["mine", "{prompt}"]
            [gates]
            audit = "warn"
            skip = ["tests/data/"]
            [gates.stub]
            python = "3.12"
            [gates.diagram]
            mode = "lint"
            [protect]
            paths = ["Makefile"]
            [merge]
            into = "develop"
            style = "squash"
            "#,
        )
        .unwrap();
        assert_eq!(wishes.isolation.unwrap().value, Isolation::Session);
        assert_eq!(wishes.net.unwrap().value, Net::Host);
        assert_eq!(wishes.ro[0].value, Path::new("/home/a/.cargo"));
        assert_eq!(wishes.env[1].value, EnvEntry::Pass("B".to_owned()));
        assert_eq!(wishes.limits.timeout_ms.unwrap().value, 7_200_000);
        assert_eq!(wishes.limits.tmp.unwrap().value, 64 << 20);
        assert_eq!(wishes.limits.idle_ms.unwrap().value, 600_000);
        assert_eq!(wishes.limits.memory.unwrap().value, 512 << 20);
        assert_eq!(wishes.limits.disk.unwrap().value, 2 << 30);
        assert_eq!(wishes.limits.files.unwrap().value, 5000);
        assert_eq!(wishes.agents["mine"].value.command, ["mine", "{prompt}"]);
        assert_eq!(wishes.gates.modes[&Gate::Audit].value, gates::Mode::Warn);
        assert_eq!(
            wishes.gates.diagram.unwrap().value,
            gates::DiagramMode::Lint
        );
        assert_eq!(wishes.gates.skip[0].value, "tests/data/");
        assert_eq!(wishes.style.unwrap().value, Style::Squash);
    }

    #[test]
    fn messages_name_file_line_and_remedy() {
        let text = |error: ConfigError| error.to_string();
        insta::assert_snapshot!(text(user("[sandbx]\n").unwrap_err()), @"/home/a/.config/airlock/config.toml:1: unknown key `sandbx`, did you mean `sandbox`?");
        insta::assert_snapshot!(text(user("[task]\ntimeout = \"10\"\n").unwrap_err()), @r#"/home/a/.config/airlock/config.toml:2: bad value for `task.timeout`: "10" has no unit: write 10s for seconds or 10m for minutes"#);
        insta::assert_snapshot!(text(user("[task]\nattempts = 0\n").unwrap_err()), @"/home/a/.config/airlock/config.toml:2: bad value for `task.attempts`: 0 is not from 1 to 100");
        insta::assert_snapshot!(text(user("[sandbox]\nro = [\"lib\"]\n").unwrap_err()), @r#"/home/a/.config/airlock/config.toml:2: bad value for `sandbox.ro`: "lib" is neither absolute nor below ~/"#);
        insta::assert_snapshot!(text(user("[gates]\nstubs = \"warn\"\n").unwrap_err()), @"/home/a/.config/airlock/config.toml:2: unknown key `gates.stubs`, did you mean `stub`?");
        insta::assert_snapshot!(text(user("[gates]\nstub = 3\n").unwrap_err()), @"/home/a/.config/airlock/config.toml:2: `gates.stub` is the number 3, expected a section");
        insta::assert_snapshot!(text(user("[agent.x]\nenv = []\n").unwrap_err()), @r#"/home/a/.config/airlock/config.toml:1: bad value for `agent.x.command`: an agent needs a program, such as ["my-agent", "{prompt}"]"#);
    }

    #[test]
    fn the_repository_does_not_choose_its_own_base_or_whose_credentials_are_used() {
        insta::assert_snapshot!(repository("[task]\nbase = \"v1\"\n").unwrap_err(), @"airlock.toml:2: bad value for `task.base`: this file is read from the base, so it cannot choose it");
        insta::assert_snapshot!(repository("[task]\nagent = \"codex\"\n").unwrap_err(), @"airlock.toml:2: bad value for `task.agent`: which agent gets your credentials is set in your own config.toml or by --agent");
    }

    #[test]
    fn notes_lie_within_the_worktree() {
        assert!(note_file("a/b.md").is_ok());
        for bad in ["", "/a", "../a", "a/../b", ".git/x", "a//b"] {
            assert!(note_file(bad).is_err(), "{bad:?}");
        }
    }
}
