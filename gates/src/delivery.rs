//! What is judged: the delivery as object ids and plain values, and the door to its bytes.
//! It must never hold a path on disk, a handle or a clock: the judge child gets exactly this and nothing else.

use serde::{Deserialize, Serialize};

use crate::Profile;

/// A sealed commit offered for acceptance. Ids are lower-case hex object ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// Short name of the repository, for people.
    pub repository: String,
    /// The task that delivers; `None` when a commit is judged without one.
    #[serde(default)]
    pub task: Option<String>,
    /// The run the task belongs to.
    #[serde(default)]
    pub run: Option<String>,
    /// Commit that the delivery is compared with.
    pub base: String,
    /// Tree of `base`.
    pub base_tree: String,
    /// The judged commit.
    pub commit: String,
    /// Tree of `commit`.
    pub tree: String,
    /// Every path that differs between the two trees, sorted by path.
    pub changes: Vec<Change>,
    /// What the seal found in the tree and did not accept.
    #[serde(default)]
    pub problems: Vec<Problem>,
    /// Paths under an external filter, sealed as they were found.
    #[serde(default)]
    pub unconverted: Vec<String>,
    /// What the agent left in its own git directory.
    #[serde(default)]
    pub agent: AgentWork,
    /// The agent's note about its work, as it wrote it.
    #[serde(default)]
    pub note: Option<String>,
    /// How the gates are set.
    #[serde(default)]
    pub profile: Profile,
    /// Whether the engine made the commit (a task) or found it (`gate` in CI).
    pub engine_made: bool,
}

/// One path that differs between base and delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Path in the tree with `/`, in its shown form.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
    /// The old path of a rename.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The base's side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Blob>,
    /// The delivery's side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Blob>,
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Not in the base.
    Added,
    /// Other content.
    Modified,
    /// Not in the delivery.
    Deleted,
    /// Same content under another name.
    Renamed,
    /// Same content, other mode.
    Mode,
}

/// One side of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blob {
    /// Object id.
    pub oid: String,
    /// Git file mode: 0o100644, 0o100755, 0o120000 (link), 0o160000 (submodule).
    pub mode: u32,
    /// Size of the object in bytes.
    pub bytes: u64,
}

/// Mode of a symbolic link in a git tree.
pub const MODE_LINK: u32 = 0o120_000;
/// Mode of a submodule entry in a git tree.
pub const MODE_SUBMODULE: u32 = 0o160_000;

impl Blob {
    /// Whether the entry is a regular file, so that its bytes are content.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.mode != MODE_LINK && self.mode != MODE_SUBMODULE
    }
}

/// Something in the worktree that the seal did not accept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// Path in its shown form.
    pub path: String,
    /// Stable code, such as `nested_git` or `fifo`.
    pub code: String,
    /// What was found.
    pub message: String,
}

/// What the agent did in its own git directory: recorded, never used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentWork {
    /// Commits that the agent made.
    #[serde(default)]
    pub commits: Vec<AgentCommit>,
    /// References that the agent made or moved.
    #[serde(default)]
    pub references: Vec<String>,
    /// Why the agent's git directory could not be read in full.
    #[serde(default)]
    pub unreadable: Option<String>,
}

/// One commit of the agent's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentCommit {
    /// Object id in the shadow git directory.
    pub oid: String,
    /// First line of the message.
    pub subject: String,
    /// The reference it was found from.
    #[serde(default)]
    pub reference: Option<String>,
}

/// The door to the bytes of base and delivery. It never offers any other object.
pub trait Source {
    /// Content of a blob; `None` when it cannot be had, which a gate reports as "could not check".
    fn blob(&mut self, oid: &str) -> Option<Vec<u8>>;
    /// All files of the judged tree.
    fn entries(&mut self) -> Vec<TreeEntry>;
}

/// One file of the judged tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeEntry {
    /// Path in the tree with `/`, in its shown form.
    pub path: String,
    /// Object id.
    pub oid: String,
    /// Git file mode.
    pub mode: u32,
}
