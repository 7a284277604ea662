//! Counts a tree that somebody may be changing: bytes on disk, entries, the newest change.
//!
//! Must never follow a link, leave the tree's device, or go on beyond the numbers that matter.

use std::collections::HashSet;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Folders within each other; a path that deep is longer than any call takes.
pub(super) const DEEPEST: usize = 2048;

/// What was counted so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Bytes on disk.
    pub(super) bytes: u64,
    /// Entries, folders among them.
    pub(super) files: u64,
    /// The newest change of an entry, in milliseconds since 1970.
    pub(super) newest_ms: u64,
    /// Nested deeper than anything can use.
    pub(super) too_deep: bool,
}

/// When to stop counting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Enough {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// The walk over one or several roots.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) count: Count,
    enough: Enough,
    /// Files with several names that were counted already.
    seen: HashSet<(u64, u64)>,
}

impl Walk {
    pub(super) fn new(enough: Enough) -> Self {
        Self {
            count: Count::default(),
            enough,
            seen: HashSet::new(),
        }
    }

    fn is_enough(&self) -> bool {
        let Enough { bytes, files } = self.enough;
        self.count.bytes > bytes || self.count.files > files || self.count.too_deep
    }

    /// Counts what lies below `root`. Entries that vanish meanwhile are none.
    pub(super) fn over(&mut self, root: impl AsFd) -> rustix::io::Result<()> {
        let facts = rustix::fs::fstat(&root)?;
        self.newest(&facts);
        let mut way = vec![read(root.as_fd(), c".")?];
        while let Some(folder) = way.last_mut() {
            if self.is_enough() {
                return Ok(());
            }
            let Some(entry) = folder.read() else {
                drop(way.pop());
                continue;
            };
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let name: CString = name.into();
            let inner = self.entry(folder, &name, facts.st_dev)?;
            if let Some(inner) = inner {
                if way.len() >= DEEPEST {
                    self.count.too_deep = true;
                    return Ok(());
                }
                way.push(inner);
            }
        }
        Ok(())
    }

    /// Counts one entry; the folder to go into if it is one.
    fn entry(
        &mut self,
        folder: &Dir,
        name: &CString,
        device: u64,
    ) -> rustix::io::Result<Option<Dir>> {
        let at = folder.fd()?;
        let facts = match rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(facts) => facts,
            Err(Errno::NOENT | Errno::ACCESS) => return Ok(None),
            Err(error) => return Err(error),
        };
        if facts.st_dev != device {
            return Ok(None);
        }
        let is_folder = FileType::from_raw_mode(facts.st_mode) == FileType::Directory;
        let again =
            !is_folder && facts.st_nlink > 1 && !self.seen.insert((facts.st_dev, facts.st_ino));
        self.count.files += 1;
        if !again {
            let blocks = u64::try_from(facts.st_blocks).unwrap_or(0);
            self.count.bytes = self.count.bytes.saturating_add(blocks.saturating_mul(512));
        }
        self.newest(&facts);
        if !is_folder {
            return Ok(None);
        }
        match read(at, name) {
            Ok(inner) => Ok(Some(inner)),
            // Closed to its owner, or replaced since we looked.
            Err(Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                Ok(None)
            }
            Err(Errno::MFILE) => {
                self.count.too_deep = true;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn newest(&mut self, facts: &Stat) {
        let seconds = u64::try_from(facts.st_ctime).unwrap_or(0);
        let changed = seconds.saturating_mul(1000) + facts.st_ctime_nsec / 1_000_000;
        self.count.newest_ms = self.count.newest_ms.max(changed);
    }
}

fn read(at: impl AsFd, name: &std::ffi::CStr) -> rustix::io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder: OwnedFd = rustix::fs::openat(at, name, flags, Mode::empty())?;
    Dir::new(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const NEVER: Enough = Enough {
        bytes: u64::MAX,
        files: u64::MAX,
    };

    fn count(root: &Path, enough: Enough) -> Count {
        let mut walk = Walk::new(enough);
        walk.over(fs::File::open(root).unwrap()).unwrap();
        walk.count
    }

    #[test]
    fn bytes_are_those_on_disk_and_second_names_are_free() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("a")).unwrap();
        fs::write(at("a/full"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(at("a/full"), at("again")).unwrap();
        fs::File::create(at("sparse"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        std::os::unix::fs::symlink("/", at("out")).unwrap();
        let count = count(folder.path(), NEVER);
        assert_eq!(count.files, 5);
        assert!(
            ((1 << 20)..(1 << 20) + 65_536).contains(&count.bytes),
            "{}",
            count.bytes
        );
        assert!(!count.too_deep);
    }

    #[test]
    fn counting_stops_when_it_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..100 {
            fs::write(folder.path().join(number.to_string()), "x").unwrap();
        }
        let few = Enough { files: 10, ..NEVER };
        assert_eq!(count(folder.path(), few).files, 11);
    }

    #[test]
    fn a_deep_tree_ends_somewhere() {
        let folder = tempfile::tempdir().unwrap();
        let mut at: OwnedFd = fs::File::open(folder.path()).unwrap().into();
        for _ in 0..30 {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            let flags = OFlags::DIRECTORY | OFlags::RDONLY;
            at = rustix::fs::openat(&at, "d", flags, Mode::empty()).unwrap();
        }
        assert_eq!(count(folder.path(), NEVER).files, 30);
    }
}
