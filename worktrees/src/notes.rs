//! Notes on commits, under `refs/notes/airlock`. Many processes may add some at once: each adds to what it finds,
//! moves the ref only from there, and tries again when another was quicker. Nobody's note is lost or replaced.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use git2::{ObjectType, Oid};
use thiserror::Error;

use crate::history::{Side, peel_tree, plain_mode, unreadable};
use crate::identity::signature;
use crate::repository::{ReadError, RefError, Repository};
use crate::store::{Store, StoreError, tree_bytes};

const NOTES: &str = "refs/notes/airlock";
const FOLDER: u32 = 0o040_000;
/// With the pauses below this is some ten seconds, longer than any number of honest rivals needs.
const ATTEMPTS: u32 = 2000;

/// A note could not be read or added.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NoteError {
    /// The ref of the notes cannot be read or moved.
    #[error("cannot add a note to {object}")]
    Ref {
        /// What the note is about.
        object: Oid,
        /// Why.
        #[source]
        source: RefError,
    },
    /// The notes cannot be read.
    #[error("cannot read the notes of {object}")]
    Read {
        /// What the note is about.
        object: Oid,
        /// Why.
        #[source]
        source: ReadError,
    },
    /// The note cannot be stored.
    #[error("cannot store a note on {object}")]
    Store {
        /// What the note is about.
        object: Oid,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// The commit of the notes cannot be composed.
    #[error("cannot make a commit of the note on {object}")]
    Commit {
        /// What the note is about.
        object: Oid,
        /// Why.
        #[source]
        source: git2::Error,
    },
}

impl Repository {
    /// Adds one note to each of these objects, all in one step. A second note is put behind the first one, divided
    /// by an empty line; the same text again changes nothing.
    pub fn add_note(&self, objects: &[Oid], text: &[u8]) -> Result<(), NoteError> {
        let _owner = self.act_as_owner();
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.try_note(objects, text) {
                Err(NoteError::Ref {
                    source: RefError::Moved { .. } | RefError::Locked { .. },
                    ..
                }) if attempt < ATTEMPTS => {
                    // Rivals that wait differently long do not meet again.
                    let odd = u64::from(std::process::id().wrapping_add(attempt) % 7);
                    thread::sleep(Duration::from_millis(2 + odd));
                }
                other => return other,
            }
        }
    }

    /// The note of an object; `None`: there is none.
    pub fn read_note(&self, object: Oid) -> Result<Option<Vec<u8>>, NoteError> {
        let failed = |source| NoteError::Read { object, source };
        let tip = self
            .ref_target(NOTES)
            .map_err(|source| NoteError::Ref { object, source })?;
        let Some(tip) = tip else { return Ok(None) };
        let repo = self.open_for_reading().map_err(failed)?;
        let mut tree = Some(peel_tree(&repo, tip).map_err(failed)?.id());
        let name = object.to_string();
        let mut name = name.as_str();
        while let Some(oid) = tree.take() {
            let entries = entries(&repo, Some(oid)).map_err(failed)?;
            if let Some(side) = find(&entries, name.as_bytes()).filter(|side| side.mode != FOLDER) {
                return self.blob(side.oid).map(Some).map_err(failed);
            }
            let Some((folder, rest)) = name.split_at_checked(2) else {
                break;
            };
            let inner = find(&entries, folder.as_bytes()).filter(|side| side.mode == FOLDER);
            tree = inner.map(|side| side.oid);
            name = rest;
        }
        Ok(None)
    }

    fn try_note(&self, objects: &[Oid], text: &[u8]) -> Result<(), NoteError> {
        let Some(first) = objects.first().copied() else {
            return Ok(());
        };
        let moved = |source| NoteError::Ref {
            object: first,
            source,
        };
        let tip = self.ref_target(NOTES).map_err(moved)?;
        let mut wanting = Vec::new();
        for object in objects {
            let before = self.read_note(*object)?.unwrap_or_default();
            if !contains(&before, text) {
                wanting.push((*object, before));
            }
        }
        if wanting.is_empty() {
            return Ok(());
        }
        let read = |source| NoteError::Read {
            object: first,
            source,
        };
        let stored = |source| NoteError::Store {
            object: first,
            source,
        };
        let repo = self.open_for_reading().map_err(read)?;
        let mut store = Store::open(self, &repo).map_err(stored)?;
        let mut root = match tip {
            Some(tip) => Some(peel_tree(&repo, tip).map_err(read)?.id()),
            None => None,
        };
        for (object, before) in wanting {
            let gap: &[u8] = if before.is_empty() { b"" } else { b"\n" };
            let note = [before.as_slice(), gap, text].concat();
            let blob = store.add(ObjectType::Blob, &note).map_err(stored)?;
            let mut placing = Placing {
                repo: &repo,
                store: &mut store,
                object,
            };
            root = Some(placing.place(root, &object.to_string(), blob)?);
        }
        let Some(tree) = root else { return Ok(()) };
        let commit = compose(&repo, tip, tree).map_err(|source| NoteError::Commit {
            object: first,
            source,
        })?;
        let commit = store.add(ObjectType::Commit, &commit).map_err(stored)?;
        store.sync().map_err(stored)?;
        self.move_ref(NOTES, commit, tip, None).map_err(moved)
    }
}

