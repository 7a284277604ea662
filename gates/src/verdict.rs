//! What comes out: findings per gate, facts per file, checked claims, and the verdict over them.
//! It must never turn "could not check" into a pass.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The gates, in the order in which they are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Which commit is judged, who made it, how many files it changes.
    Commit,
    /// Nothing in the worktree that a commit cannot hold or should not carry.
    Tree,
    /// Python and JSON parse, and Python does something.
    Stub,
    /// Sizes from the blobs, and the note's claims beside them.
    Audit,
    /// A figure is a real image.
    Diagram,
}

impl Gate {
    /// All gates, in report order.
    pub const ALL: [Self; 5] = [
        Self::Commit,
        Self::Tree,
        Self::Stub,
        Self::Audit,
        Self::Diagram,
    ];

    /// The name used in JSON, in the configuration and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Stub => "stub",
            Self::Audit => "audit",
            Self::Diagram => "diagram",
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No gate has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no gate is called `{name}`; there are commit, tree, stub, audit, diagram")]
pub struct UnknownGate {
    /// What was given.
    pub name: String,
}

impl FromStr for Gate {
    type Err = UnknownGate;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|gate| gate.name() == name)
            .ok_or_else(|| UnknownGate {
                name: name.to_owned(),
            })
    }
}

/// What one gate says about a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// Checked, and fine.
    Pass,
    /// Checked; something to look at, nothing to refuse.
    Warn,
    /// Checked and refused.
    Fail,
    /// Nothing here for this gate to check, or switched off.
    NotApplicable,
    /// The gate could not do its work. Never a pass.
    CouldNotCheck,
}

/// Weight of one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// For the record.
    Info,
    /// Worth a look.
    Warn,
    /// Something could not be checked.
    CouldNotCheck,
    /// Refuses the delivery.
    Fail,
}

/// One thing that a gate found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Its weight.
    pub level: Level,
    /// The file, in its shown form; absent when it is about the delivery as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Line from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column from 1, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Stable code, such as `py.no-statements`.
    pub code: String,
    /// What was measured.
    pub message: String,
    /// What to do about it; empty when there is nothing to do.
    #[serde(default)]
    pub help: String,
}

impl Reason {
    /// A reason of any level about the delivery as a whole.
    #[must_use]
    pub fn new(level: Level, code: &str, message: impl Into<String>) -> Self {
        Self {
            level,
            path: None,
            line: None,
            column: None,
            code: code.to_owned(),
            message: message.into(),
            help: String::new(),
        }
    }

    /// A reason that refuses.
    #[must_use]
    pub fn fail(code: &str, message: impl Into<String>) -> Self {
        Self::new(Level::Fail, code, message)
    }

    /// A reason that is shown and recorded.
    #[must_use]
    pub fn warn(code: &str, message: impl Into<String>) -> Self {
        Self::new(Level::Warn, code, message)
    }

    /// A reason for the record only.
    #[must_use]
    pub fn info(code: &str, message: impl Into<String>) -> Self {
        Self::new(Level::Info, code, message)
    }

    /// Something that could not be checked.
    #[must_use]
    pub fn unchecked(code: &str, message: impl Into<String>) -> Self {
        Self::new(Level::CouldNotCheck, code, message)
    }

    /// Puts the reason on a file.
    #[must_use]
    pub fn at(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Puts the reason on a line, counted from 1.
    #[must_use]
    pub fn line(mut self, line: u32) -> Self {
        self.line = Some(line);
        self
    }

    /// Puts the reason on a column, counted from 1.
    #[must_use]
    pub fn column(mut self, column: u32) -> Self {
        self.column = Some(column);
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

/// One gate's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateRun {
    /// Which gate.
    pub gate: Gate,
    /// What it says.
    pub finding: Finding,
    /// Why, in the order of path and line.
    pub reasons: Vec<Reason>,
}

impl GateRun {
    /// A gate that ran: its finding is that of its heaviest reason.
    #[must_use]
    pub fn of(gate: Gate, reasons: Vec<Reason>) -> Self {
        let heaviest = reasons.iter().map(|reason| reason.level).max();
        let finding = match heaviest {
            Some(Level::Fail) => Finding::Fail,
            Some(Level::CouldNotCheck) => Finding::CouldNotCheck,
            Some(Level::Warn) => Finding::Warn,
            Some(Level::Info) | None => Finding::Pass,
        };
        Self {
            gate,
            finding,
            reasons,
        }
    }

    /// A gate that had nothing to check.
    #[must_use]
    pub fn not_applicable(gate: Gate, why: impl Into<String>) -> Self {
        Self {
            gate,
            finding: Finding::NotApplicable,
            reasons: vec![Reason::info("not-applicable", why)],
        }
    }

    /// A gate that could not do its work at all.
    #[must_use]
    pub fn could_not_check(gate: Gate, why: impl Into<String>) -> Self {
        Self::of(gate, vec![Reason::unchecked("could-not-check", why)])
    }
}

/// The engine's own measure of one changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    /// Path in its shown form.
    pub path: String,
    /// What happened to it.
    pub change: crate::ChangeKind,
    /// The old path of a rename.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The file as delivered; all zero and without a blob when it was deleted.
    #[serde(flatten)]
    pub now: Measure,
    /// The file as it was in the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Measure>,
}

/// Sizes of one version of a file, from its blob.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// Size of the blob in bytes.
    pub bytes: u64,
    /// Unicode characters after decoding, without a byte-order mark; 0 for a binary file.
    pub chars: u64,
    /// Chinese, Japanese and Korean characters among them.
    pub cjk: u64,
    /// Words: runs without white space; each CJK character counts as one word of its own.
    pub words: u64,
    /// Lines: LF, CRLF or CR ends, plus one if the last line has no end.
    pub lines: u64,
    /// Language by name, `text` when unknown, `binary` when the bytes are not text.
    pub language: String,
    /// Whether it parses.
    pub syntax: Syntax,
    /// Statements as `CPython`'s `ast.stmt` counts them; only for Python that parses.
    pub statements: Option<u64>,
    /// Function definitions and named classes with their methods: `def` only; for Python that parses.
    pub functions: Option<u64>,
    /// Git mode, octal, such as `100644`.
    pub mode: String,
    /// Object id; `None` when there is no such side.
    pub blob: Option<String>,
}

