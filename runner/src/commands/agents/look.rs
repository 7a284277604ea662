//! What is here of an agent: its program, the version that it says it is, a credential in the caller's
//! environment. Asks the program for its version, with a home of its own and without any credential;
//! never shows the value of one.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::config::{Agent, Endpoint, EnvEntry, Given, find_program, looks_secret};
use crate::version::Version;

/// A program that takes longer to say its version says none.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is read of its answer, in bytes.
const LONGEST_ANSWER: u64 = 64 << 10;

/// What is here of one agent.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(super) agent: Given<Agent>,
    pub(crate) program: Option<PathBuf>,
    pub(super) version: Option<Version>,
    /// The endpoint and the variable of a credential that can stay outside the room.
    pub(super) outside: Option<(String, String)>,
    /// A variable whose credential enters the room.
    pub(super) inside: Option<String>,
}

/// Looks at all of them, side by side.
pub(super) fn all(agents: BTreeMap<String, Given<Agent>>) -> Vec<Found> {
    let caller: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    thread::scope(|scope| {
        let looks: Vec<_> = agents
            .into_iter()
            .map(|(name, agent)| scope.spawn(|| one(name, agent, &caller).asked(&caller)))
            .collect();
        let joined = looks.into_iter().filter_map(|look| look.join().ok());
        joined.collect()
    })
}

/// Looks at one; asks its program nothing.
pub(crate) fn one(
    name: String,
    agent: Given<Agent>,
    caller: &BTreeMap<OsString, OsString>,
) -> Found {
    let word = agent
        .value
        .command
        .first()
        .map(OsStr::new)
        .unwrap_or_default();
    let program = if Path::new(word).is_absolute() {
        Some(PathBuf::from(word)).filter(|path| path.is_file())
    } else {
        find_program(word, caller)
    };
    let credential = |model: &Endpoint| {
        model
            .found(caller)
            .map(|key| (model.name.clone(), key.variable.clone()))
    };
    let there = |name: &str| {
        caller
            .get(OsStr::new(name))
            .is_some_and(|value| !value.is_empty())
    };
    let entries = agent.value.env.iter().map(|entry| &entry.value);
    let inside = entries.filter_map(|entry| match entry {
        EnvEntry::Pass(name) if looks_secret(name) && there(name) => Some(name.clone()),
        EnvEntry::Pass(_) | EnvEntry::Set(..) => None,
    });
    Found {
        name,
        program,
        version: None,
        outside: agent.value.models.iter().find_map(credential),
        inside: inside.into_iter().next(),
        agent,
    }
}

/// What a program says that it is.
fn version(
    program: &Path,
    arguments: &[String],
    caller: &BTreeMap<OsString, OsString>,
) -> Option<Version> {
    let home = nix::unistd::mkdtemp(&std::env::temp_dir().join("airlock-version-XXXXXX")).ok()?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("HOME", &home)
        .env("TERM", "dumb")
        .env("NO_COLOR", "1")
        .env("CI", "1")
        .current_dir(&home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    if let Some(path) = caller.get(OsStr::new("PATH")) {
        command.env("PATH", path);
    }
    let said = command
        .spawn()
        .ok()
        .and_then(|child| listen(child, PATIENCE));
    // Whatever the program has left there was never anybody's.
    worktrees::remove_tree(&home).ok();
    Version::first_in(&said?)
}

/// What a child says until it has ended, or its time is over.
fn listen(mut child: Child, patience: Duration) -> Option<String> {
    let mut stdout = child.stdout.take()?;
    let (tell, heard) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.by_ref().take(LONGEST_ANSWER).read_to_end(&mut bytes);
        tell.send(read.map(|_| bytes)).ok();
    });
    let said = heard.recv_timeout(patience);
    if let Ok(group) = i32::try_from(child.id()) {
        // Not reaped yet, so the number is still its own.
        killpg(Pid::from_raw(group), Signal::SIGKILL).ok();
    }
    child.wait().ok();
    reader.join().ok();
    let bytes = said.ok()?.ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

impl Found {
    /// The same with the version that the program says it is.
    pub(super) fn asked(mut self, caller: &BTreeMap<OsString, OsString>) -> Self {
        let arguments = &self.agent.value.version;
        let program = self.program.as_ref();
        self.version = program.and_then(|path| version(path, arguments, caller));
        self
    }

    /// Variables that may hold its credential.
    pub(crate) fn variables(&self) -> Vec<String> {
        let agent = &self.agent.value;
        let keys = agent.models.iter().flat_map(|model| &model.keys);
        let mut names: Vec<String> = keys.map(|key| key.variable.clone()).collect();
        let entries = agent.env.iter().map(|entry| entry.value.name());
        names.extend(entries.filter(|name| looks_secret(name)).map(str::to_owned));
        names.dedup();
        names
    }

    /// Whether the profile is for this version; none when it is not known.
    pub(super) fn supported(&self) -> Option<bool> {
        let oldest = self.agent.value.min_version.as_ref();
        let version = self.version.as_ref()?;
        Some(oldest.is_none_or(|oldest| version >= oldest))
    }

    /// One line of the table.
    pub(super) fn row(&self) -> Vec<String> {
        let version = match (&self.program, &self.version, self.supported()) {
            (None, ..) => "not installed".to_owned(),
            (Some(_), None, _) => "says no version".to_owned(),
            (Some(_), Some(version), Some(false)) => {
                let oldest = self.agent.value.min_version.as_ref();
                let oldest = oldest.map_or_else(String::new, ToString::to_string);
                format!("{version}, older than {oldest}")
            }
            (Some(_), Some(version), _) => version.to_string(),
        };
        let program = self.program.as_ref();
        vec![
            self.name.clone(),
            version,
            self.credential(),
            self.network().join(" "),
            program.map_or_else(
                || self.agent.value.install.clone().unwrap_or_default(),
                |path| path.display().to_string(),
            ),
        ]
    }

    /// Which credential it has, in words.
    pub(crate) fn credential(&self) -> String {
        match (&self.outside, &self.inside) {
            (Some((_, variable)), _) => format!("{variable}, stays outside"),
            (None, Some(variable)) => format!("{variable}, enters the room"),
            (None, None) => "none".to_owned(),
        }
    }

    /// What its room reaches by default.
    fn network(&self) -> Vec<String> {
        match &self.outside {
            Some((endpoint, _)) => vec![format!("{endpoint}.airlock")],
            None => self
                .agent
                .value
                .domains
                .iter()
                .map(|domain| domain.value.clone())
                .collect(),
        }
    }

    /// For scripts.
    pub(super) fn object(&self) -> Value {
        let agent = &self.agent.value;
        let text = |version: Option<&Version>| version.map(ToString::to_string);
        json!({
            "name": self.name,
            "program": self.program,
            "installed": self.program.is_some(),
            "version": text(self.version.as_ref()),
            "min_version": text(agent.min_version.as_ref()),
            "supported": self.supported(),
            "install": agent.install,
            "net": self.network(),
            "credential": {
                "found": self.outside.is_some() || self.inside.is_some(),
                "variable": self.outside.as_ref().map(|(_, variable)| variable).or(self.inside.as_ref()),
                "stays_outside": self.outside.is_some(),
            },
            "origin": self.agent.origin.to_string(),
        })
    }
}
