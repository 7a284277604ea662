//! Reading `HEAD`, branches and revisions, and moving refs by compare-and-swap under git's own lock files.
//! A ref is never forced, no symbolic ref is ever written, and no reflog is begun where there was none.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use git2::{ErrorCode, Oid, ReferenceType};

use super::{RefError, Repository};
use crate::identity;

/// What a `HEAD` file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Head {
    /// A full ref name, which may not exist yet.
    Branch(String),
    Detached(Oid),
}

/// A lock of refs that is held longer than this is left behind, or somebody is at work with it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks at a lock.
const PAUSE: Duration = Duration::from_millis(10);

impl Repository {
    /// The short name of the branch that the user's checkout is on; `None` when detached.
    pub fn head_branch(&self) -> Result<Option<String>, RefError> {
        let Head::Branch(name) = read_head(&self.git_dir)? else {
            return Ok(None);
        };
        let short = name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned();
        match self.ref_target(&name)? {
            Some(_) => Ok(Some(short)),
            None => Err(RefError::Unborn { branch: short }),
        }
    }

    /// The commit that a revision names; `HEAD` and `@` are those of the checkout that the user stands in.
    pub fn resolve(&self, rev: &str) -> Result<Oid, RefError> {
        let repo = self.open_for_refs()?;
        let spelled = self.spell_out_head(rev)?;
        let failed = |source: git2::Error| {
            if matches!(source.code(), ErrorCode::NotFound | ErrorCode::InvalidSpec) {
                RefError::NoSuchRevision {
                    rev: rev.to_owned(),
                }
            } else {
                RefError::Resolve {
                    rev: rev.to_owned(),
                    source,
                }
            }
        };
        let object = repo.revparse_single(&spelled).map_err(failed)?;
        Ok(object.peel_to_commit().map_err(failed)?.id())
    }

    /// The commit of a branch (short name, or a full one that begins with `refs/`); `None`: no such branch.
    pub fn branch_tip(&self, branch: &str) -> Result<Option<Oid>, RefError> {
        self.ref_target(&full_name(branch)?)
    }

    /// Moves a branch (or a full ref name) to `new`, only if it is at `expected`; `None`: only if it is absent.
    pub fn set_branch(
        &self,
        branch: &str,
        new: Oid,
        expected: Option<Oid>,
    ) -> Result<(), RefError> {
        let name = full_name(branch)?;
        patiently(|| self.move_ref(&name, new, expected, None))
    }

    /// Deletes a ref (full name or short branch name) only if it is at `expected`; an absent one is an error.
    pub fn delete_ref(&self, name: &str, expected: Oid) -> Result<(), RefError> {
        let name = full_name(name)?;
        patiently(|| self.delete_ref_now(name.clone(), expected))
    }

    fn delete_ref_now(&self, name: String, expected: Oid) -> Result<(), RefError> {
        let _owner = self.act_as_owner();
        let repo = self.open_for_refs()?;
        let failed = |source: git2::Error| {
            if source.code() == ErrorCode::Locked {
                RefError::Locked {
                    path: lock_path(&self.common.join(&name)),
                    name: name.clone(),
                }
            } else {
                RefError::Git {
                    action: "delete",
                    name: name.clone(),
                    source,
                }
            }
        };
        let mut reference = match repo.find_reference(&name) {
            Ok(reference) => reference,
            Err(error) if error.code() == ErrorCode::NotFound => {
                return Err(RefError::Moved {
                    name,
                    expected: Some(expected),
                    found: None,
                });
            }
            Err(error) => return Err(failed(error)),
        };
        if reference.kind() == Some(ReferenceType::Symbolic) {
            return Err(RefError::Symbolic { name });
        }
        if reference.target() != Some(expected) {
            return Err(RefError::Moved {
                found: reference.target(),
                name,
                expected: Some(expected),
            });
        }
        if self.is_packed(&name) {
            // libgit2 compares once more under its lock with the value that was looked up.
            return reference.delete().map_err(failed);
        }
        self.lock_ref(&name)?.delete(expected)
    }

