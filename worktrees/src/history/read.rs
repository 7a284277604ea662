//! Single objects: the entries of a tree, a blob, a file of a commit, the facts of a commit.

use std::fmt;

use git2::{ErrorCode, Object, ObjectType, Oid, Tree};

use crate::repository::{ReadError, Repository};
use crate::shown;

/// git itself refuses trees that are nested deeper (`core.maxTreeDepth`).
pub(crate) const DEPTH_LIMIT: usize = 2048;

/// One file, link or submodule of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Path from the root, as git stores it.
    pub path: Vec<u8>,
    /// The blob, or the commit of a submodule.
    pub oid: Oid,
    /// git's mode: `0o100644`, `0o100755`, `0o120000` (link) or `0o160000` (submodule).
    pub mode: u32,
}

/// What a commit says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFacts {
    /// Its tree.
    pub tree: Oid,
    /// Its parents, in order.
    pub parents: Vec<Oid>,
    /// First line of the message; invalid bytes in shown form.
    pub subject: String,
    /// Unix seconds of the author.
    pub author_time: i64,
}

/// Blobs of a repository. Not to be kept: it may not see objects of packs that are made later.
pub struct Objects {
    repo: git2::Repository,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Objects").field(&self.repo.path()).finish()
    }
}

impl Objects {
    /// The bytes of a blob.
    pub fn blob(&self, oid: Oid) -> Result<Vec<u8>, ReadError> {
        let blob = self.repo.find_blob(oid).map_err(unreadable("blob", oid))?;
        Ok(blob.content().to_vec())
    }

    /// Size of a blob in bytes, without reading it whole.
    pub fn size(&self, oid: Oid) -> Result<u64, ReadError> {
        let odb = self.repo.odb().map_err(unreadable("blob", oid))?;
        let (size, _kind) = odb.read_header(oid).map_err(unreadable("blob", oid))?;
        Ok(size as u64)
    }
}

impl Repository {
    /// All files below a commit or tree, sorted by path.
    pub fn tree_entries(&self, commit_or_tree: Oid) -> Result<Vec<TreeEntry>, ReadError> {
        let repo = self.open_for_reading()?;
        let root = peel_tree(&repo, commit_or_tree)?;
        let mut entries = Vec::new();
        let mut pending = vec![(Vec::new(), root.id(), 0_usize)];
        while let Some((prefix, oid, depth)) = pending.pop() {
            if depth > DEPTH_LIMIT {
                return Err(ReadError::TooDeep {
                    oid,
                    limit: DEPTH_LIMIT,
                });
            }
            let tree = repo.find_tree(oid).map_err(unreadable("tree", oid))?;
            for entry in &tree {
                let mut path = prefix.clone();
                path.extend_from_slice(entry.name_bytes());
                if entry.kind() == Some(ObjectType::Tree) {
                    path.push(b'/');
                    pending.push((path, entry.id(), depth + 1));
                } else {
                    entries.push(TreeEntry {
                        path,
                        oid: entry.id(),
                        mode: plain_mode(entry.filemode_raw()),
                    });
                }
            }
        }
        entries.sort_unstable_by(|left, right| left.path.cmp(&right.path));
        Ok(entries)
    }

    /// The object database, opened once for reading many blobs.
    pub fn objects(&self) -> Result<Objects, ReadError> {
        Ok(Objects {
            repo: self.open_for_reading()?,
        })
    }

    /// The bytes of a blob. For many, open [`Repository::objects`] once.
    pub fn blob(&self, oid: Oid) -> Result<Vec<u8>, ReadError> {
        self.objects()?.blob(oid)
    }

    /// Size of a blob in bytes. For many, open [`Repository::objects`] once.
    pub fn blob_size(&self, oid: Oid) -> Result<u64, ReadError> {
        self.objects()?.size(oid)
    }

    /// A file of a commit, such as `airlock.toml` of the base; `None`: there is none. A link is not followed.
    pub fn file_at(&self, commit: Oid, path: &str) -> Result<Option<Vec<u8>>, ReadError> {
        let repo = self.open_for_reading()?;
        let tree = peel_tree(&repo, commit)?;
        let entry = match tree.get_path(path.as_ref()) {
            Ok(entry) => entry,
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
            Err(error) => return Err(unreadable("tree", tree.id())(error)),
        };
        if entry.filemode_raw() & 0o170_000 != 0o100_000 {
            return Err(ReadError::NotAFile {
                path: shown(path.as_bytes()),
                commit,
            });
        }
        self.blob(entry.id()).map(Some)
    }

