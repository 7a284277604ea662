//! How the agent is kept: isolation, limits, environment, and the host paths that its room shows.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use sandbox::egress::{Credential, KeySource};

use super::agents::{self, Agent};
use super::binds::{Forbidden, not_led_out, settled};
use super::command::Chosen;
use super::credentials;
use super::defaults::BOUNDS;
use super::environment::Environment;
use super::origin::{Given, Origin};
use super::places;
use super::program::{self, Programs};
use super::reach::{self, Way};
use super::scene::Scene;
use super::wishes::Limits;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::task::{Bounds, Isolation, Key, Net};

/// Paths as the kernel will find them, each with the place that asks for it.
pub(super) type Bound = Vec<(PathBuf, Origin)>;

impl Scene<'_> {
    pub(super) fn isolation(&self) -> Given<Isolation> {
        let width = |mode: &Isolation| !mode.confined();
        let chosen = self
            .layers
            .narrow(|wishes| wishes.isolation.as_ref(), width);
        chosen
            .cloned()
            .unwrap_or_else(|| Given::default(Isolation::Sandbox))
    }

    /// What somebody says: a task's own word; else the user's, narrowed by the repository's.
    pub(super) fn said_net(&self) -> Option<Given<Net>> {
        let mut stronger = self.layers.stronger().into_iter();
        if let Some(own) = stronger.find_map(|wishes| wishes.net.clone()) {
            return Some(own);
        }
        match (&self.layers.user.net, &self.layers.repository.net) {
            (Some(user), Some(repository)) => {
                let both = user.value.narrowed_by(&repository.value);
                let decides = if both == user.value { user } else { repository };
                Some(Given::new(both, decides.origin.clone()))
            }
            (Some(one), None) | (None, Some(one)) => Some(one.clone()),
            (None, None) => None,
        }
    }

    /// The credentials that the network names, and their values.
    pub(super) fn credentials(
        &self,
        net: &Net,
        way: &Way<'_>,
    ) -> Result<(Vec<Credential>, BTreeMap<String, Key>), Failure> {
        let isolation = self.isolation();
        if net.policy().is_some() && !isolation.value.confined() {
            let what = format!(
                "isolation {} has no room, so nothing would keep the agent to the list of --net",
                isolation.value.as_str()
            );
            return Err(Failure::usage(what).advise("say --net host, or use --isolation sandbox"));
        }
        let named = credentials::named(net.policy(), &self.known_credentials(way))?;
        let keys = credentials::keys(&named, &self.host.caller)?;
        match named
            .iter()
            .find(|credential| !keys.contains_key(&credential.name))
        {
            Some(without) => Err(Failure::usage(format!(
                "the credential {} has no value: it is looked for in {}",
                without.name,
                credentials::place(without)
            ))
            .advise(
                "set it, or leave it out of the list; it is never stored and never enters the room",
            )),
            None => Ok((named, keys)),
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        let limit = |of: fn(&Limits) -> Option<&Given<u64>>| {
            self.layers
                .narrow(|wishes| of(&wishes.limits), |number| *number)
                .map(|limit| limit.value)
        };
        Bounds {
            timeout_ms: limit(|limits| limits.timeout_ms.as_ref()).or(BOUNDS.timeout_ms),
            idle_ms: limit(|limits| limits.idle_ms.as_ref()).or(BOUNDS.idle_ms),
            grace_ms: limit(|limits| limits.grace_ms.as_ref()).unwrap_or(BOUNDS.grace_ms),
            output: limit(|limits| limits.output.as_ref()).unwrap_or(BOUNDS.output),
            pids: limit(|limits| limits.pids.as_ref()).unwrap_or(BOUNDS.pids),
            memory: limit(|limits| limits.memory.as_ref()).unwrap_or(BOUNDS.memory),
            disk: limit(|limits| limits.disk.as_ref()).unwrap_or(BOUNDS.disk),
            files: limit(|limits| limits.files.as_ref()).unwrap_or(BOUNDS.files),
            home: limit(|limits| limits.home.as_ref()).unwrap_or(BOUNDS.home),
            tmp: limit(|limits| limits.tmp.as_ref()).unwrap_or(BOUNDS.tmp),
            file_size: limit(|limits| limits.file_size.as_ref()).unwrap_or(BOUNDS.file_size),
        }
    }

    pub(super) fn environment(
        &self,
        profile: Option<&Given<Agent>>,
        way: &Way<'_>,
    ) -> Result<Environment, Failure> {
        let mut entries = profile.map_or_else(Vec::new, |profile| reach::of_profile(way, profile));
        let of_places = self.layers.lists(|wishes| &wishes.env);
        entries.extend(of_places.into_iter().cloned());
        Environment::gather(&entries, &self.host.caller).or_fail(Exit::Usage)
    }

    /// What no room shows.
    pub(super) fn forbidden(&self) -> Forbidden {
        let mut forbidden = Forbidden::new();
        forbidden.add(&self.host.state, "Airlock's own state");
        if let Some(folder) = places::folder(&self.host.caller) {
            forbidden.add(&folder, "Airlock's configuration");
        }
        forbidden.add(
            self.repository.common_dir(),
            "the repository's git directory",
        );
        forbidden.add(
            &self.repository.room_path(),
            "where the task's own worktree appears",
        );
        if let Some(folder) = self.host.caller.get(OsStr::new("XDG_RUNTIME_DIR")) {
            forbidden.add(Path::new(folder), "where your daemons listen");
        }
        for file in self.key_files() {
            forbidden.add(file, "where the value of a credential is kept");
        }
        forbidden
    }

    /// Files of the user's that hold values of credentials, also of those that this task does not use.
    fn key_files(&self) -> impl Iterator<Item = &Path> {
        let known = self.layers.user.credentials.values();
        known.filter_map(|credential| match &credential.value.source {
            KeySource::File(path) => Some(path.as_path()),
            KeySource::Env(_) => None,
        })
    }

    /// Refuses a value that stands where the room looks without being asked to: in the git directory, in the system's
    /// folders, or in the checkout that a session sees as it is.
    fn keys_out_of_sight(&self) -> Result<(), Failure> {
        let isolation = self.isolation().value;
        if !isolation.confined() {
            return Ok(());
        }
        let mut seen = vec![
            self.repository.common_dir().to_owned(),
            PathBuf::from("/usr"),
        ];
        if isolation == Isolation::Session {
            seen.push(self.repository.room_path());
        }
        for file in self.key_files() {
            let found = settled(file);
            if let Some(place) = seen.iter().find(|place| found.starts_with(place)) {
                return Err(Failure::usage(format!(
                    "the room would see {}, where the value of a credential is kept: it lies in {}",
                    file.display(),
                    place.display()
                ))
                .advise("keep it in another place, and change `file` in your config.toml"));
            }
        }
        Ok(())
    }

    /// The paths that the room shows, as the kernel will find them.
    pub(super) fn binds(&self) -> Result<(Bound, Bound), Failure> {
        self.keys_out_of_sight()?;
        let forbidden = self.forbidden();
        let checkout = self.repository.room_path();
        let check = |wish: &Given<PathBuf>| {
            not_led_out(wish, &checkout).or_fail(Exit::Usage)?;
            forbidden.check(wish).or_fail(Exit::Usage)
        };
        let bound = |wish: &Given<PathBuf>, path: PathBuf| (path, wish.origin.clone());
        let readable = self
            .layers
            .lists(|wishes| &wishes.ro)
            .into_iter()
            .map(|wish| {
                let path = self.own_file(wish).map_or_else(|| check(wish), Ok)?;
                Ok(bound(wish, path))
            });
        let writable = self.layers.lists(|wishes| &wishes.rw).into_iter();
        let writable = writable.map(|wish| Ok(bound(wish, check(wish)?)));
        Ok((
            readable.collect::<Result<Bound, Failure>>()?,
            writable.collect::<Result<Bound, Failure>>()?,
        ))
    }

    /// Files below the user's home that the room begins with, where there are any.
    pub(super) fn copies(
        &self,
        profile: Option<&Given<Agent>>,
    ) -> Result<Vec<(String, PathBuf, Origin)>, Failure> {
        let Some(home) = places::home(&self.host.caller) else {
            return Ok(Vec::new());
        };
        let mut copies = Vec::new();
        for name in profile.iter().flat_map(|profile| &profile.value.copy) {
            let path = home.join(&name.value);
            let advice = "leave it out with `copy = []` in the agent's section of config.toml";
            let there = agents::fit_to_copy(&path).or_fail(Exit::Usage);
            if there.map_err(|failure| failure.advise(advice))?.is_some() {
                copies.push((name.value.clone(), path, name.origin.clone()));
            }
        }
        Ok(copies)
    }

    /// Refuses an agent whose program nobody could find, before anything is made.
    pub(super) fn is_installed(
        &self,
        chosen: &Chosen<'_>,
        environment: &Environment,
    ) -> Result<(), Failure> {
        let by_name = self.layers.pick(|wishes| wishes.command.as_ref()).is_none();
        let theirs = matches!(chosen.origin, Origin::Repository { .. });
        let (Some(profile), Some(word)) = (chosen.profile, chosen.argv.first()) else {
            return Ok(());
        };
        let elsewhere = environment.origins.contains_key("PATH");
        if !by_name || theirs || elsewhere || program::is_there(word, &self.host.caller) {
            return Ok(());
        }
        let what = format!(
            "agent {} is not installed: no program {} on your PATH",
            chosen.name,
            word.to_string_lossy()
        );
        let advice = match &profile.value.install {
            Some(install) => format!("install it: {install}"),
            None => "install it, or name its program by an absolute path in config.toml".to_owned(),
        };
        Err(Failure::usage(what).advise(format!("{advice}; `airlock agents` says what is there")))
    }

    /// Lets the room show what the chosen program needs, and starts it by the name that it has there.
    /// A command of the repository's own gets no more of this host than its file asks for.
    pub(super) fn show_program(
        &self,
        chosen: &mut Chosen<'_>,
        environment: &mut Environment,
        (ro, rw): (&mut Bound, &Bound),
    ) {
        let theirs = matches!(chosen.origin, Origin::Repository { .. });
        let Some(word) = chosen.argv.first_mut().filter(|_| !theirs) else {
            return;
        };
        let visible = ro.iter().chain(rw).map(|(path, _)| path.clone());
        let checkout = self.repository.room_path();
        let programs = Programs::new(&self.host.caller, checkout, visible);
        let by_name = self.layers.pick(|wishes| wishes.command.as_ref()).is_none();
        let forbidden = self.forbidden();
        let fits = |path: &PathBuf| {
            let wish = Given::new(path.clone(), chosen.origin.clone());
            forbidden.check(&wish).is_ok()
        };
        let Some(program) = programs
            .find(word, by_name)
            .filter(|program| program.shown.iter().all(fits))
        else {
            return;
        };
        *word = program.path.into_os_string();
        let shown = program.shown.into_iter();
        ro.extend(shown.map(|path| (path, chosen.origin.clone())));
        environment.search_first(&program.search, &chosen.origin);
    }

    /// A read-only path within the checkout means the worktree's own file, which the agent then
    /// cannot write. Its links are left alone: the room opens it beneath the worktree.
    fn own_file(&self, wish: &Given<PathBuf>) -> Option<PathBuf> {
        let root = self.repository.room_path();
        let folder = std::fs::canonicalize(wish.value.parent()?).ok()?;
        let path = folder.join(wish.value.file_name()?);
        let inner = path.strip_prefix(&root).ok()?;
        let own = !inner.as_os_str().is_empty() && !inner.starts_with(".git");
        own.then_some(path)
    }
}
