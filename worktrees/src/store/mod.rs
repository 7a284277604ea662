//! Writing objects into the repository: loose files, made by us, readable and owned like the others there.
//! Never changes or removes an object. Nothing counts as written until [`Store::sync`] has returned.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use git2::{ObjectType, Odb, OdbLookupFlags, Oid};
use thiserror::Error;

use crate::history::Side;
use crate::repository::Repository;

/// Above so many new objects, one sync of the file system is cheaper than one of each file.
const SYNCED_SINGLY: usize = 64;

/// Threads that wait for the disk.
const SYNCING: usize = 8;

/// Drafts that this process has begun, for names that nobody else has.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// An object could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// libgit2 cannot open the repository's objects.
    #[error("cannot open the objects of {}", path.display())]
    Open {
        /// The git directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: git2::Error,
    },
    /// The bytes cannot be hashed.
    #[error("cannot hash an object")]
    Hash {
        /// Why.
        #[source]
        source: git2::Error,
    },
    /// The file of the object cannot be written.
    #[error("cannot write the object {oid} to {}", path.display())]
    Write {
        /// The object.
        oid: Oid,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The objects cannot be brought to the disk.
    #[error("cannot sync {}", path.display())]
    Sync {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The repository's objects, opened for adding some.
pub(crate) struct Store<'r> {
    repository: &'r Repository,
    odb: Odb<'r>,
    objects: PathBuf,
    new: Vec<Oid>,
}

impl<'r> Store<'r> {
    pub(crate) fn open(
        repository: &'r Repository,
        repo: &'r git2::Repository,
    ) -> Result<Self, StoreError> {
        let path = repository.common_dir().to_path_buf();
        let odb = repo
            .odb()
            .map_err(|source| StoreError::Open { path, source })?;
        Ok(Self {
            repository,
            odb,
            objects: repository.common_dir().join("objects"),
            new: Vec::new(),
        })
    }

    /// Adds an object, unless it is there.
    pub(crate) fn add(&mut self, kind: ObjectType, bytes: &[u8]) -> Result<Oid, StoreError> {
        let oid = Oid::hash_object(kind, bytes).map_err(|source| StoreError::Hash { source })?;
        // A refresh would list all packs again for every object that is new.
        if !self.odb.exists_ext(oid, OdbLookupFlags::NO_REFRESH) {
            let _owner = self.repository.act_as_owner();
            self.write(oid, kind, bytes)?;
            self.new.push(oid);
        }
        Ok(oid)
    }

    fn write(&mut self, oid: Oid, kind: ObjectType, bytes: &[u8]) -> Result<(), StoreError> {
        let target = self.place(oid);
        let folder = target.parent().unwrap_or(&self.objects);
        let failed = |path: &Path, source| StoreError::Write {
            oid,
            path: path.to_path_buf(),
            source,
        };
        make_like(folder, &self.objects).map_err(|source| failed(folder, source))?;
        // git's own clean-up removes what begins with `tmp_obj_`. Several tasks of one process may
        // write the same object at the same time.
        let draft = folder.join(format!(
            "tmp_obj_airlock_{}_{oid}_{}",
            std::process::id(),
            DRAFTS.fetch_add(1, Ordering::Relaxed)
        ));
        let written = compress(&draft, kind, bytes).and_then(|()| fs::rename(&draft, &target));
        if let Err(source) = written {
            // The error is told; a draft that stays is git's to clean up.
            let _left = fs::remove_file(&draft);
            return Err(failed(&target, source));
        }
        Ok(())
    }

    /// Brings everything that was added to the disk.
    pub(crate) fn sync(&mut self) -> Result<(), StoreError> {
        let failed = |path: &Path, source| StoreError::Sync {
            path: path.to_path_buf(),
            source,
        };
        if self.new.len() > SYNCED_SINGLY {
            let synced =
                fs::File::open(&self.objects).and_then(|folder| Ok(nix::unistd::syncfs(&folder)?));
            synced.map_err(|source| failed(&self.objects, source))?;
            self.new.clear();
            return Ok(());
        }
        let mut files = Vec::new();
        let mut folders = BTreeSet::from([self.objects.clone()]);
        for oid in self.new.drain(..).collect::<Vec<_>>() {
            let path = self.place(oid);
            folders.extend(path.parent().map(Path::to_owned));
            files.push(path);
        }
        let opened = {
            let _owner = self.repository.act_as_owner();
            let all = files.into_iter().chain(folders);
            all.map(|path| match fs::File::open(&path) {
                Ok(file) => Ok((file, path)),
                Err(source) => Err(failed(&path, source)),
            })
            .collect::<Result<Vec<_>, _>>()?
        };
        sync_together(&opened).map_err(|(path, source)| failed(path, source))
    }

    /// Brings the file system that holds the objects to the disk, with whatever libgit2 has written there.
    pub(crate) fn sync_all(&mut self) -> Result<(), StoreError> {
        self.new.clear();
        fs::File::open(&self.objects)
            .and_then(|folder| Ok(nix::unistd::syncfs(&folder)?))
            .map_err(|source| StoreError::Sync {
                path: self.objects.clone(),
                source,
            })
    }

    fn place(&self, oid: Oid) -> PathBuf {
        let name = oid.to_string();
        let (folder, file) = name.split_at(2);
        self.objects.join(folder).join(file)
    }
}

/// Waits for all of them at once: a disk that is asked by one at a time is asked as often as there are files.
fn sync_together(opened: &[(fs::File, PathBuf)]) -> Result<(), (&Path, io::Error)> {
    let some = opened.len().div_ceil(SYNCING).max(1);
    thread::scope(|scope| {
        let waiting: Vec<_> = opened
            .chunks(some)
            .map(|some| scope.spawn(|| some.iter().try_for_each(sync)))
            .collect();
        waiting.into_iter().try_for_each(|waiting| {
            let synced = waiting.join();
            synced.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

fn sync((file, path): &(fs::File, PathBuf)) -> Result<(), (&Path, io::Error)> {
    file.sync_all().map_err(|error| (path.as_path(), error))
}

/// Makes a folder with the mode of its model, so that a repository shared by a group stays shared.
fn make_like(folder: &Path, model: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Ok(()) => {
            let mode = fs::metadata(model)?.mode() & 0o7777;
            fs::set_permissions(folder, fs::Permissions::from_mode(mode))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn compress(draft: &Path, kind: ObjectType, bytes: &[u8]) -> io::Result<()> {
    let file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o444)
        .open(draft)?;
    let mut encoder = ZlibEncoder::new(io::BufWriter::new(file), Compression::fast());
    encoder.write_all(format!("{} {}\0", kind.str(), bytes.len()).as_bytes())?;
    encoder.write_all(bytes)?;
    encoder.finish()?.flush()
}

/// The bytes of a tree object with these entries, in git's order.
pub(crate) fn tree_bytes(entries: &mut [(Vec<u8>, Side)]) -> Vec<u8> {
    entries.sort_by(|(left, left_side), (right, right_side)| {
        sort_key(left, *left_side).cmp(sort_key(right, *right_side))
    });
    let mut bytes = Vec::new();
    for (name, side) in entries {
        bytes.extend_from_slice(format!("{:o} ", side.mode).as_bytes());
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend_from_slice(side.oid.as_bytes());
    }
    bytes
}

/// git sorts a folder as if its name ended in `/`.
fn sort_key(name: &[u8], side: Side) -> impl Iterator<Item = u8> {
    let end = (side.mode == 0o040_000).then_some(b'/');
    name.iter().copied().chain(end)
}
