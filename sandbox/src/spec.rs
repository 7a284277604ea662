//! What a caller asks for: the room of a task and a job in it. Plain values, nothing is looked up here.
//!
//! Must never carry a secret in a field that is shown: `argv` and `cwd` are, the environment is not.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::egress::Policy;
use crate::wire;

/// The room of one task. All paths are absolute paths of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomSpec {
    /// The task's id; also the stem of its files in `locks`.
    pub task: String,
    /// Folder of lock files and control sockets. Never visible in a room.
    #[serde(with = "wire::path")]
    pub locks: PathBuf,
    /// The worktree.
    #[serde(with = "wire::path")]
    pub tree: PathBuf,
    /// Whether jobs may write the worktree.
    pub writable: bool,
    /// Where the worktree appears in the room.
    #[serde(with = "wire::path")]
    pub mount_at: PathBuf,
    /// The task's git view; without it the tree's `.git` is covered, not shown.
    pub git: Option<GitView>,
    /// Shown read-only as `.bg/` in the worktree.
    #[serde(with = "wire::path")]
    pub bg: PathBuf,
    /// Shown read-only as `.sub/` in the worktree.
    #[serde(with = "wire::path")]
    pub sub: PathBuf,
    /// Shown read-only at `/run/airlock/feedback`.
    #[serde(with = "wire::path")]
    pub feedback: PathBuf,
    /// Where jobs leave what is to come back beside the tree: `/run/airlock/outbox`, writable.
    #[serde(with = "wire::path")]
    pub outbox: PathBuf,
    /// Further paths, readable at their own place. A path below `mount_at` means the worktree's own file, protected.
    #[serde(with = "wire::paths")]
    pub ro: Vec<PathBuf>,
    /// Further paths, writable at their own place.
    #[serde(with = "wire::paths")]
    pub rw: Vec<PathBuf>,
    /// Those of `ro` that nobody named and that hold installed programs: files in them that usually hold tokens are
    /// covered, as they are in layers and in the system's folders.
    #[serde(with = "wire::paths")]
    pub tools: Vec<PathBuf>,
    /// Folders and files of the host that the room shows below its HOME instead of at their own place.
    pub layers: Vec<Layer>,
    /// What no `ro`, `rw` or layer may cover or lie in: state root, configuration folder, the repository's git folder.
    #[serde(with = "wire::paths")]
    pub forbidden: Vec<PathBuf>,
    /// The network of the room.
    pub net: Net,
    /// Size of HOME, in bytes.
    pub home_bytes: u64,
    /// Files that HOME begins with, by their path below it. The jobs' own, like all of HOME.
    pub home_files: BTreeMap<String, String>,
    /// Size of `/tmp`, in bytes.
    pub tmp_bytes: u64,
    /// Owner (uid, gid) of the repository. A room that root opens runs as this user unless that is root too.
    pub repo_owner: (u32, u32),
}

/// The git folder that a room sees instead of the repository's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitView {
    /// The task's shadow git directory: `/run/airlock/git`, writable.
    #[serde(with = "wire::path")]
    pub shadow: PathBuf,
    /// Object folders of the repository, its alternates last: `/run/airlock/objects/0`, `/1`, …, read-only.
    #[serde(with = "wire::paths")]
    pub objects: Vec<PathBuf>,
}

/// Something of the host that a room shows below HOME: the host's own is never written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// The folder or regular file of the host, with no link on the way.
    #[serde(with = "wire::path")]
    pub from: PathBuf,
    /// Where jobs find it: below `/home/agent`.
    #[serde(with = "wire::path")]
    pub at: PathBuf,
    /// Whether jobs may write: to a layer of the room's own that covers the folder and takes from HOME's size. A
    /// host that has no such layers shows the folder read-only.
    pub writable: bool,
}

/// What a room can reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Net {
    /// A network namespace with loopback only, shared by the jobs of the task.
    None,
    /// The same, with one way out: the socket [`crate::egress::SOCKET`] in this folder, on which a proxy listens.
    Proxied {
        /// The folder; all that is in it can be reached by the room.
        #[serde(with = "wire::path")]
        folder: PathBuf,
        /// What the proxy lets through, for the names that the room knows. The proxy decides.
        policy: Policy,
    },
    /// The host's network: not confined.
    Host,
}

impl Net {
    /// Whether the room has a network namespace of its own.
    pub(crate) fn is_own(&self) -> bool {
        !matches!(self, Self::Host)
    }
}

/// One job: a process tree in a room, or without one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The job's name within its task.
    pub job: String,
    /// Folder for `meta.json` and `output.log`; made by the keeper.
    #[serde(with = "wire::path")]
    pub dir: PathBuf,
    /// The command; the first word is looked up in the job's `PATH` unless it holds a slash.
    #[serde(with = "wire::words")]
    pub argv: Vec<OsString>,
    /// The whole environment of the command.
    pub env: BTreeMap<String, String>,
    /// Working directory, as the job sees it.
    #[serde(with = "wire::path")]
    pub cwd: PathBuf,
    /// Wall time in milliseconds.
    pub timeout_ms: Option<u64>,
    /// How long it may print nothing, change no file and use no processor, in milliseconds.
    pub idle_ms: Option<u64>,
    /// Time between TERM and KILL, in milliseconds.
    pub grace_ms: u64,
    /// Bytes of output that are kept: a quarter from the start, the rest from the end.
    pub output_cap: u64,
    /// Limits on the job's processes, and on what the jobs of its task use together.
    pub limits: Limits,
    /// Folders of the host, such as the worktree, whose bytes and files are counted for `limits`.
    #[serde(with = "wire::paths")]
    pub watched: Vec<PathBuf>,
    /// Where the keeper appends what the job was refused: `deny.ndjson` of the task.
    #[serde(with = "wire::path")]
    pub denials: PathBuf,
    /// Given on standard input, then end of file; empty is `/dev/null`.
    pub stdin: Vec<u8>,
}

/// Limits: the first four are kept by the kernel on the job's processes, the others by keeper and cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processes and threads of one job.
    pub pids: u64,
    /// Largest file that may be written, in bytes.
    pub fsize: u64,
    /// Open files of one process.
    pub nofile: u64,
    /// Size of a core dump, in bytes.
    pub core: u64,
    /// Memory of all jobs of the task, with what lies in HOME, `/tmp` and `/dev/shm`, in bytes.
    pub memory: Option<u64>,
    /// Bytes on disk of the watched folders.
    pub disk: Option<u64>,
    /// Files and folders in the watched folders.
    pub files: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pids: 512,
            fsize: 512 << 20,
            nofile: 4096,
            core: 0,
            memory: None,
            disk: None,
            files: None,
        }
    }
}
