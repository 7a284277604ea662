//! The task as one JSON object, for programs that start tasks (`run --spec`). Unknown and repeated
//! keys are refused by name, with the line. Says what flags can say; resolves nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

use crate::config::{
    Choice, EnvEntry, Given, Origin, Wishes, nearest, quantity, set_gate, text_of, words,
};
use crate::config::{attempts, files_problem, memory, note_file, pids_problem};
use crate::exit::{Exit, Failure};
use crate::spec_limits::FormLimits;
use crate::task::{Cleanup, Isolation, Net, Style, TaskId};

/// Every key.
const KEYS: &[&str] = &[
    "agent",
    "allow",
    "allow_merge_back",
    "allow_unconfined",
    "attempts",
    "base",
    "cleanup",
    "cleanup_policy",
    "command",
    "disk",
    "env",
    "files",
    "gate",
    "goal",
    "idle_timeout",
    "into",
    "isolation",
    "isolation_mode",
    "memory",
    "merge",
    "net",
    "note",
    "note_file",
    "pids",
    "prompt",
    "prompt_file",
    "ro",
    "rw",
    "task",
    "task_id",
    "timeout",
    "toolchain",
    "workspace_strategy",
];

/// A task file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// Not the JSON that is expected.
    #[error("bad task file {file}")]
    Json {
        /// The file as it was named.
        file: String,
        /// What is wrong, with line and column.
        #[source]
        source: serde_json::Error,
    },
    /// Two keys that cannot both hold.
    #[error("bad task file {file}: `{one}` and `{other}` contradict each other")]
    Contradiction {
        /// The file as it was named.
        file: String,
        /// One key.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
}

/// Reads a task file; relative paths start at `here`.
pub fn read(file: &Path, here: &Path) -> Result<Wishes, Failure> {
    let text = text_of(file, here)?;
    let name = file.display().to_string();
    let form = parse(&name, &text).map_err(|error| Failure::caused(Exit::Usage, &error))?;
    form.wishes(&name, here)
}

fn parse(file: &str, text: &str) -> Result<Form, SpecError> {
    let form: Form = serde_json::from_str(text).map_err(|source| SpecError::Json {
        file: file.to_owned(),
        source,
    })?;
    let clash = |one, other| {
        Err(SpecError::Contradiction {
            file: file.to_owned(),
            one,
            other,
        })
    };
    if form.task.is_some() && form.task_id.is_some() {
        return clash("task", "task_id");
    }
    if form.isolation.is_some() && form.isolation_mode.is_some() {
        return clash("isolation", "isolation_mode");
    }
    if form.cleanup.is_some() && form.cleanup_policy.is_some() {
        return clash("cleanup", "cleanup_policy");
    }
    if form.prompt.is_some() && form.prompt_file.is_some() {
        return clash("prompt", "prompt_file");
    }
    let removed = form
        .cleanup
        .or(form.cleanup_policy)
        .is_some_and(|cleanup| cleanup != Cleanup::Never);
    if form.workspace_strategy == Some(Strategy::Persistent) && removed {
        return clash("workspace_strategy", "cleanup_policy");
    }
    if form.merge.is_some() && form.allow_merge_back == Some(false) {
        return clash("merge", "allow_merge_back");
    }
    Ok(form)
}

/// What becomes of the checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Strategy {
    /// It goes when it is no longer needed.
    Ephemeral,
    /// It stays.
    Persistent,
}

