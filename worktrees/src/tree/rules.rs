//! The attributes of single paths of a commit, from the rule files that the commit itself holds.

use git2::Oid;

use super::{Attributes, Settings, Traits};
use crate::history::{peel_tree, unreadable};
use crate::repository::ReadError;

/// A folder (its path ends in `/`), and its tree if the commit has it.
type Entered = (Vec<u8>, Option<Oid>);

/// Attributes by path; quick when the paths come in order.
pub(crate) struct TreeRules<'a> {
    repo: &'a git2::Repository,
    settings: &'a Settings,
    attributes: Attributes,
    /// Folders from the root down, each with its tree (if the commit has it) and whether it brought rules.
    entered: Vec<(Vec<u8>, Option<Oid>, bool)>,
}

impl<'a> TreeRules<'a> {
    pub(crate) fn new(
        repo: &'a git2::Repository,
        settings: &'a Settings,
        commit: Oid,
    ) -> Result<Self, ReadError> {
        let mut rules = Self {
            repo,
            settings,
            attributes: Attributes::new(settings),
            entered: Vec::new(),
        };
        let root = peel_tree(repo, commit)?.id();
        rules.enter(Vec::new(), Some(root))?;
        Ok(rules)
    }

    /// The traits of a file.
    pub(crate) fn of(&mut self, path: &[u8]) -> Result<Traits, ReadError> {
        while self.entered.len() > 1
            && self
                .entered
                .last()
                .is_some_and(|(folder, _, _)| !path.starts_with(folder))
        {
            if let Some((_, _, true)) = self.entered.pop() {
                self.attributes.pop();
            }
        }
        while let Some((inner, tree)) = self.next_folder(path)? {
            self.enter(inner, tree)?;
        }
        Ok(self.attributes.of(path, self.settings))
    }

    /// The folder below the last entered one on the way to a path, and its tree.
    fn next_folder(&self, path: &[u8]) -> Result<Option<Entered>, ReadError> {
        let Some((folder, tree, _)) = self.entered.last() else {
            return Ok(None);
        };
        let rest = path.get(folder.len()..).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| *byte == b'/') else {
            return Ok(None);
        };
        let name = rest.get(..length).unwrap_or_default();
        let inner = [folder.as_slice(), name, b"/"].concat();
        let tree = match tree {
            Some(oid) => self.subtree(*oid, name)?,
            None => None,
        };
        Ok(Some((inner, tree)))
    }

    fn subtree(&self, oid: Oid, name: &[u8]) -> Result<Option<Oid>, ReadError> {
        let tree = self.repo.find_tree(oid).map_err(unreadable("tree", oid))?;
        let found = tree.iter().find(|entry| entry.name_bytes() == name);
        let folder = found.filter(|entry| entry.kind() == Some(git2::ObjectType::Tree));
        Ok(folder.map(|entry| entry.id()))
    }

    fn enter(&mut self, folder: Vec<u8>, tree: Option<Oid>) -> Result<(), ReadError> {
        let mut brought = false;
        if let Some(oid) = tree {
            let tree = self.repo.find_tree(oid).map_err(unreadable("tree", oid))?;
            if let Some(entry) = tree.get_name(".gitattributes")
                && entry.filemode_raw() & 0o170_000 == 0o100_000
            {
                let blob = self
                    .repo
                    .find_blob(entry.id())
                    .map_err(unreadable("blob", entry.id()))?;
                self.attributes.push(&folder, blob.content());
                brought = true;
            }
        }
        self.entered.push((folder, tree, brought));
        Ok(())
    }
}
