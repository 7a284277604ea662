//! A credential that stays outside: where it may be used, for what, and where its value is found. The value itself is
//! never here.
//!
//! Must never let a value go out over a connection that others can read.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::host::{Host, HostError};
use super::rule::parse_port;

/// One credential: the room reaches `http://NAME.airlock/…`, the proxy reaches the upstream and adds the header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// `NAME` of `NAME.airlock`: one label of a host name.
    pub name: String,
    /// Where requests go, and nowhere else.
    pub upstream: Upstream,
    /// The header that carries the value, in lower case.
    pub header: String,
    /// What stands before the value in the header, such as `Bearer `.
    pub prefix: String,
    /// Where the value is found when a task begins.
    pub source: KeySource,
    /// Methods that are passed on, in upper case.
    pub methods: Vec<String>,
    /// Paths that are passed on: exactly this one, or, with a slash at its end, all below it.
    pub paths: Vec<String>,
}

/// Where the value of a credential is found, on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// A variable of the environment of whoever gives the command.
    Env(String),
    /// The first line of a file.
    File(PathBuf),
}

/// Scheme, host, port and first part of the path of an upstream. `https`, or `http` to this very host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Upstream {
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// Put before the path of every request; empty, or with a slash in front and none at its end.
    pub base: String,
}

/// A credential that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The name cannot stand before `.airlock`.
    #[error("{0:?} cannot be the name of a credential: use a-z, 0-9 and '-'")]
    Name(String),
    /// Not a URL of the wanted form.
    #[error("{0:?} is no upstream: write https://HOST[:PORT][/PATH]")]
    Upstream(String),
    /// The host in the URL is none.
    #[error("bad upstream")]
    Host(#[from] HostError),
    /// Plain HTTP would show the value to everybody on the way.
    #[error("{0:?}: a credential goes out over https only, or over http to localhost")]
    Plain(String),
    /// Not a header's name, or one that belongs to the connection.
    #[error("{0:?} is no header that can carry a credential")]
    Header(String),
    /// What stands before the value does not fit into a header.
    #[error("{0:?} cannot stand in a header")]
    Prefix(String),
    /// Not a method.
    #[error("{0:?} is no method that can be passed on")]
    Method(String),
    /// Not a path.
    #[error("{0:?} is no path: write /v1/messages, or /v1/ for all below it")]
    Path(String),
    /// Without paths nothing is passed on.
    #[error("methods and paths are needed: they say what the credential is for")]
    Nothing,
}

/// Headers that are about the connection or the body, never a credential's.
const NOT_OURS: [&str; 10] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "keep-alive",
    "content-type",
];