/// The object as it is written.
#[derive(Debug, Default)]
struct Form {
    task: Option<TaskId>,
    task_id: Option<TaskId>,
    goal: Option<String>,
    agent: Option<String>,
    prompt: Option<String>,
    prompt_file: Option<String>,
    command: Option<Vec<String>>,
    base: Option<String>,
    into: Option<String>,
    merge: Option<Merge>,
    allow_merge_back: Option<bool>,
    allow_unconfined: Option<bool>,
    isolation: Option<Isolation>,
    isolation_mode: Option<Isolation>,
    net: Option<Net>,
    ro: Vec<String>,
    rw: Vec<String>,
    env: Vec<EnvEntry>,
    toolchain: Option<Choice>,
    limits: FormLimits,
    attempts: Option<u32>,
    gate: Vec<(gates::Gate, words::GateWord)>,
    note: Option<String>,
    note_file: Option<String>,
    cleanup: Option<Cleanup>,
    cleanup_policy: Option<Cleanup>,
    workspace_strategy: Option<Strategy>,
    allow: Vec<String>,
}

impl<'de> Deserialize<'de> for Form {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FormVisitor)
    }
}

struct FormVisitor;

impl<'de> Visitor<'de> for FormVisitor {
    type Value = Form;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON object that describes a task")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Form, A::Error> {
        let mut form = Form::default();
        let mut seen: Vec<String> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(A::Error::custom(format!("the key `{key}` is there twice")));
            }
            let mut entry = Entry {
                key: &key,
                map: &mut map,
            };
            form.take(&mut entry)?;
            seen.push(key);
        }
        Ok(form)
    }
}

/// One key whose value is about to be read.
struct Entry<'e, A> {
    key: &'e str,
    map: &'e mut A,
}

impl<'de, A: MapAccess<'de>> Entry<'_, A> {
    fn value<T: Deserialize<'de>>(&mut self) -> Result<T, A::Error> {
        self.map.next_value().map_err(|error| self.complain(&error))
    }

    fn some<T: Deserialize<'de>>(&mut self) -> Result<Option<T>, A::Error> {
        self.value().map(Some)
    }

    fn read<T, E: fmt::Display>(
        &mut self,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, A::Error> {
        let text: String = self.value()?;
        read(&text)
            .map(Some)
            .map_err(|problem| self.complain(&problem))
    }

    fn complain(&self, problem: &dyn fmt::Display) -> A::Error {
        A::Error::custom(format!("`{}`: {problem}", self.key))
    }
}

impl Form {
    fn take<'de, A: MapAccess<'de>>(&mut self, entry: &mut Entry<'_, A>) -> Result<(), A::Error> {
        let id = |text: &str| TaskId::try_from(text.to_owned());
        match entry.key {
            "task" => self.task = entry.read(id)?,
            "task_id" => self.task_id = entry.read(id)?,
            "goal" => self.goal = entry.some()?,
            "agent" => self.agent = entry.some()?,
            "prompt" => self.prompt = entry.some()?,
            "prompt_file" => self.prompt_file = entry.some()?,
            "command" => self.command = entry.some()?,
            "base" => self.base = entry.some()?,
            "into" => self.into = entry.some()?,
            "merge" => self.merge = merge(entry)?,
            "allow_merge_back" => self.allow_merge_back = entry.some()?,
            "allow_unconfined" => self.allow_unconfined = entry.some()?,
            "isolation" => self.isolation = entry.read(words::isolation)?,
            "isolation_mode" => self.isolation_mode = entry.read(words::isolation)?,
            "net" => self.net = net(entry)?,
            "ro" => self.ro = entry.value()?,
            "rw" => self.rw = entry.value()?,
            "allow" => self.allow = entry.value()?,
            _ => return self.take_more(entry),
        }
        Ok(())
    }

