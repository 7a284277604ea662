//! The DSSE envelope: payload, type and signatures, as JSON on one line.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use serde::{Deserialize, Serialize};

use super::key::SecretKey;

/// Payload type of in-toto statements.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// A signed payload. Parsing one proves nothing: see [`verify()`](super::verify()).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Base64 of the payload.
    pub payload: String,
    /// Type of the payload; covered by the signatures.
    #[serde(rename = "payloadType")]
    pub payload_type: String,
    /// At least one.
    pub signatures: Vec<Signature>,
}

/// One signature over the envelope's pre-authentication encoding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// SHA-256 of the public key's SPKI DER, in hex. A hint, not covered by the signature.
    #[serde(default)]
    pub keyid: String,
    /// Base64 of the 64 bytes of an ed25519 signature.
    pub sig: String,
}

/// What is signed: type and payload with their lengths, so that neither can run into the other.
#[must_use]
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    );
    [head.as_bytes(), payload].concat()
}

pub(super) fn sealed(payload_type: &str, payload: &[u8], key: &SecretKey) -> Envelope {
    let signature = key.sign(&pae(payload_type, payload));
    Envelope {
        payload: BASE64_STANDARD.encode(payload),
        payload_type: payload_type.to_owned(),
        signatures: vec![Signature {
            keyid: key.public().id(),
            sig: BASE64_STANDARD.encode(signature),
        }],
    }
}

impl Envelope {
    /// The envelope as JSON on one line: the text of the git note.
    #[must_use]
    pub fn to_line(&self) -> String {
        // Three fields of text: there is nothing in it that JSON cannot hold.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Both alphabets of base64 are allowed by DSSE.
pub(super) fn decoded(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD
        .decode(text)
        .or_else(|_| BASE64_URL_SAFE.decode(text))
        .ok()
}
