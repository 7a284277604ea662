//! Agent profiles: how a named agent is started, reached and read. Those that come with the program
//! are data, one file each in `runner/agents`; `[agent.NAME]` of the user's file replaces them key by
//! key. Never looks for a program or runs one; a profile of a repository's file never says which
//! credential or file of the user goes where.
//!
//! | key | means |
//! |---|---|
//! | `command` | program and arguments; `{prompt}` is what the agent is told, `{prompt_file}` a file with it, `{model}` the place of the model's arguments |
//! | `env` | `K=V` is set; a bare `K` is handed over when the caller's environment has it |
//! | `state` | what the agent keeps below HOME; a room's HOME is fresh, so none of it is there |
//! | `copy` | files below HOME that the room gets a copy of, never a credential; never copied back |
//! | `[files]` | files that the room's HOME begins with, path and text: settings that an agent takes from nowhere else |
//! | `domains` | what a room reaches in which the agent speaks to its model directly |
//! | `[[model]]` | where its model is and how it is told so ([`Endpoint`]) |
//! | `[result]` | how its output is read ([`Reading`]) |
//! | `version`, `min_version`, `install` | arguments that make it say its version, the oldest that the profile is for, how to get it |

mod copy;
mod endpoint;
mod passed;
mod prompt;

use std::collections::BTreeMap;

use super::document::{ConfigError, Document, Section, Source};
use super::environment::EnvEntry;
use super::origin::{Given, Origin};
use crate::answer::{Reading, Selector};
use crate::version::Version;

pub use copy::{CopyError, fit_to_copy};
pub(super) use endpoint::without_version;
pub use endpoint::{Endpoint, Key, STAND_IN, told};
pub use prompt::PROMPT_FILE;
pub(super) use prompt::{fill, has_place, prompt_for};

/// The profiles that come with the program.
const BUILT_IN: [(&str, &str); 12] = [
    ("aider", include_str!("../../../agents/aider.toml")),
    ("amp", include_str!("../../../agents/amp.toml")),
    ("claude", include_str!("../../../agents/claude.toml")),
    ("codex", include_str!("../../../agents/codex.toml")),
    ("copilot", include_str!("../../../agents/copilot.toml")),
    ("cursor", include_str!("../../../agents/cursor.toml")),
    ("droid", include_str!("../../../agents/droid.toml")),
    ("gemini", include_str!("../../../agents/gemini.toml")),
    ("goose", include_str!("../../../agents/goose.toml")),
    ("mini", include_str!("../../../agents/mini.toml")),
    ("opencode", include_str!("../../../agents/opencode.toml")),
    ("qwen", include_str!("../../../agents/qwen.toml")),
];

/// Keys that any file may give for an agent.
const OF_ANYBODY: [&str; 8] = [
    "command",
    "domains",
    "env",
    "install",
    "min_version",
    "result",
    "state",
    "version",
];

/// Keys that say what of the user's goes where: the user's own file and the program alone.
const OF_THE_USER: [&str; 3] = ["copy", "files", "model"];

/// How one agent is started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agent {
    /// Program and arguments with placeholders.
    pub command: Vec<String>,
    /// Environment.
    pub env: Vec<Given<EnvEntry>>,
    /// What it keeps below HOME.
    pub state: Vec<String>,
    /// Files below HOME that the room gets a copy of.
    pub copy: Vec<Given<String>>,
    /// Files that its HOME begins with, by their path there.
    pub files: BTreeMap<String, String>,
    /// What it reaches where it speaks to its model directly.
    pub domains: Vec<Given<String>>,
    /// Where its model may be; the first one with a credential is taken.
    pub models: Vec<Endpoint>,
    /// How its output is read; none of it when nothing is said.
    pub reading: Reading,
    /// Arguments that make it say its version.
    pub version: Vec<String>,
    /// The oldest version that the profile is for.
    pub min_version: Option<Version>,
    /// How to get it.
    pub install: Option<String>,
}