    fn take_more<'de, A: MapAccess<'de>>(
        &mut self,
        entry: &mut Entry<'_, A>,
    ) -> Result<(), A::Error> {
        match entry.key {
            "env" => self.env = env(entry)?,
            "toolchain" => self.toolchain = Some(toolchain(entry)?),
            "timeout" => self.limits.timeout = entry.read(quantity::duration_ms)?,
            "idle_timeout" => self.limits.idle_timeout = entry.read(quantity::duration_ms)?,
            "memory" => self.limits.memory = entry.read(memory)?,
            "disk" => self.limits.disk = entry.read(quantity::bytes)?,
            "files" => {
                let files = entry.value()?;
                self.limits.files = files_problem(files)
                    .map_or(Ok(Some(files)), |problem| Err(entry.complain(&problem)))?;
            }
            "pids" => {
                let pids = entry.value()?;
                self.limits.pids = pids_problem(pids)
                    .map_or(Ok(Some(pids)), |problem| Err(entry.complain(&problem)))?;
            }
            "attempts" => {
                let count = attempts(entry.value()?).map_err(|problem| entry.complain(&problem))?;
                self.attempts = Some(count);
            }
            "gate" => self.gate = gate(entry)?,
            "note" => self.note = entry.some()?,
            "note_file" => {
                self.note_file = entry.read(|path| note_file(path).map(|()| path.to_owned()))?;
            }
            "cleanup" => self.cleanup = entry.read(words::cleanup)?,
            "cleanup_policy" => self.cleanup_policy = entry.read(words::cleanup)?,
            "workspace_strategy" => self.workspace_strategy = entry.some()?,
            unknown => {
                let hint = match nearest(unknown, KEYS) {
                    Some(near) => format!(" (did you mean `{near}`?)"),
                    None => format!("; known are {}", KEYS.join(", ")),
                };
                return Err(A::Error::custom(format!("unknown key `{unknown}`{hint}")));
            }
        }
        Ok(())
    }

    fn wishes(self, file: &str, here: &Path) -> Result<Wishes, Failure> {
        let origin = |key| Origin::TaskFile {
            file: file.to_owned(),
            key,
        };
        let mut wishes = Wishes::default();
        let prompt = match &self.prompt_file {
            Some(path) => Some(Given::new(
                text_of(Path::new(path), here)?,
                origin("prompt_file"),
            )),
            None => self.prompt.map(|text| Given::new(text, origin("prompt"))),
        };
        wishes.prompt = prompt;
        wishes.task = self
            .task
            .or(self.task_id)
            .map(|id| Given::new(id, origin("task_id")));
        wishes.goal = self.goal.map(|goal| Given::new(goal, origin("goal")));
        wishes.agent = self.agent.map(|agent| Given::new(agent, origin("agent")));
        let command = self
            .command
            .map(|words| words.into_iter().map(OsString::from).collect());
        wishes.command = command.map(|command| Given::new(command, origin("command")));
        wishes.base = self.base.map(|base| Given::new(base, origin("base")));
        wishes.into = self.into.map(|into| Given::new(into, origin("into")));
        let merge = self.merge.map(|merge| match merge {
            Merge::Usual => None,
            Merge::In(style) => Some(style),
        });
        wishes.merge = merge.map(|merge| Given::new(merge, origin("merge")));
        wishes.merge_allowed = self
            .allow_merge_back
            .map(|allowed| Given::new(allowed, origin("allow_merge_back")));
        wishes.allow_unconfined = self
            .allow_unconfined
            .map(|yes| Given::new(yes, origin("allow_unconfined")));
        let isolation = self.isolation.or(self.isolation_mode);
        wishes.isolation = isolation.map(|mode| Given::new(mode, origin("isolation_mode")));
        wishes.net = self.net.map(|net| Given::new(net, origin("net")));
        let toolchain = self.toolchain;
        wishes.toolchain = toolchain.map(|choice| Given::new(choice, origin("toolchain")));
        let paths = |paths: &[String], key| {
            let paths = paths.iter();
            paths
                .map(|path| Given::new(here.join(path), origin(key)))
                .collect()
        };
        wishes.ro = paths(&self.ro, "ro");
        wishes.rw = paths(&self.rw, "rw");
        wishes.env = self
            .env
            .into_iter()
            .map(|entry| Given::new(entry, origin("env")))
            .collect();
        wishes.limits = self.limits.wishes(&origin);
        wishes.attempts = self
            .attempts
            .map(|attempts| Given::new(attempts, origin("attempts")));
        for (gate, word) in self.gate {
            set_gate(&mut wishes.gates, gate, Given::new(word, origin("gate")));
        }
        wishes.note = self.note.map(|note| Given::new(note, origin("note")));
        wishes.note_file = self
            .note_file
            .map(|path| Given::new(path, origin("note_file")));
        let kept =
            (self.workspace_strategy == Some(Strategy::Persistent)).then_some(Cleanup::Never);
        let cleanup = self.cleanup.or(self.cleanup_policy).or(kept);
        wishes.cleanup = cleanup.map(|cleanup| Given::new(cleanup, origin("cleanup_policy")));
        wishes.allow = self
            .allow
            .into_iter()
            .map(|path| Given::new(path, origin("allow")))
            .collect();
        Ok(wishes)
    }
}

