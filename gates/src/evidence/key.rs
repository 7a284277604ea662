//! ed25519 keys and their PEM forms. Randomness and storage are the caller's; nothing here prints a secret.

use std::fmt;

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _,
    KeypairBytes,
};
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha256};

use super::record::hex;

/// A key cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Not an ed25519 private key in PKCS#8 PEM.
    #[error("not an ed25519 private key in PKCS#8 PEM form")]
    ReadSecret(#[source] ed25519_dalek::pkcs8::Error),
    /// Not an ed25519 public key in SPKI PEM.
    #[error("not an ed25519 public key in PEM form")]
    ReadPublic(#[source] ed25519_dalek::pkcs8::spki::Error),
    /// A point of small order, for which anybody can make signatures.
    #[error("the public key is weak")]
    Weak,
    /// The key cannot be written as PEM.
    #[error("cannot write the private key as PEM")]
    WriteSecret(#[source] ed25519_dalek::pkcs8::Error),
}

/// A private key.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// From 32 random bytes.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&seed))
    }

    /// From PKCS#8 PEM, as [`SecretKey::to_pem`] or `openssl genpkey -algorithm ed25519` write it.
    ///
    /// # Errors
    /// When the text is not such a key.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        SigningKey::from_pkcs8_pem(pem)
            .map(Self)
            .map_err(KeyError::ReadSecret)
    }

    /// As PKCS#8 PEM, to be stored where no room can see it. Version 1, which every `openssl` reads.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn to_pem(&self) -> Result<String, KeyError> {
        let bytes = KeypairBytes {
            secret_key: self.0.to_bytes(),
            public_key: None,
        };
        let pem = bytes
            .to_pkcs8_pem(LineEnding::LF)
            .map_err(KeyError::WriteSecret)?;
        Ok(pem.as_str().to_owned())
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub(super) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.public().id())
    }
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// From SPKI PEM.
    ///
    /// # Errors
    /// When the text is not such a key, or the key is weak.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let key = VerifyingKey::from_public_key_pem(pem).map_err(KeyError::ReadPublic)?;
        if key.is_weak() {
            return Err(KeyError::Weak);
        }
        Ok(Self(key))
    }

    /// As SPKI PEM (`-----BEGIN PUBLIC KEY-----`).
    #[must_use]
    pub fn to_pem(&self) -> String {
        self.0.to_public_key_pem(LineEnding::LF).unwrap_or_default()
    }

    /// SHA-256 of the SPKI DER, in hex.
    #[must_use]
    pub fn id(&self) -> String {
        let der = self
            .0
            .to_public_key_der()
            .map(|der| der.as_bytes().to_vec());
        hex(&Sha256::digest(der.unwrap_or_default()))
    }

    pub(super) fn accepts(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(signature);
        self.0.verify_strict(message, &signature).is_ok()
    }
}
