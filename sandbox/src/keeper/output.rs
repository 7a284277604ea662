//! `output.log`: everything up to a cap, and beyond it the beginning and the end with a line between.
//!
//! Must never stop taking output: what cannot be kept, for the cap or for a full disk, is counted and dropped.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Name of the log in the job's folder.
pub(crate) const NAME: &str = "output.log";
const TAILS: [&str; 2] = ["output.tail.0", "output.tail.1"];

/// The output of one job. While it runs, what follows the head is in two files that take turns.
#[derive(Debug)]
pub(crate) struct Log {
    dir: PathBuf,
    head: File,
    head_left: u64,
    /// Size of one tail file; two of them and the head make the cap.
    segment: u64,
    current: Option<Tail>,
    older: Option<Tail>,
    turn: usize,
    total: u64,
    dropped: u64,
}

#[derive(Debug)]
struct Tail {
    file: File,
    path: PathBuf,
    length: u64,
}

impl Log {
    pub(crate) fn create(dir: &Path, cap: u64) -> io::Result<Self> {
        for tail in TAILS {
            match std::fs::remove_file(dir.join(tail)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        let head = fresh(&dir.join(NAME))?;
        let head_left = cap.div_ceil(4);
        Ok(Self {
            dir: dir.to_owned(),
            head,
            head_left,
            segment: (cap - head_left) / 2,
            current: None,
            older: None,
            turn: 0,
            total: 0,
            dropped: 0,
        })
    }

    /// Bytes taken and bytes dropped so far.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        (self.total, self.dropped)
    }

    /// Whether something was dropped.
    pub(crate) fn has_dropped(&self) -> bool {
        self.dropped > 0
    }

    /// Takes what the job wrote.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) {
        self.total += length(bytes);
        if self.head_left > 0 && self.current.is_none() {
            let part = split(&mut bytes, self.head_left);
            self.head_left -= length(part);
            if self.head.write_all(part).is_err() {
                self.dropped += length(part);
            }
        }
        while !bytes.is_empty() {
            let room = self.room();
            if room == 0 {
                self.dropped += length(bytes);
                return;
            }
            let part = split(&mut bytes, room);
            if let Some(tail) = &mut self.current {
                tail.length += length(part);
                if tail.file.write_all(part).is_err() {
                    self.dropped += length(part);
                    tail.length -= length(part);
                }
            }
            // A file that cannot be written must not make this loop spin on the same room.
            if self.current.is_none() {
                self.dropped += length(part);
            }
        }
    }

    /// Bytes that the current tail file still takes; begins the next one when it is full.
    fn room(&mut self) -> u64 {
        if self.segment == 0 {
            return 0;
        }
        let left = self
            .current
            .as_ref()
            .map_or(0, |tail| self.segment.saturating_sub(tail.length));
        if left > 0 {
            return left;
        }
        self.rotate();
        self.segment
    }

    fn rotate(&mut self) {
        if let Some(oldest) = self.older.take() {
            self.dropped += oldest.length;
            // Its name is used again below; what cannot be removed is truncated there.
            drop(std::fs::remove_file(&oldest.path));
        }
        self.older = self.current.take();
        let path = TAILS.get(self.turn).map(|name| self.dir.join(name));
        self.turn = (self.turn + 1) % TAILS.len();
        self.current = path.and_then(|path| {
            let file = fresh(&path).ok()?;
            Some(Tail {
                file,
                path,
                length: 0,
            })
        });
    }

    /// Puts the parts together. Answers bytes taken and bytes dropped.
    pub(crate) fn finish(mut self) -> (u64, u64) {
        if self.dropped > 0 {
            let marker = format!(
                "\n[airlock: {} bytes of output dropped here]\n",
                self.dropped
            );
            // The count is in meta.json as well.
            drop(self.head.write_all(marker.as_bytes()));
        }
        for tail in [self.older.take(), self.current.take()]
            .into_iter()
            .flatten()
        {
            let joined =
                File::open(&tail.path).and_then(|mut from| io::copy(&mut from, &mut self.head));
            if joined.is_err() {
                self.dropped += tail.length;
            }
            drop(std::fs::remove_file(&tail.path));
        }
        // Not synced: the log of a machine that lost power in this second is no evidence.
        (self.total, self.dropped)
    }
}

fn fresh(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path)
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn split<'bytes>(bytes: &mut &'bytes [u8], at: u64) -> &'bytes [u8] {
    let at = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let (part, rest) = bytes.split_at(at);
    *bytes = rest;
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(cap: u64, pieces: &[&[u8]]) -> (Vec<u8>, (u64, u64), usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path(), cap).unwrap();
        for piece in pieces {
            log.take(piece);
        }
        let sizes = log.finish();
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        (
            std::fs::read(folder.path().join(NAME)).unwrap(),
            sizes,
            files,
        )
    }

    #[test]
    fn within_the_cap_nothing_is_changed() {
        let all: Vec<u8> = (0..80_u8).collect();
        let (log, sizes, files) = kept(80, &[&all[..3], &all[3..50], &all[50..]]);
        assert_eq!((log, sizes, files), (all, (80, 0), 1));
    }

    #[test]
    fn beyond_the_cap_head_and_tail_stay() {
        let all: Vec<u8> = (0..1000_u32)
            .map(|n| b'a' + u8::try_from(n % 26).unwrap())
            .collect();
        let (log, (total, dropped), files) = kept(80, &[&all[..333], &all[333..]]);
        assert_eq!((total, files), (1000, 1));
        let marker = format!("\n[airlock: {dropped} bytes of output dropped here]\n");
        let text = String::from_utf8(log).unwrap();
        let (head, tail) = text.split_once(&marker).unwrap();
        assert_eq!(head.as_bytes(), &all[..20]);
        assert_eq!(tail.as_bytes(), &all[1000 - tail.len()..]);
        assert!(tail.len() > 30 && head.len() + tail.len() <= 80);
        assert_eq!(
            dropped,
            1000 - u64::try_from(head.len() + tail.len()).unwrap()
        );
    }

    #[test]
    fn a_cap_of_nothing_keeps_counting() {
        let (log, sizes, _) = kept(0, &[b"abc"]);
        assert_eq!(sizes, (3, 3));
        assert!(String::from_utf8(log).unwrap().contains("3 bytes"));
    }
}