/// A wish to land.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Merge {
    /// As the configuration says.
    Usual,
    /// In this way.
    In(Style),
}

/// `true`, `false` or a style.
fn merge<'de, A: MapAccess<'de>>(entry: &mut Entry<'_, A>) -> Result<Option<Merge>, A::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected true, false or one of auto, ff, squash, rebase, merge"
    )]
    enum Wish {
        Asked(bool),
        Style(String),
    }
    match entry.value()? {
        Wish::Asked(asked) => Ok(asked.then_some(Merge::Usual)),
        Wish::Style(style) => {
            let style = words::style(&style).map_err(|problem| entry.complain(&problem))?;
            Ok(Some(Merge::In(style)))
        }
    }
}

/// One word, or a list of what is let through.
fn net<'de, A: MapAccess<'de>>(entry: &mut Entry<'_, A>) -> Result<Option<Net>, A::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected none, host, allow:DOMAIN,DOMAIN…, or a list of domains"
    )]
    enum Wish {
        Word(String),
        List(Vec<String>),
    }
    let net = match entry.value()? {
        Wish::Word(word) => words::net(&word),
        Wish::List(entries) => words::net_list(entries),
    };
    net.map(Some).map_err(|problem| entry.complain(&problem))
}

/// A list of `K` and `K=V`, or an object of values.
fn env<'de, A: MapAccess<'de>>(entry: &mut Entry<'_, A>) -> Result<Vec<EnvEntry>, A::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected a list of K or K=V, or an object of texts"
    )]
    enum Env {
        List(Vec<String>),
        Object(BTreeMap<String, String>),
    }
    let lines = match entry.value()? {
        Env::List(lines) => lines,
        Env::Object(values) => values
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect(),
    };
    lines
        .iter()
        .map(|line| EnvEntry::parse(line).map_err(|problem| entry.complain(&problem)))
        .collect()
}

/// One word, or a list of words.
fn toolchain<'de, A: MapAccess<'de>>(entry: &mut Entry<'_, A>) -> Result<Choice, A::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a word or a list of words")]
    enum Words {
        One(String),
        List(Vec<String>),
    }
    let words = match entry.value()? {
        Words::One(word) => vec![word],
        Words::List(words) => words,
    };
    let words: Result<Vec<_>, _> = words.iter().map(|word| words::toolchain(word)).collect();
    let words = words.map_err(|problem| entry.complain(&problem))?;
    Choice::of(&words).map_err(|problem| entry.complain(&problem))
}

