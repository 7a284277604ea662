//! The settings of the user's and the repository's configuration that decide which blob a file becomes.
//! Read on the engine's side only: nothing that an agent writes is configuration.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use gix_filter::eol::{AutoCrlf, Configuration, Mode};

use super::RULES_LIMIT;
use crate::owner::ActingAsSelf;
use crate::repository::{Format, Repository};

/// Settings, and the bytes of the rule files that lie outside the tree.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) eol: Configuration,
    pub(crate) file_mode: bool,
    pub(crate) symlinks: bool,
    pub(crate) ignore_case: bool,
    /// Names of filters that have a program for either direction.
    pub(crate) filters: BTreeSet<String>,
    /// `core.excludesFile` and `info/exclude`.
    pub(crate) user_excludes: Vec<u8>,
    pub(crate) local_excludes: Vec<u8>,
    /// `/etc/gitattributes`, `core.attributesFile` and `info/attributes`.
    pub(crate) system_attributes: Vec<u8>,
    pub(crate) user_attributes: Vec<u8>,
    pub(crate) local_attributes: Vec<u8>,
}

impl Settings {
    /// Reads them as git would for the checkout that the user stands in.
    pub(crate) fn load(repository: &Repository) -> Result<Self, git2::Error> {
        let _own = ActingAsSelf::begin();
        let mut config = repository.open()?.config()?;
        let own = repository.git_dir().join("config.worktree");
        let per_worktree =
            Format::read(repository.common_dir()).is_ok_and(|format| format.worktree_config);
        if per_worktree && repository.git_dir() != repository.common_dir() && own.is_file() {
            config.add_file(&own, git2::ConfigLevel::App, true)?;
        }
        let config = config.snapshot()?;
        let flag = |name: &str, default: bool| config.get_bool(name).unwrap_or(default);
        let info = repository.common_dir().join("info");
        Ok(Self {
            eol: Configuration {
                auto_crlf: auto_crlf(&config),
                eol: match config.get_str("core.eol") {
                    Ok(value) if value.eq_ignore_ascii_case("crlf") => Some(Mode::CrLf),
                    Ok(value) if value.eq_ignore_ascii_case("lf") => Some(Mode::Lf),
                    _ => None,
                },
            },
            file_mode: flag("core.filemode", true),
            symlinks: flag("core.symlinks", true),
            ignore_case: flag("core.ignorecase", false),
            filters: filters(&config)?,
            user_excludes: rules(user_file(&config, "core.excludesfile", "ignore").as_deref()),
            local_excludes: rules(Some(&info.join("exclude"))),
            system_attributes: rules(Some(Path::new("/etc/gitattributes"))),
            user_attributes: rules(
                user_file(&config, "core.attributesfile", "attributes").as_deref(),
            ),
            local_attributes: rules(Some(&info.join("attributes"))),
        })
    }
}

fn auto_crlf(config: &git2::Config) -> AutoCrlf {
    let input = config
        .get_str("core.autocrlf")
        .is_ok_and(|value| value.eq_ignore_ascii_case("input"));
    match config.get_bool("core.autocrlf") {
        _ if input => AutoCrlf::Input,
        Ok(true) => AutoCrlf::Enabled,
        _ => AutoCrlf::Disabled,
    }
}

fn filters(config: &git2::Config) -> Result<BTreeSet<String>, git2::Error> {
    let mut names = BTreeSet::new();
    let entries = config.entries(Some("^filter\\..*\\.(clean|smudge|process)$"))?;
    entries.for_each(|entry| {
        let (Ok(key), Ok(value)) = (entry.name(), entry.value()) else {
            return;
        };
        let inner = key
            .strip_prefix("filter.")
            .and_then(|rest| rest.rsplit_once('.'));
        if let (Some((name, _)), false) = (inner, value.is_empty()) {
            names.insert(name.to_owned());
        }
    })?;
    Ok(names)
}

/// The file that a setting names, or git's default place for it.
fn user_file(config: &git2::Config, setting: &str, default: &str) -> Option<PathBuf> {
    if let Ok(path) = config.get_path(setting) {
        return Some(path);
    }
    let folder = match env::var_os("XDG_CONFIG_HOME").filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env::var_os("HOME")?).join(".config"),
    };
    Some(folder.join("git").join(default))
}

/// A missing or unreadable file has no rules, as in git.
fn rules(path: Option<&Path>) -> Vec<u8> {
    let Some(path) = path else { return Vec::new() };
    let small = fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() <= RULES_LIMIT);
    if small {
        fs::read(path).unwrap_or_default()
    } else {
        Vec::new()
    }
}
