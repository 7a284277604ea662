//! What a setup leaves behind and every task gets a copy of, such as `node_modules`: taken out of the tree it was
//! made in, and put into fresh ones. What was made there is hostile: nothing here follows a link, opens anything but
//! a regular file, or hands on a set-id bit.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{ErrorCode, ObjectType, Oid};
use nix::libc::{S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};
use nix::sys::stat::{FileStat, Mode, fchmod, futimens};
use nix::sys::time::TimeSpec;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::history::peel_tree;
use crate::owner::must_hand_over;
use crate::repository::{ReadError, Repository};
use crate::shown;
use crate::tree::{Chain, Folder, IgnoreRules, Settings};

/// Folders may be nested so deep; each level keeps two descriptors.
const DEEPEST: usize = 128;

/// A folder could not be kept, or not be put into a tree.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeptError {
    /// Something in it cannot be read or written.
    #[error("cannot copy {path}")]
    Copy {
        /// Shown path, from the top of the tree.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A device, pipe or socket, or no folder where one is to be kept.
    #[error("{path} is {found}, which cannot be kept")]
    Kind {
        /// Shown path.
        path: String,
        /// What it is.
        found: &'static str,
    },
    /// More than may be kept.
    #[error("{path} passes the limit of {files} files and {bytes} bytes that may be kept")]
    TooMuch {
        /// Where the limit was passed.
        path: String,
        /// The limit.
        files: u64,
        /// The limit.
        bytes: u64,
    },
}

/// How much may be kept.
#[derive(Debug, Clone, Copy)]
pub struct KeptLimit {
    /// Files, links and folders.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// How much was kept or copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeptSize {
    /// Files, links and folders.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Whether a path of a base could be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keepable {
    /// No file is there and none would ever be sealed.
    Yes,
    /// The base has files there.
    Tracked,
    /// Files there would be sealed: no `.gitignore` covers it.
    NotIgnored,
}

impl Repository {
    /// Whether a folder could be kept, as the files of a base stand.
    pub fn keepable(&self, base: Oid, path: &str) -> Result<Keepable, ReadError> {
        let settings = Settings::load(self).map_err(|source| ReadError::Open {
            path: self.common_dir().to_path_buf(),
            source,
        })?;
        let repo = self.open_for_reading()?;
        let mut rules = IgnoreRules::new(&settings);
        let root = peel_tree(&repo, base)?;
        let mut tree = Some(root.clone());
        let mut folder = Vec::new();
        for name in path.split('/') {
            let Some(here) = tree.take() else { break };
            if let Some(entry) = here.get_name(".gitignore")
                && let Ok(blob) = repo.find_blob(entry.id())
            {
                rules.push(&folder, blob.content());
            }
            folder.extend_from_slice(name.as_bytes());
            folder.push(b'/');
            tree = here
                .get_name(name)
                .filter(|entry| entry.kind() == Some(ObjectType::Tree))
                .and_then(|entry| repo.find_tree(entry.id()).ok());
        }
        // A folder that is ignored takes all below it along.
        let ends = path
            .match_indices('/')
            .map(|(at, _)| at)
            .chain([path.len()]);
        let mut above = ends.filter_map(|end| path.get(..end));
        let ignored = above.any(|inner| rules.covers(inner.as_bytes(), true));
        let tracked = match root.get_path(Path::new(path)) {
            Ok(_) => true,
            Err(error) if error.code() == ErrorCode::NotFound => false,
            Err(source) => {
                let (kind, oid) = ("tree", base);
                return Err(ReadError::Object { kind, oid, source });
            }
        };
        Ok(match (tracked, ignored) {
            (true, _) => Keepable::Tracked,
            (false, true) => Keepable::Yes,
            (false, false) => Keepable::NotIgnored,
        })
    }

    /// Puts what was kept in `from` into the fresh tree `to`, as files of the room's user. Changes in the copy never
    /// reach what is kept.
    pub fn put_kept(
        &self,
        from: &Path,
        to: &Path,
        limit: KeptLimit,
    ) -> Result<KeptSize, KeptError> {
        let owner = must_hand_over(self.owner()).then(|| self.owner());
        let opened = |path: &Path| Folder::open(path).map_err(copying(path.as_os_str().as_bytes()));
        let mut copy = Copy {
            owner,
            limit,
            size: KeptSize::default(),
        };
        copy.folder(&opened(from)?, &opened(to)?, b"", 0)?;
        Ok(copy.size)
    }
}

/// Moves those of `paths` that are there out of the tree `from` into the empty folder `to`, and looks through them:
/// what could not be copied later is refused now. Both are on one file system.
pub fn take_kept(
    from: &Path,
    paths: &[String],
    to: &Path,
    limit: KeptLimit,
) -> Result<KeptSize, KeptError> {
    let opened = |path: &Path| Folder::open(path).map_err(copying(path.as_os_str().as_bytes()));
    let (mut source, mut target) = (Chain::new(opened(from)?), Chain::new(opened(to)?));
    let mut survey = Survey {
        limit,
        size: KeptSize::default(),
    };
    for path in paths {
        let failed = copying(path.as_bytes());
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = match source.enter(above.as_bytes()) {
            Ok(folder) => folder,
            Err(error) if absent(&error) => continue,
            Err(error) => return Err(failed(error)),
        };
        match folder.stat(name.as_bytes()) {
            Ok(facts) if facts.st_mode & S_IFMT == S_IFDIR => {}
            Ok(facts) => return Err(kind(path.as_bytes(), &facts)),
            Err(error) if absent(&error) => continue,
            Err(error) => return Err(failed(error)),
        }
        survey.folder(
            &folder.child(name.as_bytes()).map_err(&failed)?,
            path.as_bytes(),
            0,
        )?;
        let into = target
            .enter_or_make(above.as_bytes(), 0o700)
            .map_err(&failed)?;
        nix::fcntl::renameat(folder, name, into, name).map_err(|errno| failed(errno.into()))?;
    }
    Ok(survey.size)
}

