//! Airlock: deterministic gates, evidence and report formats.
//!
//! Bytes and values in, findings out. This crate never touches a file, a process, a clock or the network:
//! the same delivery gives the same judgement on every machine, which is what makes a verdict evidence.
//!
//! [`judge()`] runs the gates; [`evidence`] records and signs what they said; [`report`] shows it.

mod audit;
mod commit;
mod delivery;
mod diagram;
pub mod evidence;
mod explain;
mod judge;
mod profile;
mod python;
pub mod report;
mod stub;
mod tree;
mod verdict;

pub use delivery::{
    AgentCommit, AgentWork, Blob, Change, ChangeKind, Delivery, MODE_LINK, MODE_SUBMODULE, Problem,
    Source, TreeEntry,
};
pub use explain::explain;
pub use judge::judge;
pub use profile::{
    DiagramMode, Mode, Profile, PythonTarget, PythonTargetError, Setting, Skip, glob_matches,
};
pub use verdict::{
    ClaimCheck, ClaimKind, ClaimValue, ClaimVerdict, Comparison, FileFacts, Finding, Gate, GateRun,
    Judgement, Level, Measure, Reason, Syntax, UnknownGate, Verdict,
};