/// An object of gate and mode.
fn gate<'de, A: MapAccess<'de>>(
    entry: &mut Entry<'_, A>,
) -> Result<Vec<(gates::Gate, words::GateWord)>, A::Error> {
    let values: BTreeMap<String, String> = entry.value()?;
    values
        .iter()
        .map(|(name, word)| {
            let gate = words::gate(name).map_err(|problem| entry.complain(&problem))?;
            let word = words::gate_word(gate, word).map_err(|problem| entry.complain(&problem))?;
            Ok((gate, word))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(text: &str) -> Wishes {
        parse("t.json", text)
            .unwrap()
            .wishes("t.json", Path::new("/here"))
            .unwrap()
    }

    fn complaint(text: &str) -> String {
        Failure::caused(Exit::Usage, &parse("t.json", text).unwrap_err()).to_string()
    }

    #[test]
    fn a_whole_task() {
        let wishes = wishes(
            r#"{"task_id": "t1", "goal": "add a parser", "agent": "codex", "isolation_mode": "session",
                "workspace_strategy": "persistent", "allow_merge_back": false, "env": {"A": "b"},
                "ro": ["lib"], "timeout": "5m", "gate": {"stub": "warn", "diagram": "lint"}}"#,
        );
        assert_eq!(wishes.task.unwrap().value.as_str(), "t1");
        assert_eq!(wishes.isolation.unwrap().value, Isolation::Session);
        assert_eq!(wishes.cleanup.unwrap().value, Cleanup::Never);
        assert!(!wishes.merge_allowed.unwrap().value);
        assert_eq!(wishes.ro[0].value, Path::new("/here/lib"));
        assert_eq!(
            wishes.env[0].value,
            EnvEntry::Set("A".to_owned(), "b".to_owned())
        );
        assert_eq!(wishes.limits.timeout_ms.unwrap().value, 300_000);
        assert_eq!(wishes.gates.modes.len(), 1);
        assert_eq!(wishes.goal.unwrap().origin.to_string(), "`goal` of t.json");
    }

    #[test]
    fn merge_is_a_yes_or_a_style() {
        assert_eq!(wishes(r#"{"merge": true}"#).merge.unwrap().value, None);
        assert_eq!(
            wishes(r#"{"merge": "squash"}"#).merge.unwrap().value,
            Some(Style::Squash)
        );
        assert!(wishes(r#"{"merge": false}"#).merge.is_none());
    }

    #[test]
    fn complaints_name_key_and_line() {
        insta::assert_snapshot!(complaint("{\n \"gaol\": \"x\"}"), @"bad task file t.json: unknown key `gaol` (did you mean `goal`?) at line 2 column 7");
        insta::assert_snapshot!(complaint("{\n \"goal\": 3}"), @"bad task file t.json: `goal`: invalid type: integer `3`, expected a string at line 2 column 10");
        insta::assert_snapshot!(complaint(r#"{"isolation_mode": "sandbx"}"#), @r#"bad task file t.json: `isolation_mode`: "sandbx" is not one of sandbox, worktree, session, none, did you mean "sandbox"? at line 1 column 28"#);
        insta::assert_snapshot!(complaint(r#"{"goal": "a", "goal": "b"}"#), @"bad task file t.json: the key `goal` is there twice at line 1 column 20");
        insta::assert_snapshot!(complaint(r#"{"merge": 3}"#), @"bad task file t.json: `merge`: expected true, false or one of auto, ff, squash, rebase, merge at line 1 column 12");
        insta::assert_snapshot!(complaint(r#"{"gate": {"stubb": "warn"}}"#), @r#"bad task file t.json: `gate`: "stubb" is not one of commit, tree, stub, audit, diagram, did you mean "stub"? at line 1 column 27"#);
        insta::assert_snapshot!(complaint("[]"), @"bad task file t.json: invalid type: sequence, expected one JSON object that describes a task at line 1 column 0");
        insta::assert_snapshot!(complaint("{\"goal\": \"x\""), @"bad task file t.json: EOF while parsing an object at line 1 column 12");
        insta::assert_snapshot!(complaint(r#"{"merge": true, "allow_merge_back": false}"#), @"bad task file t.json: `merge` and `allow_merge_back` contradict each other");
        insta::assert_snapshot!(complaint(r#"{"workspace_strategy": "persistent", "cleanup_policy": "always"}"#), @"bad task file t.json: `workspace_strategy` and `cleanup_policy` contradict each other");
    }
}