fn absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn copying(path: &[u8]) -> impl Fn(io::Error) -> KeptError {
    let path = shown(path);
    move |source| KeptError::Copy {
        path: path.clone(),
        source,
    }
}

fn kind(path: &[u8], facts: &FileStat) -> KeptError {
    let found = match facts.st_mode & S_IFMT {
        S_IFREG => "a file",
        S_IFLNK => "a link",
        nix::libc::S_IFIFO => "a pipe",
        nix::libc::S_IFSOCK => "a socket",
        _ => "a device",
    };
    KeptError::Kind {
        path: shown(path),
        found,
    }
}

/// Adds one entry to what is counted.
fn count(
    size: &mut KeptSize,
    limit: KeptLimit,
    path: &[u8],
    facts: &FileStat,
) -> Result<(), KeptError> {
    size.files += 1;
    if facts.st_mode & S_IFMT == S_IFREG {
        size.bytes += u64::try_from(facts.st_size).unwrap_or(0);
    }
    if size.files > limit.files || size.bytes > limit.bytes {
        return Err(KeptError::TooMuch {
            path: shown(path),
            files: limit.files,
            bytes: limit.bytes,
        });
    }
    Ok(())
}

/// Name, path from the top, facts.
type Entry = (Vec<u8>, Vec<u8>, FileStat);

/// What is in a folder, by kind: folders are gone into, anything but files and links is refused.
fn entries(folder: &Folder, above: &[u8], depth: usize) -> Result<Vec<Entry>, KeptError> {
    if depth > DEEPEST {
        return Err(copying(above)(io::Error::other("nested too deep")));
    }
    let names = folder.names().map_err(copying(above))?;
    let entry = |name: Vec<u8>| {
        let path = if above.is_empty() {
            name.clone()
        } else {
            [above, b"/", name.as_slice()].concat()
        };
        let facts = folder.stat(&name).map_err(copying(&path))?;
        match facts.st_mode & S_IFMT {
            S_IFDIR | S_IFREG | S_IFLNK => Ok((name, path, facts)),
            _ => Err(kind(&path, &facts)),
        }
    };
    names.into_iter().map(entry).collect()
}

struct Survey {
    limit: KeptLimit,
    size: KeptSize,
}

impl Survey {
    fn folder(&mut self, folder: &Folder, above: &[u8], depth: usize) -> Result<(), KeptError> {
        for (name, path, facts) in entries(folder, above, depth)? {
            count(&mut self.size, self.limit, &path, &facts)?;
            if facts.st_mode & S_IFMT == S_IFDIR {
                let inner = folder.child(&name).map_err(copying(&path))?;
                self.folder(&inner, &path, depth + 1)?;
            }
        }
        Ok(())
    }
}

struct Copy {
    owner: Option<(u32, u32)>,
    limit: KeptLimit,
    size: KeptSize,
}

impl Copy {
    fn folder(
        &mut self,
        from: &Folder,
        to: &Folder,
        above: &[u8],
        depth: usize,
    ) -> Result<(), KeptError> {
        for (name, path, facts) in entries(from, above, depth)? {
            count(&mut self.size, self.limit, &path, &facts)?;
            let failed = copying(&path);
            match facts.st_mode & S_IFMT {
                S_IFDIR => {
                    let inner = from.child(&name).map_err(&failed)?;
                    // On the way to what is kept lie folders that the base has.
                    let made = to.make_folder(&name, 0o700);
                    let new = made.is_ok();
                    match made {
                        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                            return Err(failed(error));
                        }
                        Ok(()) | Err(_) => {}
                    }
                    let target = to.child(&name).map_err(&failed)?;
                    self.folder(&inner, &target, &path, depth + 1)?;
                    if new {
                        fchmod(&target, permissions(&facts))
                            .map_err(|errno| failed(errno.into()))?;
                        self.give(to, &name).map_err(&failed)?;
                    }
                }
                S_IFLNK => {
                    let link = from.read_link(&name);
                    let made = link.and_then(|target| to.make_link(&target, &name));
                    made.and_then(|()| self.give(to, &name)).map_err(&failed)?;
                }
                _ => self.file(from, to, &name, &facts).map_err(&failed)?,
            }
        }
        Ok(())
    }

    fn file(&self, from: &Folder, to: &Folder, name: &[u8], facts: &FileStat) -> io::Result<()> {
        let mut source = from.open_file(name)?;
        let mut target = to.create(name, 0o600)?;
        // Where the file system can, both share their blocks until one is written.
        io::copy(&mut source, &mut target)?;
        fchmod(&target, permissions(facts))?;
        // Builds compare times to see what is up to date.
        let time = TimeSpec::new(facts.st_mtime, facts.st_mtime_nsec);
        futimens(&target, &time, &time)?;
        self.give(to, name)
    }

    fn give(&self, folder: &Folder, name: &[u8]) -> io::Result<()> {
        self.owner.map_or(Ok(()), |owner| folder.give(name, owner))
    }
}

fn permissions(facts: &FileStat) -> Mode {
    Mode::from_bits_truncate(facts.st_mode & 0o777)
}
