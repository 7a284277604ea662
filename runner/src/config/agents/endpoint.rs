//! Where an agent's model is, and how the agent is told so: the credential stays outside the room,
//! and the agent speaks to a local address whose other end adds it. Reads sections; never reads the
//! value of a credential.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::super::document::{ConfigError, Section};
use super::super::environment::EnvEntry;
use super::super::origin::Given;
use crate::model::Dialect;

/// The local base URL, such as `http://anthropic.airlock`; no slash at its end.
const BASE: &str = "{base}";
/// A key that is none, of the form that agents accept.
const DUMMY: &str = "{dummy}";
/// The name of the variable whose credential was found.
const VARIABLE: &str = "{variable}";

/// What stands for a credential in a room.
pub const STAND_IN: &str = "held-by-airlock-outside-this-room";

/// One place where an agent's model can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name: the room reaches it as `http://NAME.airlock`.
    pub name: String,
    /// What is spoken there.
    pub dialect: Dialect,
    /// Scheme and host of the usual service, if there is one.
    pub upstream: Option<String>,
    /// A variable of the caller that names another service of the same kind.
    pub upstream_from: Option<String>,
    /// Methods that are passed on.
    pub methods: Vec<String>,
    /// Paths that are passed on: exactly this one, or, with a slash at its end, all below it.
    pub paths: Vec<String>,
    /// Where a credential may be found, and how it is sent.
    pub keys: Vec<Key>,
    /// What tells the agent: `{base}`, `{dummy}` and `{variable}` are filled in.
    pub env: Vec<Given<EnvEntry>>,
    /// Arguments that stand where the command says `{model}`, filled in alike.
    pub arguments: Vec<String>,
}

/// One credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The caller's variable; in the room it holds [`STAND_IN`].
    pub variable: String,
    /// The header that carries it.
    pub header: String,
    /// What stands before the credential in the header, such as `Bearer `.
    pub prefix: String,
}

/// Reads `[[model]]`.
pub(super) fn list(section: &Section<'_>) -> Result<Vec<Endpoint>, ConfigError> {
    section.sections("model")?.iter().map(read).collect()
}

fn read(section: &Section<'_>) -> Result<Endpoint, ConfigError> {
    section.only(&[
        "arguments",
        "dialect",
        "env",
        "key",
        "methods",
        "name",
        "paths",
        "upstream",
        "upstream_from",
    ])?;
    let needed = |key: &str| {
        let text = section.text(key)?;
        text.map(|text| text.value)
            .ok_or_else(|| section.bad(key, &"an endpoint needs it"))
    };
    let name = needed("name")?;
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(good) {
        return Err(section.bad("name", &"use a-z, 0-9 and '-'"));
    }
    let upstream = section.text("upstream")?.map(|url| url.value);
    let upstream_from = section.text("upstream_from")?.map(|name| name.value);
    if upstream.is_none() && upstream_from.is_none() {
        return Err(section.bad("upstream", &"an endpoint needs it, or upstream_from"));
    }
    if upstream.as_ref().is_some_and(|url| !is_url(url)) {
        return Err(section.bad("upstream", &"a URL such as https://api.example.org"));
    }
    let plain = |key: &str| -> Result<Vec<String>, ConfigError> {
        Ok(section
            .texts(key)?
            .into_iter()
            .map(|text| text.value)
            .collect())
    };
    let (methods, paths) = (plain("methods")?, plain("paths")?);
    if methods.is_empty() || paths.is_empty() {
        let key = if paths.is_empty() { "paths" } else { "methods" };
        return Err(section.bad(
            key,
            &"an endpoint passes on what is listed and nothing else",
        ));
    }
    Ok(Endpoint {
        name,
        dialect: dialect(section)?,
        upstream,
        upstream_from,
        methods,
        paths,
        keys: section
            .sections("key")?
            .iter()
            .map(key)
            .collect::<Result<_, _>>()?,
        env: EnvEntry::list(section, "env")?,
        arguments: plain("arguments")?,
    })
}

/// The URL of a service without what profiles write behind `{base}` themselves.
pub(crate) fn without_version(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    url.strip_suffix("/v1").unwrap_or(url)
}

fn is_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

fn dialect(section: &Section<'_>) -> Result<Dialect, ConfigError> {
    section
        .read("dialect", str::parse)?
        .map(|dialect| dialect.value)
        .ok_or_else(|| section.bad("dialect", &"say what is spoken there, such as openai-chat"))
}

fn key(section: &Section<'_>) -> Result<Key, ConfigError> {
    section.only(&["header", "prefix", "variable"])?;
    let variable = section.read("variable", EnvEntry::parse)?;
    let variable = match variable.map(|entry| entry.value) {
        Some(EnvEntry::Pass(name)) => name,
        Some(EnvEntry::Set(..)) | None => {
            return Err(section.bad("variable", &"the name of a variable, such as MY_API_KEY"));
        }
    };
    let header = section
        .text("header")?
        .map(|header| header.value.to_ascii_lowercase());
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let header = header
        .filter(|header| !header.is_empty() && header.chars().all(good))
        .ok_or_else(|| section.bad("header", &"the name of a header, such as x-api-key"))?;
    let prefix = section
        .text("prefix")?
        .map_or_else(String::new, |prefix| prefix.value);
    Ok(Key {
        variable,
        header,
        prefix,
    })
}

impl Endpoint {
    /// The credential that the caller has for it.
    pub fn found<'e>(&'e self, caller: &BTreeMap<OsString, OsString>) -> Option<&'e Key> {
        let there = |key: &&Key| {
            let value = caller.get(OsStr::new(&key.variable));
            value.is_some_and(|value| !value.is_empty())
        };
        self.keys.iter().find(there)
    }

    /// The service: the one that the caller names, else the usual one.
    pub fn service(&self, caller: &BTreeMap<OsString, OsString>) -> Option<String> {
        let named = self.upstream_from.as_ref();
        let named = named.and_then(|name| caller.get(OsStr::new(name))?.to_str());
        let url = named
            .filter(|url| is_url(url))
            .or(self.upstream.as_deref())?;
        Some(without_version(url).to_owned())
    }

    /// Arguments for the room.
    pub fn arguments(&self, base: &str, variable: &str) -> Vec<String> {
        let words = self.arguments.iter();
        words.map(|word| filled(word, base, variable)).collect()
    }
}

/// An environment with its places filled in.
pub fn told(env: &[Given<EnvEntry>], base: &str, variable: &str) -> Vec<Given<EnvEntry>> {
    let fill = |entry: &Given<EnvEntry>| {
        entry.clone().map(|entry| match entry {
            EnvEntry::Set(name, value) => {
                let value = filled(&value, base, variable);
                EnvEntry::Set(name, value)
            }
            EnvEntry::Pass(name) => EnvEntry::Pass(name),
        })
    };
    env.iter().map(fill).collect()
}

fn filled(text: &str, base: &str, variable: &str) -> String {
    text.replace(BASE, base)
        .replace(DUMMY, STAND_IN)
        .replace(VARIABLE, variable)
}
