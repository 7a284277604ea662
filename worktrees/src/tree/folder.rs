//! A folder held by its descriptor, and a chain of them down from a root. Names are single components, links
//! are never followed, and nothing but a regular file is opened for reading.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use nix::dir::{Dir, OwningIter};
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

/// How many folders of a chain stay open: deep trees must not use up the descriptors of the process.
const KEPT_OPEN: usize = 64;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

impl Folder {
    const FLAGS: OFlag = OFlag::O_DIRECTORY
        .union(OFlag::O_NOFOLLOW)
        .union(OFlag::O_CLOEXEC)
        .union(OFlag::O_RDONLY);

    /// Opens a folder by path; the last component may not be a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, Self::FLAGS, Mode::empty())?))
    }

    pub(crate) fn child(&self, name: &[u8]) -> io::Result<Self> {
        Ok(Self(openat(&self.0, name, Self::FLAGS, Mode::empty())?))
    }

    pub(crate) fn again(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    pub(crate) fn stat(&self, name: &[u8]) -> io::Result<FileStat> {
        Ok(fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }

    pub(crate) fn own_stat(&self) -> io::Result<FileStat> {
        Ok(fstat(&self.0)?)
    }

    /// Whether anything has that name, a dangling link included.
    pub(crate) fn has(&self, name: &[u8]) -> io::Result<bool> {
        match self.stat(name) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Calls `each` for every name but `.` and `..`, in no order, without holding them all.
    pub(crate) fn each_name(
        &self,
        mut each: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        // A fresh description: a clone would share its position with whoever reads this folder next.
        let mut entries = Dir::from_fd(openat(&self.0, ".", Self::FLAGS, Mode::empty())?)?;
        for entry in entries.iter() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                each(name)?;
            }
        }
        Ok(())
    }

    /// The names but `.` and `..`, in no order and without holding them all, for who removes and adds meanwhile: a
    /// name that comes or goes may be given or not.
    pub(crate) fn each(&self) -> io::Result<Names> {
        // A fresh description, as above.
        let entries = Dir::from_fd(openat(&self.0, ".", Self::FLAGS, Mode::empty())?)?;
        Ok(Names(entries.into_iter()))
    }

    /// All names, sorted.
    pub(crate) fn names(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        self.each_name(|name| {
            names.push(name.to_vec());
            Ok(())
        })?;
        names.sort_unstable();
        Ok(names)
    }

    /// Reads a regular file; `None` when it holds more than `limit` bytes or is something else.
    ///
    /// Opened without blocking and looked at again afterwards, should it have become a FIFO meanwhile.
    pub(crate) fn read(&self, name: &[u8], limit: u64) -> io::Result<Option<(Vec<u8>, FileStat)>> {
        let flags = OFlag::O_RDONLY
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(&self.0, name, flags, Mode::empty())?);
        let facts = fstat(&file)?;
        if facts.st_mode & nix::libc::S_IFMT != nix::libc::S_IFREG {
            return Ok(None);
        }
        let size = u64::try_from(facts.st_size).unwrap_or(0);
        if size > limit {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0).saturating_add(1));
        (&mut file).take(limit + 1).read_to_end(&mut bytes)?;
        let whole = u64::try_from(bytes.len()).is_ok_and(|length| length <= limit);
        Ok(whole.then_some((bytes, facts)))
    }

    /// Opens a regular file for reading, without waiting for what a pipe might bring.
    pub(crate) fn open_file(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlag::O_RDONLY
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.0, name, flags, Mode::empty())?);
        if fstat(&file)?.st_mode & nix::libc::S_IFMT != nix::libc::S_IFREG {
            return Err(io::Error::other("it is no regular file any more"));
        }
        Ok(file)
    }

    pub(crate) fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        Ok(readlinkat(&self.0, name)?.into_vec())
    }

    /// Makes a file that must not exist.
    pub(crate) fn create(&self, name: &[u8], mode: u32) -> io::Result<File> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::from_bits_truncate(mode))?;
        Ok(File::from(file))
    }

    pub(crate) fn make_folder(&self, name: &[u8], mode: u32) -> io::Result<()> {
        Ok(mkdirat(&self.0, name, Mode::from_bits_truncate(mode))?)
    }

    pub(crate) fn make_link(&self, target: &[u8], name: &[u8]) -> io::Result<()> {
        Ok(symlinkat(OsStr::from_bytes(target), &self.0, name)?)
    }

    pub(crate) fn rename(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    pub(crate) fn remove_file(&self, name: &[u8]) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, UnlinkatFlags::NoRemoveDir)?)
    }

    pub(crate) fn remove_folder(&self, name: &[u8]) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, UnlinkatFlags::RemoveDir)?)
    }

    /// Gives an entry (a link itself, not its target) to another user.
    pub(crate) fn give(&self, name: &[u8], (user, group): (u32, u32)) -> io::Result<()> {
        Ok(nix::unistd::fchownat(
            &self.0,
            name,
            Some(user.into()),
            Some(group.into()),
            AtFlags::AT_SYMLINK_NOFOLLOW,
        )?)
    }
}