impl Agent {
    /// Reads a `[agent.NAME]` section; what it does not say stays as `base` has it.
    pub fn read(section: &Section<'_>, base: Option<&Self>) -> Result<Self, ConfigError> {
        let whole: Vec<&str> = OF_ANYBODY.iter().chain(&OF_THE_USER).copied().collect();
        section.only(&whole)?;
        if *section.source() == Source::Repository
            && let Some(key) = OF_THE_USER.iter().find(|key| section.has(key))
        {
            let why =
                "only your own config.toml says which of your files and credentials an agent gets";
            return Err(section.bad(key, &why));
        }
        let mut agent = base.cloned().unwrap_or_default();
        let plain = |key: &str| -> Result<Vec<String>, ConfigError> {
            Ok(section
                .texts(key)?
                .into_iter()
                .map(|text| text.value)
                .collect())
        };
        if section.has("command") || base.is_none() {
            agent.command = plain("command")?;
        }
        if agent.command.first().is_none_or(String::is_empty) {
            return Err(section.bad(
                "command",
                &"an agent needs a program, such as [\"my-agent\", \"{prompt}\"]",
            ));
        }
        if section.has("env") {
            agent.env = EnvEntry::list(section, "env")?;
        }
        if section.has("state") {
            agent.state = plain("state")?;
        }
        if section.has("copy") {
            agent.copy = copies(section)?;
        }
        if section.has("files") {
            agent.files = files(&section.section("files")?)?;
        }
        if section.has("domains") {
            agent.domains = domains(section)?;
        }
        if section.has("model") {
            agent.models = endpoint::list(section)?;
        }
        if section.has("result") {
            agent.reading = reading(&section.section("result")?)?;
        }
        if section.has("version") || base.is_none() {
            agent.version = plain("version")?;
        }
        if agent.version.is_empty() {
            agent.version.push("--version".to_owned());
        }
        if let Some(version) = section.read("min_version", str::parse)? {
            agent.min_version = Some(version.value);
        }
        if let Some(install) = section.text("install")? {
            agent.install = Some(install.value);
        }
        Ok(agent)
    }
}

fn domains(section: &Section<'_>) -> Result<Vec<Given<String>>, ConfigError> {
    let domains = section.texts("domains")?;
    let whole = |name: &str| {
        let name = name.strip_prefix("*.").unwrap_or(name);
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
        !name.is_empty() && name.chars().all(good)
    };
    match domains.iter().find(|domain| !whole(&domain.value)) {
        Some(bad) => Err(section.bad(
            "domains",
            &format!(
                "{:?} is no domain, such as api.example.org or *.example.org",
                bad.value
            ),
        )),
        None => Ok(domains),
    }
}

/// Files below HOME by name; none whose name says that it signs somebody in.
fn copies(section: &Section<'_>) -> Result<Vec<Given<String>>, ConfigError> {
    let files = section.texts("copy")?;
    for file in &files {
        copy::check_name(&file.value).map_err(|problem| section.bad("copy", &problem))?;
    }
    Ok(files)
}

/// Settings that an agent takes from nowhere but a file.
fn files(section: &Section<'_>) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut files = BTreeMap::new();
    for name in section.keys() {
        copy::check_name(&name).map_err(|problem| section.bad(&name, &problem))?;
        if let Some(text) = section.text(&name)? {
            files.insert(name, text.value);
        }
    }
    Ok(files)
}

fn reading(section: &Section<'_>) -> Result<Reading, ConfigError> {
    section.only(&[
        "cost_usd",
        "input_tokens",
        "output_tokens",
        "result",
        "session",
    ])?;
    let rules = |key: &str| {
        let texts = section.texts(key)?.into_iter();
        texts
            .map(|text| Selector::try_from(text.value).map_err(|bad| section.bad(key, &bad)))
            .collect::<Result<Vec<_>, _>>()
    };
    Ok(Reading {
        result: rules("result")?,
        cost_usd: rules("cost_usd")?,
        session: rules("session")?,
        input_tokens: rules("input_tokens")?,
        output_tokens: rules("output_tokens")?,
    })
}

/// The profiles that come with the program.
pub fn built_in() -> BTreeMap<String, Given<Agent>> {
    let read = |(name, text): (&str, &str)| {
        let origin = Origin::BuiltIn {
            agent: name.to_owned(),
        };
        let source = Source::BuiltIn(name.to_owned());
        let document =
            Document::parse(source, text.as_bytes()).expect("a test parses each profile");
        let agent = Agent::read(&document.root(), None).expect("a test reads each profile");
        (name.to_owned(), Given::new(agent, origin))
    };
    BUILT_IN.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests;
