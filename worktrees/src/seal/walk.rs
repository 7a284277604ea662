//! The way through a worktree: depth first, one folder at a time, each looked at before anything is opened.
//! Memory grows with the depth and the largest folder, not with the tree.

use git2::Oid;
use nix::libc::{S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK};
use nix::sys::stat::FileStat;

use super::frame::{FOLDER, Frame, LINK, Pushed, SUBMODULE};
use super::{ProblemCode, Seal, SealError, TreeProblem, stored};
use crate::history::{DEPTH_LIMIT, Side, peel_tree};
use crate::repository::RESERVED;
use crate::store::Store;
use crate::tree::{Attributes, Chain, Folder, IgnoreRules, RULES_LIMIT, Settings, looks_like_git};

/// The longest path that can be handed to a system (`PATH_MAX` without its end): with a longer one, neither git nor
/// anybody else can look at the checkout of a target any more.
const PATH_LIMIT: usize = 4095;

/// So many problems make their point, and what is listed goes into events and evidence.
const PROBLEM_LIMIT: usize = 1000;

/// A seal under way.
pub(super) struct Walk<'a> {
    pub(super) repo: &'a git2::Repository,
    pub(super) store: Store<'a>,
    pub(super) settings: &'a Settings,
    pub(super) chain: Chain,
    ignore: IgnoreRules,
    /// As the agent left them: they decide how a changed file is stored.
    pub(super) attributes: Attributes,
    /// As they were at the checkout: they decide what an untouched file looks like.
    pub(super) base_attributes: Attributes,
    pub(super) problems: Vec<TreeProblem>,
    unlisted: usize,
    pub(super) unconverted: Vec<Vec<u8>>,
    files: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        repo: &'a git2::Repository,
        store: Store<'a>,
        settings: &'a Settings,
        root: Folder,
    ) -> Self {
        Self {
            repo,
            store,
            settings,
            chain: Chain::new(root),
            ignore: IgnoreRules::new(settings),
            attributes: Attributes::new(settings),
            base_attributes: Attributes::new(settings),
            problems: Vec::new(),
            unlisted: 0,
            unconverted: Vec::new(),
            files: 0,
        }
    }

    /// Seals everything; gives the tree, and the tree of the base.
    pub(super) fn run(&mut self, base: Oid) -> Result<(Oid, Oid), SealError> {
        let base = peel_tree(self.repo, base)
            .map_err(|source| SealError::Base {
                path: String::new(),
                source,
            })?
            .id();
        let mut frames = Vec::new();
        self.enter(&mut frames, Vec::new(), (Some(base), false))?;
        let mut sealed = base;
        while let Some(frame) = frames.last_mut() {
            if let Some(name) = frame.names.pop() {
                self.entry(&mut frames, &name)?;
                continue;
            }
            let Some(frame) = frames.pop() else { break };
            self.take_back(frame.pushed);
            let path = frame.path.clone();
            let tree = frame.finish(&mut self.store)?;
            match (frames.last_mut(), tree) {
                (Some(above), Some(oid)) => above.put(last_name(&path), Side { oid, mode: FOLDER }),
                (None, Some(oid)) => sealed = oid,
                (_, None) => {}
            }
        }
        Ok((sealed, base))
    }

    pub(super) fn into_seal(mut self, tree: Oid, commit: Option<Oid>) -> Seal {
        if self.unlisted > 0 {
            let message = format!("{} more problems are not listed", self.unlisted);
            let more = TreeProblem::new(b"", ProblemCode::TooMany, message);
            self.problems.push(more);
        }
        self.problems
            .sort_by(|left, right| (&left.path, left.code).cmp(&(&right.path, right.code)));
        self.unconverted.sort_unstable();
        Seal {
            tree,
            commit,
            problems: self.problems,
            unconverted: self
                .unconverted
                .iter()
                .map(|path| crate::shown(path))
                .collect(),
            files: self.files,
        }
    }

    pub(super) fn report(&mut self, path: &[u8], code: ProblemCode, message: impl Into<String>) {
        if self.problems.len() < PROBLEM_LIMIT {
            self.problems.push(TreeProblem::new(path, code, message));
        } else {
            self.unlisted += 1;
        }
    }

    /// Goes into a folder; one that cannot be read is reported, and what the base has there is kept.
    fn enter(
        &mut self,
        frames: &mut Vec<Frame>,
        path: Vec<u8>,
        (tree, ignored): (Option<Oid>, bool),
    ) -> Result<(), SealError> {
        let depth = path.split(|byte| *byte == b'/').count() - 1;
        if depth > DEPTH_LIMIT {
            self.report(
                &path,
                ProblemCode::TooDeep,
                format!("is nested deeper than the {DEPTH_LIMIT} folders that git allows"),
            );
            return Ok(());
        }
        let mut frame = Frame::open(self.repo, path, tree, ignored)?;
        let listed = self.chain.enter(&frame.path).and_then(Folder::names);
        match listed {
            Ok(names) => frame.names = names,
            Err(error) => {
                self.report(
                    &frame.path,
                    ProblemCode::Unreadable,
                    format!("cannot be read: {error}"),
                );
                if let (Some(above), Some(oid)) = (frames.last_mut(), tree) {
                    above.put(last_name(&frame.path), Side { oid, mode: FOLDER });
                }
                return Ok(());
            }
        }
        frame.names.reverse();
        frame.pushed = self.add_rules(&frame)?;
        frames.push(frame);
        Ok(())
    }

    fn add_rules(&mut self, frame: &Frame) -> Result<Pushed, SealError> {
        let mut pushed = Pushed::default();
        if !frame.ignored
            && let Some(bytes) = self.rules(frame, b".gitignore")
        {
            self.ignore.push(&frame.path, &bytes);
            pushed.ignore = true;
        }
        if let Some(bytes) = self.rules(frame, b".gitattributes") {
            self.attributes.push(&frame.path, &bytes);
            pushed.attributes = true;
        }
        if let Some(bytes) = frame.base_attributes(self.repo)? {
            self.base_attributes.push(&frame.path, &bytes);
            pushed.base_attributes = true;
        }
        Ok(pushed)
    }

    /// A file of rules, only if it is a regular one: git ignores one that is a link, and so do we.
    fn rules(&mut self, frame: &Frame, name: &[u8]) -> Option<Vec<u8>> {
        let folder = self.chain.enter(&frame.path).ok()?;
        let facts = folder.stat(name).ok()?;
        if facts.st_mode & S_IFMT != S_IFREG {
            return None;
        }
        // One that cannot be read is reported when its turn comes as a file.
        let (bytes, _) = folder.read(name, RULES_LIMIT).ok()??;
        Some(bytes)
    }

    fn take_back(&mut self, pushed: Pushed) {
        if pushed.ignore {
            self.ignore.pop();
        }
        if pushed.attributes {
            self.attributes.pop();
        }
        if pushed.base_attributes {
            self.base_attributes.pop();
        }
    }

    fn entry(&mut self, frames: &mut Vec<Frame>, name: &[u8]) -> Result<(), SealError> {
        let Some(frame) = frames.last_mut() else {
            return Ok(());
        };
        let at_root = frame.path.is_empty();
        if at_root
            && (name == b".git" || RESERVED.iter().any(|reserved| reserved.as_bytes() == name))
        {
            return Ok(());
        }
        let path = frame.path_of(name);
        if path.len() > PATH_LIMIT {
            frame.keep(name);
            let message = format!("has a path of more than {PATH_LIMIT} bytes");
            self.report(&path, ProblemCode::TooLong, message);
            return Ok(());
        }
        let looked = self
            .chain
            .enter(&frame.path)
            .and_then(|folder| folder.stat(name));
        let facts = match looked {
            Ok(facts) => facts,
            Err(error) => {
                frame.keep(name);
                self.report(
                    &path,
                    ProblemCode::Unreadable,
                    format!("cannot be looked at: {error}"),
                );
                return Ok(());
            }
        };
        let folder = facts.st_mode & S_IFMT == S_IFDIR;
        let ignored = frame.ignored || self.ignore.covers(&path, folder);
        if looks_like_git(name) {
            if !ignored {
                self.report(
                    &path,
                    ProblemCode::NestedGit,
                    "is a repository inside the tree, or looks like one to some system",
                );
            }
            return Ok(());
        }
        if folder {
            return self.folder(frames, name, ignored);
        }
        if ignored && frame.tracked(name).is_none() {
            return Ok(());
        }
        self.files += 1;
        self.leaf(frame, (name, &path), &facts)
    }

    fn folder(
        &mut self,
        frames: &mut Vec<Frame>,
        name: &[u8],
        ignored: bool,
    ) -> Result<(), SealError> {
        let Some(frame) = frames.last_mut() else {
            return Ok(());
        };
        let mut path = frame.path_of(name);
        let base = frame.base(name);
        if base.is_some_and(|side| side.mode == SUBMODULE) {
            frame.keep(name);
            let inner = self.chain.enter(&path).and_then(Folder::names);
            if !inner.is_ok_and(|names| names.is_empty()) {
                self.report(
                    &path,
                    ProblemCode::SubmoduleEdit,
                    "is a submodule, and there is something in it",
                );
            }
            return Ok(());
        }
        let tree = base.filter(|side| side.mode == FOLDER).map(|side| side.oid);
        if ignored && tree.is_none() {
            return Ok(());
        }
        path.push(b'/');
        self.enter(frames, path, (tree, ignored))
    }

    fn leaf(
        &mut self,
        frame: &mut Frame,
        (name, path): (&[u8], &[u8]),
        facts: &FileStat,
    ) -> Result<(), SealError> {
        let special = match facts.st_mode & S_IFMT {
            S_IFREG => return self.file(frame, (name, path)),
            S_IFLNK => return self.link(frame, (name, path)),
            S_IFIFO => (ProblemCode::Fifo, "is a named pipe"),
            S_IFSOCK => (ProblemCode::Socket, "is a socket"),
            S_IFCHR | S_IFBLK => (ProblemCode::Device, "is a device"),
            _ => (ProblemCode::Device, "is of a kind that git does not know"),
        };
        frame.keep(name);
        self.report(path, special.0, special.1);
        Ok(())
    }

    fn link(&mut self, frame: &mut Frame, (name, path): (&[u8], &[u8])) -> Result<(), SealError> {
        let read = self
            .chain
            .enter(&frame.path)
            .and_then(|folder| folder.read_link(name));
        match read {
            Ok(target) => {
                let added = self.store.add(git2::ObjectType::Blob, &target);
                let oid = added.map_err(stored(path))?;
                frame.put(name, Side { oid, mode: LINK });
            }
            Err(error) => {
                frame.keep(name);
                self.report(
                    path,
                    ProblemCode::Unreadable,
                    format!("cannot be read: {error}"),
                );
            }
        }
        Ok(())
    }
}

/// The last component of a path that ends in `/`.
fn last_name(path: &[u8]) -> &[u8] {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}
