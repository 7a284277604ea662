//! What is wrong with a tree, by path. Never decides what happens then: the gate *tree* does.

use serde::{Deserialize, Serialize};

use crate::shown;

/// The kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProblemCode {
    /// Something named `.git`, or that some system takes for it: a repository inside the tree.
    NestedGit,
    /// Something inside a submodule, which is checked out as an empty folder.
    SubmoduleEdit,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
    /// A file that would run as another user or group.
    SetId,
    /// A file or folder that cannot be read.
    Unreadable,
    /// A file that is too large for a commit.
    TooLarge,
    /// A folder nested deeper than git allows.
    TooDeep,
    /// A path longer than any system opens.
    TooLong,
    /// Stands for problems that are not listed one by one.
    TooMany,
}

impl ProblemCode {
    /// The code as text, the same as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NestedGit => "nested_git",
            Self::SubmoduleEdit => "submodule_edit",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::Device => "device",
            Self::SetId => "set_id",
            Self::Unreadable => "unreadable",
            Self::TooLarge => "too_large",
            Self::TooDeep => "too_deep",
            Self::TooLong => "too_long",
            Self::TooMany => "too_many",
        }
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeProblem {
    /// Shown path.
    pub path: String,
    /// What kind.
    pub code: ProblemCode,
    /// A sentence for people, without the path.
    pub message: String,
}

impl TreeProblem {
    pub(super) fn new(path: &[u8], code: ProblemCode, message: impl Into<String>) -> Self {
        Self {
            path: shown(path.strip_suffix(b"/").unwrap_or(path)),
            code,
            message: message.into(),
        }
    }
}