    /// Whether `packed-refs` names it too; when in doubt it does.
    fn is_packed(&self, name: &str) -> bool {
        match fs::read(self.common.join("packed-refs")) {
            Ok(bytes) => String::from_utf8_lossy(&bytes)
                .lines()
                .any(|line| line.ends_with(name)),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// As [`Repository::set_branch`], with a line for an existing reflog.
    pub(crate) fn move_ref(
        &self,
        name: &str,
        new: Oid,
        expected: Option<Oid>,
        reflog: Option<(&str, i64)>,
    ) -> Result<(), RefError> {
        let _owner = self.act_as_owner();
        let locked = self.lock_ref(name)?;
        if locked.current() != expected {
            return Err(RefError::Moved {
                name: name.to_owned(),
                expected,
                found: locked.current(),
            });
        }
        locked.publish(new)?;
        if let Some((message, when)) = reflog {
            append_reflog(
                &self.common.join("logs").join(name),
                expected,
                new,
                (message, when),
            )?;
        }
        Ok(())
    }

    /// Refuses a name that another ref stands in the way of: `feat` beside `feat/x`, in either order.
    pub(crate) fn refuse_clash(&self, name: &str) -> Result<(), RefError> {
        let repo = self.open_for_refs()?;
        let clash = |existing: String| RefError::Clash {
            name: name.to_owned(),
            existing,
        };
        let mut upper = name;
        while let Some((parent, _)) = upper.rsplit_once('/') {
            upper = parent;
            if upper.matches('/').count() >= 2 && repo.find_reference(upper).is_ok() {
                return Err(clash(upper.to_owned()));
            }
        }
        let failed = |source| RefError::Git {
            action: "list the refs below",
            name: name.to_owned(),
            source,
        };
        let mut below = repo.references_glob(&format!("{name}/*")).map_err(failed)?;
        match below.names().next() {
            Some(Ok(existing)) => Err(clash(existing.to_owned())),
            Some(Err(source)) => Err(failed(source)),
            None => Ok(()),
        }
    }

    /// The commit of a full ref name, loose or packed.
    pub(crate) fn ref_target(&self, name: &str) -> Result<Option<Oid>, RefError> {
        let repo = self.open_for_refs()?;
        match repo.find_reference(name) {
            Ok(reference) => match reference.target() {
                Some(target) => Ok(Some(target)),
                None => Err(RefError::Symbolic {
                    name: name.to_owned(),
                }),
            },
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(source) => Err(RefError::Git {
                action: "look up",
                name: name.to_owned(),
                source,
            }),
        }
    }

    fn open_for_refs(&self) -> Result<git2::Repository, RefError> {
        self.open().map_err(|source| RefError::Git {
            action: "open the repository",
            name: self.common.display().to_string(),
            source,
        })
    }

    /// libgit2 would take the `HEAD` of the main checkout, so the one of the user's own is put in.
    fn spell_out_head(&self, rev: &str) -> Result<String, RefError> {
        let rest = rev.strip_prefix("HEAD").or_else(|| rev.strip_prefix('@'));
        let Some(rest) = rest else {
            return Ok(rev.to_owned());
        };
        if !(rest.is_empty() || rest.starts_with(['~', '^', ':'])) {
            return Ok(rev.to_owned());
        }
        let oid = match read_head(&self.git_dir)? {
            Head::Detached(oid) => oid,
            Head::Branch(name) => {
                let target = self.ref_target(&name)?;
                target.ok_or_else(|| RefError::Unborn {
                    branch: name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned(),
                })?
            }
        };
        Ok(format!("{oid}{rest}"))
    }
}

/// Somebody's git holds a lock of refs for a moment now and then; one that stays is told.
pub(crate) fn patiently<T>(
    mut attempt: impl FnMut() -> Result<T, RefError>,
) -> Result<T, RefError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(RefError::Locked { .. }) if Instant::now() < until => thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
}

/// Reads the `HEAD` of a git directory.
pub(crate) fn read_head(git_dir: &Path) -> Result<Head, RefError> {
    let file = git_dir.join("HEAD");
    let failed = |source| RefError::File {
        action: "read",
        path: file.clone(),
        source,
    };
    let text = fs::read_to_string(&file).map_err(failed)?;
    let text = text.trim_end();
    if let Some(name) = text.strip_prefix("ref:") {
        return Ok(Head::Branch(name.trim_start().to_owned()));
    }
    match Oid::from_str(text) {
        Ok(oid) => Ok(Head::Detached(oid)),
        Err(source) => Err(RefError::Git {
            action: "read",
            name: file.display().to_string(),
            source,
        }),
    }
}

/// `refs/heads/<branch>` for a short name, a full name as it is; refuses what git would refuse.
pub(crate) fn full_name(branch: &str) -> Result<String, RefError> {
    let name = if branch.starts_with("refs/") {
        branch.to_owned()
    } else {
        format!("refs/heads/{branch}")
    };
    let odd = branch.starts_with('-') || branch == "HEAD" || !git2::Reference::is_valid_name(&name);
    if odd {
        return Err(RefError::InvalidName {
            name: branch.to_owned(),
        });
    }
    Ok(name)
}

/// Adds a line to a reflog that exists; a repository that keeps none gets none.
pub(crate) fn append_reflog(
    log: &Path,
    old: Option<Oid>,
    new: Oid,
    (message, when): (&str, i64),
) -> Result<(), RefError> {
    let old = old.unwrap_or(Oid::ZERO_SHA1);
    let line = format!(
        "{old} {new} {} <{}> {when} +0000\t{message}\n",
        identity::NAME,
        identity::EMAIL
    );
    let written = OpenOptions::new()
        .append(true)
        .open(log)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    match written {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(RefError::File {
            action: "write",
            path: log.to_path_buf(),
            source,
        }),
        _ => Ok(()),
    }
}

pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

pub(crate) fn lock_path(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    PathBuf::from(lock)
}
