//! Every fact that the runner can state about a task. Status is never stored: it is what
//! [`crate::view`] folds from these, in the order in which they were recorded.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use worktrees::{DiffStat, LandPlan, LandStep, ShadowSurvey, TreeProblem, Worktree};

use crate::answer::Answer;
use crate::exit::Failure;
use crate::task::{Spec, TaskId};

/// One fact, with its place in the order of all facts of a state folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Position; grows by at least one.
    pub seq: u64,
    /// Wall clock, in milliseconds since 1970.
    pub at: u64,
    /// Whom it is about.
    pub task: TaskId,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What the engine read out of a worktree.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SealFacts {
    /// The commit, as an object id; none when nothing changed.
    pub commit: Option<String>,
    /// Its tree.
    pub tree: String,
    /// Files in the tree.
    pub files: usize,
    /// What could not be sealed as it stood.
    pub problems: Vec<TreeProblem>,
    /// Paths whose external filter was not run.
    pub unconverted: Vec<String>,
    /// What the agent did in its shadow git dir.
    pub shadow: Option<ShadowSurvey>,
    /// How much changed; none when nothing did.
    pub diff_stat: Option<DiffStat>,
}

/// Evidence that is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceFacts {
    /// Statement file.
    pub statement: PathBuf,
    /// `sha256:` and the hex digest of the statement.
    pub digest: String,
    /// Whether an envelope with a signature stands beside it.
    pub signed: bool,
}

/// What became of the checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checkout {
    /// Still there.
    Kept,
    /// Removed.
    Removed,
}

/// A file that an agent left in its outbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Relative to the outbox, fit to be shown.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// How a tree was set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetUpFacts {
    /// Digest of what went into the setup.
    pub key: String,
    /// Whether its result was there already.
    pub reused: bool,
    /// Folders that came into the tree.
    pub kept: Vec<String>,
    /// How much they hold.
    pub size: worktrees::KeptSize,
    /// How long it took until they were in the tree.
    pub elapsed_ms: u64,
}

/// A fact.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Somebody asked for it.
    Queued {
        /// What was asked for.
        spec: Box<Spec>,
        /// Short name of the repository.
        repository: String,
        /// The folder of the repository in which the user stood: its checkout is the one that a
        /// landing may update, and its path is where the worktree appears in the room.
        start: PathBuf,
    },
    /// Work on the host has begun.
    Preparing,
    /// The commands of the setup run, in a room and on a tree of their own.
    SettingUp {
        /// Digest of what goes into them.
        key: String,
        /// The commands.
        commands: Vec<String>,
    },
    /// What the setup left is in the tree.
    SetUp {
        /// What and from where.
        facts: SetUpFacts,
    },
    /// The worktree is there.
    Prepared {
        /// The worktree; none for `session` and `none`.
        worktree: Option<Worktree>,
        /// Where the work happens, as the host sees it.
        workspace: PathBuf,
    },
    /// The agent runs.
    Started {
        /// Counted from one, over all resumptions.
        attempt: u32,
        /// Name of the job.
        job: String,
    },
    /// The agent's process tree is gone.
    Ended {
        /// Which attempt.
        attempt: u32,
        /// How it ended.
        outcome: sandbox::Outcome,
        /// What its room has refused so far, over all attempts.
        #[serde(default)]
        refused: u64,
    },
    /// What came back of a task without a worktree.
    Returned {
        /// The folder of what came back.
        outbox: PathBuf,
        /// The agent's note.
        note: Option<String>,
        /// Files in the outbox, by path.
        artifacts: Vec<Artifact>,
        /// Whether the outbox holds more than is listed.
        more: bool,
    },
    /// Somebody runs a command of his own in the room.
    Exec {
        /// Name of the job.
        job: String,
        /// The command, as text.
        command: Vec<String>,
        /// Who.
        by: String,
    },
    /// That command's process tree is gone.
    ExecEnded {
        /// Name of the job.
        job: String,
        /// How it ended.
        outcome: sandbox::Outcome,
    },
    /// What the agent says of its own run; nothing is decided by it.
    Answered {
        /// Which attempt.
        attempt: u32,
        /// Its words and figures.
        answer: Box<Answer>,
    },
    /// The tree is being read.
    Sealing,
    /// The tree was read and committed.
    Sealed {
        /// What was found.
        seal: Box<SealFacts>,
    },
    /// Nothing was delivered.
    Empty,
    /// The gates judge.
    Gating,
    /// The gates have judged.
    Judged {
        /// Their findings.
        judgement: Box<gates::Judgement>,
    },
    /// Statement and envelope are on disk.
    Recorded {
        /// Where and what.
        evidence: EvidenceFacts,
    },
    /// The delivery was refused.
    Rejected {
        /// Whether the agent gets it back.
        again: bool,
    },
    /// A person let it pass in spite of a red gate.
    Overridden {
        /// The gate.
        gate: String,
        /// Why.
        reason: String,
        /// Who.
        by: String,
    },
    /// The delivery holds; its branch names it.
    Accepted {
        /// The commit.
        commit: String,
        /// The branch.
        branch: String,
    },
    /// The target is about to move.
    Landing {
        /// What will be done; enough to complete or undo it after a crash.
        plan: Box<LandPlan>,
    },
    /// A point of no half ways within the landing.
    LandStep {
        /// Which.
        step: LandStep,
    },
    /// The target has moved.
    Landed {
        /// The branch.
        target: String,
        /// Where it points now.
        commit: String,
    },
    /// The landing was refused or undone; the delivery stays accepted.
    NotLanded {
        /// Why.
        failure: Failure,
    },
    /// The engine could not go on.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// Somebody stopped it between two jobs.
    Stopped {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// The process that owned it died, and nothing could be taken up.
    Lost {
        /// What was found.
        reason: String,
    },
    /// Its work was thrown away, by demand or because there was none.
    Discarded {
        /// By whose wish or which proof.
        reason: String,
    },
    /// What became of the checkout.
    Checkout {
        /// Removed or kept.
        checkout: Checkout,
        /// By which proof, or why not.
        reason: String,
    },
    /// It is no longer listed.
    Removed,
}

