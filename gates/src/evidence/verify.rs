//! Reads an envelope back. What is parsed are the very bytes whose signature was checked, and nothing before that.

use serde::Deserialize;

use super::envelope::{Envelope, PAYLOAD_TYPE, decoded, pae};
use super::key::PublicKey;
use super::record::{Record, digest_of};
use super::statement::{Evidence, PREDICATE_TYPE, STATEMENT_TYPE, Statement};

/// Larger envelopes are not read, in bytes.
const LARGEST: usize = 64 * 1024 * 1024;

/// Why an envelope is no evidence.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The envelope or its statement is not what it should be.
    #[error("malformed {what}: {why}")]
    Malformed {
        /// `envelope`, `payload`, `signature` or `statement`.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// No signature is by a trusted key.
    #[error("signed by no trusted key (key ids: {})", keyids.join(", "))]
    UnknownKey {
        /// Key ids of the signatures.
        keyids: Vec<String>,
    },
    /// A trusted key's signature does not fit: payload, type or signature were changed.
    #[error("the signature of key {keyid} does not fit the payload")]
    BadSignature {
        /// The trusted key.
        keyid: String,
    },
    /// Signed, but not an in-toto statement.
    #[error("payload type `{found}` is not `{PAYLOAD_TYPE}`")]
    WrongPayloadType {
        /// The envelope's type.
        found: String,
    },
    /// A statement of another kind or version.
    #[error("predicate type `{found}` is not `{PREDICATE_TYPE}`")]
    UnknownPredicate {
        /// The statement's predicate type.
        found: String,
    },
    /// The statement is about something else.
    #[error("the statement is about {subject} {stated}, not {found}")]
    SubjectMismatch {
        /// `gitCommit`, `gitTree`, or a file's name.
        subject: String,
        /// What the statement names; empty when it names none.
        stated: String,
        /// What is at hand.
        found: String,
    },
}

fn malformed(what: &'static str, why: impl Into<String>) -> EvidenceError {
    EvidenceError::Malformed {
        what,
        why: why.into(),
    }
}

/// A statement whose signature was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The statement with the bytes that were signed.
    pub evidence: Evidence,
    /// The trusted key that signed.
    pub keyid: String,
    /// `sha256:` and hex of the signed bytes.
    pub digest: String,
}

/// Checks an envelope (JSON) against trusted keys.
///
/// # Errors
/// One of [`EvidenceError`]; the first thing that is wrong, from the outside in.
pub fn verify(envelope: &[u8], keys: &[PublicKey]) -> Result<Verified, EvidenceError> {
    if envelope.len() > LARGEST {
        return Err(malformed(
            "envelope",
            format!("it has {} bytes", envelope.len()),
        ));
    }
    let envelope: Envelope = serde_json::from_slice(envelope)
        .map_err(|error| malformed("envelope", error.to_string()))?;
    let payload = decoded(&envelope.payload).ok_or_else(|| malformed("payload", "not base64"))?;
    let keyid = signed_by(&envelope, &payload, keys)?;
    if envelope.payload_type != PAYLOAD_TYPE {
        return Err(EvidenceError::WrongPayloadType {
            found: envelope.payload_type,
        });
    }
    let statement = parse(&payload)?;
    consistent(&statement)?;
    let digest = digest_of(&payload);
    Ok(Verified {
        evidence: Evidence {
            statement,
            bytes: payload,
        },
        keyid,
        digest,
    })
}

