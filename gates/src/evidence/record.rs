//! What the evidence says: the predicate of the statement. Values only, given by the caller; times as RFC 3339 text.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    AgentWork, ClaimCheck, Delivery, FileFacts, Finding, Gate, GateRun, Judgement, Profile,
};

/// The record of one judged delivery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Which program judged.
    pub engine: Engine,
    /// Whether the delivery itself is meant or its merge into a branch.
    pub kind: Kind,
    /// Short name of the repository.
    pub repository: String,
    /// The task; `None` when a commit was judged without one.
    pub task: Option<String>,
    /// The run the task belongs to.
    pub run: Option<String>,
    /// Commit that the delivery was compared with.
    pub base: String,
    /// Tree of the base.
    pub base_tree: String,
    /// The judged commit.
    pub commit: String,
    /// Tree of the judged commit.
    pub tree: String,
    /// How the gates were set.
    pub policy: Policy,
    /// Where the agent worked.
    pub isolation: Isolation,
    /// The agent and how it ended; `None` without a task.
    pub agent: Option<AgentFacts>,
    /// What the gates found, with every reason.
    pub gates: Vec<GateRun>,
    /// What was measured.
    pub files: Vec<FileFacts>,
    /// What the note claims, beside the measures.
    pub claims: Vec<ClaimCheck>,
    /// Paths under an external filter, sealed as they were found.
    pub unconverted: Vec<String>,
    /// Commits and references of the agent's own, for the record.
    pub agent_work: AgentWork,
    /// A person's word over red gates.
    pub overrides: Vec<Override>,
    /// Digest of the task's earlier statement, so that attempts form a chain.
    pub previous: Option<String>,
    /// RFC 3339.
    pub started: String,
    /// RFC 3339.
    pub finished: String,
}

/// The program that judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of the executable, in hex; `None` when it could not be read.
    pub sha256: Option<String>,
}

/// What the judged commit is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// A sealed delivery on its base.
    Delivery,
    /// A delivery merged into a branch that had moved.
    Merge {
        /// Short name of the branch.
        target: String,
        /// The delivery's commit.
        delivery: String,
    },
}

/// The effective configuration of the gates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// `sha256:` and hex, over the canonical JSON of `{"config": …, "profile": …}`.
    pub digest: String,
    /// The profile itself.
    pub profile: Profile,
    /// Further configuration that the caller wants covered, as it was resolved.
    pub config: Option<serde_json::Value>,
}

/// The configuration cannot be written as canonical JSON.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the policy as canonical JSON")]
pub struct PolicyError(#[source] serde_json::Error);

impl Policy {
    /// Computes the digest over profile and configuration.
    ///
    /// # Errors
    /// When the configuration holds a number that JSON cannot.
    pub fn of(profile: Profile, config: Option<serde_json::Value>) -> Result<Self, PolicyError> {
        #[derive(Serialize)]
        struct Covered<'a> {
            config: &'a Option<serde_json::Value>,
            profile: &'a Profile,
        }
        let covered = Covered {
            config: &config,
            profile: &profile,
        };
        let bytes = serde_json_canonicalizer::to_vec(&covered).map_err(PolicyError)?;
        Ok(Self {
            digest: digest_of(&bytes),
            profile,
            config,
        })
    }
}

/// `sha256:` and the digest in lower-case hex.
pub(super) fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0'));
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Where the agent worked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Isolation {
    /// `sandbox`, `worktree`, `session`, `none`, or `ci` when a commit was judged without a task.
    pub mode: String,
    /// Whether nothing but the worktree was within reach.
    pub confined: bool,
    /// Whether a person allowed landing although it was not.
    pub unconfined_allowed: bool,
}

/// The agent and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentFacts {
    /// Its name in the configuration, or the command's name.
    pub name: String,
    /// `exited`, `signal`, `timed_out`, `stopped`, …
    pub outcome: String,
    /// Exit code, where there was one.
    pub code: Option<i32>,
    /// How often the agent was started.
    pub attempts: u32,
}

/// A person's word over one red gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Override {
    /// The gate that is overridden.
    pub gate: Gate,
    /// Why; never empty.
    pub reason: String,
    /// Who; never empty.
    pub by: String,
}

impl Record {
    /// A record with what delivery and judgement hold; the caller adds what only it knows.
    #[must_use]
    pub fn of(
        delivery: &Delivery,
        judgement: &Judgement,
        engine: Engine,
        policy: Policy,
        isolation: Isolation,
    ) -> Self {
        Self {
            engine,
            kind: Kind::Delivery,
            repository: delivery.repository.clone(),
            task: delivery.task.clone(),
            run: delivery.run.clone(),
            base: delivery.base.clone(),
            base_tree: delivery.base_tree.clone(),
            commit: delivery.commit.clone(),
            tree: delivery.tree.clone(),
            policy,
            isolation,
            agent: None,
            gates: judgement.gates.clone(),
            files: judgement.files.clone(),
            claims: judgement.claims.clone(),
            unconverted: delivery.unconverted.clone(),
            agent_work: delivery.agent.clone(),
            overrides: Vec::new(),
            previous: None,
            started: String::new(),
            finished: String::new(),
        }
    }

    /// Gates that stand in the way, and are not overridden: refusing ones, then those that could not check or are absent.
    pub(super) fn in_the_way(&self) -> (Vec<Gate>, Vec<Gate>) {
        let overridden = |gate: Gate| {
            self.overrides
                .iter()
                .any(|word| word.gate == gate && word.holds())
        };
        let found = |gate: Gate, finding: Finding| {
            self.gates
                .iter()
                .any(|run| run.gate == gate && run.finding == finding)
        };
        let absent = |gate: Gate| !self.gates.iter().any(|run| run.gate == gate);
        let open = Gate::ALL.into_iter().filter(|gate| !overridden(*gate));
        let red = open
            .clone()
            .filter(|gate| found(*gate, Finding::Fail))
            .collect();
        let unchecked = open
            .filter(|gate| found(*gate, Finding::CouldNotCheck) || absent(*gate))
            .collect();
        (red, unchecked)
    }
}

impl Override {
    /// An override without a reason or a name is none.
    pub(super) fn holds(&self) -> bool {
        !self.reason.trim().is_empty() && !self.by.trim().is_empty()
    }
}
