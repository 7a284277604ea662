//! The repository that a command stands in, and what is kept for it. Finds; changes nothing but
//! our own folders.

use std::path::PathBuf;

use worktrees::{Oid, RefError, Repository};

use crate::cli::Globals;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::{StateFolder, StateRoot};
use crate::store::Store;
use crate::task::TaskId;
use crate::view::TaskView;

/// A repository with its state folder.
#[derive(Debug, Clone)]
pub struct Place {
    /// The repository.
    pub repository: Repository,
    /// The state root of the user.
    pub root: StateRoot,
    /// The state folder of the repository.
    pub folder: StateFolder,
}

impl Place {
    /// Finds the repository from the folder that the user stands in.
    pub fn find(globals: &Globals) -> Result<Self, Failure> {
        let repository = repository(globals)?;
        let root = StateRoot::from_env()?;
        let folder = root.folder(repository.name(), repository.common_dir())?;
        Ok(Self {
            repository,
            root,
            folder,
        })
    }

    /// The events so far; none when no task was ever started here.
    pub fn store(&self) -> Result<Option<Store>, Failure> {
        Ok(Store::open_read_only(&self.folder.database())?)
    }

    /// The task whose id is, or uniquely begins with, `prefix`.
    pub fn task(&self, prefix: &str) -> Result<TaskView, Failure> {
        let missing = || missing(prefix, self.repository.name());
        let store = self.store()?.ok_or_else(missing)?;
        let candidates = store.tasks(prefix)?;
        let id = choose(prefix, &candidates, self.repository.name())?;
        view(&store, id)?.ok_or_else(missing)
    }
}

/// The repository at or above the folder that the command works in.
pub fn repository(globals: &Globals) -> Result<Repository, Failure> {
    Repository::discover(&here(globals)).map_err(|error| {
        let advice = advice_for_open(&error);
        Failure::caused(Exit::Usage, &error).advise(advice)
    })
}

/// The one of `candidates`, which all begin with `prefix`, that is meant.
pub fn choose<'ids>(
    prefix: &str,
    candidates: &'ids [TaskId],
    repository: &str,
) -> Result<&'ids TaskId, Failure> {
    let exact = candidates.iter().find(|id| id.as_str() == prefix);
    match (exact, candidates) {
        (Some(id), _) | (None, [id]) => Ok(id),
        (None, []) => Err(missing(prefix, repository)),
        (None, several) => Err(ambiguous(prefix, several)),
    }
}

fn missing(prefix: &str, repository: &str) -> Failure {
    let what = format!("no task {prefix:?} in {repository}");
    Failure::new(Exit::NotFound, what)
        .advise("`airlock ls --all` lists the tasks of this repository")
}

/// Folds one task.
pub fn view(store: &Store, id: &TaskId) -> Result<Option<TaskView>, Failure> {
    TaskView::fold(&store.of_task(id, 0)?).or_fail(Exit::Internal)
}

/// The commit that a revision names.
pub fn resolve(repository: &Repository, revision: &str) -> Result<Oid, Failure> {
    repository.resolve(revision).map_err(|error| {
        if matches!(error, RefError::NoSuchRevision { .. }) {
            Failure::caused(Exit::NotFound, &error)
                .advise("`git log` and `git branch -a` show what there is")
        } else if matches!(error, RefError::Unborn { .. }) {
            Failure::caused(Exit::Usage, &error)
                .advise("make a first commit, such as with git commit --allow-empty -m start")
        } else {
            Failure::caused(Exit::Usage, &error)
        }
    })
}

/// The folder that the command works in.
pub fn here(globals: &Globals) -> PathBuf {
    globals
        .directory
        .clone()
        .unwrap_or_else(|| PathBuf::from("."))
}

fn ambiguous(prefix: &str, several: &[TaskId]) -> Failure {
    let names: Vec<&str> = several.iter().map(TaskId::as_str).collect();
    Failure::usage(format!("{prefix:?} could be any of {}", names.join(", ")))
        .advise("give more of the id")
}

fn advice_for_open(error: &worktrees::OpenError) -> &'static str {
    use worktrees::OpenError::{NotARepository, Unreachable};
    if matches!(error, NotARepository { .. } | Unreachable { .. }) {
        "run it in a git repository, or name one with -C DIR"
    } else {
        "`airlock doctor` says what this host and repository support"
    }
}
