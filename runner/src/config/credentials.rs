//! `[sandbox.credentials]` of the user's file: what stays outside, and for what it may be used. Reads values only when a
//! task begins, and hands them over apart from all that is recorded.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use sandbox::egress::{Credential, KeySource, Policy, Rule, Upstream};

use super::document::{ConfigError, Section};
use super::origin::Given;
use crate::exit::{Exit, Failure};
use crate::task::Key;

/// Longest file that holds a value, in bytes.
const LONGEST: u64 = 64 << 10;

/// Reads all of them. `home` stands for `~`.
pub(super) fn read(
    section: &Section<'_>,
    home: Option<&Path>,
) -> Result<BTreeMap<String, Given<Credential>>, ConfigError> {
    let one = |name: String| {
        let credential = credential(&section.section(&name)?, &name, home)?;
        let given = Given::new(credential, section.origin(&name));
        Ok((name, given))
    };
    section.keys().into_iter().map(one).collect()
}

fn credential(
    section: &Section<'_>,
    name: &str,
    home: Option<&Path>,
) -> Result<Credential, ConfigError> {
    section.only(&[
        "env", "file", "header", "methods", "paths", "prefix", "upstream",
    ])?;
    let texts = |key| {
        let texts = section.texts(key)?;
        Ok(texts.into_iter().map(|text| text.value).collect::<Vec<_>>())
    };
    let needed = |key, what: &str| section.bad(key, &format!("{what} is missing"));
    let upstream = section.read("upstream", Upstream::parse)?.ok_or_else(|| {
        needed(
            "upstream",
            "where requests go, such as https://api.example.com,",
        )
    })?;
    let source = match (section.text("env")?, section.text("file")?) {
        (Some(name), None) => KeySource::Env(name.value),
        (None, Some(file)) => KeySource::File(path(section, &file.value, home)?),
        (Some(_), Some(_)) => {
            return Err(section.bad("file", &"env and file cannot both hold the value"));
        }
        (None, None) => {
            return Err(needed(
                "env",
                "the variable or the file that holds the value",
            ));
        }
    };
    let header = section.text("header")?.map_or_else(
        || "authorization".to_owned(),
        |name| name.value.to_ascii_lowercase(),
    );
    let usual = if header == "authorization" {
        "Bearer "
    } else {
        ""
    };
    let mut methods: Vec<String> = texts("methods")?;
    if methods.is_empty() {
        methods = ["GET", "POST"].map(str::to_owned).to_vec();
    }
    let credential = Credential {
        name: name.to_owned(),
        upstream: upstream.value,
        prefix: section
            .text("prefix")?
            .map_or_else(|| usual.to_owned(), |prefix| prefix.value),
        header,
        source,
        methods,
        paths: texts("paths")?,
    };
    match credential.check() {
        Ok(()) => Ok(credential),
        Err(problem) => Err(section.bad("paths", &problem)),
    }
}

fn path(section: &Section<'_>, text: &str, home: Option<&Path>) -> Result<PathBuf, ConfigError> {
    match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Ok(home.join(rest)),
        (None, _) if text.starts_with('/') => Ok(PathBuf::from(text)),
        _ => Err(section.bad(
            "file",
            &format!("{text:?} is neither absolute nor below ~/"),
        )),
    }
}

/// The credentials that a list names.
pub(super) fn named(
    policy: Option<&Policy>,
    known: &BTreeMap<String, Given<Credential>>,
) -> Result<Vec<Credential>, Failure> {
    let names = policy
        .into_iter()
        .flat_map(Policy::rules)
        .filter_map(|rule| match rule {
            Rule::Credential(name) => Some(name),
            Rule::Group(_) | Rule::Name { .. } | Rule::Below { .. } => None,
        });
    let find = |name: &String| {
        known
            .get(name)
            .map(|given| given.value.clone())
            .ok_or_else(|| {
                Failure::usage(format!(
                    "{name}.airlock is on the list, and there is no credential {name}"
                ))
                .advise(format!(
                    "say what it is in [sandbox.credentials.{name}] of your config.toml"
                ))
            })
    };
    names.map(find).collect()
}

/// The values of these credentials, by name; those that are not there are left out.
pub fn keys(
    credentials: &[Credential],
    caller: &BTreeMap<OsString, OsString>,
) -> Result<BTreeMap<String, Key>, Failure> {
    let mut keys = BTreeMap::new();
    for credential in credentials {
        let value = match &credential.source {
            KeySource::Env(name) => caller
                .get(OsStr::new(name))
                .map(|value| value.to_string_lossy().into_owned()),
            KeySource::File(path) => Some(first_line(path)?),
        };
        if let Some(value) = value {
            let key = Key::new(value).ok_or_else(|| {
                Failure::usage(format!(
                    "the value of the credential {} cannot stand in a header",
                    credential.name
                ))
                .advise(format!("look at {}", place(credential)))
            })?;
            keys.insert(credential.name.clone(), key);
        }
    }
    Ok(keys)
}