impl Credential {
    /// Refuses what could not be used, or not safely.
    pub fn check(&self) -> Result<(), CredentialError> {
        let label = Host::parse(&self.name).ok();
        if label.is_none_or(|label| label.labels() != 1 || label.as_str() != self.name) {
            return Err(CredentialError::Name(self.name.clone()));
        }
        let token = |text: &str| !text.is_empty() && text.bytes().all(is_token);
        let lower = self.header.to_ascii_lowercase();
        if !token(&self.header) || lower != self.header || NOT_OURS.contains(&lower.as_str()) {
            return Err(CredentialError::Header(self.header.clone()));
        }
        if !self.prefix.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            return Err(CredentialError::Prefix(self.prefix.clone()));
        }
        if self.methods.is_empty() || self.paths.is_empty() {
            return Err(CredentialError::Nothing);
        }
        for method in &self.methods {
            let special = ["CONNECT", "TRACE"].contains(&method.as_str());
            if special || method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase())
            {
                return Err(CredentialError::Method(method.clone()));
            }
        }
        for path in &self.paths {
            if !is_plain_path(path) || path.contains('?') {
                return Err(CredentialError::Path(path.clone()));
            }
        }
        Ok(())
    }

    /// Whether a request is among what the credential is for. `path` may have a query.
    pub fn takes(&self, method: &str, path: &str) -> bool {
        let path = path.split('?').next().unwrap_or_default();
        let fits =
            |own: &String| path == own || (own.ends_with('/') && path.starts_with(own.as_str()));
        self.methods.iter().any(|own| own == method)
            && is_plain_path(path)
            && self.paths.iter().any(fits)
    }

    /// The base URL in a room, without a slash at its end.
    pub fn base_url(&self) -> String {
        format!("http://{}.airlock", self.name)
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A path that every server reads as the same one: no step, no empty part, and nothing encoded but what stands for
/// itself wherever it is decoded.
fn is_plain_path(path: &str) -> bool {
    let Some(decoded) = decoded(path) else {
        return false;
    };
    // Some servers drop dots and blanks at the end of a part.
    let steps = |part: &str| !part.is_empty() && part.trim_matches(['.', ' ']).is_empty();
    path.starts_with('/')
        && path.bytes().all(|byte| (0x21..0x7f).contains(&byte))
        && !path.contains(['\\', '#', ';'])
        && !path.contains("//")
        && !decoded.split('/').any(steps)
}

/// The path with `%XX` decoded; `None` where that is something else than printable ASCII, stands for a character that
/// divides paths, or is not well-formed: servers differ in what they make of those.
fn decoded(path: &str) -> Option<String> {
    let mut parts = path.split('%');
    let mut decoded = parts.next()?.to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let two = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| two)?;
        if !(0x20..0x7f).contains(&byte) || b"./\\;%?#".contains(&byte) {
            return None;
        }
        decoded.push(char::from(byte));
        decoded.push_str(rest);
    }
    Some(decoded)
}

