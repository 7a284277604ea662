//! `[setup]`: which commands prepare a tree, what goes into the digest of their result, and what of it is kept. Reads
//! the base commit; runs nothing.

use sha2::{Digest as _, Sha256};
use worktrees::{Keepable, Oid};

use super::defaults::SETUP_TIMEOUT_MS;
use super::document::{ConfigError, Section};
use super::file::note_file;
use super::origin::Given;
use super::scene::Scene;
use super::{quantity, words};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::task::{Isolation, Net, Setup};
use crate::toolchain::Toolchain;
use crate::{hex, itself};

/// Folders below the top in which inputs are looked for when nobody names them.
const FOLDERS: usize = 64;

/// What decides what a usual setup gives.
const INPUTS: &[&str] = &[
    ".node-version",
    ".npmrc",
    ".nvmrc",
    ".python-version",
    ".yarnrc.yml",
    "Cargo.lock",
    "Cargo.toml",
    "Pipfile",
    "Pipfile.lock",
    "bun.lock",
    "bun.lockb",
    "go.mod",
    "go.sum",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "package.json",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "poetry.lock",
    "pyproject.toml",
    "requirements-dev.txt",
    "requirements.txt",
    "rust-toolchain",
    "rust-toolchain.toml",
    "setup.cfg",
    "setup.py",
    "uv.lock",
    "yarn.lock",
];

/// What is kept when nobody says so and it is there.
const KEEP: &[&str] = &["node_modules", ".venv", "target"];

/// What one place says about the setup.
#[derive(Debug, Default)]
pub struct SetupWishes {
    /// The commands, each a line for a shell.
    pub commands: Vec<Given<String>>,
    /// Files whose content is part of the digest.
    pub inputs: Option<Vec<String>>,
    /// Folders that are kept.
    pub keep: Option<Vec<String>>,
    /// What the commands reach.
    pub net: Option<Given<Net>>,
    /// Their wall time, in milliseconds.
    pub timeout_ms: Option<Given<u64>>,
}

impl SetupWishes {
    /// Reads the section.
    pub(super) fn read(section: &Section<'_>) -> Result<Self, ConfigError> {
        section.only(&["commands", "inputs", "keep", "net", "timeout"])?;
        let commands = section.texts("commands")?;
        if let Some(bad) = commands
            .iter()
            .find(|command| command.value.trim().is_empty() || command.value.contains('\0'))
        {
            let problem = format!("{:?} is no command", bad.value);
            return Err(section.bad("commands", &problem));
        }
        let paths = |key: &str| {
            if !section.keys().iter().any(|known| known == key) {
                return Ok(None);
            }
            let paths = section.texts(key)?.into_iter().map(|path| path.value);
            let paths: Vec<String> = paths.collect();
            for path in &paths {
                let trimmed = path.trim_end_matches('/');
                note_file(trimmed).map_err(|problem| section.bad(key, &problem))?;
            }
            let paths = paths
                .iter()
                .map(|path| path.trim_end_matches('/').to_owned());
            Ok(Some(paths.collect()))
        };
        Ok(Self {
            inputs: paths("inputs")?,
            keep: paths("keep")?,
            net: section.read("net", words::net)?,
            timeout_ms: section.read("timeout", quantity::duration_ms)?,
            commands,
        })
    }
}

