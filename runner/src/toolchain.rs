//! The toolchains that a room can have, and one of them resolved to paths and variables. Plain values: what is
//! found on a host is found by [`crate::config`], and shown by the room.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A family of build tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// cargo and rustc, of rustup or of the system.
    Rust,
    /// node with npm, pnpm or yarn.
    Node,
    /// python with pip or uv.
    Python,
    /// go.
    Go,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rust, Self::Node, Self::Python, Self::Go];

    /// The word of flags, files and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Node => "node",
            Self::Python => "python",
            Self::Go => "go",
        }
    }

    /// Files of a repository that tell that it needs this one.
    pub fn marks(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["Cargo.toml"],
            Self::Node => &["package.json"],
            Self::Python => &[
                "pyproject.toml",
                "requirements.txt",
                "setup.py",
                "setup.cfg",
                "Pipfile",
                "tox.ini",
            ],
            Self::Go => &["go.mod", "go.work"],
        }
    }
}

/// Something of this host that a room shows below its private HOME.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// Where it is on this host.
    pub from: PathBuf,
    /// Where the room has it.
    pub at: PathBuf,
    /// Whether jobs may write to a layer of the room's own over it; what is here is never written.
    pub private_layer: bool,
}

/// One toolchain as a room gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toolchain {
    /// Which.
    pub language: Language,
    /// Who asked for it, or the file of the base commit that calls for it.
    pub origin: String,
    /// Programs and installed packages, read-only at their own place.
    pub programs: Vec<PathBuf>,
    /// Caches and the like, below HOME.
    pub layers: Vec<Shown>,
    /// Folders that are searched for programs before those of the system.
    #[serde(default)]
    pub search: Vec<PathBuf>,
    /// Variables, unless somebody sets them otherwise.
    pub env: BTreeMap<String, String>,
    /// The same, where no network is reached and tools had better not try.
    #[serde(default)]
    pub offline: BTreeMap<String, String>,
    /// Digest of which programs these are, by their files; caches are not part of it.
    #[serde(default)]
    pub fingerprint: String,
}
