//! Which untracked paths git would not add. Bytes are given to this module; it opens nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use gix_ignore::Search;
use gix_ignore::glob::pattern::Case;
use gix_ignore::search::Ignore;

use super::Settings;

/// The rules in force; those of folders are pushed and popped.
#[derive(Debug)]
pub(crate) struct IgnoreRules {
    search: Search,
    case: Case,
}

impl IgnoreRules {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut rules = Self {
            search: Search::default(),
            case: if settings.ignore_case {
                Case::Fold
            } else {
                Case::Sensitive
            },
        };
        rules.add(&settings.user_excludes, PathBuf::from("user"));
        rules.add(&settings.local_excludes, PathBuf::from("exclude"));
        rules
    }

    /// Adds the rules of a folder (its path ends in `/`, the root's is empty).
    pub(crate) fn push(&mut self, folder: &[u8], bytes: &[u8]) {
        let mut source = folder.to_vec();
        source.extend_from_slice(b".gitignore");
        self.add(bytes, PathBuf::from(OsStr::from_bytes(&source)));
    }

    /// Takes back the rules that were pushed last.
    pub(crate) fn pop(&mut self) {
        self.search.patterns.pop();
    }

    /// Whether a path whose parent folders are not ignored is ignored itself.
    pub(crate) fn covers(&self, path: &[u8], folder: bool) -> bool {
        self.search
            .pattern_matching_relative_path(path.into(), Some(folder), self.case)
            .is_some_and(|found| !found.pattern.is_negative())
    }

    fn add(&mut self, bytes: &[u8], source: PathBuf) {
        self.search
            .add_patterns_buffer(bytes, source, Some(Path::new("")), Ignore::default())
            .expect("every byte string is a path on unix");
    }
}
