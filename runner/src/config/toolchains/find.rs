//! Looks for the programs and the caches of a toolchain, as the caller's shell would find them. Takes named
//! sub-folders only; starts nothing, and reads no file but where a tool keeps the place of its cache.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::of_language;
use crate::config::binds::Forbidden;
use crate::config::origin::{Given, Origin};
use crate::config::places;
use crate::config::program::Programs;
use crate::hex;
use crate::toolchain::{Language, Shown, Toolchain};

/// A longer file of settings is not looked into.
const LONGEST: u64 = 256 << 10;

/// This host, as far as toolchains are concerned.
pub(in crate::config) struct Finder<'h> {
    /// The environment of whoever asks.
    pub(in crate::config) caller: &'h BTreeMap<OsString, OsString>,
    /// Where programs are.
    pub(in crate::config) programs: Programs,
    /// What no room shows.
    pub(in crate::config) forbidden: Forbidden,
}

/// A toolchain, and its programs.
pub(in crate::config) struct Found {
    /// What the room shows for it.
    pub(in crate::config) toolchain: Toolchain,
    /// The programs themselves, as the caller has them.
    pub(in crate::config) tools: Vec<PathBuf>,
}

impl Finder<'_> {
    /// A toolchain as it is here; none when there is nothing of it.
    pub(in crate::config) fn find(&self, language: Language, origin: &Origin) -> Option<Found> {
        let mut found = Found {
            toolchain: Toolchain {
                language,
                origin: origin.to_string(),
                programs: Vec::new(),
                layers: Vec::new(),
                search: Vec::new(),
                env: BTreeMap::new(),
                offline: BTreeMap::new(),
                fingerprint: String::new(),
            },
            tools: Vec::new(),
        };
        of_language::look(self, language, &mut found);
        found.toolchain.fingerprint = fingerprint(&found);
        let nothing = found.tools.is_empty() && found.toolchain.layers.is_empty();
        (!nothing).then_some(found)
    }

    /// The caller's home folder.
    pub(super) fn home(&self) -> Option<PathBuf> {
        places::home(self.caller)
    }

    /// An absolute path that the caller's environment names.
    pub(super) fn named(&self, variable: &str) -> Option<PathBuf> {
        let value = self.caller.get(OsStr::new(variable)).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    }

    /// The path of a variable, else one below HOME.
    pub(super) fn named_or(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        self.named(variable)
            .or_else(|| Some(self.home()?.join(below_home)))
    }

    /// A folder of caches: `$XDG_CACHE_HOME/NAME`, else `~/.cache/NAME`.
    pub(super) fn cache(&self, name: &str) -> Option<PathBuf> {
        let caches = self.named_or("XDG_CACHE_HOME", ".cache")?;
        Some(caches.join(name))
    }

    /// The value of `key = value` in a file of settings.
    pub(super) fn setting(file: &Path, key: &str) -> Option<String> {
        let known = fs::metadata(file).ok()?;
        if !known.is_file() || known.len() > LONGEST {
            return None;
        }
        let text = fs::read_to_string(file).ok()?;
        let value = text.lines().rev().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })?;
        Some(value.trim_matches('"').to_owned())
    }

    /// Adds a program by name, with what it needs.
    pub(super) fn program(&self, name: &str, found: &mut Found) {
        if let Some((tool, program)) = self.programs.tool(OsStr::new(name)) {
            found.tools.push(tool);
            self.installed(&program.shown, program.search, found);
        }
    }

    /// Adds what is read at its own place, and folders to search.
    pub(super) fn installed(&self, shown: &[PathBuf], search: Vec<PathBuf>, found: &mut Found) {
        let shown: Option<Vec<PathBuf>> = shown.iter().map(|path| self.may_show(path)).collect();
        let Some(shown) = shown else { return };
        for path in shown {
            if !found.toolchain.programs.contains(&path) {
                found.toolchain.programs.push(path);
            }
        }
        for folder in search {
            // One that is no text could not be recorded.
            if !found.toolchain.search.contains(&folder) && folder.to_str().is_some() {
                found.toolchain.search.push(folder);
            }
        }
    }

    /// Adds a folder or file that the room has at `inside` of its HOME, if it is here.
    pub(super) fn layer(
        &self,
        from: Option<PathBuf>,
        inside: &str,
        private: bool,
        found: &mut Found,
    ) {
        let own = from.filter(|from| !led_away(from));
        let Some(from) = own.and_then(|from| self.may_show(&from)) else {
            return;
        };
        let home = sandbox::room_environment();
        let Some(home) = home.get("HOME").map(Path::new) else {
            return;
        };
        found.toolchain.layers.push(Shown {
            from,
            at: home.join(inside),
            private_layer: private,
        });
    }

    /// A path as the kernel finds it, if it is here and a room may have it.
    fn may_show(&self, path: &Path) -> Option<PathBuf> {
        let wish = Given::new(path.to_owned(), Origin::Default);
        let path = self.forbidden.check(&wish).ok()?;
        // A path that is no text could not be recorded.
        path.to_str().is_some().then_some(path)
    }
}

/// Whether a link stands in place of a cache and leads out of the folder that it stands in. Folders above may be links.
fn led_away(cache: &Path) -> bool {
    let is_link = fs::symlink_metadata(cache).is_ok_and(|facts| facts.is_symlink());
    let around = cache.parent().map(fs::canonicalize);
    match (is_link, around, fs::canonicalize(cache)) {
        (false, _, _) => false,
        (true, Some(Ok(around)), Ok(real)) => !real.starts_with(around),
        (true, _, _) => true,
    }
}

/// Which programs these are: path, size and time of each file, and what stands in folders of toolchains.
fn fingerprint(found: &Found) -> String {
    let mut hash = Sha256::new();
    let mut facts = |path: &Path| {
        if let Ok(facts) = fs::metadata(path) {
            let known = (facts.len(), facts.mtime(), facts.mtime_nsec());
            hash.update(format!("{}\0{known:?}\0", path.display()));
        }
    };
    for tool in &found.tools {
        facts(&fs::canonicalize(tool).unwrap_or_else(|_gone| tool.clone()));
    }
    let fixed = found.toolchain.layers.iter();
    for shown in fixed.filter(|shown| !shown.private_layer) {
        let inner = fs::read_dir(&shown.from).into_iter().flatten().flatten();
        let mut inner: Vec<PathBuf> = inner.map(|entry| entry.path()).collect();
        inner.sort_unstable();
        facts(&shown.from);
        for path in &inner {
            facts(path);
        }
    }
    hex::of(hash.finalize().get(..16).unwrap_or_default())
}
