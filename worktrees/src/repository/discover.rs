//! Finding a repository from a folder, as git does it: upwards, through `.git` files, into bare ones.
//! Never looks at `GIT_*` variables, and never takes up a repository of another user unless we are root.

use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::format::Format;
use super::{OpenError, Repository};

/// A `.git` file holds one line; a larger one is not such a file.
const POINTER_LIMIT: u64 = 64 * 1024;

impl Repository {
    /// Finds the repository that `from` belongs to: a checkout, a folder in one, a linked worktree, a bare
    /// repository, or the git directory itself.
    pub fn discover(from: &Path) -> Result<Self, OpenError> {
        let start = fs::canonicalize(from).map_err(|source| OpenError::Unreachable {
            path: from.to_path_buf(),
            source,
        })?;
        let (git_dir, found_in) = find(&start)?;
        let common = common_of(&git_dir)?;
        let format = Format::read(&common)?;
        format.refuse_unknown(&common)?;
        let checkout = checkout_of(&git_dir, &common, found_in, &format)?;
        let owner = check_owner(&git_dir, &common, checkout.as_deref())?;
        let name = name_of(&common);
        Ok(Self {
            common,
            git_dir,
            checkout,
            name,
            owner,
        })
    }
}

/// The git directory, and the folder whose `.git` led to it.
fn find(start: &Path) -> Result<(PathBuf, Option<PathBuf>), OpenError> {
    for folder in start.ancestors() {
        let entry = folder.join(".git");
        match fs::metadata(&entry) {
            Ok(facts) if facts.is_dir() && is_git_dir(&entry) => {
                return Ok((canonical(&entry)?, Some(folder.to_path_buf())));
            }
            Ok(facts) if facts.is_file() => {
                let target = read_pointer(&entry)?;
                if !is_git_dir(&target) {
                    return Err(OpenError::Corrupt {
                        path: entry,
                        problem: format!(
                            "it points to {}, where no git directory is",
                            target.display()
                        ),
                    });
                }
                return Ok((canonical(&target)?, Some(folder.to_path_buf())));
            }
            _ if is_git_dir(folder) => return Ok((folder.to_path_buf(), None)),
            _ => {}
        }
    }
    Err(OpenError::NotARepository {
        path: start.to_path_buf(),
    })
}

/// Follows a `.git` file: `gitdir: <path>`, relative to the file's folder.
fn read_pointer(file: &Path) -> Result<PathBuf, OpenError> {
    let bytes = read_small(file)?;
    let Some(target) = bytes.strip_prefix(b"gitdir: ") else {
        return Err(OpenError::Corrupt {
            path: file.to_path_buf(),
            problem: "it does not begin with \"gitdir: \"".to_owned(),
        });
    };
    let folder = file.parent().unwrap_or(Path::new("/"));
    Ok(folder.join(path_of(target)))
}

fn is_git_dir(folder: &Path) -> bool {
    let has_head = fs::symlink_metadata(folder.join("HEAD")).is_ok();
    let shared = folder.join("commondir").is_file();
    let own = folder.join("objects").is_dir() && folder.join("refs").is_dir();
    has_head && (shared || own)
}

fn common_of(git_dir: &Path) -> Result<PathBuf, OpenError> {
    let file = git_dir.join("commondir");
    match read_small(&file) {
        Ok(bytes) => canonical(&git_dir.join(path_of(&bytes))),
        Err(OpenError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(git_dir.to_path_buf())
        }
        Err(error) => Err(error),
    }
}

fn checkout_of(
    git_dir: &Path,
    common: &Path,
    found_in: Option<PathBuf>,
    format: &Format,
) -> Result<Option<PathBuf>, OpenError> {
    if git_dir != common {
        let folder = match found_in {
            Some(folder) => Some(folder),
            None => linked_checkout(git_dir),
        };
        return folder.as_deref().map(canonical).transpose();
    }
    if format.bare == Some(true) {
        return Ok(None);
    }
    let folder = match (&format.worktree, found_in) {
        (Some(set), _) => Some(git_dir.join(set)),
        (None, Some(folder)) => Some(folder),
        (None, None) if git_dir.file_name() == Some(".git".as_ref()) => {
            git_dir.parent().map(Path::to_path_buf)
        }
        (None, None) => None,
    };
    folder.as_deref().map(canonical).transpose()
}

