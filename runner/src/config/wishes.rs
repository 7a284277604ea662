//! What one place says: the flags, the task file, the user's file or the repository's file, each
//! read into the same form. Absent means "not said here"; defaults are in [`super::resolve()`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use gates::{DiagramMode, Gate, Mode, PythonTarget};
use sandbox::egress::Credential;

use super::agents::Agent;
use super::environment::EnvEntry;
use super::origin::Given;
use super::setup::SetupWishes;
use super::toolchains::Choice;
use crate::task::{Cleanup, Isolation, Net, Style, TaskId};

/// The values of one place.
#[derive(Debug, Default)]
pub struct Wishes {
    /// The id of the task.
    pub task: Option<Given<TaskId>>,
    /// What is to be done, for people.
    pub goal: Option<Given<String>>,
    /// What the agent is told.
    pub prompt: Option<Given<String>>,
    /// Name of the agent.
    pub agent: Option<Given<String>>,
    /// Where the agent's model is, in place of the profile's.
    pub model_url: Option<Given<String>>,
    /// The command to run in place of a profile's.
    pub command: Option<Given<Vec<OsString>>>,
    /// Agent profiles by name.
    pub agents: BTreeMap<String, Given<Agent>>,
    /// Revision to start from.
    pub base: Option<Given<String>>,
    /// Template of the delivery's branch.
    pub branch: Option<Given<String>>,
    /// The branch that a landing moves.
    pub into: Option<Given<String>>,
    /// Land when accepted; without a style, as `style` says.
    pub merge: Option<Given<Option<Style>>>,
    /// How deliveries join their target.
    pub style: Option<Given<Style>>,
    /// `false` forbids to land.
    pub merge_allowed: Option<Given<bool>>,
    /// Land although the agent was not confined.
    pub allow_unconfined: Option<Given<bool>>,
    /// How the agent is kept.
    pub isolation: Option<Given<Isolation>>,
    /// Reach of the room.
    pub net: Option<Given<Net>>,
    /// Credentials that stay outside, by name.
    pub credentials: BTreeMap<String, Given<Credential>>,
    /// Toolchains of the room.
    pub toolchain: Option<Given<Choice>>,
    /// Further readable paths.
    pub ro: Vec<Given<PathBuf>>,
    /// Further writable paths.
    pub rw: Vec<Given<PathBuf>>,
    /// Environment of the agent.
    pub env: Vec<Given<EnvEntry>>,
    /// Numbers that bound an attempt.
    pub limits: Limits,
    /// How often the agent may deliver.
    pub attempts: Option<Given<u32>>,
    /// The agent's note, given with the task.
    pub note: Option<Given<String>>,
    /// A file in the worktree that holds the note.
    pub note_file: Option<Given<String>>,
    /// When the checkout goes.
    pub cleanup: Option<Given<Cleanup>>,
    /// Further patterns of protected paths.
    pub protect: Vec<Given<String>>,
    /// Protected paths that may be touched.
    pub allow: Vec<Given<String>>,
    /// Commands that prepare a tree.
    pub setup: SetupWishes,
    /// Go without them.
    pub no_setup: bool,
    /// How the gates are set.
    pub gates: GateWishes,
}

/// Limits that one place sets.
#[derive(Debug, Default)]
pub struct Limits {
    /// Wall time of an attempt, in milliseconds.
    pub timeout_ms: Option<Given<u64>>,
    /// Time without any sign of work, in milliseconds.
    pub idle_ms: Option<Given<u64>>,
    /// Between TERM and KILL, in milliseconds.
    pub grace_ms: Option<Given<u64>>,
    /// Processes.
    pub pids: Option<Given<u64>>,
    /// Bytes of memory.
    pub memory: Option<Given<u64>>,
    /// Bytes on disk.
    pub disk: Option<Given<u64>>,
    /// Files and folders.
    pub files: Option<Given<u64>>,
    /// Bytes of the private home.
    pub home: Option<Given<u64>>,
    /// Bytes of the private `/tmp`.
    pub tmp: Option<Given<u64>>,
    /// Kept output, in bytes.
    pub output: Option<Given<u64>>,
    /// Bytes of one file.
    pub file_size: Option<Given<u64>>,
}

/// Gates that one place sets.
#[derive(Debug, Default)]
pub struct GateWishes {
    /// Modes.
    pub modes: BTreeMap<Gate, Given<Mode>>,
    /// What is asked of figures.
    pub diagram: Option<Given<DiagramMode>>,
    /// Python version of the project.
    pub python: Option<Given<PythonTarget>>,
    /// Paths that are not judged.
    pub skip: Vec<Given<String>>,
    /// A larger file is not judgeable, in bytes.
    pub max_file: Option<Given<u64>>,
}
