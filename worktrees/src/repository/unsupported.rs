//! Checks of a base commit that come before any side effect. Never changes anything.

use std::path::Path;

use git2::Oid;

use super::{Format, OpenError, Repository};
use crate::shown;

/// Names at the root of a tree that a room puts its own folders at.
pub(crate) const RESERVED: [&str; 2] = [".bg", ".sub"];

impl Repository {
    /// Refuses a base that could only be handled with something silently wrong: `working-tree-encoding`,
    /// objects that a partial clone has left out, tracked `.bg` or `.sub`.
    pub fn refuse_unsupported(&self, base: Oid) -> Result<(), OpenError> {
        let unreadable = |source| OpenError::Base { base, source };
        let repo = self.open().map_err(|source| OpenError::Open {
            path: self.common_dir().to_path_buf(),
            source,
        })?;
        let entries = self.tree_entries(base).map_err(unreadable)?;
        let partial = Format::read(self.common_dir())?.partial;
        let odb = repo.odb().map_err(|source| OpenError::Open {
            path: self.common_dir().to_path_buf(),
            source,
        })?;
        for entry in &entries {
            if let Some(name) = reserved(&entry.path) {
                return Err(OpenError::ReservedName {
                    base,
                    name: name.to_owned(),
                });
            }
            if partial && entry.mode != 0o160_000 && !odb.exists(entry.oid) {
                return Err(self.unsupported(format!(
                    "a partial clone, and {} is not there",
                    shown(&entry.path)
                )));
            }
            if is_attributes(&entry.path) && entry.mode & 0o170_000 == 0o100_000 {
                let bytes = self.blob(entry.oid).map_err(unreadable)?;
                self.refuse_encoding(&bytes, &shown(&entry.path))?;
            }
        }
        let local = self.common_dir().join("info/attributes");
        match std::fs::read(&local) {
            Ok(bytes) => self.refuse_encoding(&bytes, &local.display().to_string()),
            Err(_) => Ok(()),
        }
    }

    fn refuse_encoding(&self, bytes: &[u8], place: &str) -> Result<(), OpenError> {
        if asks_for_encoding(bytes) {
            return Err(self.unsupported(format!("working-tree-encoding (in {place})")));
        }
        Ok(())
    }

    fn unsupported(&self, feature: String) -> OpenError {
        OpenError::Unsupported {
            path: self
                .checkout()
                .unwrap_or(Path::new(self.common_dir()))
                .to_path_buf(),
            feature,
        }
    }
}

/// The reserved name that a tracked path begins with.
pub(crate) fn reserved(path: &[u8]) -> Option<&'static str> {
    let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    RESERVED.into_iter().find(|name| name.as_bytes() == first)
}

fn is_attributes(path: &[u8]) -> bool {
    path == b".gitattributes" || path.ends_with(b"/.gitattributes")
}

/// Whether any line sets an encoding other than UTF-8, which is what git does anyway.
fn asks_for_encoding(bytes: &[u8]) -> bool {
    const KEY: &[u8] = b"working-tree-encoding=";
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii_start().starts_with(b"#"))
        .flat_map(|line| line.split(u8::is_ascii_whitespace).skip(1))
        .filter_map(|word| word.strip_prefix(KEY))
        .any(|name| !name.eq_ignore_ascii_case(b"utf-8") && !name.eq_ignore_ascii_case(b"utf8"))
}

#[cfg(test)]
mod tests {
    use super::{asks_for_encoding, reserved};

    #[test]
    fn finds_encodings_but_not_comments_or_utf8() {
        assert!(asks_for_encoding(
            b"*.txt text working-tree-encoding=UTF-16LE\n"
        ));
        assert!(!asks_for_encoding(
            b"*.txt working-tree-encoding=utf-8\n# a working-tree-encoding=x\n"
        ));
        assert!(!asks_for_encoding(b"*.txt text eol=lf"));
    }

    #[test]
    fn reserved_names_only_at_the_root() {
        assert_eq!(reserved(b".bg/x"), Some(".bg"));
        assert_eq!(reserved(b".sub"), Some(".sub"));
        assert_eq!(reserved(b"a/.sub"), None);
        assert_eq!(reserved(b".bgx"), None);
    }
}
