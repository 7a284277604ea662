//! Everything that a resolution looks at, and the [`Spec`] that comes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use sandbox::egress::Credential;
use worktrees::Repository;

use super::agents::{Agent, PROMPT_FILE};
use super::command::Chosen;
use super::defaults::BRANCH;
use super::environment::Environment;
use super::layers::Layers;
use super::origin::{Given, Origin};
use super::resolve::Host;
use super::room::Bound;
use super::wishes::Wishes;
use super::{branch, key_place, profile, protect};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::task::{Cleanup, Secrets, Spec, TaskId};

/// Everything that a resolution looks at.
pub(super) struct Scene<'s> {
    pub(super) layers: Layers<'s>,
    pub(super) repository: &'s Repository,
    pub(super) host: &'s Host,
    pub(super) built_in: BTreeMap<String, Given<Agent>>,
}

impl Scene<'_> {
    /// The task, with the base given as an object id and the time in seconds since 1970.
    pub(super) fn spec(&self, base: String, now: i64) -> Result<(Spec, Secrets), Failure> {
        let layers = &self.layers;
        let task = self.task_id(now)?;
        let attempts = self.attempts();
        let isolation = self.isolation();
        let agent = self.named_profile();
        let way = self.way(agent, isolation.value)?;
        let mut chosen = self.agent(attempts, &way)?;
        let net = self.reach(&way, agent, isolation.value)?;
        let (credentials, keys) = self.credentials(&net.value, &way)?;
        let mut environment = self.environment(agent, &way)?;
        self.is_installed(&chosen, &environment)?;
        let confined = isolation.value.confined();
        let copies = self.copies(agent.filter(|_| confined))?;
        let (mut ro, rw) = self.binds()?;
        let named: BTreeSet<PathBuf> = ro.iter().map(|(path, _)| path.clone()).collect();
        if isolation.value.confined() {
            self.show_program(&mut chosen, &mut environment, (&mut ro, &rw));
        }
        let room = (isolation.value, &net.value);
        let toolchains = self.add_toolchains(&base, room, &mut environment, (&mut ro, &rw))?;
        let setup = self.setup(&base, isolation.value, &toolchains)?;
        let landing = self.landing(isolation.value)?;
        let mut origins = self.origins(&chosen, &environment, &net.origin);
        origins.extend(of_credentials(&credentials));
        let copied = copies
            .iter()
            .map(|(name, _, origin)| (name, origin.to_string()));
        origins.extend(of_paths("copy", copied));
        for (kind, bound) in [("ro", &ro), ("rw", &rw)] {
            let shown = bound
                .iter()
                .map(|(path, origin)| (path.display(), origin.to_string()));
            origins.extend(of_paths(kind, shown));
        }
        let paths = |bound: Bound| bound.into_iter().map(|(path, _)| path).collect();
        let spec = Spec {
            run: task.to_string(),
            goal: self.goal(&chosen),
            branch: self.branch(&task, &chosen)?,
            agent: chosen.name,
            argv: chosen.argv,
            isolation: isolation.value,
            base,
            into: landing.into,
            merge: landing.merge,
            merge_allowed: landing.allowed,
            allow_unconfined: landing.unconfined,
            cleanup: self.cleanup(),
            attempts,
            net: net.value,
            credentials,
            toolchains,
            setup,
            installed: beyond(&named, &ro),
            ro: paths(ro),
            rw: paths(rw),
            env: environment.set,
            pass_env: environment.pass,
            bounds: self.bounds(),
            note: self.text(|wishes| wishes.note.as_ref()),
            note_file: self.text(|wishes| wishes.note_file.as_ref()),
            allow: self.allowed(),
            protect: self.protected(),
            profile: profile(&layers.stronger(), layers.user, layers.repository),
            reading: chosen.reading,
            files: agent.map_or_else(BTreeMap::new, |agent| agent.value.files.clone()),
            copy: copies
                .into_iter()
                .map(|(name, path, _)| (name, path))
                .collect(),
            origins,
            task,
        };
        let secrets = Secrets {
            env: environment.secrets,
            keys,
        };
        Ok((spec, secrets))
    }

    /// What is to be done, for people. The file of `{prompt_file}` is written from it, so there it is
    /// the prompt.
    fn goal(&self, chosen: &Chosen<'_>) -> Option<String> {
        let prompt = self.layers.pick(|wishes| wishes.prompt.as_ref());
        let goal = self.layers.pick(|wishes| wishes.goal.as_ref());
        let in_file = chosen
            .argv
            .iter()
            .any(|word| word.to_string_lossy().contains(PROMPT_FILE));
        let goal = if in_file {
            prompt.or(goal)
        } else {
            goal.or(prompt)
        };
        goal.map(|goal| goal.value.clone())
    }

    fn task_id(&self, now: i64) -> Result<TaskId, Failure> {
        let said = self.layers.pick(|wishes| wishes.task.as_ref());
        said.map_or_else(|| fresh_id(now), |task| Ok(task.value.clone()))
    }

    fn attempts(&self) -> u32 {
        let said = self.layers.pick(|wishes| wishes.attempts.as_ref());
        said.map_or(1, |attempts| attempts.value)
    }

    fn cleanup(&self) -> Cleanup {
        let said = self.layers.pick(|wishes| wishes.cleanup.as_ref());
        said.map_or(Cleanup::OnSuccess, |when| when.value)
    }

    fn text(&self, of: fn(&Wishes) -> Option<&Given<String>>) -> Option<String> {
        self.layers.pick(of).map(|text| text.value.clone())
    }

    fn allowed(&self) -> Vec<String> {
        let paths = self.layers.lists(|wishes| &wishes.allow).into_iter();
        paths
            .flat_map(|path| protect::allowed(&path.value))
            .collect()
    }

    fn branch(&self, task: &TaskId, chosen: &Chosen<'_>) -> Result<String, Failure> {
        let template = self.layers.pick(|wishes| wishes.branch.as_ref());
        let template = template.map_or(BRANCH, |template| &template.value);
        let slug = branch::slug(&chosen.name);
        branch::fill(template, task.as_str(), task.as_str(), &slug).or_fail(Exit::Usage)
    }

    fn protected(&self) -> Vec<String> {
        let further = self.layers.lists(|wishes| &wishes.protect).into_iter();
        let usual = protect::DEFAULT.iter().map(|pattern| (*pattern).to_owned());
        usual
            .chain(further.map(|pattern| pattern.value.clone()))
            .collect()
    }

    /// Where each setting that matters for trust came from.
    fn origins(
        &self,
        chosen: &Chosen<'_>,
        environment: &Environment,
        net: &Origin,
    ) -> BTreeMap<String, String> {
        let mut origins = BTreeMap::from([
            ("command".to_owned(), chosen.origin.to_string()),
            ("isolation".to_owned(), self.isolation().origin.to_string()),
            ("net".to_owned(), net.to_string()),
        ]);
        if let Some(unconfined) = self.layers.pick(|wishes| wishes.allow_unconfined.as_ref()) {
            origins.insert("allow_unconfined".to_owned(), unconfined.origin.to_string());
        }
        let allow = self.layers.lists(|wishes| &wishes.allow).into_iter();
        origins
            .extend(allow.map(|path| (format!("allow {}", path.value), path.origin.to_string())));
        let names = environment.origins.iter();
        origins.extend(names.map(|(name, origin)| (format!("env {name}"), origin.clone())));
        origins
    }
}

