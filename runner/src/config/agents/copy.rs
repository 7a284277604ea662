//! Files of the user's that a room begins with: an agent's instructions, never what signs somebody in.
//! A name or a content that looks like a credential is refused. Reads; copies nothing itself.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// A larger file is no instruction, in bytes.
const LARGEST: u64 = 256 << 10;

/// Words in the names of files that hold credentials.
const NAMES: [&str; 8] = [
    "auth",
    "credential",
    "oauth",
    "token",
    "secret",
    "key",
    "cookie",
    ".env",
];

/// Folders and files of credentials.
const PLACES: [&str; 6] = [
    ".ssh/",
    ".aws/",
    ".gnupg/",
    ".netrc",
    ".npmrc",
    ".git-credentials",
];

/// How well-known credentials begin.
const BEGINNINGS: [&str; 10] = [
    "sk-ant-",
    "sk-proj-",
    "sk-or-",
    "ghp_",
    "gho_",
    "github_pat_",
    "AKIA",
    "xoxb-",
    "AIza",
    "PRIVATE KEY-----",
];

/// A file that no room begins with.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is not what instructions look like.
    #[error("{} is not copied into a room: {problem}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: &'static str,
    },
}

/// Refuses a path that is not below HOME, or whose name says that it signs somebody in.
pub(super) fn check_name(path: &str) -> Result<(), String> {
    super::super::file::note_file(path).map_err(|_not_within| {
        format!("{path:?} is not a path below your home, such as .x/NOTES.md")
    })?;
    let lower = path.to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or_default();
    let secret = PLACES.iter().any(|part| lower.contains(part))
        || NAMES.iter().any(|word| name.contains(word));
    if secret {
        return Err(format!(
            "{path:?} looks like credentials, which no room gets"
        ));
    }
    Ok(())
}

/// The text of a file that may be copied; none when there is no such file.
pub fn fit_to_copy(path: &Path) -> Result<Option<String>, CopyError> {
    let fail = |source| CopyError::Read {
        path: path.to_owned(),
        source,
    };
    let unfit = |problem| CopyError::Unfit {
        path: path.to_owned(),
        problem,
    };
    let kind = match std::fs::metadata(path) {
        Ok(kind) => kind,
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
    if !kind.is_file() {
        return Err(unfit("it is no file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(fail)?;
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    if bytes.len() as u64 > LARGEST {
        return Err(unfit("it is larger than 256 KiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_not_text| unfit("it is no UTF-8 text"))?;
    if BEGINNINGS.iter().any(|beginning| text.contains(beginning)) {
        return Err(unfit("it holds what looks like a key"));
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_credentials_are_known() {
        for bad in [
            ".codex/auth.json",
            ".claude/.credentials.json",
            ".gemini/oauth_creds.json",
            ".ssh/config",
            ".aws/x",
            ".netrc",
            ".x/.env",
            ".x/API_KEY",
            "../x",
            "/etc/passwd",
        ] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        for good in [
            ".claude/CLAUDE.md",
            ".codex/AGENTS.md",
            ".config/x/settings.json",
        ] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn contents_of_credentials_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            fit_to_copy(&path).map_err(|error| error.to_string())
        };
        assert_eq!(
            file("good", b"Be brief.").unwrap().as_deref(),
            Some("Be brief.")
        );
        assert_eq!(fit_to_copy(&folder.path().join("absent")).unwrap(), None);
        assert!(
            fit_to_copy(folder.path())
                .unwrap_err()
                .to_string()
                .ends_with("it is no file")
        );
        let large = vec![b'x'; 300 << 10];
        for bad in [&b"key: sk-ant-api03-x"[..], b"\xff\xfe", &large] {
            assert!(
                file("bad", bad)
                    .unwrap_err()
                    .contains("is not copied into a room")
            );
        }
    }
}
