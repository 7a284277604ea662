//! The environment of an agent starts from nothing. This holds which further names may enter, and
//! keeps apart values that may be stored from values that never are. Never reads the process's own
//! environment: the caller gives it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::document::{ConfigError, Section};
use super::origin::{Given, Origin};

/// One line of an `env` list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvEntry {
    /// `K=V`: a plain value that is kept with the task.
    Set(String, String),
    /// `K`: the caller's value, which is kept nowhere.
    Pass(String),
}

/// An environment entry that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvError {
    /// Not a name.
    #[error("{0:?} is not NAME or NAME=VALUE")]
    Malformed(String),
    /// Changes how programs load or how git works.
    #[error(
        "{0} can never be set in a room: it changes how programs are loaded or where git works"
    )]
    Never(String),
    /// Set by the engine.
    #[error("{0} is set by Airlock itself")]
    Reserved(String),
    /// Looks like a credential or the way to a daemon, from a place that may not hand those over.
    #[error(
        "{name} looks like a credential or the way to a daemon, and {origin} may not hand it over; give it yourself with --env {name}"
    )]
    Credential {
        /// The name.
        name: String,
        /// Who asked.
        origin: String,
    },
    /// A flag passes a name that the caller does not have.
    #[error("--env {0}: your environment has no {0}")]
    Absent(String),
    /// A value that is not text.
    #[error("the value of {0} is not UTF-8 text")]
    NotText(String),
}

impl EnvEntry {
    /// Reads `K` or `K=V`.
    pub fn parse(text: &str) -> Result<Self, EnvError> {
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(name, value)| (name, Some(value)));
        let good = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && name
                .bytes()
                .next()
                .is_some_and(|byte| !byte.is_ascii_digit());
        if !good || text.contains('\0') {
            return Err(EnvError::Malformed(name.to_owned()));
        }
        let upper = name.to_ascii_uppercase();
        if upper.starts_with("LD_") || upper.starts_with("GIT_") {
            return Err(EnvError::Never(name.to_owned()));
        }
        if upper.starts_with("AIRLOCK") {
            return Err(EnvError::Reserved(name.to_owned()));
        }
        Ok(match value {
            Some(value) => Self::Set(name.to_owned(), value.to_owned()),
            None => Self::Pass(name.to_owned()),
        })
    }

    /// Reads a list of a file.
    pub fn list(section: &Section<'_>, key: &str) -> Result<Vec<Given<Self>>, ConfigError> {
        section
            .texts(key)?
            .into_iter()
            .map(|text| match Self::parse(&text.value) {
                Ok(entry) => Ok(Given::new(entry, text.origin)),
                Err(problem) => Err(section.bad(key, &problem)),
            })
            .collect()
    }

    /// The name.
    pub fn name(&self) -> &str {
        match self {
            Self::Set(name, _) | Self::Pass(name) => name,
        }
    }
}

/// Whether a name is that of a credential or of the way to a daemon.
pub fn looks_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let word = ["TOKEN", "SECRET", "KEY", "PASSWORD"]
        .iter()
        .any(|word| upper.contains(word));
    let door = ["SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "DOCKER_HOST"].contains(&upper.as_str());
    word || door || upper.starts_with("DBUS_")
}

/// The environment of an agent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Environment {
    /// Plain values.
    pub set: BTreeMap<String, String>,
    /// Names whose values are in `secrets`.
    pub pass: Vec<String>,
    /// Values that are never stored.
    pub secrets: BTreeMap<String, String>,
    /// Where each name came from.
    pub origins: BTreeMap<String, String>,
    /// Folders of programs that stand before the usual ones in `PATH`.
    search: Vec<PathBuf>,
}

impl Environment {
    /// Lets the room find programs in `folders`, after those that were named so before, unless somebody has said
    /// where to look.
    pub(super) fn search_first(&mut self, folders: &[PathBuf], origin: &Origin) {
        if folders.is_empty() || (self.search.is_empty() && self.origins.contains_key("PATH")) {
            return;
        }
        for folder in folders {
            if !self.search.contains(folder) {
                self.search.push(folder.clone());
            }
        }
        let usual = sandbox::room_environment();
        let usual = usual.get("PATH").map_or("", String::as_str);
        let folders = self
            .search
            .iter()
            .cloned()
            .chain(std::env::split_paths(usual));
        // A folder whose name holds a colon, or is no text, cannot be searched by anybody.
        let joined = std::env::join_paths(folders).ok();
        if let Some(path) = joined.and_then(|path| path.into_string().ok()) {
            self.set.insert("PATH".to_owned(), path);
            self.origins.insert("PATH".to_owned(), origin.to_string());
        }
    }

    /// Variables that hold unless somebody has set them.
    pub(super) fn usually(&mut self, values: &BTreeMap<String, String>, origin: &Origin) {
        for (name, value) in values {
            if !self.origins.contains_key(name) {
                self.set.insert(name.clone(), value.clone());
                self.origins.insert(name.clone(), origin.to_string());
            }
        }
    }

