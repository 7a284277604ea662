//! Which files differ between two commits or trees. Equal subtrees are never opened.

use std::collections::HashMap;

use git2::{ObjectType, Oid, Tree};

use super::DEPTH_LIMIT;
use super::read::{peel_tree, plain_mode, unreadable};
use crate::repository::{ReadError, Repository};

/// A file on one side of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Side {
    /// The blob (the commit, for a submodule).
    pub oid: Oid,
    /// git's mode.
    pub mode: u32,
}

/// What happened to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was not there.
    Added,
    /// Other content, or another kind of file.
    Modified,
    /// It is gone.
    Deleted,
    /// The same content was at another path, which is gone. Only exact copies count.
    Renamed {
        /// Where it was.
        from: Vec<u8>,
    },
    /// The same content with another mode.
    ModeChanged,
}

/// One file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Path from the root, as git stores it; the new one of a rename.
    pub path: Vec<u8>,
    /// What happened.
    pub kind: ChangeKind,
    /// Before; `None` when added.
    pub old: Option<Side>,
    /// After; `None` when deleted.
    pub new: Option<Side>,
}

impl Repository {
    /// The files that differ between two commits or trees, sorted by path.
    pub fn changes(&self, base: Oid, head: Oid) -> Result<Vec<FileChange>, ReadError> {
        let repo = self.open_for_reading()?;
        let plain = plain_changes(&repo, base, head)?;
        Ok(pair_renames(plain))
    }
}

/// As [`Repository::changes`], with a rename left as one deleted and one added file.
pub(crate) fn plain_changes(
    repo: &git2::Repository,
    base: Oid,
    head: Oid,
) -> Result<Vec<FileChange>, ReadError> {
    let old = peel_tree(repo, base)?;
    let new = peel_tree(repo, head)?;
    let mut found = Vec::new();
    let mut pending = vec![(Vec::new(), Some(old.id()), Some(new.id()), 0_usize)];
    while let Some((prefix, old, new, depth)) = pending.pop() {
        if old == new {
            continue;
        }
        let left = entries(repo, old, depth)?;
        let right = entries(repo, new, depth)?;
        for name in left
            .keys()
            .chain(right.keys().filter(|name| !left.contains_key(*name)))
        {
            let mut path = prefix.clone();
            path.extend_from_slice(name);
            let (old_file, old_tree) = split(left.get(name));
            let (new_file, new_tree) = split(right.get(name));
            if let Some(change) = compare(&path, old_file, new_file) {
                found.push(change);
            }
            if old_tree.is_some() || new_tree.is_some() {
                path.push(b'/');
                pending.push((path, old_tree, new_tree, depth + 1));
            }
        }
    }
    found.sort_unstable_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

fn entries(
    repo: &git2::Repository,
    oid: Option<Oid>,
    depth: usize,
) -> Result<HashMap<Vec<u8>, Side>, ReadError> {
    let Some(oid) = oid else {
        return Ok(HashMap::new());
    };
    if depth > DEPTH_LIMIT {
        return Err(ReadError::TooDeep {
            oid,
            limit: DEPTH_LIMIT,
        });
    }
    let tree: Tree<'_> = repo.find_tree(oid).map_err(unreadable("tree", oid))?;
    let sides = tree.iter().map(|entry| {
        let mode = match entry.kind() {
            Some(ObjectType::Tree) => 0o040_000,
            _ => plain_mode(entry.filemode_raw()),
        };
        let side = Side {
            oid: entry.id(),
            mode,
        };
        (entry.name_bytes().to_vec(), side)
    });
    Ok(sides.collect())
}

/// A name is a file or a folder, on each side for itself.
fn split(side: Option<&Side>) -> (Option<Side>, Option<Oid>) {
    match side {
        Some(side) if side.mode == 0o040_000 => (None, Some(side.oid)),
        other => (other.copied(), None),
    }
}

fn compare(path: &[u8], old: Option<Side>, new: Option<Side>) -> Option<FileChange> {
    let kind = match (old, new) {
        (None, None) => return None,
        (Some(old), Some(new)) if old == new => return None,
        (Some(old), Some(new)) if old.oid == new.oid => ChangeKind::ModeChanged,
        (Some(_), Some(_)) => ChangeKind::Modified,
        (None, Some(_)) => ChangeKind::Added,
        (Some(_), None) => ChangeKind::Deleted,
    };
    Some(FileChange {
        path: path.to_vec(),
        kind,
        old,
        new,
    })
}

/// Joins a deleted and an added file of the same content. Each deleted file is used once, in order of path.
fn pair_renames(changes: Vec<FileChange>) -> Vec<FileChange> {
    let mut gone: HashMap<Side, Vec<Vec<u8>>> = HashMap::new();
    for change in changes.iter().rev() {
        if let (ChangeKind::Deleted, Some(side)) = (&change.kind, change.old) {
            gone.entry(side).or_default().push(change.path.clone());
        }
    }
    let mut used = std::collections::HashSet::new();
    let mut joined = Vec::with_capacity(changes.len());
    for mut change in changes {
        if let (ChangeKind::Added, Some(side)) = (&change.kind, change.new)
            && let Some(from) = gone.get_mut(&side).and_then(Vec::pop)
        {
            used.insert(from.clone());
            change.old = Some(side);
            change.kind = ChangeKind::Renamed { from };
        }
        joined.push(change);
    }
    joined.retain(|change| change.kind != ChangeKind::Deleted || !used.contains(&change.path));
    joined
}
