//! Which toolchains a room gets: what somebody names, or what the base commit calls for. A repository can name
//! languages, never a path of the host; which folders are shown follows from the caller's environment alone.

mod find;
mod of_language;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use worktrees::Oid;

pub(super) use find::Finder;

use super::binds::Forbidden;
use super::environment::Environment;
use super::origin::{Given, Origin};
use super::places;
use super::program::Programs;
use super::room::Bound;
use super::scene::Scene;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::task::{Isolation, Net};
use crate::toolchain::{Language, Toolchain};

/// Folders below the top in which files that call for a toolchain are looked for.
const FOLDERS: usize = 64;

/// One word of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolWord {
    /// What the repository calls for.
    Auto,
    /// No toolchain.
    None,
    /// This one.
    Named(Language),
}

/// What one place says about toolchains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Those that the repository calls for.
    pub detect: bool,
    /// These.
    pub named: BTreeSet<Language>,
}

/// `none` beside other words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("\"none\" stands alone")]
pub struct NotAlone;

impl Choice {
    /// What several words say together; no word at all says `none`.
    pub fn of(words: &[ToolWord]) -> Result<Self, NotAlone> {
        if words.contains(&ToolWord::None) && words.len() > 1 {
            return Err(NotAlone);
        }
        let named = words.iter().filter_map(|word| match word {
            ToolWord::Named(language) => Some(*language),
            ToolWord::Auto | ToolWord::None => None,
        });
        Ok(Self {
            detect: words.contains(&ToolWord::Auto),
            named: named.collect(),
        })
    }
}

/// A language and why the room gets it.
type Wanted = Vec<(Language, Origin)>;

impl Scene<'_> {
    /// Lets the room have the toolchains of this task. What is not there costs nothing and is no error, unless a
    /// flag or the task names it.
    pub(super) fn add_toolchains(
        &self,
        base: &str,
        (isolation, net): (Isolation, &Net),
        environment: &mut Environment,
        (ro, rw): (&mut Bound, &Bound),
    ) -> Result<Vec<Toolchain>, Failure> {
        let mut toolchains = Vec::new();
        if !isolation.confined() {
            return Ok(toolchains);
        }
        for (language, origin) in self.wanted(base)? {
            let visible = ro.iter().chain(rw).map(|(path, _)| path.clone());
            let finder = Finder {
                caller: &self.host.caller,
                programs: Programs::new(&self.host.caller, self.repository.room_path(), visible),
                forbidden: without_secrets(self.forbidden(), &self.host.caller),
            };
            let demanded = matches!(origin, Origin::Flag(_) | Origin::TaskFile { .. });
            let Some(found) = finder.find(language, &origin) else {
                if demanded {
                    return Err(missing(language, &origin));
                }
                continue;
            };
            environment.search_first(&found.toolchain.search, &origin);
            environment.usually(&found.toolchain.env, &origin);
            if *net == Net::None {
                environment.usually(&found.toolchain.offline, &origin);
            }
            let programs = found.toolchain.programs.iter().cloned();
            ro.extend(programs.map(|path| (path, origin.clone())));
            toolchains.push(found.toolchain);
        }
        Ok(toolchains)
    }

    fn wanted(&self, base: &str) -> Result<Wanted, Failure> {
        let of = |wishes: &'_ super::Wishes| wishes.toolchain.clone();
        let usual = || {
            let choice = Choice {
                detect: true,
                named: BTreeSet::new(),
            };
            Given::default(choice)
        };
        if let Some(own) = self.layers.stronger().into_iter().find_map(of) {
            return self.expand(&own, base);
        }
        let user = of(self.layers.user).unwrap_or_else(usual);
        let Some(theirs) = of(self.layers.repository) else {
            return self.expand(&user, base);
        };
        let mut wanted = self.expand(&theirs, base)?;
        wanted.retain(|(language, _)| user.value.detect || user.value.named.contains(language));
        Ok(wanted)
    }

    fn expand(&self, choice: &Given<Choice>, base: &str) -> Result<Wanted, Failure> {
        let named = choice.value.named.iter();
        let mut wanted: Wanted = named
            .map(|language| (*language, choice.origin.clone()))
            .collect();
        if choice.value.detect && wanted.len() < Language::ALL.len() {
            let base = Oid::from_str(base).or_fail(Exit::Internal)?;
            let files = self
                .repository
                .files_near_top(base, FOLDERS)
                .or_fail(Exit::Usage)?;
            let known: BTreeSet<Language> = wanted.iter().map(|(language, _)| *language).collect();
            wanted.extend(detected(&files).filter(|(language, _)| !known.contains(language)));
        }
        wanted.sort_by_key(|(language, _)| *language);
        Ok(wanted)
    }
}

/// The same, and no folder of keys: what a cache or a variable names is not what a person opens.
fn without_secrets(mut forbidden: Forbidden, caller: &BTreeMap<OsString, OsString>) -> Forbidden {
    if let Some(home) = places::home(caller) {
        forbidden.add_secrets(&home);
    }
    forbidden
}

/// The parts of each toolchain that a room on this host would get: programs and caches.
pub fn here() -> Vec<(Language, Vec<PathBuf>)> {
    let caller = std::env::vars_os().collect();
    let finder = Finder {
        caller: &caller,
        programs: Programs::new(&caller, PathBuf::from("/proc"), []),
        forbidden: without_secrets(Forbidden::new(), &caller),
    };
    let parts = |language| {
        let found = finder.find(language, &Origin::Default);
        let parts = found.map(|found| {
            let caches = found.toolchain.layers.into_iter().map(|shown| shown.from);
            found.tools.into_iter().chain(caches).collect()
        });
        (language, parts.unwrap_or_default())
    };
    Language::ALL.map(parts).into()
}

/// What the files of a base call for, each with the file nearest to the top that does.
fn detected(files: &[Vec<u8>]) -> impl Iterator<Item = (Language, Origin)> {
    Language::ALL.into_iter().filter_map(move |language| {
        let marks = language.marks();
        let name = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
        let mark = files.iter().find(|path| {
            name(path).is_some_and(|name| marks.iter().any(|mark| mark.as_bytes() == name))
        })?;
        let file = worktrees::shown(mark);
        Some((language, Origin::Detected { file }))
    })
}

fn missing(language: Language, origin: &Origin) -> Failure {
    Failure::usage(format!(
        "no {} toolchain is here, though {origin} asks for one: neither a program on your PATH nor a cache",
        language.as_str()
    ))
    .advise("`airlock doctor` lists the toolchains that are found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_stands_alone_and_nothing_is_none() {
        let rust = ToolWord::Named(Language::Rust);
        assert_eq!(Choice::of(&[ToolWord::None, rust]), Err(NotAlone));
        assert_eq!(Choice::of(&[]), Choice::of(&[ToolWord::None]));
        let both = Choice::of(&[ToolWord::Auto, rust]).unwrap();
        assert!(both.detect && both.named.contains(&Language::Rust));
    }

    #[test]
    fn files_call_for_toolchains_by_their_whole_name() {
        let files = ["a/package.json", "b.go.mod", "my-Cargo.toml", "setup.py"];
        let files: Vec<Vec<u8>> = files.iter().map(|name| name.as_bytes().to_vec()).collect();
        let found: Vec<String> = detected(&files)
            .map(|(language, origin)| format!("{}: {origin}", language.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                "node: a/package.json of the base commit",
                "python: setup.py of the base commit"
            ]
        );
    }
}