    /// Gathers entries, weakest first: a later one replaces an earlier one of the same name.
    pub(super) fn gather(
        entries: &[Given<EnvEntry>],
        caller: &BTreeMap<OsString, OsString>,
    ) -> Result<Self, EnvError> {
        let mut gathered = Self::default();
        for entry in entries {
            let name = entry.value.name();
            permitted(name, &entry.origin)?;
            match &entry.value {
                EnvEntry::Set(name, value) => {
                    gathered.forget(name);
                    gathered.set.insert(name.clone(), value.clone());
                }
                EnvEntry::Pass(name) => match caller.get(OsStr::new(name)) {
                    Some(value) => {
                        let value = value
                            .to_str()
                            .ok_or_else(|| EnvError::NotText(name.clone()))?;
                        gathered.forget(name);
                        gathered.secrets.insert(name.clone(), value.to_owned());
                        gathered.pass.push(name.clone());
                    }
                    // A file lists what may enter; a flag says what must.
                    None if matches!(entry.origin, Origin::Flag(_)) => {
                        return Err(EnvError::Absent(name.clone()));
                    }
                    None => continue,
                },
            }
            gathered
                .origins
                .insert(name.to_owned(), entry.origin.to_string());
        }
        gathered.pass.sort();
        Ok(gathered)
    }

    fn forget(&mut self, name: &str) {
        self.set.remove(name);
        self.secrets.remove(name);
        self.pass.retain(|known| known != name);
    }
}

/// Credentials are handed over by the user: in person, in the user's own file, or by choosing an
/// agent whose profile names what it signs in with. A repository never hands them over, trusted or not.
fn permitted(name: &str, origin: &Origin) -> Result<(), EnvError> {
    match origin {
        Origin::Repository { .. } if looks_secret(name) => Err(EnvError::Credential {
            name: name.to_owned(),
            origin: origin.to_string(),
        }),
        Origin::Default
        | Origin::BuiltIn { .. }
        | Origin::Detected { .. }
        | Origin::Repository { .. }
        | Origin::User { .. }
        | Origin::TaskFile { .. }
        | Origin::Flag(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller() -> BTreeMap<OsString, OsString> {
        [("MY_TOKEN", "s3"), ("LANGUAGE", "de")]
            .map(|(k, v)| (k.into(), v.into()))
            .into()
    }

    fn entry(text: &str, origin: Origin) -> Given<EnvEntry> {
        Given::new(EnvEntry::parse(text).unwrap(), origin)
    }

    #[test]
    fn entries() {
        assert_eq!(
            EnvEntry::parse("A=b=c"),
            Ok(EnvEntry::Set("A".to_owned(), "b=c".to_owned()))
        );
        assert_eq!(EnvEntry::parse("A"), Ok(EnvEntry::Pass("A".to_owned())));
        for never in ["LD_PRELOAD=/x", "GIT_DIR", "ld_library_path"] {
            assert!(
                matches!(EnvEntry::parse(never), Err(EnvError::Never(_))),
                "{never}"
            );
        }
        for bad in ["", "=x", "1A=x", "A B", "A-B=1"] {
            assert!(
                matches!(EnvEntry::parse(bad), Err(EnvError::Malformed(_))),
                "{bad}"
            );
        }
        assert!(matches!(
            EnvEntry::parse("AIRLOCK_FEEDBACK=/x"),
            Err(EnvError::Reserved(_))
        ));
    }

    #[test]
    fn a_passed_value_is_a_secret_and_not_a_setting() {
        let environment =
            Environment::gather(&[entry("MY_TOKEN", Origin::Flag("--env"))], &caller()).unwrap();
        assert!(environment.set.is_empty());
        assert_eq!(environment.pass, ["MY_TOKEN"]);
        assert_eq!(environment.secrets["MY_TOKEN"], "s3");
        assert_eq!(environment.origins["MY_TOKEN"], "--env");
    }

    #[test]
    fn a_stronger_place_replaces_a_weaker_one() {
        let weak = entry(
            "LANGUAGE",
            Origin::User {
                file: "/c".into(),
                line: 1,
            },
        );
        let strong = entry("LANGUAGE=fr", Origin::Flag("--env"));
        let environment = Environment::gather(&[weak, strong], &caller()).unwrap();
        assert_eq!(environment.set["LANGUAGE"], "fr");
        assert!(environment.secrets.is_empty() && environment.pass.is_empty());
    }

    #[test]
    fn a_repository_never_hands_over_a_credential() {
        for name in [
            "MY_TOKEN",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
            "DOCKER_HOST",
            "APIKEY",
        ] {
            let asked = [entry(name, Origin::Repository { line: 3 })];
            let refused = Environment::gather(&asked, &caller()).unwrap_err();
            assert!(matches!(refused, EnvError::Credential { .. }), "{name}");
        }
    }

    #[test]
    fn a_flag_demands_and_a_file_offers() {
        let absent = |origin| Environment::gather(&[entry("NOT_THERE", origin)], &caller());
        assert_eq!(
            absent(Origin::Flag("--env")),
            Err(EnvError::Absent("NOT_THERE".to_owned()))
        );
        let offered = absent(Origin::User {
            file: "/c".into(),
            line: 1,
        })
        .unwrap();
        assert_eq!(offered, Environment::default());
    }
}
