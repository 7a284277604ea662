//! A task as it was asked for, resolved to plain values: nothing here is optional because
//! "the default is elsewhere". Parsing happens at the door ([`crate::config`]); this only holds.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use sandbox::egress::Credential;
use serde::{Deserialize, Serialize};

use crate::config::quantity;
pub use crate::net::Net;
use crate::toolchain::Toolchain;

/// A short, sortable, unique name; safe as a file name, a ref component and a word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(String);

/// A task id that would not be safe as a file name or ref component.
#[derive(Debug, thiserror::Error)]
#[error("bad task id {0:?}: use 1 to 64 of a-z, 0-9, '-', '_', starting with a letter or digit")]
pub struct BadTaskId(pub String);

impl TaskId {
    /// A new id: six characters of time in seconds, four of chance, in base 32.
    pub fn fresh(unix_seconds: u64, chance: u32) -> Self {
        const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        // Seconds since 2025-01-01: six digits last until 2059 and sort by time.
        let mut bits =
            (unix_seconds.saturating_sub(1_735_689_600) << 20) | u64::from(chance & 0xf_ffff);
        let mut text = [0u8; 10];
        for digit in text.iter_mut().rev() {
            *digit = DIGITS[usize::from((bits & 31) as u8)];
            bits >>= 5;
        }
        Self(text.iter().map(|digit| char::from(*digit)).collect())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TaskId {
    type Error = BadTaskId;

    fn try_from(text: String) -> Result<Self, BadTaskId> {
        let good = (1..=64).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
            && text
                .bytes()
                .next()
                .is_some_and(|b| b.is_ascii_alphanumeric());
        if good {
            Ok(Self(text))
        } else {
            Err(BadTaskId(text))
        }
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How far the agent is kept from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Own worktree in a locked room.
    Sandbox,
    /// Own worktree, no room.
    Worktree,
    /// The repository read-only in a room; only the note comes back.
    Session,
    /// In place, on the user's checkout; nothing is sealed.
    None,
}

impl Isolation {
    /// Whether the kernel keeps the agent in.
    pub fn confined(self) -> bool {
        matches!(self, Self::Sandbox | Self::Session)
    }

    /// Whether the agent gets a worktree that is sealed afterwards.
    pub fn has_worktree(self) -> bool {
        matches!(self, Self::Sandbox | Self::Worktree)
    }

    /// As in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Worktree => "worktree",
            Self::Session => "session",
            Self::None => "none",
        }
    }
}

/// When the checkout of a task is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Cleanup {
    /// In any case; sealed commits and evidence stay.
    Always,
    /// When the delivery has landed or was empty.
    OnSuccess,
    /// Only by `rm` or `prune`.
    Never,
}

/// How an accepted delivery joins its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Fast-forward where possible, else a merge commit.
    Auto,
    /// Fast-forward or nothing.
    Ff,
    /// One new commit on the target.
    Squash,
    /// The delivery's commit, moved onto the target.
    Rebase,
    /// Always a merge commit.
    Merge,
}

/// Numbers that bound one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Wall time of one attempt, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Time without any sign of work, in milliseconds.
    pub idle_ms: Option<u64>,
    /// Between TERM and KILL, in milliseconds.
    pub grace_ms: u64,
    /// Kept output of one job, in bytes.
    pub output: u64,
    /// Processes in the room.
    pub pids: u64,
    /// Bytes of memory of all jobs of the task.
    #[serde(default = "usual_memory")]
    pub memory: u64,
    /// Bytes on disk of worktree, git view and outbox.
    #[serde(default = "usual_disk")]
    pub disk: u64,
    /// Files and folders in worktree, git view and outbox.
    #[serde(default = "usual_files")]
    pub files: u64,
    /// Bytes of the private home.
    pub home: u64,
    /// Bytes of the private `/tmp`.
    pub tmp: u64,
    /// Bytes of one file.
    pub file_size: u64,
}

/// What a task has that was recorded before there was such a limit.
fn usual_memory() -> u64 {
    crate::config::BOUNDS.memory
}

fn usual_disk() -> u64 {
    crate::config::BOUNDS.disk
}

fn usual_files() -> u64 {
    crate::config::BOUNDS.files
}

impl Bounds {
    /// A limit by the name that outcomes give it, with its value: `memory (128M)`.
    pub fn describe(&self, limit: &str) -> String {
        let value = match limit {
            "memory" => quantity::show_bytes(self.memory),
            "disk" => quantity::show_bytes(self.disk),
            "file_size" => quantity::show_bytes(self.file_size),
            "pids" => self.pids.to_string(),
            "files" => self.files.to_string(),
            _ => return limit.to_owned(),
        };
        format!("{limit} ({value})")
    }
}

/// Commands that prepare a tree, run once for each state of what goes into them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Each a line for a shell.
    pub commands: Vec<String>,
    /// Files of the base that decide whether a result still holds.
    pub inputs: Vec<String>,
    /// Folders of which every task gets a copy.
    pub keep: Vec<String>,
    /// What the commands reach.
    pub net: Net,
    /// Their wall time, in milliseconds.
    pub timeout_ms: u64,
    /// Where they were said.
    pub origin: String,
    /// Digest of all that decides what they give.
    pub key: String,
}