/// The trusted key whose signature fits. A key id only says which key to try.
fn signed_by(
    envelope: &Envelope,
    payload: &[u8],
    keys: &[PublicKey],
) -> Result<String, EvidenceError> {
    const MOST: usize = 16;
    if envelope.signatures.is_empty() || envelope.signatures.len() > MOST {
        return Err(malformed(
            "envelope",
            format!("{} signatures", envelope.signatures.len()),
        ));
    }
    let message = pae(&envelope.payload_type, payload);
    let mut failed = None;
    for signature in &envelope.signatures {
        for key in keys {
            let id = key.id();
            if !signature.keyid.is_empty() && signature.keyid != id {
                continue;
            }
            let bytes =
                decoded(&signature.sig).ok_or_else(|| malformed("signature", "not base64"))?;
            let Ok(bytes) = <[u8; 64]>::try_from(bytes.as_slice()) else {
                return Err(malformed(
                    "signature",
                    format!("{} bytes instead of 64", bytes.len()),
                ));
            };
            if key.accepts(&message, &bytes) {
                return Ok(id);
            }
            if !signature.keyid.is_empty() {
                failed = Some(id);
            }
        }
    }
    let keyids = || {
        envelope
            .signatures
            .iter()
            .map(|signature| signature.keyid.clone())
            .collect()
    };
    Err(failed.map_or_else(
        || EvidenceError::UnknownKey { keyids: keyids() },
        |keyid| EvidenceError::BadSignature { keyid },
    ))
}

fn parse(payload: &[u8]) -> Result<Statement, EvidenceError> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "_type")]
        statement_type: String,
        #[serde(rename = "predicateType")]
        predicate_type: String,
    }
    let head: Head = serde_json::from_slice(payload)
        .map_err(|error| malformed("statement", error.to_string()))?;
    if head.statement_type != STATEMENT_TYPE {
        return Err(malformed(
            "statement",
            format!("its type is `{}`", head.statement_type),
        ));
    }
    if head.predicate_type != PREDICATE_TYPE {
        return Err(EvidenceError::UnknownPredicate {
            found: head.predicate_type,
        });
    }
    serde_json::from_slice(payload).map_err(|error| malformed("statement", error.to_string()))
}

/// Subjects and record must name the same commit and tree: nobody reads one and trusts the other.
fn consistent(statement: &Statement) -> Result<(), EvidenceError> {
    let record = &statement.predicate;
    for (kind, found) in [("gitCommit", &record.commit), ("gitTree", &record.tree)] {
        expect_subject(statement, kind, found)?;
    }
    Ok(())
}

fn expect_subject(statement: &Statement, kind: &str, found: &str) -> Result<(), EvidenceError> {
    let mut stated = statement
        .subject
        .iter()
        .filter_map(|subject| subject.digest.get(kind));
    let (first, second) = (stated.next(), stated.next());
    if first.map(String::as_str) == Some(found) && second.is_none() {
        return Ok(());
    }
    Err(EvidenceError::SubjectMismatch {
        subject: kind.to_owned(),
        stated: first.cloned().unwrap_or_default(),
        found: found.to_owned(),
    })
}

impl Verified {
    /// The record.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.evidence.statement.predicate
    }

    /// Checks that the statement is about this commit and tree.
    ///
    /// # Errors
    /// [`EvidenceError::SubjectMismatch`] with what differs.
    pub fn is_about(&self, commit: &str, tree: &str) -> Result<(), EvidenceError> {
        expect_subject(&self.evidence.statement, "gitCommit", commit)?;
        expect_subject(&self.evidence.statement, "gitTree", tree)
    }

    /// Checks one file's object id, or finds that the statement does not name it.
    ///
    /// # Errors
    /// [`EvidenceError::SubjectMismatch`] with what differs.
    pub fn names_file(&self, path: &str, blob: &str) -> Result<(), EvidenceError> {
        let name = format!("file:{path}");
        let subjects = &self.evidence.statement.subject;
        let stated = subjects
            .iter()
            .find(|subject| subject.name == name)
            .and_then(|subject| subject.digest.get("gitBlob"));
        if stated.map(String::as_str) == Some(blob) {
            return Ok(());
        }
        Err(EvidenceError::SubjectMismatch {
            subject: name,
            stated: stated.cloned().unwrap_or_default(),
            found: blob.to_owned(),
        })
    }
}
