//! Files that are whole or absent: temporary file, fsync, rename, fsync of the folder.
//!
//! Must never be used on a path that a room can write.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Replaces `path` by `content`, so that a reader sees the old or the new file and never a part; on disk when it
/// returns.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    rename_into(path, content, true)
}

/// The same without waiting for the disk: for what says nothing any more once the machine has stopped.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    rename_into(path, content, false)
}

fn rename_into(path: &Path, content: &[u8], sync: bool) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.{count}.tmp", std::process::id()));
    let temporary = folder.join(temporary);
    let written = fill(&temporary, content, sync).and_then(|()| std::fs::rename(&temporary, path));
    if let Err(error) = written {
        // The first error counts; a temporary file that stays is swept by the next writer.
        drop(std::fs::remove_file(&temporary));
        return Err(error);
    }
    if sync {
        File::open(folder)?.sync_all()
    } else {
        Ok(())
    }
}

fn fill(path: &Path, content: &[u8], sync: bool) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path)?;
    file.write_all(content)?;
    if sync { file.sync_all() } else { Ok(()) }
}

/// Removes what writers left in `folder` when they were killed in the middle.
pub(crate) fn sweep(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.ends_with(".tmp") {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("meta.json");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        std::fs::write(folder.path().join(".meta.json.1.1.tmp"), b"half").unwrap();
        sweep(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
