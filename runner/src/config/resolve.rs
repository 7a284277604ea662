//! All places to one [`Spec`]: every choice is made here, once, and what cannot be is refused before
//! anything is made. Reads the repository; changes nothing but an agreement that the user gives.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use worktrees::Repository;

use super::flags::Flags;
use super::layers::{Layers, repository_file, user_file};
use super::scene::Scene;
use super::wishes::Wishes;
use super::{agents, widening};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::StateRoot;
use crate::spec_file;
use crate::task::{Secrets, Spec};
use crate::trust::Trust;

/// What somebody asks for on the command line.
#[derive(Debug, Clone)]
pub struct Request {
    /// The flags.
    pub flags: Flags,
    /// The folder that relative paths start at.
    pub directory: PathBuf,
}

/// Resolves a request to a task. `ask` puts a question to a person; `None`: nobody can be asked.
pub fn resolve(
    request: Request,
    repository: &Repository,
    root: &StateRoot,
    ask: &dyn Fn(&str) -> Option<bool>,
) -> Result<(Spec, Secrets), Failure> {
    let directory = std::path::absolute(&request.directory).or_fail(Exit::Usage)?;
    let flags = request.flags.wishes(&directory)?;
    let task = match &request.flags.spec {
        Some(path) => spec_file::read(path, &directory)?,
        None => Wishes::default(),
    };
    let caller: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let user = user_file(&caller)?;
    let revision = [&flags, &task, &user]
        .into_iter()
        .find_map(|wishes| wishes.base.as_ref());
    let base = repository
        .resolve(revision.map_or("HEAD", |base| &base.value))
        .or_fail(Exit::Usage)?;
    let theirs = repository_file(repository, base, &caller)?;
    let layers = Layers {
        flags: &flags,
        task: &task,
        user: &user,
        repository: &theirs,
    };
    let scene = Scene {
        layers,
        repository,
        root,
        caller: &caller,
        built_in: agents::built_in(),
    };
    scene.agree(ask)?;
    scene.spec(base.to_string(), seconds())
}

impl Scene<'_> {
    /// Makes sure that the user agrees to what the repository's file asks for.
    fn agree(&self, ask: &dyn Fn(&str) -> Option<bool>) -> Result<(), Failure> {
        let asks = widening::asks(self.layers.repository);
        let agent = self
            .layers
            .pick(|wishes| wishes.agent.as_ref())
            .map(|agent| agent.value.as_str());
        let needed = widening::needed(&asks, self.layers.user, &self.layers.stronger(), agent);
        let trust = Trust::of(self.root);
        let repository = self.repository.common_dir();
        if needed.is_empty() || trust.covers(repository, &asks)? {
            return Ok(());
        }
        let list: Vec<String> = asks.iter().map(|ask| format!("  {ask}")).collect();
        let list = list.join("\n");
        let question = format!(
            "airlock.toml of {} asks for more than you allow:\n{list}\nAllow it?",
            self.repository.name()
        );
        match ask(&question) {
            Some(true) => {
                trust.agree(repository, &asks, seconds())?;
                Ok(())
            }
            Some(false) => Err(Failure::usage("you did not allow what airlock.toml asks for")
                .advise("flags of your own beat the file, such as --net none")),
            None => Err(Failure::usage(format!(
                "airlock.toml asks for more than you allow, and nobody can be asked:\n{list}"
            ))
            .advise("look at it with `airlock trust` and agree with `airlock trust --yes`, or give the flags yourself")),
        }
    }
}

fn seconds() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