/// Where the value of a credential is looked for, in words.
pub fn place(credential: &Credential) -> String {
    match &credential.source {
        KeySource::Env(name) => format!("the variable {name} of your environment"),
        KeySource::File(path) => path.display().to_string(),
    }
}

fn first_line(path: &Path) -> Result<String, Failure> {
    let fail = |error: std::io::Error| Failure {
        causes: vec![error.to_string()],
        ..Failure::new(
            Exit::Usage,
            format!("cannot read the credential in {}", path.display()),
        )
    };
    let mut text = String::new();
    let file = File::open(path).map_err(fail)?;
    file.take(LONGEST).read_to_string(&mut text).map_err(fail)?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document::Source;
    use crate::config::file;

    fn user(text: &str) -> Result<BTreeMap<String, Given<Credential>>, ConfigError> {
        let source = Source::User(PathBuf::from("/c"));
        file::read(source, text.as_bytes(), Some(Path::new("/home/a")))
            .map(|wishes| wishes.credentials)
    }

    const MODEL: &str = "[sandbox.credentials.model]\nupstream = \"https://api.example.com\"\nenv = \"MODEL_KEY\"\npaths = [\"/v1/\"]\n";

    #[test]
    fn what_is_usual_need_not_be_said() {
        let credentials = user(MODEL).unwrap();
        let model = &credentials["model"].value;
        assert_eq!(
            (model.header.as_str(), model.prefix.as_str()),
            ("authorization", "Bearer ")
        );
        assert_eq!(model.methods, ["GET", "POST"]);
        let file = MODEL.replace(
            "env = \"MODEL_KEY\"",
            "file = \"~/key\"\nheader = \"X-Api-Key\"",
        );
        let model = user(&file).unwrap()["model"].value.clone();
        assert_eq!(
            (model.header.as_str(), model.prefix.as_str()),
            ("x-api-key", "")
        );
        assert_eq!(model.source, KeySource::File(PathBuf::from("/home/a/key")));
    }

    #[test]
    fn what_is_missing_or_unsafe_is_said() {
        let why = |text: &str| user(text).unwrap_err().to_string();
        insta::assert_snapshot!(why(&MODEL.replace("paths", "path")), @"/c:4: unknown key `sandbox.credentials.model.path`, did you mean `paths`?");
        insta::assert_snapshot!(why(&MODEL.replace("paths = [\"/v1/\"]", "")), @"/c:1: bad value for `sandbox.credentials.model.paths`: methods and paths are needed: they say what the credential is for");
        insta::assert_snapshot!(why(&MODEL.replace("https", "http")), @r#"/c:2: bad value for `sandbox.credentials.model.upstream`: "http://api.example.com": a credential goes out over https only, or over http to localhost"#);
        insta::assert_snapshot!(why(&MODEL.replace("env = \"MODEL_KEY\"", "")), @"/c:1: bad value for `sandbox.credentials.model.env`: the variable or the file that holds the value is missing");
    }

    #[test]
    fn a_repository_has_no_credentials() {
        let refused = file::read(Source::Repository, MODEL.as_bytes(), None).unwrap_err();
        insta::assert_snapshot!(refused, @"airlock.toml:1: bad value for `sandbox.credentials`: credentials are set in your own config.toml only");
    }

    #[test]
    fn only_named_credentials_are_taken_and_values_are_apart() {
        let known = user(MODEL).unwrap();
        let policy: Policy = "npm,model.airlock".parse().unwrap();
        let credentials = named(Some(&policy), &known).unwrap();
        let caller = BTreeMap::from([(OsString::from("MODEL_KEY"), OsString::from("s3cret"))]);
        let keys = keys(&credentials, &caller).unwrap();
        assert_eq!(keys["model"].reveal(), "s3cret");
        assert!(!format!("{keys:?}").contains("s3cret"));
        assert!(
            !serde_json::to_string(&credentials)
                .unwrap()
                .contains("s3cret")
        );
        assert!(
            named(Some(&"npm".parse().unwrap()), &known)
                .unwrap()
                .is_empty()
        );
        let unknown = named(Some(&"other.airlock".parse().unwrap()), &known).unwrap_err();
        assert!(unknown.what.contains("no credential other"), "{unknown}");
    }
}
