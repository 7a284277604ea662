//! The user's configuration folder and file. Reads the file only when it is the user's own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A larger configuration is a mistake.
const LARGEST: u64 = 1 << 20;

/// The user's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Somebody else could have written it.
    #[error("{} {problem}: refusing to take orders from it", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// Who could have.
        problem: String,
    },
    /// Too large to be a configuration.
    #[error("{} is larger than {LARGEST} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

/// Where the user's configuration lives: `$XDG_CONFIG_HOME/airlock`, else `~/.config/airlock`.
pub(super) fn folder(caller: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = caller.get(OsStr::new(name)).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))
        .map(|config| config.join("airlock"))
}

/// The folder of the user's configuration, as this process's environment has it.
pub fn own_folder() -> Option<PathBuf> {
    folder(&std::env::vars_os().collect())
}

/// The home folder of the caller.
pub(super) fn home(caller: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    caller
        .get(OsStr::new("HOME"))
        .map(PathBuf::from)
        .filter(|home| home.is_absolute())
}

/// The bytes of the user's file; none when there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    let fail = |source| FileError::Read {
        path: path.to_owned(),
        source,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(fail(error)),
    };
    let meta = file.metadata().map_err(fail)?;
    let us = nix::unistd::geteuid().as_raw();
    let problem = if meta.uid() != us && meta.uid() != 0 {
        Some(format!("belongs to uid {}", meta.uid()))
    } else if meta.mode() & 0o002 != 0 {
        Some("can be written by everybody".to_owned())
    } else {
        None
    };
    if let Some(problem) = problem {
        return Err(FileError::NotOurs {
            path: path.to_owned(),
            problem,
        });
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    if bytes.len() as u64 > LARGEST {
        return Err(FileError::TooLarge {
            path: path.to_owned(),
        });
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn caller(pairs: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
        pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    #[test]
    fn the_folder_follows_the_base_directory_rules() {
        let at = |pairs: &[(&str, &str)]| folder(&caller(pairs));
        assert_eq!(
            at(&[("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")]),
            Some("/x/airlock".into())
        );
        assert_eq!(
            at(&[("XDG_CONFIG_HOME", "x"), ("HOME", "/h")]),
            Some("/h/.config/airlock".into())
        );
        assert_eq!(at(&[]), None);
    }

    #[test]
    fn a_file_that_everybody_can_write_gives_no_orders() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        assert!(read(&path).unwrap().is_none());
        std::fs::write(&path, "[task]\n").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"[task]\n");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(read(&path), Err(FileError::NotOurs { .. })));
    }
}
