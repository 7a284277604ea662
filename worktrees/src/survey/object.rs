//! Commits of a hostile git directory, from loose objects. Sizes are bounded before and after unpacking, and an
//! object that does not hash to its name does not count.

use std::collections::BTreeSet;
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use git2::{ObjectType, Oid};

use super::Trouble;
use crate::shown;
use crate::tree::Chain;

/// Largest commit that is read, packed or not.
const COMMIT_BYTES: u64 = 1024 * 1024;
const SUBJECT_LETTERS: usize = 200;

/// A walk from one tip down to what the repository has.
pub(super) struct History<'a> {
    pub(super) shadow: &'a mut Chain,
    pub(super) seen: &'a mut BTreeSet<Oid>,
    pub(super) trouble: &'a mut Trouble,
    /// So many commits may still be listed.
    pub(super) left: usize,
}

struct Commit {
    parents: Vec<Oid>,
    subject: String,
}

impl History<'_> {
    /// The commits from `tip` that the repository does not know, with their subjects.
    pub(super) fn commits(&mut self, tip: Oid, known: &dyn Fn(Oid) -> bool) -> Vec<(Oid, String)> {
        let mut found = Vec::new();
        let mut pending = vec![tip];
        while let Some(oid) = pending.pop() {
            if !self.seen.insert(oid) || known(oid) {
                continue;
            }
            if found.len() >= self.left {
                self.trouble
                    .add("there are more commits than are listed".to_owned());
                break;
            }
            match self.read(oid) {
                Ok(Some(commit)) => {
                    pending.extend(commit.parents.iter().rev());
                    found.push((oid, commit.subject));
                }
                // A tag or a tree: nothing to list.
                Ok(None) => {}
                Err(reason) => self.trouble.add(format!("the object {oid} {reason}")),
            }
        }
        found
    }

    fn read(&mut self, oid: Oid) -> Result<Option<Commit>, String> {
        let name = oid.to_string();
        let (folder, file) = name.split_at(2);
        let path = format!("objects/{folder}");
        let read = self
            .shadow
            .enter(path.as_bytes())
            .and_then(|folder| folder.read(file.as_bytes(), COMMIT_BYTES));
        let packed = match read {
            Ok(Some((bytes, _))) => bytes,
            Ok(None) => return Err("is too large, or no regular file".to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err("is missing, or in a pack of the agent's, which is not read".to_owned());
            }
            Err(error) => return Err(format!("cannot be read: {error}")),
        };
        let mut bytes = Vec::new();
        let unpacked = ZlibDecoder::new(packed.as_slice())
            .take(COMMIT_BYTES + 1)
            .read_to_end(&mut bytes);
        if unpacked.is_err() || u64::try_from(bytes.len()).is_ok_and(|length| length > COMMIT_BYTES)
        {
            return Err("is damaged, or too large".to_owned());
        }
        parse(oid, &bytes)
    }
}

/// `None`: a sound object that is no commit.
fn parse(oid: Oid, bytes: &[u8]) -> Result<Option<Commit>, String> {
    let damaged = || "is damaged".to_owned();
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .ok_or_else(damaged)?;
    let (header, body) = bytes.split_at(end);
    let body = body.get(1..).unwrap_or_default();
    let header = std::str::from_utf8(header).map_err(|_utf8| damaged())?;
    let (kind, size) = header.split_once(' ').ok_or_else(damaged)?;
    let kind = ObjectType::from_str(kind).ok_or_else(damaged)?;
    let hash = Oid::hash_object(kind, body).map_err(|_hash| damaged())?;
    if size.parse() != Ok(body.len()) || hash != oid {
        return Err("is not what its name says".to_owned());
    }
    if kind != ObjectType::Commit {
        return Ok(None);
    }
    let mut parents = Vec::new();
    let mut lines = body.split(|byte| *byte == b'\n');
    for line in lines.by_ref() {
        if line.is_empty() {
            break;
        }
        if let Some(parent) = line.strip_prefix(b"parent ") {
            let text = std::str::from_utf8(parent).map_err(|_utf8| damaged())?;
            parents.push(Oid::from_str(text).map_err(|_oid| damaged())?);
        }
    }
    let subject = shown(lines.next().unwrap_or_default());
    Ok(Some(Commit {
        parents,
        subject: subject.chars().take(SUBJECT_LETTERS).collect(),
    }))
}
