//! One folder on the way of a seal: what the base has there, what is still to be looked at, what was built.

use std::collections::HashMap;

use git2::{ObjectType, Oid};

use super::{SealError, stored};
use crate::history::{Side, peel_tree, plain_mode, unreadable};
use crate::shown;
use crate::store::{Store, tree_bytes};

/// git's mode of a folder.
pub(super) const FOLDER: u32 = 0o040_000;
/// git's mode of a link.
pub(super) const LINK: u32 = 0o120_000;
/// git's mode of a submodule.
pub(super) const SUBMODULE: u32 = 0o160_000;

/// A folder that is being sealed.
#[derive(Debug)]
pub(super) struct Frame {
    /// Ends in `/`; empty for the root.
    pub(super) path: Vec<u8>,
    /// The base's tree for this folder.
    tree: Option<Oid>,
    base: HashMap<Vec<u8>, Side>,
    /// Names still to do, the last one first.
    pub(super) names: Vec<Vec<u8>>,
    built: Vec<(Vec<u8>, Side)>,
    /// Only what the base tracks counts from here on down.
    pub(super) ignored: bool,
    /// Which stacks got rules of this folder.
    pub(super) pushed: Pushed,
}

/// Rules that must be taken back when the folder is done.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pushed {
    pub(super) ignore: bool,
    pub(super) attributes: bool,
    pub(super) base_attributes: bool,
}

impl Frame {
    pub(super) fn open(
        repo: &git2::Repository,
        path: Vec<u8>,
        tree: Option<Oid>,
        ignored: bool,
    ) -> Result<Self, SealError> {
        let failed = |source| SealError::Base {
            path: shown(&path),
            source,
        };
        let mut base = HashMap::new();
        if let Some(oid) = tree {
            for entry in &peel_tree(repo, oid).map_err(failed)? {
                let mode = match entry.kind() {
                    Some(ObjectType::Tree) => FOLDER,
                    _ => plain_mode(entry.filemode_raw()),
                };
                let side = Side {
                    oid: entry.id(),
                    mode,
                };
                base.insert(entry.name_bytes().to_vec(), side);
            }
        }
        Ok(Self {
            path,
            tree,
            base,
            names: Vec::new(),
            built: Vec::new(),
            ignored,
            pushed: Pushed::default(),
        })
    }

    pub(super) fn path_of(&self, name: &[u8]) -> Vec<u8> {
        [self.path.as_slice(), name].concat()
    }

    /// What the base has under a name, whatever it is.
    pub(super) fn base(&self, name: &[u8]) -> Option<Side> {
        self.base.get(name).copied()
    }

    /// The file or link that the base tracks under a name.
    pub(super) fn tracked(&self, name: &[u8]) -> Option<Side> {
        self.base(name)
            .filter(|side| side.mode != FOLDER && side.mode != SUBMODULE)
    }

    /// The base's rules for attributes in this folder.
    pub(super) fn base_attributes(
        &self,
        repo: &git2::Repository,
    ) -> Result<Option<Vec<u8>>, SealError> {
        let Some(side) = self
            .tracked(b".gitattributes")
            .filter(|side| side.mode != LINK)
        else {
            return Ok(None);
        };
        let blob = repo.find_blob(side.oid).map_err(|source| SealError::Base {
            path: shown(&self.path_of(b".gitattributes")),
            source: unreadable("blob", side.oid)(source),
        })?;
        Ok(Some(blob.content().to_vec()))
    }

    pub(super) fn put(&mut self, name: &[u8], side: Side) {
        self.built.push((name.to_vec(), side));
    }

    /// Leaves what the base has under a name as it is.
    pub(super) fn keep(&mut self, name: &[u8]) {
        if let Some(side) = self.base(name) {
            self.put(name, side);
        }
    }

    /// The tree of what was built; `None` for an empty folder, which git does not know. The base's own tree is
    /// taken when nothing differs, even if it spells its modes in an old way.
    pub(super) fn finish(mut self, store: &mut Store<'_>) -> Result<Option<Oid>, SealError> {
        let same = self.built.len() == self.base.len()
            && self
                .built
                .iter()
                .all(|(name, side)| self.base.get(name) == Some(side));
        if same && self.tree.is_some() {
            return Ok(self.tree);
        }
        if self.built.is_empty() && !self.path.is_empty() {
            return Ok(None);
        }
        let bytes = tree_bytes(&mut self.built);
        store
            .add(ObjectType::Tree, &bytes)
            .map(Some)
            .map_err(stored(&self.path))
    }
}
