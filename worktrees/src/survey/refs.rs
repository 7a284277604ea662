//! The refs of a hostile git directory: loose, packed, a detached `HEAD`, and the list of stashes.

use std::collections::BTreeMap;

use git2::Oid;
use nix::libc::{S_IFDIR, S_IFMT};

use super::Trouble;
use crate::shown;
use crate::tree::{Chain, Folder};

const REF_LIMIT: u64 = 1024;
const LINE_LIMIT: usize = 1024;
const LIST_LIMIT: u64 = 16 * 1024 * 1024;
/// More loose refs, or deeper ones, than this are not looked at.
const COUNT_LIMIT: usize = 10_000;
const DEPTH_LIMIT: usize = 16;

/// All refs by full name (shown form); loose ones win over packed ones, as in git.
pub(super) fn read(shadow: &mut Chain, trouble: &mut Trouble) -> BTreeMap<String, Oid> {
    let mut found = BTreeMap::new();
    for line in lines(shadow, b"", b"packed-refs", trouble) {
        if line.len() > LINE_LIMIT {
            trouble.add("packed-refs holds a name that is too long".to_owned());
        } else if let Some((oid, name)) = packed(&line) {
            found.insert(name, oid);
        }
    }
    loose(shadow, trouble, &mut found);
    if let Some(oid) = lines(shadow, b"", b"HEAD", trouble)
        .first()
        .and_then(|line| oid_of(line))
    {
        found.insert("HEAD".to_owned(), oid);
    }
    found
}

/// The stashes, newest first, each with its name.
pub(super) fn stashes(shadow: &mut Chain, trouble: &mut Trouble) -> Vec<(String, Oid)> {
    let log = lines(shadow, b"logs/refs", b"stash", trouble);
    let entries = log.iter().rev().filter_map(|line| {
        let second = line.split(|byte| *byte == b' ').nth(1)?;
        oid_of(second)
    });
    let named = entries
        .enumerate()
        .map(|(number, oid)| (format!("stash@{{{number}}}"), oid));
    named.take(COUNT_LIMIT).collect()
}

fn loose(shadow: &mut Chain, trouble: &mut Trouble, found: &mut BTreeMap<String, Oid>) {
    let mut pending = vec![(b"refs".to_vec(), 0)];
    let mut looked = 0;
    while let Some((path, depth)) = pending.pop() {
        let names = match shadow.enter(&path).and_then(Folder::names) {
            Ok(names) => names,
            Err(error) => {
                trouble.add(format!("{} cannot be listed: {error}", shown(&path)));
                continue;
            }
        };
        for name in names {
            looked += 1;
            if looked > COUNT_LIMIT || depth > DEPTH_LIMIT {
                trouble
                    .add("there are too many loose refs, or they are nested too deep".to_owned());
                return;
            }
            let inner = [path.as_slice(), b"/", &name].concat();
            let folder = shadow
                .enter(&path)
                .and_then(|folder| folder.stat(&name))
                .is_ok_and(|facts| facts.st_mode & S_IFMT == S_IFDIR);
            if folder {
                pending.push((inner, depth + 1));
            } else if let Some(oid) = file(shadow, (&path, &name), REF_LIMIT, trouble)
                .and_then(|bytes| oid_of(bytes.trim_ascii_end()))
            {
                found.insert(shown(&inner), oid);
            }
        }
    }
}

fn lines(shadow: &mut Chain, folder: &[u8], name: &[u8], trouble: &mut Trouble) -> Vec<Vec<u8>> {
    let bytes = file(shadow, (folder, name), LIST_LIMIT, trouble).unwrap_or_default();
    bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

/// A small regular file; one that is missing is no trouble.
fn file(
    shadow: &mut Chain,
    (folder, name): (&[u8], &[u8]),
    limit: u64,
    trouble: &mut Trouble,
) -> Option<Vec<u8>> {
    let read = shadow
        .enter(folder)
        .and_then(|folder| folder.read(name, limit));
    let path = || shown(&[folder, b"/", name].concat());
    match read {
        Ok(Some((bytes, _))) => return Some(bytes),
        Ok(None) => trouble.add(format!("{} is too large, or no regular file", path())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => trouble.add(format!("{} cannot be read: {error}", path())),
    }
    None
}

fn packed(line: &[u8]) -> Option<(Oid, String)> {
    let (oid, name) = line.split_at_checked(40)?;
    let name = name.strip_prefix(b" ")?;
    Some((oid_of(oid)?, shown(name)))
}

/// Exactly forty digits: libgit2 would take a shorter text for a short id.
fn oid_of(text: &[u8]) -> Option<Oid> {
    if text.len() != 40 || !text.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    Oid::from_str(std::str::from_utf8(text).ok()?).ok()
}