/// One piece of work with everything decided.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The task.
    pub task: TaskId,
    /// Tasks started together share this.
    pub run: String,
    /// What is to be done, for people and for the commit message.
    pub goal: Option<String>,
    /// Name of the agent, for people.
    pub agent: String,
    /// The command; in JSON a word is text, or its bytes when it is none.
    #[serde(with = "words")]
    pub argv: Vec<OsString>,
    /// How it is kept.
    pub isolation: Isolation,
    /// The base commit, as an object id.
    pub base: String,
    /// The branch of the delivery.
    pub branch: String,
    /// The branch that a landing moves; none when HEAD was detached.
    pub into: Option<String>,
    /// Land at once when accepted, in this way.
    pub merge: Option<Style>,
    /// `false`: `merge` refuses this task.
    pub merge_allowed: bool,
    /// Land although the agent was not confined.
    pub allow_unconfined: bool,
    /// When the checkout goes.
    pub cleanup: Cleanup,
    /// How often the agent may deliver.
    pub attempts: u32,
    /// Reach of the room.
    pub net: Net,
    /// Credentials that the room reaches by a name and never sees; their values are not here.
    #[serde(default)]
    pub credentials: Vec<Credential>,
    /// Toolchains that the room has.
    #[serde(default)]
    pub toolchains: Vec<Toolchain>,
    /// What is done to a tree before the agent enters it.
    #[serde(default)]
    pub setup: Option<Setup>,
    /// Further readable paths.
    pub ro: Vec<PathBuf>,
    /// Those of `ro` that nobody named: installed programs, without the files beside them that hold tokens.
    #[serde(default)]
    pub installed: Vec<PathBuf>,
    /// Further writable paths.
    pub rw: Vec<PathBuf>,
    /// Plain environment values set by the configuration.
    pub env: BTreeMap<String, String>,
    /// Names whose values come from the caller's environment and are never stored.
    pub pass_env: Vec<String>,
    /// Limits of an attempt.
    pub bounds: Bounds,
    /// The agent's note, when it was given with the task.
    pub note: Option<String>,
    /// A file in the worktree (relative) that holds the agent's note when the agent ends.
    pub note_file: Option<String>,
    /// Protected paths that this task may touch.
    pub allow: Vec<String>,
    /// Patterns of protected paths.
    pub protect: Vec<String>,
    /// Which gates judge, and how.
    pub profile: gates::Profile,
    /// How the agent's output is read; none for a command that no profile knows.
    #[serde(default)]
    pub reading: Option<crate::answer::Reading>,
    /// Files below the user's HOME that the room gets a copy of, by their path there.
    #[serde(default)]
    pub copy: BTreeMap<String, PathBuf>,
    /// Files that HOME begins with, by their path there.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Where each setting that widens the room came from, for the evidence.
    pub origins: BTreeMap<String, String>,
}

/// Command lines in JSON: text where a word is text, so that scripts can read it.
pub(crate) mod words {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Word {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(crate) fn serialize<S: Serializer>(
        argv: &[OsString],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let word = |word: &OsString| match word.to_str() {
            Some(text) => Word::Text(text.to_owned()),
            None => Word::Bytes(word.as_bytes().to_vec()),
        };
        argv.iter()
            .map(word)
            .collect::<Vec<_>>()
            .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<OsString>, D::Error> {
        let words = Vec::<Word>::deserialize(deserializer)?;
        let word = |word| match word {
            Word::Text(text) => OsString::from(text),
            Word::Bytes(bytes) => OsString::from_vec(bytes),
        };
        Ok(words.into_iter().map(word).collect())
    }
}

/// Values that a task needs and that are never written anywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    /// Variables of the agent's environment.
    pub env: BTreeMap<String, String>,
    /// Values of credentials, by the credential's name. They never enter a room.
    pub keys: BTreeMap<String, Key>,
}

/// The value of a credential; it is not shown by accident.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(String);

impl Key {
    /// A value that can stand in a header; `None` for any other.
    pub fn new(value: String) -> Option<Self> {
        let good = !value.is_empty() && value.bytes().all(|byte| (0x21..0x7f).contains(&byte));
        good.then_some(Self(value))
    }

    /// The value itself, for the one header that carries it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_ids_sort_by_time_and_parse() {
        let early = TaskId::fresh(1_800_000_000, 0xf_ffff);
        let late = TaskId::fresh(1_800_000_001, 0);
        assert!(early < late);
        assert_eq!(TaskId::try_from(early.as_str().to_owned()).unwrap(), early);
    }

    #[test]
    fn limits_that_were_recorded_before_there_were_more_are_read() {
        let old = r#"{"timeout_ms":null,"grace_ms":1,"output":2,"pids":3,"home":4,"tmp":5,"file_size":6}"#;
        let read: Bounds = serde_json::from_str(old).unwrap();
        assert_eq!(
            (read.pids, read.memory, read.idle_ms),
            (3, crate::config::BOUNDS.memory, None)
        );
    }

    #[test]
    fn ids_that_are_no_file_names_are_refused() {
        for bad in ["", "..", "a/b", "-x", "A", "a b", "a\n", &"x".repeat(65)] {
            assert!(TaskId::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
    }
}