/// Where a linked worktree says that it is; `None` when that place is gone.
pub(crate) fn linked_checkout(git_dir: &Path) -> Option<PathBuf> {
    let bytes = read_small(&git_dir.join("gitdir")).ok()?;
    let pointer = git_dir.join(path_of(&bytes));
    let folder = pointer.parent()?;
    fs::symlink_metadata(&pointer)
        .is_ok()
        .then(|| folder.to_path_buf())
}

fn check_owner(
    git_dir: &Path,
    common: &Path,
    checkout: Option<&Path>,
) -> Result<(u32, u32), OpenError> {
    let facts = facts_of(common)?;
    let user = nix::unistd::geteuid().as_raw();
    if user != 0 {
        for path in [Some(git_dir), Some(common), checkout]
            .into_iter()
            .flatten()
        {
            let owner = facts_of(path)?.uid();
            if owner != user && !declared_safe(checkout.unwrap_or(git_dir)) {
                return Err(OpenError::OtherOwner {
                    path: path.to_path_buf(),
                    owner,
                    user,
                });
            }
        }
    }
    Ok((facts.uid(), facts.gid()))
}

/// `safe.directory` of the user's and the system's configuration, the only places where git reads it.
fn declared_safe(path: &Path) -> bool {
    let Ok(config) = git2::Config::open_default() else {
        return false;
    };
    let Ok(values) = config.multivar("safe.directory", None) else {
        return false;
    };
    let mut safe = false;
    // An iteration that ends early has seen less: it can only refuse more.
    let _ended = values.for_each(|entry| {
        let Ok(value) = entry.value() else { return };
        safe = match value {
            "" => false,
            "*" => true,
            _ => {
                let covers = value
                    .strip_suffix("/*")
                    .is_some_and(|folder| path.starts_with(folder) && path != Path::new(folder));
                safe || covers || path == Path::new(value)
            }
        };
    });
    safe
}

/// Of the repository, not of the checkout: all its linked worktrees share one name, and with it what is kept
/// for the repository. `app/.git` and `app/.bare` are both called `app`.
fn name_of(common: &Path) -> String {
    let hidden = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b".");
    let mut names = common.ancestors().filter_map(Path::file_name);
    let name = names.find(|name| !hidden(name)).map_or_else(
        || "root".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    );
    match name.strip_suffix(".git") {
        Some(stem) if !stem.is_empty() => stem.to_owned(),
        _ => name,
    }
}

pub(crate) fn read_small(file: &Path) -> Result<Vec<u8>, OpenError> {
    let failed = |source| OpenError::File {
        path: file.to_path_buf(),
        source,
    };
    let facts = fs::metadata(file).map_err(failed)?;
    if !facts.is_file() || facts.len() > POINTER_LIMIT {
        return Err(OpenError::Corrupt {
            path: file.to_path_buf(),
            problem: "it is not a small text file".to_owned(),
        });
    }
    fs::read(file).map_err(failed)
}

/// One path per file, ended by a line end.
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    let end = bytes
        .iter()
        .rposition(|byte| !matches!(byte, b'\n' | b'\r'))
        .map_or(0, |last| last + 1);
    let kept = bytes.get(..end).unwrap_or_default();
    PathBuf::from(std::ffi::OsString::from_vec(
        std::ffi::OsStr::from_bytes(kept).as_bytes().to_vec(),
    ))
}

fn facts_of(path: &Path) -> Result<fs::Metadata, OpenError> {
    fs::metadata(path).map_err(|source| OpenError::File {
        path: path.to_path_buf(),
        source,
    })
}

fn canonical(path: &Path) -> Result<PathBuf, OpenError> {
    fs::canonicalize(path).map_err(|source| OpenError::File {
        path: path.to_path_buf(),
        source,
    })
}
