//! Writing the files of a landing into a checkout, forwards or backwards: beneath its root, without following
//! links, each file complete in one rename.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use git2::{IndexEntry, Oid};
use nix::sys::stat::fstat;

use super::clean::{Failed, Form, Found, is_gone, look, split};
use super::{LandError, LandPlan};
use crate::history::{FileChange, Side, unreadable};
use crate::repository::ReadError;
use crate::shown;
use crate::tree::{
    Chain, Folder, Settings, Traits, TreeRules, index_entry, is_safe, looks_like_git, to_worktree,
};

const LINK: u32 = 0o120_000;
const SUBMODULE: u32 = 0o160_000;

/// The checkout of the target, and what is needed to tell and write the forms of its files.
pub(super) struct Checkout<'a> {
    pub(super) root: PathBuf,
    pub(super) chain: Chain,
    pub(super) settings: &'a Settings,
    repo: &'a git2::Repository,
    old: TreeRules<'a>,
    new: TreeRules<'a>,
    draft: Vec<u8>,
    target: String,
}

impl<'a> Checkout<'a> {
    pub(super) fn open(
        repo: &'a git2::Repository,
        settings: &'a Settings,
        root: &Path,
        plan: &LandPlan,
    ) -> Result<Self, LandError> {
        let folder = Folder::open(root).map_err(|source| LandError::Checkout {
            checkout: root.to_path_buf(),
            path: String::new(),
            source,
        })?;
        let rules = |commit| {
            TreeRules::new(repo, settings, commit).map_err(|source| LandError::Read {
                target: plan.target.clone(),
                source,
            })
        };
        Ok(Self {
            root: root.to_path_buf(),
            chain: Chain::new(folder),
            settings,
            repo,
            old: rules(plan.expected)?,
            new: rules(plan.result)?,
            draft: format!(".airlock-landing-{}", plan.result).into_bytes(),
            target: plan.target.clone(),
        })
    }

    pub(super) fn traits(&mut self, path: &[u8], form: Form) -> Result<Traits, ReadError> {
        match form {
            Form::Old => self.old.of(path),
            Form::New => self.new.of(path),
        }
    }

    pub(super) fn blob(&self, oid: Oid) -> Result<Vec<u8>, ReadError> {
        let blob = self.repo.find_blob(oid).map_err(unreadable("blob", oid))?;
        Ok(blob.content().to_vec())
    }

    pub(super) fn failed(&self, failed: Failed) -> LandError {
        match failed {
            Failed::File(path, source) => LandError::Checkout {
                checkout: self.root.clone(),
                path: shown(&path),
                source,
            },
            Failed::Object(source) => LandError::Read {
                target: self.target.clone(),
                source,
            },
        }
    }

    /// Brings the files to one side of the changes, and gives index entries for those that exist then.
    /// What is at the paths must have been looked at before.
    pub(super) fn write(
        &mut self,
        changes: &[FileChange],
        form: Form,
    ) -> Result<Vec<IndexEntry>, Failed> {
        let side = |change: &FileChange| match form {
            Form::Old => change.old,
            Form::New => change.new,
        };
        for change in changes.iter().rev().filter(|change| side(change).is_none()) {
            self.remove(&change.path).map_err(at(&change.path))?;
        }
        let mut entries = Vec::new();
        for change in changes {
            if let Some(side) = side(change) {
                entries.push(self.put(&change.path, side, form)?);
            }
        }
        Ok(entries)
    }

    /// Removes drafts that a cut-off landing may have left.
    pub(super) fn sweep(&mut self, changes: &[FileChange]) -> Result<(), Failed> {
        for change in changes {
            let (folder, _) = split(&change.path);
            match self.chain.enter(folder) {
                Ok(parent) => forget(parent, &self.draft).map_err(at(&change.path))?,
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(Failed::File(change.path.clone(), error)),
            }
        }
        Ok(())
    }