impl Upstream {
    /// Reads `https://HOST[:PORT][/PATH]`, or `http://localhost[:PORT][/PATH]`.
    pub fn parse(text: &str) -> Result<Self, CredentialError> {
        let bad = || CredentialError::Upstream(text.to_owned());
        let (tls, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(bad()),
        };
        let (authority, base) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, parse_port(port).ok_or_else(bad)?),
            None => (authority, if tls { 443 } else { 80 }),
        };
        let host = Host::parse(host)?;
        if super::rule::is_own(&host) {
            return Err(bad());
        }
        if !tls && !host.is_localhost() {
            return Err(CredentialError::Plain(text.to_owned()));
        }
        let base = base.trim_end_matches('/');
        if !base.is_empty() && (!is_plain_path(base) || base.contains('?')) {
            return Err(bad());
        }
        Ok(Self {
            tls,
            host,
            port,
            base: base.to_owned(),
        })
    }

    /// Host and port as the `Host` header has them: without the port that the scheme has anyway.
    pub fn authority(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl TryFrom<String> for Upstream {
    type Error = CredentialError;

    fn try_from(text: String) -> Result<Self, CredentialError> {
        Self::parse(&text)
    }
}

impl From<Upstream> for String {
    fn from(upstream: Upstream) -> Self {
        upstream.to_string()
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential() -> Credential {
        Credential {
            name: "model".to_owned(),
            upstream: Upstream::parse("https://api.example.com").unwrap(),
            header: "authorization".to_owned(),
            prefix: "Bearer ".to_owned(),
            source: KeySource::Env("MODEL_KEY".to_owned()),
            methods: vec!["GET".to_owned(), "POST".to_owned()],
            paths: vec!["/v1/messages".to_owned(), "/v1/models/".to_owned()],
        }
    }

    #[test]
    fn upstreams_are_encrypted_or_this_host() {
        for text in [
            "https://api.example.com",
            "https://api.example.com:8443/base",
            "http://localhost:18080/v1",
        ] {
            assert_eq!(Upstream::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Upstream::parse("https://a.example/").unwrap().base, "");
        let why = |text: &str| Upstream::parse(text).unwrap_err().to_string();
        insta::assert_snapshot!(why("http://api.example.com"), @r#""http://api.example.com": a credential goes out over https only, or over http to localhost"#);
        insta::assert_snapshot!(why("ftp://a.example"), @r#""ftp://a.example" is no upstream: write https://HOST[:PORT][/PATH]"#);
        for text in [
            "https://",
            "https://u@a.example",
            "https://a.example:x",
            "https://127.0.0.1",
            "https://a.example/..",
            "http://localhost.evil.test",
            "https://model.airlock",
            "https://a.example/?q",
        ] {
            assert!(Upstream::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_named_methods_and_paths_are_taken() {
        let credential = credential();
        assert_eq!(credential.check(), Ok(()));
        for (method, path) in [
            ("POST", "/v1/messages"),
            ("POST", "/v1/messages?beta=true"),
            ("GET", "/v1/models/x"),
            ("GET", "/v1/models/a%20b%3Ac"),
            ("GET", "/v1/models/x.y..z"),
        ] {
            assert!(credential.takes(method, path), "{method} {path}");
        }
        for (method, path) in [
            ("DELETE", "/v1/messages"),
            ("post", "/v1/messages"),
            ("POST", "/v1/messages/"),
            ("POST", "/v1/messagesx"),
            ("GET", "/v1/models"),
            ("GET", "/v1/models/../admin"),
            ("GET", "/v1/models/%2e%2e/admin"),
            ("GET", "/v1/models/%252e%252e/admin"),
            ("GET", "/v1/models/..;/admin"),
            ("GET", "/v1/models/..%3b/admin"),
            ("GET", "/v1/models/..%3B/admin"),
            ("GET", "/v1/models/%c0%ae%c0%ae/admin"),
            ("GET", "/v1/models/%u002e%u002e/admin"),
            ("GET", "/v1/models/x%0d%0aX-A:%20b"),
            ("GET", "/v1/models/..%09/admin"),
            ("GET", "/v1/models/..%20/admin"),
            ("GET", "/v1/models/.%20./admin"),
            ("GET", "/v1/models/.../admin"),
            ("GET", "/v1/models/x%7f"),
            ("GET", "/v1/models/x%3fy"),
            ("GET", "/v1/models/x%23y"),
            ("GET", "/v1/models/x%5Cy"),
            ("GET", "/v1/models/x%2Fy"),
            ("GET", "/v1/models/x%+1"),
            ("GET", "/v1/models/x%4"),
            ("GET", "/v1/models/x%"),
            ("GET", "/v1/models//x"),
            ("GET", "/v1/models/a\\..\\b"),
            ("GET", "/"),
            ("GET", ""),
        ] {
            assert!(!credential.takes(method, path), "{method} {path}");
        }
    }

    #[test]
    fn what_is_unsafe_is_refused() {
        let with = |change: fn(&mut Credential)| {
            let mut changed = credential();
            change(&mut changed);
            changed.check().unwrap_err()
        };
        assert!(matches!(
            with(|c| c.name = "a.b".to_owned()),
            CredentialError::Name(_)
        ));
        assert!(matches!(
            with(|c| c.name = "A".to_owned()),
            CredentialError::Name(_)
        ));
        assert!(matches!(
            with(|c| c.header = "host".to_owned()),
            CredentialError::Header(_)
        ));
        assert!(matches!(
            with(|c| c.header = "x y".to_owned()),
            CredentialError::Header(_)
        ));
        assert!(matches!(
            with(|c| c.prefix = "a\r\nb".to_owned()),
            CredentialError::Prefix(_)
        ));
        assert!(matches!(
            with(|c| c.methods = vec!["CONNECT".to_owned()]),
            CredentialError::Method(_)
        ));
        assert!(matches!(
            with(|c| c.paths = vec!["v1".to_owned()]),
            CredentialError::Path(_)
        ));
        assert_eq!(with(|c| c.paths = Vec::new()), CredentialError::Nothing);
    }

    #[test]
    fn nothing_of_a_value_is_in_it() {
        let text = serde_json::to_string(&credential()).unwrap();
        assert!(text.contains("MODEL_KEY"));
        assert_eq!(
            serde_json::from_str::<Credential>(&text).unwrap(),
            credential()
        );
    }
}
