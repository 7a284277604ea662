//! Evidence of a judgement: statement, envelope and report on disk, notes on commit and tree, all
//! before anything depends on them. An approval comes out of evidence and from nowhere else.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use gates::evidence::{
    AgentFacts, Approval, Engine, Evidence, Isolation, Kind, Override, Policy, Record, Refused,
    verify,
};
use gates::report::{Format, Report};
use gates::{Delivery, Judgement};
use sha2::{Digest as _, Sha256};
use worktrees::Oid;

use super::Life;
use crate::event::EvidenceFacts;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::supervisor::now_ms;
use crate::{durable, hex, itself, keyring, view};

/// Evidence that is on disk.
#[derive(Debug)]
pub(super) struct Proof {
    evidence: Evidence,
    /// Where it is.
    pub(super) facts: EvidenceFacts,
}

impl Proof {
    /// The leave to land.
    pub(super) fn approve_landing(&self) -> Result<Approval, Failure> {
        self.evidence.approve().map_err(|refused| {
            let exit = match refused {
                Refused::Rejected { .. } => Exit::GateFailed,
                Refused::CouldNotCheck { .. } => Exit::CouldNotCheck,
                Refused::Unconfined { .. } => Exit::Conflict,
            };
            Failure::caused(exit, &refused)
        })
    }

    /// Whether the delivery holds, be it allowed to land or not.
    pub(super) fn holds(&self) -> Result<(), Failure> {
        match self.evidence.approve() {
            Ok(_) | Err(Refused::Unconfined { .. }) => Ok(()),
            Err(Refused::Rejected { .. } | Refused::CouldNotCheck { .. }) => {
                self.approve_landing().map(drop)
            }
        }
    }
}

/// Evidence of a delivery.
pub(super) fn of_delivery(
    life: &Life<'_>,
    delivery: &Delivery,
    judgement: &Judgement,
    started: u64,
) -> Result<Proof, Failure> {
    let record = record(life, delivery, judgement, started)?;
    write(life, delivery, judgement, record, "")
}

/// Evidence of the judgement that was recorded last, with what a person has said since.
pub(super) fn of_recorded(life: &Life<'_>, delivery: &Delivery) -> Result<Proof, Failure> {
    let unjudged = || Failure::new(Exit::Internal, "the delivery was never judged");
    let judgement = life.view.judgement.clone().ok_or_else(unjudged)?;
    of_delivery(life, delivery, &judgement, now_ms())
}

/// Evidence of a merged tree.
pub(super) fn of_merge(
    life: &Life<'_>,
    delivery: &Delivery,
    judgement: &Judgement,
    target: &str,
) -> Result<Proof, Failure> {
    let mut record = record(life, delivery, judgement, now_ms())?;
    record.kind = Kind::Merge {
        target: target.to_owned(),
        delivery: life.view.accepted.clone().unwrap_or_default(),
    };
    record.overrides.clear();
    write(life, delivery, judgement, record, "merge-")
}

/// Reads back what an acceptance rests on, and checks that it is ours and about this delivery.
pub(super) fn load(life: &Life<'_>) -> Result<Proof, Failure> {
    let lacking = || {
        Failure::new(
            Exit::EvidenceInvalid,
            "the accepted delivery has no evidence",
        )
    };
    let facts = life.view.evidence.clone().ok_or_else(lacking)?;
    let envelope = facts.statement.with_file_name("envelope.json");
    let bytes = fs::read(&envelope).or_fail(Exit::EvidenceInvalid)?;
    let keys: Vec<_> = keyring::public(&life.shop.root)?.into_iter().collect();
    let verified = verify(&bytes, &keys).or_fail(Exit::EvidenceInvalid)?;
    let tree = life
        .view
        .seal
        .as_ref()
        .map(|seal| seal.tree.clone())
        .unwrap_or_default();
    verified
        .is_about(life.view.accepted.as_deref().unwrap_or_default(), &tree)
        .or_fail(Exit::EvidenceInvalid)?;
    if verified.digest != facts.digest {
        return Err(Failure::new(
            Exit::EvidenceInvalid,
            "the evidence on disk is not the one that was recorded",
        ));
    }
    Ok(Proof {
        evidence: verified.evidence,
        facts,
    })
}

