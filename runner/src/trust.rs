//! Which wishes of repositories the user has agreed to. Agreement is to a digest over the very
//! wishes and the repository that has them: any change asks again. Keeps one file in the state
//! root; decides nothing about what widens (that is [`crate::config`]).

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::Ask;
use crate::durable::{self, WriteError};
use crate::exit::{Exit, Failure};
use crate::home::StateRoot;

/// The list of agreements cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It holds something else; reading it as empty would forget agreements in silence.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        #[source]
        source: serde_json::Error,
    },
    /// Another process could not be kept out.
    #[error("cannot lock {}", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It cannot be replaced.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<TrustError> for Failure {
    fn from(error: TrustError) -> Self {
        Self::caused(Exit::Internal, &error)
    }
}

/// One agreement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agreement {
    /// The repository's common git directory, as it is shown to people.
    pub repository: String,
    /// `sha256:` and hex, over the repository and its wishes.
    pub digest: String,
    /// When, in seconds since 1970.
    pub at: i64,
    /// The wishes, for people.
    pub asks: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Book {
    schema: u32,
    trusted: Vec<Agreement>,
}

/// The agreements of a user.
#[derive(Debug, Clone)]
pub struct Trust {
    file: PathBuf,
}

impl Trust {
    /// The agreements kept in a state root.
    pub fn of(root: &StateRoot) -> Self {
        Self {
            file: root.trusted(),
        }
    }

    /// The agreements kept in a file.
    pub fn at(file: PathBuf) -> Self {
        Self { file }
    }

    /// Whether these very wishes of this repository were agreed to.
    pub fn covers(&self, repository: &Path, asks: &[Ask]) -> Result<bool, TrustError> {
        let digest = digest(repository, asks);
        Ok(self
            .read()?
            .trusted
            .iter()
            .any(|agreement| agreement.digest == digest))
    }

    /// The agreements with one repository.
    pub fn agreements(&self, repository: &Path) -> Result<Vec<Agreement>, TrustError> {
        let mut trusted = self.read()?.trusted;
        let repository = named(repository);
        trusted.retain(|agreement| agreement.repository == repository);
        Ok(trusted)
    }

    /// Agrees to these wishes, in place of any earlier ones of this repository.
    pub fn agree(
        &self,
        repository: &Path,
        asks: &[Ask],
        now: i64,
    ) -> Result<Agreement, TrustError> {
        let agreement = Agreement {
            repository: named(repository),
            digest: digest(repository, asks),
            at: now,
            asks: asks.iter().map(ToString::to_string).collect(),
        };
        self.change(|trusted| {
            trusted.retain(|known| known.repository != agreement.repository);
            trusted.push(agreement.clone());
        })?;
        Ok(agreement)
    }

    /// Takes back every agreement with a repository; says how many there were.
    pub fn revoke(&self, repository: &Path) -> Result<usize, TrustError> {
        let repository = named(repository);
        self.change(|trusted| {
            let before = trusted.len();
            trusted.retain(|known| known.repository != repository);
            before - trusted.len()
        })
    }

    fn read(&self) -> Result<Book, TrustError> {
        let bytes = match fs::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Book {
                    schema: 1,
                    trusted: Vec::new(),
                });
            }
            Err(source) => {
                return Err(TrustError::Read {
                    path: self.file.clone(),
                    source,
                });
            }
        };
        serde_json::from_slice(&bytes).map_err(|source| TrustError::Damaged {
            path: self.file.clone(),
            source,
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Agreement>) -> T) -> Result<T, TrustError> {
        let _held = hold(&self.file.with_extension("lock"))?;
        let mut book = self.read()?;
        let result = change(&mut book.trusted);
        let mut bytes =
            serde_json::to_vec_pretty(&book).expect("numbers and texts always have a JSON form");
        bytes.push(b'\n');
        durable::write(&self.file, &bytes, 0o600)?;
        Ok(result)
    }
}

fn hold(path: &Path) -> Result<File, TrustError> {
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
    .map_err(|source| TrustError::Lock {
        path: path.to_owned(),
        source,
    })
}

fn named(repository: &Path) -> String {
    worktrees::shown(repository.as_os_str().as_encoded_bytes())
}

/// The digest of what a repository asks for.
pub fn digest(repository: &Path, asks: &[Ask]) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(b"airlock trust 1");
    part(repository.as_os_str().as_encoded_bytes());
    for ask in asks {
        part(ask.key.as_bytes());
        part(ask.value.as_bytes());
    }
    let mut text = String::from("sha256:");
    for byte in hash.finalize() {
        write!(text, "{byte:02x}").expect("a string takes every text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(key: &str, value: &str) -> Ask {
        Ask {
            key: key.to_owned(),
            value: value.to_owned(),
        }
    }

    #[test]
    fn the_digest_covers_repository_and_every_wish() {
        let here = Path::new("/r/.git");
        let asks = [ask("sandbox.net", "host"), ask("sandbox.ro", "/opt")];
        let first = digest(here, &asks);
        assert_eq!(first, digest(here, &asks));
        assert!(first.starts_with("sha256:") && first.len() == 71);
        assert_ne!(first, digest(Path::new("/s/.git"), &asks));
        assert_ne!(first, digest(here, &asks[..1]));
        assert_ne!(
            first,
            digest(
                here,
                &[ask("sandbox.net", "host"), ask("sandbox.ro", "/opt2")]
            )
        );
        // No two lists of wishes run into each other.
        assert_ne!(
            digest(here, &[ask("a", "bc")]),
            digest(here, &[ask("ab", "c")])
        );
    }

    #[test]
    fn agreements_are_kept_replaced_and_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let trust = Trust {
            file: folder.path().join("trusted.json"),
        };
        let (here, there) = (Path::new("/r/.git"), Path::new("/s/.git"));
        let wide = [ask("sandbox.net", "host")];
        assert!(!trust.covers(here, &wide).unwrap());
        trust.agree(here, &wide, 1).unwrap();
        trust.agree(there, &wide, 2).unwrap();
        assert!(trust.covers(here, &wide).unwrap());
        let wider = [ask("sandbox.net", "host"), ask("sandbox.rw", "/opt")];
        assert!(!trust.covers(here, &wider).unwrap());
        trust.agree(here, &wider, 3).unwrap();
        assert!(
            !trust.covers(here, &wide).unwrap(),
            "the earlier agreement is replaced"
        );
        assert_eq!(
            trust.agreements(here).unwrap()[0].asks,
            ["sandbox.net = host", "sandbox.rw = /opt"]
        );
        assert_eq!(trust.revoke(here).unwrap(), 1);
        assert_eq!(trust.revoke(here).unwrap(), 0);
        assert!(trust.covers(there, &wide).unwrap());
    }

    #[test]
    fn a_damaged_list_is_never_read_as_empty() {
        let folder = tempfile::tempdir().unwrap();
        let trust = Trust {
            file: folder.path().join("trusted.json"),
        };
        fs::write(&trust.file, "{").unwrap();
        assert!(matches!(
            trust.covers(Path::new("/r"), &[]),
            Err(TrustError::Damaged { .. })
        ));
        assert!(matches!(
            trust.revoke(Path::new("/r")),
            Err(TrustError::Damaged { .. })
        ));
    }
}