    /// Paths of the files at the top of a commit and in the folders directly below it, in the order of its trees.
    /// Beyond `most` folders no further one is looked into.
    pub fn files_near_top(&self, commit: Oid, most: usize) -> Result<Vec<Vec<u8>>, ReadError> {
        let repo = self.open_for_reading()?;
        let root = peel_tree(&repo, commit)?;
        let mut files = Vec::new();
        let mut folders = Vec::new();
        for entry in &root {
            match entry.kind() {
                Some(ObjectType::Blob) => files.push(entry.name_bytes().to_vec()),
                Some(ObjectType::Tree) => folders.push((entry.name_bytes().to_vec(), entry.id())),
                _ => {}
            }
        }
        for (folder, oid) in folders.into_iter().take(most) {
            let tree = repo.find_tree(oid).map_err(unreadable("tree", oid))?;
            let inner = tree
                .iter()
                .filter(|entry| entry.kind() == Some(ObjectType::Blob));
            files.extend(inner.map(|entry| [folder.as_slice(), b"/", entry.name_bytes()].concat()));
        }
        Ok(files)
    }

    /// The object of a file of a commit and its mode, as in [`TreeEntry`]; `None`: there is no such file.
    pub fn entry_at(&self, commit: Oid, path: &str) -> Result<Option<TreeEntry>, ReadError> {
        let repo = self.open_for_reading()?;
        let tree = peel_tree(&repo, commit)?;
        match tree.get_path(path.as_ref()) {
            Ok(entry) => Ok(Some(TreeEntry {
                path: path.as_bytes().to_vec(),
                oid: entry.id(),
                mode: plain_mode(entry.filemode_raw()),
            })),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(unreadable("tree", tree.id())(error)),
        }
    }

    /// Whether `ancestor` is `of` or one of the commits it stands on.
    pub fn is_ancestor(&self, ancestor: Oid, of: Oid) -> Result<bool, ReadError> {
        if ancestor == of {
            return Ok(true);
        }
        let repo = self.open_for_reading()?;
        repo.graph_descendant_of(of, ancestor)
            .map_err(|source| ReadError::Compare {
                base: ancestor,
                head: of,
                source,
            })
    }

    /// Tree, parents, subject and time of a commit.
    pub fn commit_facts(&self, oid: Oid) -> Result<CommitFacts, ReadError> {
        let repo = self.open_for_reading()?;
        let commit = repo.find_commit(oid).map_err(unreadable("commit", oid))?;
        let message = commit.message_bytes();
        let subject = message
            .split(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        Ok(CommitFacts {
            tree: commit.tree_id(),
            parents: commit.parent_ids().collect(),
            subject: shown(subject),
            author_time: commit.author().when().seconds(),
        })
    }

    pub(crate) fn open_for_reading(&self) -> Result<git2::Repository, ReadError> {
        self.open().map_err(|source| ReadError::Open {
            path: self.common_dir().to_path_buf(),
            source,
        })
    }
}

/// The tree of a commit, tag or tree.
pub(crate) fn peel_tree(repo: &git2::Repository, oid: Oid) -> Result<Tree<'_>, ReadError> {
    repo.find_object(oid, None)
        .and_then(|object: Object<'_>| object.peel_to_tree())
        .map_err(unreadable("tree", oid))
}

/// Old trees hold modes such as `0o100664`, which git reads as one of its own five.
pub(crate) fn plain_mode(raw: i32) -> u32 {
    match raw & 0o170_000 {
        0o100_000 if raw & 0o100 != 0 => 0o100_755,
        0o100_000 => 0o100_644,
        0o040_000 => 0o040_000,
        0o120_000 => 0o120_000,
        _ => 0o160_000,
    }
}

pub(crate) fn unreadable(kind: &'static str, oid: Oid) -> impl Fn(git2::Error) -> ReadError {
    move |source| ReadError::Object { kind, oid, source }
}