fn record(
    life: &Life<'_>,
    delivery: &Delivery,
    judgement: &Judgement,
    started: u64,
) -> Result<Record, Failure> {
    let spec = &life.view.spec;
    let engine = Engine {
        name: "airlock".to_owned(),
        version: itself::VERSION.to_owned(),
        sha256: own_digest(),
    };
    let credentials: Vec<_> = spec
        .credentials
        .iter()
        .map(|one| serde_json::json!({"name": one.name, "upstream": one.upstream, "methods": one.methods, "paths": one.paths}))
        .collect();
    let config = serde_json::json!({
        "protect": spec.protect, "allow": spec.allow, "net": spec.net, "credentials": credentials, "origins": spec.origins,
        "limits": spec.bounds, "toolchains": spec.toolchains, "setup": spec.setup, "set_up": life.view.setup,
    });
    let policy = Policy::of(spec.profile.clone(), Some(config)).or_fail(Exit::Internal)?;
    let isolation = Isolation {
        mode: spec.isolation.as_str().to_owned(),
        confined: spec.isolation.confined(),
        unconfined_allowed: spec.allow_unconfined,
    };
    let mut record = Record::of(delivery, judgement, engine, policy, isolation);
    record.agent = life.view.outcome.as_ref().map(|outcome| AgentFacts {
        name: spec.agent.clone(),
        outcome: view::cause(&outcome.exit).to_owned(),
        code: outcome.code,
        attempts: life.view.attempts,
    });
    record.overrides = life
        .view
        .overrides
        .iter()
        .filter_map(|(gate, reason, by)| {
            let gate = gate.parse().ok()?;
            Some(Override {
                gate,
                reason: reason.clone(),
                by: by.clone(),
            })
        })
        .collect();
    record.previous = life
        .view
        .evidence
        .as_ref()
        .map(|facts| facts.digest.clone());
    record.started = timestamp(started);
    record.finished = timestamp(now_ms());
    Ok(record)
}

fn write(
    life: &Life<'_>,
    delivery: &Delivery,
    judgement: &Judgement,
    record: Record,
    prefix: &str,
) -> Result<Proof, Failure> {
    let evidence = Evidence::new(record, &digests(life, delivery)?).or_fail(Exit::Internal)?;
    let key = keyring::open(&life.shop.root)?;
    let mut line = evidence.sign(&key).to_line();
    if !line.ends_with('\n') {
        line.push('\n');
    }
    let folder = life.folder().evidence();
    let file = |name: &str| -> PathBuf { folder.join(format!("{prefix}{name}")) };
    let report = Report::of(delivery, judgement).render(Format::Html);
    durable::write(&file("envelope.json"), line.as_bytes(), 0o600).or_fail(Exit::Internal)?;
    durable::replace(&file("report.html"), report.as_bytes(), 0o600).or_fail(Exit::Internal)?;
    durable::write(&file("statement.json"), evidence.bytes(), 0o600).or_fail(Exit::Internal)?;
    // Commit: exact. Tree: still found when the commit is squashed or rebased.
    let objects = [&delivery.commit, &delivery.tree].map(|object| Oid::from_str(object));
    let [commit, tree] = objects;
    let objects = [
        commit.or_fail(Exit::Internal)?,
        tree.or_fail(Exit::Internal)?,
    ];
    life.repository
        .add_note(&objects, line.as_bytes())
        .or_fail(Exit::Internal)?;
    let facts = EvidenceFacts {
        statement: file("statement.json"),
        digest: evidence.digest(),
        signed: true,
    };
    Ok(Proof { evidence, facts })
}

/// SHA-256 of each delivered file's content, by path.
fn digests(life: &Life<'_>, delivery: &Delivery) -> Result<BTreeMap<String, String>, Failure> {
    let objects = life.repository.objects().or_fail(Exit::Internal)?;
    let mut digests = BTreeMap::new();
    for change in &delivery.changes {
        let Some(blob) = change.new.as_ref().filter(|blob| blob.is_file()) else {
            continue;
        };
        let oid = Oid::from_str(&blob.oid).or_fail(Exit::Internal)?;
        let bytes = objects.blob(oid).or_fail(Exit::Internal)?;
        digests.insert(change.path.clone(), hex::of(&Sha256::digest(&bytes)));
    }
    Ok(digests)
}

/// Digest of the running program; read once, since it does not change while it runs.
fn own_digest() -> Option<String> {
    static DIGEST: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let bytes = fs::read(itself::executable()).ok()?;
        Some(hex::of(&Sha256::digest(&bytes)))
    };
    DIGEST.get_or_init(read).clone()
}

fn timestamp(milliseconds: u64) -> String {
    let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(milliseconds)
        .map_or_else(|_too_far| String::new(), |at| at.to_string())
}