/// Result of parsing a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Syntax {
    /// Parsed.
    Ok,
    /// Does not parse.
    Error,
    /// No parser for this language here, or no such side.
    #[default]
    NotChecked,
}

/// One thing that the note claims, beside what the engine measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimCheck {
    /// The words of the note.
    pub text: String,
    /// Line of the note, from 1.
    pub line: u32,
    /// What is claimed.
    pub kind: ClaimKind,
    /// The file it is claimed of; absent for totals.
    #[serde(default)]
    pub path: Option<String>,
    /// How the value is meant.
    pub comparison: Comparison,
    /// The claimed value.
    pub claimed: ClaimValue,
    /// The measured value; `None` when the engine did not measure it.
    #[serde(default)]
    pub measured: Option<ClaimValue>,
    /// How they compare.
    pub verdict: ClaimVerdict,
}

/// What a claim is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the words of the claims")]
pub enum ClaimKind {
    Chars,
    Bytes,
    Lines,
    Words,
    CjkWords,
    Files,
    Functions,
    Images,
    Insertions,
    Deletions,
    TestsPassed,
    TestsFailed,
    TestsSkipped,
    TestsTotal,
    TestsRun,
    CoveragePct,
    Commit,
    Sha256,
}

/// How a claimed number is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// Exactly.
    Eq,
    /// About: ten per cent, or half a last digit of a rounded unit.
    Approx,
    /// At least.
    Ge,
    /// At most.
    Le,
}

/// A claimed or measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ClaimValue {
    /// Yes or no.
    Flag(bool),
    /// A count.
    Count(u64),
    /// A share or another number with a fraction.
    Decimal(f64),
    /// A hash or a path.
    Text(String),
}

/// How a claim compares with the measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// The measure bears it out.
    Agrees,
    /// The measure says otherwise.
    Differs,
    /// The engine did not measure this.
    Unverified,
}

/// Everything the judge says about a delivery.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// One entry a gate, in report order.
    pub gates: Vec<GateRun>,
    /// One entry a changed path.
    pub files: Vec<FileFacts>,
    /// One entry a claim of the note.
    pub claims: Vec<ClaimCheck>,
}

/// Whether a delivery may be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No gate refuses and every gate could do its work.
    Accepted,
    /// A gate refuses.
    Rejected,
    /// No gate refuses, but one could not do its work.
    CouldNotCheck,
}

impl Judgement {
    /// The verdict over all gates. No gate at all is "could not check".
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let found = |finding| self.gates.iter().any(|run| run.finding == finding);
        if found(Finding::Fail) {
            Verdict::Rejected
        } else if found(Finding::CouldNotCheck) || self.gates.is_empty() {
            Verdict::CouldNotCheck
        } else {
            Verdict::Accepted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(findings: &[Finding]) -> Verdict {
        let gates = findings
            .iter()
            .map(|&finding| GateRun {
                gate: Gate::Stub,
                finding,
                reasons: Vec::new(),
            })
            .collect();
        Judgement {
            gates,
            ..Judgement::default()
        }
        .verdict()
    }

    #[test]
    fn a_gate_that_could_not_check_is_no_acceptance() {
        assert_eq!(judged(&[]), Verdict::CouldNotCheck);
        assert_eq!(
            judged(&[Finding::Pass, Finding::CouldNotCheck]),
            Verdict::CouldNotCheck
        );
        assert_eq!(
            judged(&[Finding::Fail, Finding::CouldNotCheck]),
            Verdict::Rejected
        );
        assert_eq!(
            judged(&[Finding::Pass, Finding::Warn, Finding::NotApplicable]),
            Verdict::Accepted
        );
    }

    #[test]
    fn the_heaviest_reason_decides() {
        let run = GateRun::of(
            Gate::Stub,
            vec![Reason::warn("a", "b"), Reason::unchecked("c", "d")],
        );
        assert_eq!(run.finding, Finding::CouldNotCheck);
        assert_eq!(GateRun::of(Gate::Stub, Vec::new()).finding, Finding::Pass);
    }

    #[test]
    fn gate_names_round_trip() {
        for gate in Gate::ALL {
            assert_eq!(gate.name().parse(), Ok(gate));
            assert_eq!(
                serde_json::to_string(&gate).unwrap(),
                format!("\"{}\"", gate.name())
            );
        }
        assert!("stubb".parse::<Gate>().is_err());
    }
}
