//! The in-toto Statement v1 around a record, and its canonical bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::envelope::{self, Envelope, PAYLOAD_TYPE};
use super::key::SecretKey;
use super::record::{Record, digest_of};

/// `_type` of every statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// Our predicate; another major version is unknown to this one.
pub const PREDICATE_TYPE: &str = "https://airlock.dev/delivery/v1";

/// What is signed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// [`STATEMENT_TYPE`].
    #[serde(rename = "_type")]
    pub statement_type: String,
    /// Commit, tree, then each judged file.
    pub subject: Vec<Subject>,
    /// [`PREDICATE_TYPE`].
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    /// The record.
    pub predicate: Record,
}

/// A thing that the statement is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// `commit`, `tree`, or `file:` and a path.
    pub name: String,
    /// By algorithm: `gitCommit`, `gitTree`, `gitBlob`, `sha256`.
    pub digest: BTreeMap<String, String>,
}

/// The statement cannot be written as canonical JSON.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the statement as canonical JSON")]
pub struct EncodeError(#[source] serde_json::Error);

/// A statement and its canonical bytes, which are what digest and signature cover.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    pub(super) statement: Statement,
    pub(super) bytes: Vec<u8>,
}

impl Evidence {
    /// Makes the statement of a record. `sha256` gives the digest of a file's content in hex by path, where the
    /// caller has it.
    ///
    /// # Errors
    /// When the record cannot be written as canonical JSON.
    pub fn new(record: Record, sha256: &BTreeMap<String, String>) -> Result<Self, EncodeError> {
        let statement = Statement {
            statement_type: STATEMENT_TYPE.to_owned(),
            subject: subjects(&record, sha256),
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate: record,
        };
        let bytes = serde_json_canonicalizer::to_vec(&statement).map_err(EncodeError)?;
        Ok(Self { statement, bytes })
    }

    /// The statement.
    #[must_use]
    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    /// The canonical bytes, as stored in `statement.json`.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// `sha256:` and the digest of the bytes in hex.
    #[must_use]
    pub fn digest(&self) -> String {
        digest_of(&self.bytes)
    }

    /// Signs the bytes.
    #[must_use]
    pub fn sign(&self, key: &SecretKey) -> Envelope {
        envelope::sealed(PAYLOAD_TYPE, &self.bytes, key)
    }
}

fn subject(name: &str, digests: &[(&str, &str)]) -> Subject {
    let digest = digests
        .iter()
        .map(|(kind, value)| ((*kind).to_owned(), (*value).to_owned()));
    Subject {
        name: name.to_owned(),
        digest: digest.collect(),
    }
}

fn subjects(record: &Record, sha256: &BTreeMap<String, String>) -> Vec<Subject> {
    let mut subjects = vec![
        subject("commit", &[("gitCommit", &record.commit)]),
        subject("tree", &[("gitTree", &record.tree)]),
    ];
    for file in &record.files {
        if let Some(blob) = &file.now.blob {
            let mut digests = vec![("gitBlob", blob.as_str())];
            digests.extend(sha256.get(&file.path).map(|hex| ("sha256", hex.as_str())));
            subjects.push(subject(&format!("file:{}", file.path), &digests));
        }
    }
    subjects
}
