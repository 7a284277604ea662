//! Where the objects of a repository lie, and where a room sees them. Never writes.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{OpenError, Repository};

/// What the read-only `.git` file of a worktree says inside its room.
pub const POINTER: &str = "gitdir: /run/airlock/git\n";

/// Alternates of alternates beyond this depth are ignored, as git does.
const DEPTH: usize = 5;

/// Where the room sees the object folder number `index` of [`Repository::object_dirs`].
pub fn object_mount(index: usize) -> PathBuf {
    PathBuf::from(format!("/run/airlock/objects/{index}"))
}

impl Repository {
    /// The repository's own object folder, then its alternates, canonical, each once.
    pub fn object_dirs(&self) -> Result<Vec<PathBuf>, OpenError> {
        let mut found = Vec::new();
        gather(&self.common.join("objects"), 0, &mut found)?;
        Ok(found)
    }
}

fn gather(objects: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), OpenError> {
    let objects = fs::canonicalize(objects).map_err(|source| OpenError::File {
        path: objects.to_path_buf(),
        source,
    })?;
    if found.contains(&objects) {
        return Ok(());
    }
    found.push(objects.clone());
    let list = objects.join("info/alternates");
    let bytes = match fs::read(&list) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(OpenError::File { path: list, source }),
    };
    if depth >= DEPTH {
        return Ok(());
    }
    for line in bytes.split(|byte| *byte == b'\n') {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let place = objects.join(std::ffi::OsStr::from_bytes(line));
        // A dead alternate is git's warning, not an error: what is really missing shows when it is read.
        if place.is_dir() {
            gather(&place, depth + 1, found)?;
        }
    }
    Ok(())
}
