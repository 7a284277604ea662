//! Errors shared by everything that opens a repository, reads its objects or moves its refs.
//! Each names what, where and why; what to do about it is said by the caller, who knows the task.

use std::io;
use std::path::PathBuf;

use git2::Oid;
use thiserror::Error;

/// A repository could not be taken up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Neither the folder nor any above it is or holds a repository.
    #[error("no git repository at or above {}", path.display())]
    NotARepository {
        /// Where the search began.
        path: PathBuf,
    },
    /// The folder itself cannot be reached.
    #[error("cannot enter {}", path.display())]
    Unreachable {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The repository uses a feature that cannot be handled without getting something silently wrong.
    #[error("the repository {} uses {feature}, which is not supported", path.display())]
    Unsupported {
        /// The repository.
        path: PathBuf,
        /// Name of the feature, as git's documentation has it, with the path concerned where there is one.
        feature: String,
    },
    /// The base commit tracks a name that a room needs for itself.
    #[error("the base commit {base} tracks {name}, a name that a task's room needs for itself")]
    ReservedName {
        /// The base commit.
        base: Oid,
        /// `.bg` or `.sub`.
        name: String,
    },
    /// Another user owns the repository and this one is not root: git refuses it too.
    #[error("{} belongs to user {owner}, not to user {user}", path.display())]
    OtherOwner {
        /// What is owned by somebody else.
        path: PathBuf,
        /// Numeric id of the owner.
        owner: u32,
        /// Numeric id of this process.
        user: u32,
    },
    /// Something looks like a repository but cannot be read as one.
    #[error("{} is damaged: {problem}", path.display())]
    Corrupt {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file of the repository cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// libgit2 cannot open the repository or its configuration.
    #[error("cannot open the repository {}", path.display())]
    Open {
        /// The git directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: git2::Error,
    },
    /// The objects of the base commit cannot be read.
    #[error("cannot read the base commit {base}")]
    Base {
        /// The base commit.
        base: Oid,
        /// Why.
        #[source]
        source: ReadError,
    },
}

/// A ref or revision could not be read or moved.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RefError {
    /// The branch that is checked out has no commit yet.
    #[error("the branch {branch} has no commit yet")]
    Unborn {
        /// Short branch name.
        branch: String,
    },
    /// Nothing answers to that name.
    #[error("there is no commit {rev}")]
    NoSuchRevision {
        /// As it was asked for.
        rev: String,
    },
    /// The name cannot be read as a commit.
    #[error("cannot resolve {rev}")]
    Resolve {
        /// As it was asked for.
        rev: String,
        /// Why.
        #[source]
        source: git2::Error,
    },
    /// The name is not a valid ref name.
    #[error("{name:?} is not a valid name for a ref")]
    InvalidName {
        /// The name.
        name: String,
    },
    /// Another ref stands in the way, as `feat` does for `feat/x`.
    #[error("the ref {name} cannot exist beside {existing}")]
    Clash {
        /// The ref that was to be made.
        name: String,
        /// The one that is there.
        existing: String,
    },
    /// The ref is not where it was expected.
    #[error("{name} is at {}, expected {}", place(found.as_ref()), place(expected.as_ref()))]
    Moved {
        /// Full name.
        name: String,
        /// Where it should have been; `None`: it should not have existed.
        expected: Option<Oid>,
        /// Where it is.
        found: Option<Oid>,
    },
    /// The ref is a symbolic one, which is never moved.
    #[error("{name} is a symbolic ref")]
    Symbolic {
        /// Full name.
        name: String,
    },
    /// Somebody holds the lock of the ref.
    #[error("{name} is locked by {}", path.display())]
    Locked {
        /// Full name.
        name: String,
        /// The lock file.
        path: PathBuf,
    },
    /// A file of the refs cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// `read`, `write`, ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// libgit2 could not do it.
    #[error("cannot {action} {name}")]
    Git {
        /// `look up`, `delete`, ...
        action: &'static str,
        /// Ref or repository.
        name: String,
        /// Why.
        #[source]
        source: git2::Error,
    },
}

fn place(oid: Option<&Oid>) -> String {
    oid.map_or_else(|| "nothing".to_owned(), Oid::to_string)
}

/// Objects of the repository could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// libgit2 cannot open the repository.
    #[error("cannot open the repository {}", path.display())]
    Open {
        /// The git directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: git2::Error,
    },
    /// An object is missing, damaged or of the wrong kind.
    #[error("cannot read the {kind} {oid}")]
    Object {
        /// `commit`, `tree` or `blob`.
        kind: &'static str,
        /// Its id.
        oid: Oid,
        /// Why.
        #[source]
        source: git2::Error,
    },
    /// Two trees cannot be compared.
    #[error("cannot compare {base} with {head}")]
    Compare {
        /// Left side.
        base: Oid,
        /// Right side.
        head: Oid,
        /// Why.
        #[source]
        source: git2::Error,
    },
    /// A path inside a commit leads through something that is not a folder, or names a folder.
    #[error("{path} in {commit} is not a file")]
    NotAFile {
        /// Shown path.
        path: String,
        /// The commit.
        commit: Oid,
    },
    /// Folders are nested deeper than any real repository has them.
    #[error("the tree {oid} is nested deeper than {limit} folders")]
    TooDeep {
        /// The tree where the limit was met.
        oid: Oid,
        /// The limit.
        limit: usize,
    },
}