/// The names of a folder, one after another.
#[derive(Debug)]
pub(crate) struct Names(OwningIter);

impl Iterator for Names {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.0.next()? {
                Ok(entry) => {
                    let name = entry.file_name().to_bytes();
                    if name != b"." && name != b".." {
                        return Some(Ok(name.to_vec()));
                    }
                }
                Err(errno) => return Some(Err(errno.into())),
            }
        }
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Folders below a root, entered by path one component at a time. Siblings and children are found quickly,
/// since the upper part of the last path stays open.
#[derive(Debug)]
pub(crate) struct Chain {
    root: Folder,
    kept: Vec<(Vec<u8>, Folder)>,
    /// Where the last path ended, when that is below what is kept: the names from there down, and the folder.
    deep: Option<(Vec<Vec<u8>>, Folder)>,
}

impl Chain {
    pub(crate) fn new(root: Folder) -> Self {
        Self {
            root,
            kept: Vec::new(),
            deep: None,
        }
    }

    /// The folder at `path` (components divided by `/`, empty for the root).
    pub(crate) fn enter(&mut self, path: &[u8]) -> io::Result<&Folder> {
        self.walk(path, Folder::child)
    }

    /// As [`Chain::enter`], and makes the folders that are missing.
    pub(crate) fn enter_or_make(&mut self, path: &[u8], mode: u32) -> io::Result<&Folder> {
        self.walk(path, |folder, name| match folder.child(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                folder.make_folder(name, mode)?;
                folder.child(name)
            }
            other => other,
        })
    }

    /// Forgets what is open, after folders were removed or replaced.
    pub(crate) fn forget(&mut self) {
        self.kept.clear();
        self.deep = None;
    }

    fn walk(
        &mut self,
        path: &[u8],
        step: impl Fn(&Folder, &[u8]) -> io::Result<Folder>,
    ) -> io::Result<&Folder> {
        let names: Vec<&[u8]> = path
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
            .collect();
        let shared = self
            .kept
            .iter()
            .zip(&names)
            .take_while(|((kept, _), name)| kept == *name)
            .count();
        let rest = names.get(shared..).unwrap_or_default();
        let on_the_way = |below: &[Vec<u8>]| {
            shared == self.kept.len()
                && below.len() <= rest.len()
                && below.iter().zip(rest).all(|(below, name)| below == name)
        };
        self.deep = self.deep.take().filter(|(below, _)| on_the_way(below));
        self.kept.truncate(shared);
        let entered = shared + self.deep.as_ref().map_or(0, |(below, _)| below.len());
        for name in names.iter().skip(entered) {
            let next = step(self.last(), name)?;
            match &mut self.deep {
                Some((below, folder)) => {
                    below.push(name.to_vec());
                    *folder = next;
                }
                None if self.kept.len() < KEPT_OPEN => self.kept.push((name.to_vec(), next)),
                None => self.deep = Some((vec![name.to_vec()], next)),
            }
        }
        Ok(self.last())
    }

    fn last(&self) -> &Folder {
        let kept = self.kept.last().map(|(_, folder)| folder);
        let deep = self.deep.as_ref().map(|(_, folder)| folder);
        deep.or(kept).unwrap_or(&self.root)
    }
}

#[cfg(test)]
mod tests {
    use super::{Chain, Folder};

    #[test]
    fn a_chain_never_goes_through_a_link() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("a/b")).unwrap();
        std::os::unix::fs::symlink("b", place.path().join("a/link")).unwrap();
        let mut chain = Chain::new(Folder::open(place.path()).unwrap());
        assert!(chain.enter(b"a/b").is_ok());
        assert!(chain.enter(b"a/link").is_err());
        assert!(chain.enter(b"a/b").is_ok());
    }

    #[test]
    fn a_chain_goes_deeper_than_it_keeps_open() {
        let place = tempfile::tempdir().unwrap();
        let path = vec!["d"; 300].join("/");
        let mut chain = Chain::new(Folder::open(place.path()).unwrap());
        chain.enter_or_make(path.as_bytes(), 0o755).unwrap();
        assert!(
            chain
                .enter(path.as_bytes())
                .unwrap()
                .names()
                .unwrap()
                .is_empty()
        );
        assert_eq!(
            chain.enter(b"d").unwrap().names().unwrap(),
            vec![b"d".to_vec()]
        );
        // From the depth to another branch, back, and further down.
        let (upper, _) = path.split_at(2 * 100 - 1);
        std::fs::create_dir_all(place.path().join(upper).join("e/f")).unwrap();
        for (inner, names) in [
            ("", 2),
            ("/e", 1),
            ("/e/f", 0),
            ("/d", 1),
            ("", 2),
            ("/e", 1),
        ] {
            let inner = format!("{upper}{inner}");
            let found = chain.enter(inner.as_bytes()).unwrap().names().unwrap();
            assert_eq!(found.len(), names, "{inner}");
        }
    }
}
