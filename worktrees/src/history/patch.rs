//! The difference of two commits as unified diff text, and its size in lines.
//! Counted from the blobs themselves: a `-diff` attribute or the user's diff settings change nothing.

use git2::{DiffOptions, Oid, Patch};

use super::{ChangeKind, FileChange, Side};
use serde::{Deserialize, Serialize};

use crate::repository::{ReadError, Repository};

/// How much differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiffStat {
    /// Files that differ.
    pub files: usize,
    /// Lines added in text files.
    pub insertions: usize,
    /// Lines removed in text files.
    pub deletions: usize,
}

impl Repository {
    /// The difference between two commits or trees as a unified diff, with git's extended headers.
    pub fn patch(&self, base: Oid, head: Oid) -> Result<Vec<u8>, ReadError> {
        let mut text = Vec::new();
        for change in self.changes(base, head)? {
            header(&mut text, &change);
            let (old, new) = (self.content(change.old)?, self.content(change.new)?);
            if old == new {
                continue;
            }
            write_hunks(&mut text, &change, &old, &new).map_err(|source| ReadError::Compare {
                base,
                head,
                source,
            })?;
        }
        Ok(text)
    }

    /// How many files and lines differ between two commits or trees.
    pub fn diff_stat(&self, base: Oid, head: Oid) -> Result<DiffStat, ReadError> {
        let mut stat = DiffStat::default();
        for change in self.changes(base, head)? {
            stat.files += 1;
            let (old, new) = (self.content(change.old)?, self.content(change.new)?);
            if old == new {
                continue;
            }
            let counted = compare(&old, &new).and_then(|patch| patch.line_stats());
            let (_, insertions, deletions) =
                counted.map_err(|source| ReadError::Compare { base, head, source })?;
            stat.insertions += insertions;
            stat.deletions += deletions;
        }
        Ok(stat)
    }

    fn content(&self, side: Option<Side>) -> Result<Vec<u8>, ReadError> {
        match side {
            None => Ok(Vec::new()),
            Some(side) if side.mode == 0o160_000 => {
                Ok(format!("Subproject commit {}\n", side.oid).into_bytes())
            }
            Some(side) => self.blob(side.oid),
        }
    }
}

/// Without a repository libgit2 has neither attributes nor settings to be misled by.
fn compare<'b>(old: &'b [u8], new: &'b [u8]) -> Result<Patch<'b>, git2::Error> {
    let mut options = DiffOptions::new();
    options.context_lines(3);
    Patch::from_buffers(old, None, new, None, Some(&mut options))
}

fn header(text: &mut Vec<u8>, change: &FileChange) {
    let from = match &change.kind {
        ChangeKind::Renamed { from } => from,
        ChangeKind::Added
        | ChangeKind::Modified
        | ChangeKind::Deleted
        | ChangeKind::ModeChanged => &change.path,
    };
    push(
        text,
        &[
            b"diff --git ",
            &quoted(b"a/", from),
            b" ",
            &quoted(b"b/", &change.path),
            b"\n",
        ],
    );
    match (change.old, change.new) {
        (None, Some(new)) => push(
            text,
            &[format!("new file mode {:06o}\n", new.mode).as_bytes()],
        ),
        (Some(old), None) => push(
            text,
            &[format!("deleted file mode {:06o}\n", old.mode).as_bytes()],
        ),
        (Some(old), Some(new)) if old.mode != new.mode => push(
            text,
            &[format!("old mode {:06o}\nnew mode {:06o}\n", old.mode, new.mode).as_bytes()],
        ),
        _ => {}
    }
    if let ChangeKind::Renamed { from } = &change.kind {
        push(
            text,
            &[b"similarity index 100%\nrename from ", &quoted(b"", from)],
        );
        push(text, &[b"\nrename to ", &quoted(b"", &change.path), b"\n"]);
    }
    let (old, new) = (
        change.old.map(|side| side.oid),
        change.new.map(|side| side.oid),
    );
    if old != new {
        let zero = Oid::ZERO_SHA1;
        push(
            text,
            &[format!("index {}..{}\n", old.unwrap_or(zero), new.unwrap_or(zero)).as_bytes()],
        );
    }
}

fn write_hunks(
    text: &mut Vec<u8>,
    change: &FileChange,
    old: &[u8],
    new: &[u8],
) -> Result<(), git2::Error> {
    let patch = compare(old, new)?;
    let left = change
        .old
        .map_or_else(|| b"/dev/null".to_vec(), |_| quoted(b"a/", &change.path));
    let right = change
        .new
        .map_or_else(|| b"/dev/null".to_vec(), |_| quoted(b"b/", &change.path));
    if patch.delta().flags().is_binary() {
        push(
            text,
            &[b"Binary files ", &left, b" and ", &right, b" differ\n"],
        );
        return Ok(());
    }
    push(text, &[b"--- ", &left, b"\n+++ ", &right, b"\n"]);
    for hunk in 0..patch.num_hunks() {
        let (facts, lines) = patch.hunk(hunk)?;
        push(text, &[facts.header()]);
        for line in 0..lines {
            let line = patch.line_in_hunk(hunk, line)?;
            // Any other origin is the remark about a missing line end, which has its mark in the text.
            if let origin @ ('+' | '-' | ' ') = line.origin() {
                text.push(u8::try_from(origin).unwrap_or(b' '));
            }
            push(text, &[line.content()]);
        }
    }
    Ok(())
}

fn push(text: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        text.extend_from_slice(part);
    }
}

/// A path as git writes it in a diff: quoted like a C string when a byte would be misread.
fn quoted(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    let mut text = Vec::with_capacity(prefix.len() + path.len());
    if path.iter().all(plain) {
        push(&mut text, &[prefix, path]);
        return text;
    }
    push(&mut text, &[b"\"", prefix]);
    for byte in path {
        match byte {
            b'\n' => push(&mut text, &[b"\\n"]),
            b'\t' => push(&mut text, &[b"\\t"]),
            b'\r' => push(&mut text, &[b"\\r"]),
            b'"' => push(&mut text, &[b"\\\""]),
            b'\\' => push(&mut text, &[b"\\\\"]),
            byte if plain(byte) => text.push(*byte),
            byte => push(&mut text, &[format!("\\{byte:03o}").as_bytes()]),
        }
    }
    text.push(b'"');
    text
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn odd_names_are_quoted_as_git_does() {
        assert_eq!(quoted(b"a/", b"x y.py"), b"a/x y.py");
        assert_eq!(quoted(b"b/", b"n\n\xff\"\\"), b"\"b/n\\n\\377\\\"\\\\\"");
    }
}
