//! Where Airlock keeps things on this host: the state root, one state folder for each repository,
//! and the layout of a task's folder. Knows paths and ownership; holds no state itself.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::exit::{Exit, Failure};

/// Why a folder of ours cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Neither a home folder nor an explicit state root is known.
    #[error("no state root: neither AIRLOCK_STATE, XDG_STATE_HOME nor HOME is set")]
    Unknown,
    /// A relative state root would depend on the folder that a command is started in.
    #[error("the state root {} is not an absolute path", path.display())]
    Relative {
        /// What the environment says.
        path: PathBuf,
    },
    /// The folder could not be made.
    #[error("cannot make the folder {}", path.display())]
    Make {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Somebody else owns it.
    #[error("{} belongs to uid {owner}, not to uid {us}: refusing to keep state there", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Who runs this command.
        us: u32,
    },
}

impl From<HomeError> for Failure {
    fn from(error: HomeError) -> Self {
        Self::caused(Exit::Usage, &error).advise("set AIRLOCK_STATE to a folder of your own")
    }
}

/// The state root of the user who runs the command.
#[derive(Debug, Clone)]
pub struct StateRoot(PathBuf);

impl StateRoot {
    /// Takes up a root that another process of ours has made.
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Finds the root from the environment and makes it, private to the user.
    pub fn from_env() -> Result<Self, HomeError> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let path = if let Some(path) = set("AIRLOCK_STATE") {
            PathBuf::from(path)
        } else if let Some(path) = set("XDG_STATE_HOME") {
            PathBuf::from(path).join("airlock")
        } else if nix::unistd::geteuid().is_root() {
            PathBuf::from("/var/lib/airlock")
        } else {
            PathBuf::from(set("HOME").ok_or(HomeError::Unknown)?).join(".local/state/airlock")
        };
        if path.is_relative() {
            return Err(HomeError::Relative { path });
        }
        own_folder(&path)?;
        let path = fs::canonicalize(&path).map_err(|source| HomeError::Make { path, source })?;
        Ok(Self(path))
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The private signing key.
    pub fn signing_key(&self) -> PathBuf {
        self.0.join("signing.key")
    }

    /// The prepared `/etc` of rooms.
    pub fn etc(&self) -> PathBuf {
        self.0.join("etc")
    }

    /// Digests of configurations that the user has trusted.
    pub fn trusted(&self) -> PathBuf {
        self.0.join("trusted.json")
    }

    /// The state folder of one repository, made when absent.
    pub fn folder(&self, name: &str, common_dir: &Path) -> Result<StateFolder, HomeError> {
        let digest = Sha256::digest(common_dir.as_os_str().as_encoded_bytes());
        let short = crate::hex::of(digest.get(..6).unwrap_or_default());
        let name: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "._-".contains(c) {
                    c
                } else {
                    '-'
                }
            })
            .take(40)
            .collect();
        let path = self
            .0
            .join(format!("{}-{short}", name.trim_start_matches('.')));
        for folder in [&path, &path.join("locks"), &path.join("tasks")] {
            own_folder(folder)?;
        }
        Ok(StateFolder(path))
    }
}

/// Makes a folder of mode 0700, or accepts one that is ours.
fn own_folder(path: &Path) -> Result<(), HomeError> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    made.and_then(|()| fs::metadata(path))
        .map_err(|source| HomeError::Make {
            path: path.to_owned(),
            source,
        })
        .and_then(|meta| {
            let us = nix::unistd::geteuid().as_raw();
            if meta.uid() == us {
                Ok(())
            } else {
                Err(HomeError::Foreign {
                    path: path.to_owned(),
                    owner: meta.uid(),
                    us,
                })
            }
        })
}

/// Everything kept for one repository.
#[derive(Debug, Clone)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// Takes up a folder whose path another process of ours made.
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The event store.
    pub fn database(&self) -> PathBuf {
        self.0.join("state.db")
    }

    /// Locks, sockets and FIFOs; never visible in a room.
    pub fn locks(&self) -> PathBuf {
        self.0.join("locks")
    }

    /// Held while a worktree is registered or a branch is landed.
    pub fn repository_lock(&self) -> PathBuf {
        self.0.join("locks/repo.lock")
    }

    /// Held by the supervisor for its whole life.
    pub fn supervisor_lock(&self) -> PathBuf {
        self.0.join("supervisor.lock")
    }

    /// Where the supervisor's own complaints go.
    pub fn supervisor_log(&self) -> PathBuf {
        self.0.join("supervisor.log")
    }

    /// The name of the supervisor's socket, below [`Self::path`].
    pub const SOCKET: &'static str = "supervisor.sock";

    /// The folder of one task.
    pub fn task(&self, id: &str) -> TaskFolder {
        TaskFolder(self.0.join("tasks").join(id))
    }
}

/// What is kept for one task.
#[derive(Debug, Clone)]
pub struct TaskFolder(PathBuf);

impl TaskFolder {
    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The state for people and scripts.
    pub fn summary(&self) -> PathBuf {
        self.0.join("task.json")
    }

    /// The worktree as the host sees it.
    pub fn tree(&self) -> PathBuf {
        self.0.join("tree")
    }

    /// The shadow git dir; written by the agent, never opened as a repository.
    pub fn shadow(&self) -> PathBuf {
        self.0.join("git")
    }

    /// Status and logs of all jobs.
    pub fn jobs(&self) -> PathBuf {
        self.0.join("bg")
    }

    /// Status of subagents.
    pub fn subagents(&self) -> PathBuf {
        self.0.join("sub")
    }

    /// What the engine tells the agent, read-only for it.
    pub fn feedback(&self) -> PathBuf {
        self.0.join("feedback")
    }

    /// What the room refused.
    pub fn denials(&self) -> PathBuf {
        self.0.join(sandbox::DENIALS)
    }

    /// The folder of the proxy's socket: the room reaches all that is in it.
    pub fn proxy(&self) -> PathBuf {
        self.0.join("proxy")
    }

    /// What the agent leaves to come back beside the tree; written by it.
    pub fn outbox(&self) -> PathBuf {
        self.0.join("outbox")
    }

    /// Statement, envelope and report.
    pub fn evidence(&self) -> PathBuf {
        self.0.join("evidence")
    }

    /// The folder of one job.
    pub fn job(&self, job: &str) -> PathBuf {
        self.jobs().join(job)
    }

    /// The captured output of one job.
    pub fn log(&self, job: &str) -> PathBuf {
        self.job(job).join("output.log")
    }
}
