//! The places in order of strength, and the two ways to choose between them: the strongest word
//! wins, or the repository may narrow. Also reads the two configuration files.

use std::collections::BTreeMap;
use std::ffi::OsString;

use worktrees::{Oid, Repository};

use super::agents::{self, Agent};
use super::document::Source;
use super::file;
use super::origin::Given;
use super::places;
use super::wishes::Wishes;
use crate::exit::{Exit, Failure, OrFail as _};

/// Name of the repository's file.
const REPOSITORY_FILE: &str = "airlock.toml";

/// What the two configuration files say.
#[derive(Debug, Default)]
pub struct Files {
    /// The user's own.
    pub user: Wishes,
    /// The repository's, from the base commit.
    pub repository: Wishes,
}

/// Reads the user's file alone.
pub(super) fn user_file(caller: &BTreeMap<OsString, OsString>) -> Result<Wishes, Failure> {
    let Some(path) = places::folder(caller).map(|folder| folder.join("config.toml")) else {
        return Ok(Wishes::default());
    };
    let Some(bytes) = places::read(&path).or_fail(Exit::Usage)? else {
        return Ok(Wishes::default());
    };
    let home = places::home(caller);
    file::read(Source::User(path), &bytes, home.as_deref()).or_fail(Exit::Usage)
}

/// Reads the repository's file as a commit has it.
pub(super) fn repository_file(
    repository: &Repository,
    base: Oid,
    caller: &BTreeMap<OsString, OsString>,
) -> Result<Wishes, Failure> {
    let Some(bytes) = repository
        .file_at(base, REPOSITORY_FILE)
        .or_fail(Exit::Usage)?
    else {
        return Ok(Wishes::default());
    };
    let home = places::home(caller);
    file::read(Source::Repository, &bytes, home.as_deref())
        .or_fail(Exit::Usage)
        .map_err(|failure| {
            failure.advise(format!(
                "the file is read from the base commit {base}, not from the checkout"
            ))
        })
}

/// Reads both files for the environment of this process.
pub fn files(repository: &Repository, base: Oid) -> Result<Files, Failure> {
    let caller = std::env::vars_os().collect();
    Ok(Files {
        user: user_file(&caller)?,
        repository: repository_file(repository, base, &caller)?,
    })
}

/// The agents that the user can name anywhere: those that come with the program, with what the
/// user's own file changes, and the user's own.
pub fn agents_of_the_user() -> Result<BTreeMap<String, Given<Agent>>, Failure> {
    let mut agents = agents::built_in();
    agents.extend(user_file(&std::env::vars_os().collect())?.agents);
    Ok(agents)
}

/// All places of one task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layers<'w> {
    pub(super) flags: &'w Wishes,
    pub(super) task: &'w Wishes,
    pub(super) user: &'w Wishes,
    pub(super) repository: &'w Wishes,
}

impl<'w> Layers<'w> {
    /// The places that speak for this one task.
    pub(super) fn stronger(&self) -> [&'w Wishes; 2] {
        [self.flags, self.task]
    }

    /// All places, strongest first.
    pub(super) fn all(&self) -> [&'w Wishes; 4] {
        [self.flags, self.task, self.user, self.repository]
    }

    /// The strongest word.
    pub(super) fn pick<T>(
        &self,
        of: impl Fn(&'w Wishes) -> Option<&'w Given<T>>,
    ) -> Option<&'w Given<T>> {
        self.all().into_iter().find_map(of)
    }

    /// A task's own word, else the user's or the default, narrowed by the repository's. A repository
    /// alone may set what nobody bounds; beyond a default it has to be trusted, which is checked
    /// elsewhere.
    pub(super) fn narrow<T, R: Ord>(
        &self,
        of: impl Fn(&'w Wishes) -> Option<&'w Given<T>>,
        width: impl Fn(&T) -> R,
    ) -> Option<&'w Given<T>> {
        if let Some(own) = self.stronger().into_iter().find_map(&of) {
            return Some(own);
        }
        match (of(self.user), of(self.repository)) {
            (Some(user), Some(repository)) if width(&repository.value) < width(&user.value) => {
                Some(repository)
            }
            (Some(user), _) => Some(user),
            (None, repository) => repository,
        }
    }

    /// Everything that every place lists, weakest first.
    pub(super) fn lists<T>(&self, of: impl Fn(&'w Wishes) -> &'w [Given<T>]) -> Vec<&'w Given<T>> {
        self.all().into_iter().rev().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Origin;

    fn pids(count: u64, origin: Origin) -> Wishes {
        let mut wishes = Wishes::default();
        wishes.limits.pids = Some(Given::new(count, origin));
        wishes
    }

    #[test]
    fn a_repository_narrows_and_a_flag_decides() {
        let none = Wishes::default();
        let flag = pids(9_000, Origin::Flag("--pids"));
        let user = pids(
            100,
            Origin::User {
                file: "/c".into(),
                line: 1,
            },
        );
        let small = pids(50, Origin::Repository { line: 1 });
        let large = pids(500, Origin::Repository { line: 1 });
        let chosen = |flags, user, repository| {
            let layers = Layers {
                flags,
                task: &none,
                user,
                repository,
            };
            layers
                .narrow(|wishes| wishes.limits.pids.as_ref(), |pids| *pids)
                .map(|pids| pids.value)
        };
        assert_eq!(chosen(&flag, &user, &small), Some(9_000));
        assert_eq!(chosen(&none, &user, &small), Some(50));
        assert_eq!(chosen(&none, &user, &large), Some(100));
        assert_eq!(chosen(&none, &none, &large), Some(500));
        assert_eq!(chosen(&none, &none, &none), None);
    }
}