    /// Removes a file, and the folders that are empty without it. A submodule's checkout stays if there is one.
    fn remove(&mut self, path: &[u8]) -> io::Result<()> {
        let (mut folder, name) = split(path);
        let parent = match self.chain.enter(folder) {
            Ok(parent) => parent,
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let removed = match parent.remove_file(name) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => parent.remove_folder(name),
            other => other,
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty || is_gone(&error) => {}
            other => other?,
        }
        while !folder.is_empty() {
            let (above, name) = split(folder);
            let emptied = self
                .chain
                .enter(above)
                .and_then(|parent| parent.remove_folder(name));
            self.chain.forget();
            if emptied.is_err() {
                break;
            }
            folder = above;
        }
        Ok(())
    }

    fn put(&mut self, path: &[u8], side: Side, form: Form) -> Result<IndexEntry, Failed> {
        let (folder, name) = split(path);
        let safe = path
            .split(|byte| *byte == b'/')
            .all(|name| is_safe(name) && !looks_like_git(name));
        if !safe {
            let error = io::Error::new(
                io::ErrorKind::InvalidInput,
                "the name is not safe to check out",
            );
            return Err(Failed::File(path.to_vec(), error));
        }
        let bytes = if side.mode == SUBMODULE {
            Vec::new()
        } else {
            self.blob(side.oid).map_err(Failed::Object)?
        };
        let link = side.mode == LINK && self.settings.symlinks;
        let bytes = if link || side.mode == SUBMODULE {
            bytes
        } else {
            let traits = self.traits(path, form).map_err(Failed::Object)?;
            to_worktree(&bytes, &traits, self.settings).into_owned()
        };
        // A folder of which only empty folders are left gives way to the file.
        if side.mode != SUBMODULE && look(self, path).map_err(at(path))? == Found::Folder {
            self.remove_empty(path).map_err(at(path))?;
        }
        let parent = self.chain.enter_or_make(folder, 0o777).map_err(at(path))?;
        let facts = if side.mode == SUBMODULE {
            make_folder(parent, name).and_then(|()| parent.stat(name))
        } else {
            forget(parent, &self.draft)
                .and_then(|()| draft(parent, &self.draft, &bytes, (link, side.mode)))
                .and_then(|()| parent.rename(&self.draft, name))
                .and_then(|()| parent.stat(name))
        };
        let facts = facts.map_err(at(path))?;
        Ok(index_entry(path.to_vec(), (side.mode, side.oid), &facts))
    }

    /// Removes folders that hold nothing but folders.
    fn remove_empty(&mut self, path: &[u8]) -> io::Result<()> {
        let mut found = vec![path.to_vec()];
        let mut next = 0;
        while let Some(folder) = found.get(next).cloned() {
            for name in self.chain.enter(&folder).and_then(Folder::names)? {
                found.push([folder.as_slice(), b"/", &name].concat());
            }
            next += 1;
        }
        self.chain.forget();
        for folder in found.iter().rev() {
            let (above, name) = split(folder);
            self.chain.enter(above)?.remove_folder(name)?;
            self.chain.forget();
        }
        Ok(())
    }
}

fn draft(parent: &Folder, name: &[u8], bytes: &[u8], (link, mode): (bool, u32)) -> io::Result<()> {
    if link {
        return parent.make_link(bytes, name);
    }
    let permissions = if mode == 0o100_755 { 0o777 } else { 0o666 };
    let mut file = parent.create(name, permissions)?;
    file.write_all(bytes)?;
    fstat(&file).map(drop).map_err(io::Error::from)
}

fn make_folder(parent: &Folder, name: &[u8]) -> io::Result<()> {
    match parent.make_folder(name, 0o777) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn forget(parent: &Folder, name: &[u8]) -> io::Result<()> {
    match parent.remove_file(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn at(path: &[u8]) -> impl Fn(io::Error) -> Failed {
    let path = path.to_vec();
    move |error| Failed::File(path.clone(), error)
}
