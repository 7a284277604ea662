//! Evidence: the signed record of a delivery and its gates, checkable by anyone from the commit.
//!
//! [`Record`] is what the engine knows; [`Evidence`] wraps it as an in-toto Statement v1 in canonical JSON
//! (RFC 8785); [`Evidence::sign`] makes a DSSE [`Envelope`] with a raw ed25519 signature; [`verify()`] reads one back.
//! [`Evidence::approve`] is the only way to an [`Approval`], and so the only way to a landing.
//!
//! Nothing of ours is needed to check a signature. With the envelope's payload type and decoded payload written as
//! DSSE's pre-authentication encoding ([`pae`]) to `pae.bin`, the decoded `sig` to `sig.bin` and the public key to
//! `key.pem`:
//!
//! ```text
//! openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in pae.bin -sigfile sig.bin
//! ```
//!
//! The record must never hold secrets, environment variables or absolute paths.

mod approval;
mod envelope;
mod key;
mod record;
mod statement;
#[cfg(test)]
mod tests;
mod verify;

pub use approval::{Approval, Refused};
pub use envelope::{Envelope, PAYLOAD_TYPE, Signature, pae};
pub use key::{KeyError, PublicKey, SecretKey};
pub use record::{AgentFacts, Engine, Isolation, Kind, Override, Policy, PolicyError, Record};
pub use statement::{EncodeError, Evidence, PREDICATE_TYPE, STATEMENT_TYPE, Statement, Subject};
pub use verify::{EvidenceError, Verified, verify};
