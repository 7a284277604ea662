//! The key that signs evidence: made once for each state root, readable by its owner alone, outside
//! of everything that a room can see. Must never print it, and never use one that others could read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use gates::evidence::{KeyError, PublicKey, SecretKey};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::durable::{self, WriteError};
use crate::exit::{Exit, Failure};
use crate::home::StateRoot;

/// A key in PEM form is a few hundred bytes.
const LARGEST: u64 = 16 << 10;

/// The signing key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// It cannot be read.
    #[error("cannot read the signing key {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Others could have it, so what it signs proves nothing.
    #[error("the signing key {} {problem}: refusing to sign with it", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// It is no key.
    #[error("the signing key {} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        #[source]
        source: KeyError,
    },
    /// Another process could not be kept out while it was made.
    #[error("cannot lock {}", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The system gives no random bytes.
    #[error("cannot get random bytes for a signing key")]
    Random(#[source] io::Error),
    /// The new key has no PEM form.
    #[error("cannot write a new signing key")]
    Encode(#[source] KeyError),
    /// The new key could not be kept.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<KeyringError> for Failure {
    fn from(error: KeyringError) -> Self {
        let advice = match &error {
            KeyringError::Exposed { path, .. } | KeyringError::Damaged { path, .. } => {
                let path = path.display();
                format!(
                    "if nobody else had it: chmod 600 {path}; else move it away, and a new one is made"
                )
            }
            KeyringError::Read { .. }
            | KeyringError::Lock { .. }
            | KeyringError::Random(_)
            | KeyringError::Encode(_)
            | KeyringError::Write(_) => return Self::caused(Exit::Internal, &error),
        };
        Self::caused(Exit::Usage, &error).advise(advice)
    }
}

/// The signing key, made when there is none yet.
pub fn open(root: &StateRoot) -> Result<SecretKey, KeyringError> {
    open_at(&root.signing_key())
}

/// The public half of the signing key; none when nothing was ever signed here.
pub fn public(root: &StateRoot) -> Result<Option<PublicKey>, KeyringError> {
    Ok(load(&root.signing_key())?.map(|key| key.public()))
}

fn open_at(path: &Path) -> Result<SecretKey, KeyringError> {
    if let Some(key) = load(path)? {
        return Ok(key);
    }
    let _held = hold(&path.with_extension("lock"))?;
    // Whoever held the lock before may have made it.
    if let Some(key) = load(path)? {
        return Ok(key);
    }
    let key = SecretKey::from_seed(seed()?);
    let pem = key.to_pem().map_err(KeyringError::Encode)?;
    durable::write(path, pem.as_bytes(), 0o600)?;
    Ok(key)
}

fn load(path: &Path) -> Result<Option<SecretKey>, KeyringError> {
    let fail = |source| KeyringError::Read {
        path: path.to_owned(),
        source,
    };
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let meta = file.metadata().map_err(fail)?;
    let us = nix::unistd::geteuid().as_raw();
    let problem = if !meta.is_file() {
        Some("is not a file".to_owned())
    } else if meta.uid() != us {
        Some(format!("belongs to uid {}, not to uid {us}", meta.uid()))
    } else if meta.mode() & 0o077 != 0 {
        Some(format!(
            "has mode {:04o} and is open to others",
            meta.mode() & 0o7777
        ))
    } else {
        None
    };
    if let Some(problem) = problem {
        return Err(KeyringError::Exposed {
            path: path.to_owned(),
            problem,
        });
    }
    let mut pem = String::new();
    file.take(LARGEST).read_to_string(&mut pem).map_err(fail)?;
    SecretKey::from_pem(&pem)
        .map(Some)
        .map_err(|source| KeyringError::Damaged {
            path: path.to_owned(),
            source,
        })
}

fn hold(path: &Path) -> Result<File, KeyringError> {
    let lock = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path);
    lock.and_then(|file| {
        flock(&file, FlockOperation::LockExclusive)
            .map(|()| file)
            .map_err(io::Error::from)
    })
    .map_err(|source| KeyringError::Lock {
        path: path.to_owned(),
        source,
    })
}

fn seed() -> Result<[u8; 32], KeyringError> {
    let mut seed = [0; 32];
    let mut filled = 0;
    while filled < seed.len() {
        match getrandom(&mut seed[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(KeyringError::Random(errno.into())),
        }
    }
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_key_is_made_once_however_many_ask() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("signing.key");
        let ids: Vec<String> = std::thread::scope(|scope| {
            let ask = || open_at(&path).unwrap().public().id();
            let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            asking
                .into_iter()
                .map(|asked| asked.join().unwrap())
                .collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    }

    #[test]
    fn a_key_that_others_could_read_signs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("signing.key");
        open_at(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = open_at(&path).unwrap_err();
        assert!(refused.to_string().contains("has mode 0640"), "{refused}");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(matches!(open_at(&path), Err(KeyringError::Read { .. })));
    }

    #[test]
    fn a_damaged_key_is_never_replaced_in_silence() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("signing.key");
        fs::write(&path, "no key").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(open_at(&path), Err(KeyringError::Damaged { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "no key");
    }
}
