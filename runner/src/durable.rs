//! Files that are either old or new after a crash, never half: temp file, fsync, rename, fsync of
//! the folder. Every file that the runner keeps is written through here.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file of ours that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// Replaces `path` by `bytes` with this mode; on disk when it returns.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), WriteError> {
    rename_into(path, bytes, mode, true)
}

/// The same without waiting for the disk: for what can be made again from events.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), WriteError> {
    rename_into(path, bytes, mode, false)
}

fn rename_into(path: &Path, bytes: &[u8], mode: u32, sync: bool) -> Result<(), WriteError> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = format!(
        ".{}.{}.{}.tmp",
        path.file_name().unwrap_or_default().to_string_lossy(),
        std::process::id(),
        COUNTER.fetch_add(1, Ordering::Relaxed)
    );
    let temporary = folder.join(name);
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&temporary)?;
        file.write_all(bytes)?;
        if sync {
            file.sync_all()?;
        }
        fs::rename(&temporary, path)?;
        if sync {
            File::open(folder)?.sync_all()
        } else {
            Ok(())
        }
    })();
    if written.is_err() {
        // The rename did not happen; what is left is ours and of no use to anybody.
        fs::remove_file(&temporary).ok();
    }
    written.map_err(|source| WriteError {
        path: path.to_owned(),
        source,
    })
}