impl Scene<'_> {
    /// The setup of this task, if it has one: only a tree of its own in a room of its own is set up.
    pub(super) fn setup(
        &self,
        base: &str,
        isolation: Isolation,
        toolchains: &[Toolchain],
    ) -> Result<Option<Setup>, Failure> {
        let skipped = self.layers.flags.no_setup;
        let places = [self.layers.user, self.layers.repository];
        let places = places.map(|wishes| &wishes.setup);
        let Some(setup) = places.into_iter().find(|setup| !setup.commands.is_empty()) else {
            return Ok(None);
        };
        if skipped || isolation != Isolation::Sandbox {
            return Ok(None);
        }
        let base = Oid::from_str(base).or_fail(Exit::Internal)?;
        let net = |wishes: &super::Wishes| wishes.setup.net.as_ref().map(|net| net.value.clone());
        let net = match (net(self.layers.user), net(self.layers.repository)) {
            (Some(user), Some(repository)) => user.narrowed_by(&repository),
            (user, repository) => user.or(repository).unwrap_or(Net::None),
        };
        let timeout = self
            .layers
            .narrow(|wishes| wishes.setup.timeout_ms.as_ref(), |limit| *limit)
            .map_or(SETUP_TIMEOUT_MS, |limit| limit.value);
        let origin = setup
            .commands
            .first()
            .map(|command| command.origin.to_string());
        let mut chosen = Setup {
            commands: setup
                .commands
                .iter()
                .map(|command| command.value.clone())
                .collect(),
            inputs: self.inputs(setup, base)?,
            keep: self.keep(setup, base)?,
            net,
            timeout_ms: timeout,
            origin: origin.unwrap_or_default(),
            key: String::new(),
        };
        chosen.key = self.setup_key(&chosen, base, toolchains)?;
        Ok(Some(chosen))
    }

    fn inputs(&self, setup: &SetupWishes, base: Oid) -> Result<Vec<String>, Failure> {
        if let Some(inputs) = &setup.inputs {
            return Ok(inputs.clone());
        }
        let files = self
            .repository
            .files_near_top(base, FOLDERS)
            .or_fail(Exit::Usage)?;
        let known = |path: &String| {
            let name = path.rsplit('/').next().unwrap_or_default();
            INPUTS.contains(&name)
        };
        let texts = files
            .into_iter()
            .filter_map(|path| String::from_utf8(path).ok());
        Ok(texts.filter(known).collect())
    }

    /// What was kept comes into trees that are sealed: only what git ignores there may.
    fn keep(&self, setup: &SetupWishes, base: Oid) -> Result<Vec<String>, Failure> {
        let state = |path: &str| self.repository.keepable(base, path).or_fail(Exit::Usage);
        let Some(keep) = &setup.keep else {
            let mut usual = Vec::new();
            for path in KEEP {
                if state(path)? == Keepable::Yes {
                    usual.push((*path).to_owned());
                }
            }
            return Ok(usual);
        };
        for path in keep {
            let problem = match state(path)? {
                Keepable::Yes => continue,
                Keepable::Tracked => "the base has it as part of its tree",
                Keepable::NotIgnored => {
                    "no .gitignore of the base covers it, so every task would deliver it"
                }
            };
            return Err(
                Failure::usage(format!("[setup] keeps {path}, but {problem}"))
                    .advise("keep folders that git ignores, such as node_modules"),
            );
        }
        Ok(keep.clone())
    }

    /// Everything that decides what the commands give, as one digest.
    fn setup_key(
        &self,
        setup: &Setup,
        base: Oid,
        toolchains: &[Toolchain],
    ) -> Result<String, Failure> {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(b"airlock setup 1");
        part(itself::VERSION.as_bytes());
        part(self.repository.room_path().as_os_str().as_encoded_bytes());
        for list in [&setup.commands, &setup.keep, &vec![setup.net.to_string()]] {
            part(&(list.len() as u64).to_le_bytes());
            for word in list {
                part(word.as_bytes());
            }
        }
        for path in &setup.inputs {
            let entry = self.repository.entry_at(base, path).or_fail(Exit::Usage)?;
            let content = entry.map(|entry| format!("{:o} {}", entry.mode, entry.oid));
            part(path.as_bytes());
            part(content.unwrap_or_default().as_bytes());
        }
        for tools in toolchains {
            part(tools.language.as_str().as_bytes());
            part(tools.fingerprint.as_bytes());
        }
        Ok(hex::of(hash.finalize().get(..16).unwrap_or_default()))
    }
}