impl Event {
    /// Tells of something beside the task's own way: its state is as it was.
    pub fn is_aside(&self) -> bool {
        matches!(self, Self::Exec { .. } | Self::ExecEnded { .. })
    }

    /// Whether work goes on only when the disk has it. Any other event reaches the disk with the next one that must:
    /// lost with the machine, it leaves a state from which the same work is done again.
    pub fn must_last(&self) -> bool {
        match self {
            // What these lead to is done over, or found done.
            Self::SettingUp { .. }
            | Self::SetUp { .. }
            | Self::Prepared { .. }
            | Self::Ended { .. }
            | Self::Answered { .. }
            | Self::Returned { .. }
            | Self::Sealing
            | Self::Sealed { .. }
            | Self::Gating
            | Self::Accepted { .. }
            | Self::Checkout { .. }
            // What these tell of has ended with the machine.
            | Self::Exec { .. }
            | Self::ExecEnded { .. } => false,
            Self::Queued { .. }
            | Self::Preparing
            | Self::Started { .. }
            | Self::Empty
            | Self::Judged { .. }
            | Self::Recorded { .. }
            | Self::Rejected { .. }
            | Self::Overridden { .. }
            | Self::Landing { .. }
            | Self::LandStep { .. }
            | Self::Landed { .. }
            | Self::NotLanded { .. }
            | Self::Failed { .. }
            | Self::Stopped { .. }
            | Self::Lost { .. }
            | Self::Discarded { .. }
            | Self::Removed => true,
        }
    }

    /// The name in the store and on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::Preparing => "preparing",
            Self::SettingUp { .. } => "setting_up",
            Self::SetUp { .. } => "set_up",
            Self::Prepared { .. } => "prepared",
            Self::Started { .. } => "started",
            Self::Ended { .. } => "ended",
            Self::Returned { .. } => "returned",
            Self::Exec { .. } => "exec",
            Self::ExecEnded { .. } => "exec_ended",
            Self::Answered { .. } => "answered",
            Self::Sealing => "sealing",
            Self::Sealed { .. } => "sealed",
            Self::Empty => "empty",
            Self::Gating => "gating",
            Self::Judged { .. } => "judged",
            Self::Recorded { .. } => "recorded",
            Self::Rejected { .. } => "rejected",
            Self::Overridden { .. } => "overridden",
            Self::Accepted { .. } => "accepted",
            Self::Landing { .. } => "landing",
            Self::LandStep { .. } => "land_step",
            Self::Landed { .. } => "landed",
            Self::NotLanded { .. } => "not_landed",
            Self::Failed { .. } => "failed",
            Self::Stopped { .. } => "stopped",
            Self::Lost { .. } => "lost",
            Self::Discarded { .. } => "discarded",
            Self::Checkout { .. } => "checkout",
            Self::Removed => "removed",
        }
    }
}