/// Puts one blob into a tree of notes.
struct Placing<'a, 'r> {
    repo: &'a git2::Repository,
    store: &'a mut Store<'r>,
    object: Oid,
}

impl Placing<'_, '_> {
    /// Where git would look for it: at the full name, or in folders of two digits each, of which we make one.
    fn place(&mut self, tree: Option<Oid>, name: &str, blob: Oid) -> Result<Oid, NoteError> {
        let object = self.object;
        let mut entries =
            entries(self.repo, tree).map_err(|source| NoteError::Read { object, source })?;
        let (folder, rest) = name.split_at_checked(2).unwrap_or((name, ""));
        let inner = find(&entries, folder.as_bytes()).filter(|side| side.mode == FOLDER);
        let whole = name.len() == self.object.to_string().len();
        let flat = find(&entries, name.as_bytes()).is_some();
        let (key, side) = if !flat && (inner.is_some() || whole) {
            let oid = self.place(inner.map(|side| side.oid), rest, blob)?;
            (folder, Side { oid, mode: FOLDER })
        } else {
            let mode = 0o100_644;
            (name, Side { oid: blob, mode })
        };
        entries.retain(|(name, _)| name != key.as_bytes());
        entries.push((key.as_bytes().to_vec(), side));
        let bytes = tree_bytes(&mut entries);
        self.store
            .add(ObjectType::Tree, &bytes)
            .map_err(|source| NoteError::Store { object, source })
    }
}

fn compose(repo: &git2::Repository, tip: Option<Oid>, tree: Oid) -> Result<Vec<u8>, git2::Error> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let who = signature(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    let parent = tip.map(|tip| repo.find_commit(tip)).transpose()?;
    let parents: Vec<_> = parent.iter().collect();
    let tree = repo.find_tree(tree)?;
    let buffer =
        repo.commit_create_buffer(&who, &who, "Notes added by Airlock\n", &tree, &parents)?;
    Ok(buffer.to_vec())
}

fn entries(repo: &git2::Repository, tree: Option<Oid>) -> Result<Vec<(Vec<u8>, Side)>, ReadError> {
    let Some(oid) = tree else {
        return Ok(Vec::new());
    };
    let tree = repo.find_tree(oid).map_err(unreadable("tree", oid))?;
    let sides = tree.iter().map(|entry| {
        let side = Side {
            oid: entry.id(),
            mode: plain_mode(entry.filemode_raw()),
        };
        (entry.name_bytes().to_vec(), side)
    });
    Ok(sides.collect())
}

fn find(entries: &[(Vec<u8>, Side)], name: &[u8]) -> Option<Side> {
    entries
        .iter()
        .find(|(found, _)| found == name)
        .map(|(_, side)| *side)
}

fn contains(note: &[u8], text: &[u8]) -> bool {
    !text.is_empty() && note.windows(text.len()).any(|window| window == text)
}