/// Where the value of each credential is found, and what it is for.
fn of_credentials(credentials: &[Credential]) -> impl Iterator<Item = (String, String)> {
    credentials.iter().map(|credential| {
        let place = key_place(credential);
        let kept = format!("{place}, for {} only", credential.upstream);
        (format!("credential {}", credential.name), kept)
    })
}

/// Where each path comes from.
fn of_paths<P: std::fmt::Display>(
    kind: &str,
    paths: impl Iterator<Item = (P, String)>,
) -> impl Iterator<Item = (String, String)> {
    paths.map(move |(path, origin)| (format!("{kind} {path}"), origin))
}

/// The paths that nobody named.
fn beyond(named: &BTreeSet<PathBuf>, shown: &Bound) -> Vec<PathBuf> {
    let shown = shown.iter().map(|(path, _)| path);
    shown
        .filter(|path| !named.contains(*path))
        .cloned()
        .collect()
}

/// A new id of time and chance.
fn fresh_id(now: i64) -> Result<TaskId, Failure> {
    let mut chance = [0u8; 4];
    rustix::rand::getrandom(&mut chance, rustix::rand::GetRandomFlags::empty())
        .or_fail(Exit::Internal)?;
    Ok(TaskId::fresh(
        now.unsigned_abs(),
        u32::from_le_bytes(chance),
    ))
}
