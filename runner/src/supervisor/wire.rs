//! What the command line and the supervisor say to each other: one JSON object a line, over a
//! socket that only the user can reach. Values from the environment travel here and nowhere else.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::event::Record;
use crate::exit::Failure;
use crate::task::{Secrets, Spec, Style, TaskId};

/// The first line of a connection.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// The version of the program that asks.
    pub version: String,
    /// The folder of the repository in which the user stands.
    pub start: PathBuf,
    /// What is asked for.
    pub order: Order,
}

/// What can be asked for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// Run a task to its end.
    Run {
        /// The task.
        spec: Box<Spec>,
        /// Values that are never stored.
        secrets: Secrets,
        /// Answer as soon as the task is recorded.
        detach: bool,
    },
    /// Stop a running task.
    Stop {
        /// The task.
        task: TaskId,
        /// Who asks.
        by: String,
        /// Why.
        reason: String,
    },
    /// Seal and judge the tree as it stands.
    Deliver {
        /// The task.
        task: TaskId,
        /// A note in place of the recorded one.
        note: Option<String>,
    },
    /// Let a delivery pass in spite of a red gate.
    Accept {
        /// The task.
        task: TaskId,
        /// The gates.
        gates: Vec<gates::Gate>,
        /// Why.
        reason: String,
        /// Who.
        by: String,
    },
    /// Land an accepted delivery.
    Merge {
        /// The task.
        task: TaskId,
        /// Another target than the recorded one.
        into: Option<String>,
        /// How.
        style: Style,
        /// Land although the agent was not confined.
        allow_unconfined: bool,
    },
    /// Go on with a task that rests.
    Resume {
        /// The task.
        task: TaskId,
        /// Values that are never stored.
        secrets: Secrets,
    },
    /// Remove a task.
    Remove {
        /// The task.
        task: TaskId,
        /// Although work is nowhere else.
        discard: bool,
    },
    /// Run a command of a person's own in the room; its streams come beside the order.
    Exec(Wish),
    /// See a task to its end.
    Follow {
        /// The task.
        task: TaskId,
    },
}

/// A command that a person wants to run in a task's room. Output, error and line come as descriptors with the first
/// byte of the order, and the input as the last one if there is one.
#[derive(Debug, Serialize, Deserialize)]
pub struct Wish {
    /// The task, or the start of its id.
    pub task: String,
    /// The command.
    #[serde(with = "crate::task::words")]
    pub argv: Vec<OsString>,
    /// What is added to the environment; never stored.
    pub env: BTreeMap<String, String>,
    /// Wall time, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Whether its streams are a terminal.
    pub terminal: bool,
}

/// One line of the answer; [`Reply::Done`] or [`Reply::Failed`] is the last.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// The order was understood and is being carried out.
    Taken {
        /// The task it is about.
        task: TaskId,
    },
    /// The command runs as this job of the task.
    Kept {
        /// Its name.
        job: String,
    },
    /// Something was recorded.
    Event {
        /// What.
        record: Box<Record>,
    },
    /// The order is carried out.
    Done,
    /// The order could not be carried out.
    Failed {
        /// Why.
        failure: Failure,
    },
}

/// What may follow the first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "then", rename_all = "snake_case")]
pub enum Then {
    /// Stop what was ordered.
    Stop {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
}
