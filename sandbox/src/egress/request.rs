//! HTTP/1 as a proxy has to read it: the head of a request, the head of an answer, and where a body ends.
//!
//! What is passed on is written anew from what was understood, so that no two readers can see two requests in it.
//! Must never pass on a head that can be read in two ways.

use super::host::Host;
use super::judge::Target;
use super::refusal::Refusal;
use super::rule::parse_port;

/// Longest head, in bytes.
pub(super) const LONGEST_HEAD: usize = 64 << 10;
/// Most header lines.
const MOST_LINES: usize = 128;

/// How a request has to be written.
#[derive(Debug, Clone, Copy)]
pub enum Form<'t> {
    /// To a proxy: `CONNECT host:port`, or a whole `http://` URL.
    Proxy,
    /// To this host, over a connection that leads nowhere else: a path alone.
    Inner(&'t Target),
}

/// A request that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Bytes are to go both ways.
    Tunnel(Target),
    /// One request and its answer.
    Exchange(Exchange),
}

/// One plain HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Where it goes.
    pub target: Target,
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// How its body ends.
    pub body: Body,
    /// Header lines that are passed on: none about the connection, the host or the length.
    fields: Vec<(String, Vec<u8>)>,
    /// HTTP/1.0 or 1.1.
    minor: u8,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// There is none.
    None,
    /// After this many bytes.
    Sized(u64),
    /// With a chunk of no bytes.
    Chunked,
}

/// A request that is not passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Not HTTP, or HTTP that could be read in two ways.
    #[error("{0}")]
    Malformed(&'static str),
    /// Longer than any that is met.
    #[error("the head is longer than {LONGEST_HEAD} bytes or has more than {MOST_LINES} lines")]
    TooLong,
    /// Understood, and against the rules.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Headers that end at the next hop, or that are written anew.
const OF_ONE_HOP: [&str; 12] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "content-length",
    "http2-settings",
];

/// Headers that carry a credential, or ask for an answer in pieces or in another coding.
const NOT_WITH_A_CREDENTIAL: [&str; 8] = [
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "accept-encoding",
    "range",
    "if-range",
];

/// How headers begin by which some servers take another method, path, host or client than the request names.
const OF_ANOTHER_REQUEST: [&str; 13] = [
    "forwarded",
    "x-forwarded",
    "x-http-method",
    "x-method",
    "x-original",
    "x-override",
    "x-rewrite",
    "x-envoy",
    "x-host",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
];

/// Reads the head of a request. `None`: it is not whole. Else how many bytes it had, and what it asks for.
pub fn read_request(
    bytes: &[u8],
    form: Form<'_>,
) -> Result<Option<(usize, Request)>, RequestError> {
    let mut lines = [httparse::EMPTY_HEADER; MOST_LINES];
    let mut head = httparse::Request::new(&mut lines);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= LONGEST_HEAD => length,
        Ok(httparse::Status::Partial) if bytes.len() <= LONGEST_HEAD => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(RequestError::TooLong),
        Err(_) => return Err(RequestError::Malformed("this is not an HTTP/1 request")),
    };
    if !ends_are_whole(bytes.get(..length).unwrap_or_default()) {
        return Err(RequestError::Malformed("lines must end with CR LF"));
    }
    let (Some(method), Some(path), Some(minor)) = (head.method, head.path, head.version) else {
        return Err(RequestError::Malformed("this is not an HTTP/1 request"));
    };
    let fields = Lines(head.headers);
    let body = fields.body(minor)?;
    if method == "CONNECT" {
        if body != Body::None {
            return Err(RequestError::Malformed("CONNECT has no body"));
        }
        let Form::Proxy = form else {
            return Err(RequestError::Malformed("CONNECT within a connection"));
        };
        let target = tunnel(path)?;
        fields.agree(&target, false)?;
        return Ok(Some((length, Request::Tunnel(target))));
    }
    if method == "TRACE" {
        return Err(RequestError::Malformed("TRACE is not passed on"));
    }
    let (target, path) = match form {
        Form::Proxy => absolute(path)?,
        Form::Inner(target) if path.starts_with('/') => (target.clone(), path),
        Form::Inner(_) => return Err(RequestError::Malformed("the path must begin with a slash")),
    };
    fields.agree(&target, minor > 0 || matches!(form, Form::Inner(_)))?;
    Ok(Some((
        length,
        Request::Exchange(Exchange {
            target,
            method: method.to_owned(),
            path: path.to_owned(),
            body,
            fields: fields.passed_on(),
            minor,
        }),
    )))
}

/// Whether each line feed has its carriage return.
fn ends_are_whole(head: &[u8]) -> bool {
    let mut before = 0;
    head.iter().all(|byte| {
        let good = *byte != b'\n' || before == b'\r';
        before = *byte;
        good
    })
}

/// `host:port`, the port always there.
fn tunnel(text: &str) -> Result<Target, RequestError> {
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(RequestError::Malformed("CONNECT needs HOST:PORT"));
    };
    let port = parse_port(port).ok_or(RequestError::Malformed("the port is no number"))?;
    Ok(Target {
        host: name(host, Some(port))?,
        port,
    })
}

fn name(text: &str, port: Option<u16>) -> Result<Host, Refusal> {
    Host::parse(text).map_err(|error| Refusal::of_name(text, port, &error))
}

/// `http://host[:port]/path`: where to, and the path.
fn absolute(url: &str) -> Result<(Target, &str), RequestError> {
    const SCHEME: &str = "http://";
    let scheme = url.get(..SCHEME.len());
    let Some(rest) = scheme
        .filter(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
        .and_then(|_| url.get(SCHEME.len()..))
    else {
        return Err(RequestError::Malformed(
            "a proxy takes CONNECT HOST:PORT or a whole http:// URL",
        ));
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    if path.contains('#') {
        return Err(RequestError::Malformed("a fragment is not sent"));
    }
    if authority.contains('@') {
        return Err(RequestError::Refused(Refusal::Name {
            text: authority.chars().take(256).collect(),
        }));
    }
    let target = authority_of(authority, 80)?;
    match path {
        "" => Ok((target, "/")),
        path if path.starts_with('/') => Ok((target, path)),
        _ => Err(RequestError::Malformed("the path must begin with a slash")),
    }
}

fn authority_of(text: &str, usual: u16) -> Result<Target, RequestError> {
    // More than one colon is an address, which the name's own reader refuses.
    let (host, port) = match text
        .rsplit_once(':')
        .filter(|(host, _)| !host.contains(':'))
    {
        Some((host, port)) => {
            let port = parse_port(port).ok_or(RequestError::Malformed("the port is no number"))?;
            (host, port)
        }
        None => (text, usual),
    };
    Ok(Target {
        host: name(host, Some(port))?,
        port,
    })
}

/// The header lines of a head.
struct Lines<'h>(&'h [httparse::Header<'h>]);

impl<'h> Lines<'h> {
    fn all(&self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        let lines = self.0.iter();
        lines
            .filter(move |line| line.name.eq_ignore_ascii_case(name))
            .map(|line| line.value)
    }

    fn one(&self, name: &str) -> Result<Option<&'h str>, RequestError> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => std::str::from_utf8(value)
                .map(Some)
                .map_err(|_not_text| RequestError::Malformed("a header that must be text is none")),
            (Some(_), Some(_)) => Err(RequestError::Malformed(
                "a header that must be alone is there twice",
            )),
        }
    }

    /// `Host` says the same as the target.
    fn agree(&self, target: &Target, needed: bool) -> Result<(), RequestError> {
        let Some(text) = self.one("host")? else {
            return if needed {
                Err(RequestError::Malformed("there is no Host"))
            } else {
                Ok(())
            };
        };
        let other = |found: &str| Refusal::OtherHost {
            target: target.clone(),
            found: found.chars().take(256).collect(),
        };
        // Some clients leave the port of a tunnel out here.
        let usual = if needed { 80 } else { target.port };
        let said = authority_of(text, usual).map_err(|_not_a_name| other(text))?;
        if said == *target {
            Ok(())
        } else {
            Err(other(text).into())
        }
    }

    fn body(&self, minor: u8) -> Result<Body, RequestError> {
        let length = self.one("content-length")?;
        let coding = self.one("transfer-encoding")?;
        match (length, coding) {
            (None, None) => Ok(Body::None),
            (Some(digits), None) => {
                let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                let length = plain.then(|| digits.parse().ok()).flatten();
                length
                    .map(|length| {
                        if length == 0 {
                            Body::None
                        } else {
                            Body::Sized(length)
                        }
                    })
                    .ok_or(RequestError::Malformed("Content-Length is no number"))
            }
            (None, Some(coding)) if minor > 0 && coding.eq_ignore_ascii_case("chunked") => {
                Ok(Body::Chunked)
            }
            (None, Some(_)) => Err(RequestError::Malformed(
                "this Transfer-Encoding is not understood",
            )),
            (Some(_), Some(_)) => Err(RequestError::Malformed(
                "Content-Length and Transfer-Encoding contradict each other",
            )),
        }
    }

    /// What is meant for the other end: nothing about this hop, and nothing that `Connection` names.
    fn passed_on(&self) -> Vec<(String, Vec<u8>)> {
        let named: Vec<String> = self
            .all("connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase())
            .collect();
        let kept = self.0.iter().filter(|line| {
            let name = line.name.to_ascii_lowercase();
            !OF_ONE_HOP.contains(&name.as_str()) && !named.contains(&name)
        });
        kept.map(|line| (line.name.to_owned(), line.value.to_vec()))
            .collect()
    }
}

impl Exchange {
    /// The head for the other end. `authority` is for `Host`; `path` with the query.
    pub fn head(&self, authority: &str, path: &str) -> Vec<u8> {
        let mut head = format!(
            "{} {path} HTTP/1.{}\r\nHost: {authority}\r\n",
            self.method, self.minor
        )
        .into_bytes();
        lines(&mut head, &self.fields);
        let length = match self.body {
            // A server takes the absence of a length for an empty body; where a body is usual, say so.
            Body::None if ["POST", "PUT", "PATCH"].contains(&self.method.as_str()) => {
                "Content-Length: 0\r\n".to_owned()
            }
            Body::None => String::new(),
            Body::Sized(length) => format!("Content-Length: {length}\r\n"),
            Body::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
        };
        head.extend_from_slice(length.as_bytes());
        head.extend_from_slice(b"Connection: close\r\n\r\n");
        head
    }

    /// Puts this header in place of all of the same name, of all others that carry a credential, and of all that make
    /// another request of this one behind the back of whoever judged it. The answer is asked for as it is, so that the
    /// value can be found in it.
    pub fn authorize(&mut self, name: &str, value: &str) {
        // Gateways make one of both signs.
        let plain = |line: &str| line.to_ascii_lowercase().replace('_', "-");
        let own = plain(name);
        self.fields.retain(|(line, _)| {
            let line = plain(line);
            line != own
                && !NOT_WITH_A_CREDENTIAL.contains(&line.as_str())
                && !OF_ANOTHER_REQUEST
                    .iter()
                    .any(|begins| line.starts_with(begins))
        });
        for (name, value) in [("accept-encoding", "identity"), (name, value)] {
            self.fields
                .push((name.to_owned(), value.as_bytes().to_vec()));
        }
    }
}

fn lines(head: &mut Vec<u8>, fields: &[(String, Vec<u8>)]) {
    for (name, value) in fields {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
}

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// How many bytes it had.
    pub length: usize,
    /// The status.
    pub status: u16,
    /// Whether the body, if there is one, comes in chunks.
    pub chunked: bool,
    /// The head as it is passed on: the connection ends with the answer.
    pub head: Vec<u8>,
}

/// Reads the head of an answer. `None`: it is not whole.
pub fn read_response(bytes: &[u8]) -> Result<Option<Response>, RequestError> {
    let mut storage = [httparse::EMPTY_HEADER; MOST_LINES];
    let mut head = httparse::Response::new(&mut storage);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= LONGEST_HEAD => length,
        Ok(httparse::Status::Partial) if bytes.len() <= LONGEST_HEAD => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(RequestError::TooLong),
        Err(_) => return Err(RequestError::Malformed("the answer is not HTTP/1")),
    };
    let (Some(status), Some(minor)) = (head.code, head.version) else {
        return Err(RequestError::Malformed("the answer is not HTTP/1"));
    };
    let reason = head.reason.unwrap_or_default();
    let mut written = format!("HTTP/1.{minor} {status} {reason}\r\n").into_bytes();
    let chunked = Lines(head.headers)
        .all("transfer-encoding")
        .any(|coding| coding.to_ascii_lowercase().ends_with(b"chunked"));
    for line in head.headers.iter() {
        let of_hop = [
            "connection",
            "keep-alive",
            "proxy-connection",
            "upgrade",
            "alt-svc",
        ];
        if !of_hop.contains(&line.name.to_ascii_lowercase().as_str()) {
            lines(&mut written, &[(line.name.to_owned(), line.value.to_vec())]);
        }
    }
    // An answer of the meantime says nothing about the connection.
    let end: &[u8] = if (100..200).contains(&status) {
        b"\r\n"
    } else {
        b"Connection: close\r\n\r\n"
    };
    written.extend_from_slice(end);
    Ok(Some(Response {
        length,
        status,
        chunked,
        head: written,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exchange(text: &str) -> Exchange {
        match read_request(text.as_bytes(), Form::Proxy) {
            Ok(Some((_, Request::Exchange(exchange)))) => exchange,
            other => panic!("{other:?}"),
        }
    }

    fn refused(text: &str) -> RequestError {
        read_request(text.as_bytes(), Form::Proxy).expect_err(text)
    }

    #[test]
    fn what_is_passed_on_is_written_anew() {
        let text = "POST HTTP://Example.org:80/a?b=c HTTP/1.1\r\nhost: EXAMPLE.ORG\r\nAccept: */*\r\nConnection: X-Hop, keep-alive\r\n\
                    X-Hop: 1\r\nProxy-Authorization: Basic eA==\r\nUpgrade: h2c\r\nTE: trailers\r\nContent-Length: 3\r\n\r\nabc";
        let mut exchange = exchange(text);
        assert_eq!(
            (exchange.target.host.as_str(), exchange.target.port),
            ("example.org", 80)
        );
        let head = exchange.head("example.org", &exchange.path);
        insta::assert_snapshot!(String::from_utf8(head).unwrap().replace('\r', ""), @r"
        POST /a?b=c HTTP/1.1
        Host: example.org
        Accept: */*
        Content-Length: 3
        Connection: close
        ");
        exchange.authorize("x-api-key", "secret");
        let head = String::from_utf8(exchange.head("example.org", "/")).unwrap();
        assert!(head.contains("x-api-key: secret\r\n"));
    }

    #[test]
    fn a_credential_replaces_what_the_client_says() {
        let text = "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nAuthorization: Bearer x\r\nX-Api-Key: y\r\nCookie: z\r\n\r\n";
        let mut exchange = exchange(text);
        exchange.authorize("authorization", "Bearer true");
        let head = String::from_utf8(exchange.head("a.org", "/")).unwrap();
        assert_eq!(head.matches("uthorization").count(), 1);
        assert!(
            head.contains("Bearer true")
                && !head.contains("Bearer x")
                && !head.contains(": y")
                && !head.contains(": z")
        );
    }

    #[test]
    fn target_and_host_agree() {
        for text in [
            "GET http://127.0.0.1:80/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nHost: b.org\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org:81\r\n\r\n",
            "GET http://a.org@b.org/ HTTP/1.1\r\nHost: b.org\r\n\r\n",
            "CONNECT a.org:443 HTTP/1.1\r\nHost: b.org:443\r\n\r\n",
            "CONNECT a.org:443 HTTP/1.1\r\nHost: a.org:80\r\n\r\n",
            "CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n",
            "CONNECT [::1]:443 HTTP/1.1\r\n\r\n",
            "CONNECT 2130706433:443 HTTP/1.1\r\n\r\n",
        ] {
            assert!(matches!(refused(text), RequestError::Refused(_)), "{text}");
        }
        for text in [
            "CONNECT a.org:443 HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "CONNECT a.org:22 HTTP/1.1\r\n\r\n",
        ] {
            assert!(matches!(
                read_request(text.as_bytes(), Form::Proxy),
                Ok(Some((_, Request::Tunnel(_))))
            ));
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for lines in [
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
            "Content-Length: 3\r\nContent-Length: 3",
            "Content-Length: +3",
            "Content-Length: 3, 3",
            "Content-Length: 0x3",
            "Content-Length: 99999999999999999999999",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding : chunked",
            "Host: a.org",
            "X: a\n Y: b",
            "X: a\r\n folded",
        ] {
            let text = format!("POST http://a.org/ HTTP/1.1\r\nHost: a.org\r\n{lines}\r\n\r\n");
            assert!(
                matches!(refused(&text), RequestError::Malformed(_)),
                "{lines}"
            );
        }
        for text in [
            "GET / HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "GET https://a.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org/ HTTP/2.0\r\nHost: a.org\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\nHost: a.org\n\n",
            "TRACE http://a.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "CONNECT a.org HTTP/1.1\r\n\r\n",
            "CONNECT a.org:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
            "POST http://a.org/ HTTP/1.0\r\nHost: a.org\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert!(
                matches!(refused(text), RequestError::Malformed(_)),
                "{text}"
            );
        }
        let long = format!(
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nX: {}",
            "a".repeat(LONGEST_HEAD)
        );
        assert_eq!(refused(&long), RequestError::TooLong);
        let many = format!(
            "GET http://a.org/ HTTP/1.1\r\n{}\r\n",
            "X: a\r\n".repeat(200)
        );
        assert_eq!(refused(&many), RequestError::TooLong);
    }

    #[test]
    fn within_a_connection_only_its_own_host_is_spoken_to() {
        let target = Target {
            host: Host::parse("a.org").unwrap(),
            port: 80,
        };
        let read = |text: &str| read_request(text.as_bytes(), Form::Inner(&target));
        assert!(matches!(
            read("GET /x HTTP/1.1\r\nHost: a.org\r\n\r\n"),
            Ok(Some((_, Request::Exchange(_))))
        ));
        for text in [
            "GET /x HTTP/1.1\r\nHost: b.org\r\n\r\n",
            "GET /x HTTP/1.1\r\n\r\n",
            "GET http://b.org/ HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "CONNECT b.org:443 HTTP/1.1\r\nHost: a.org\r\n\r\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn with_a_credential_nothing_goes_along_that_makes_another_request_of_it() {
        let mut request = exchange(
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nX-HTTP-Method-Override: DELETE\r\nX_Http_Method: PUT\r\n\
             X-Method-Override: PUT\r\nX-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\nX-Forwarded-Host: b.org\r\n\
             Forwarded: host=b.org\r\nX-Key: dummy\r\nx_key: dummy\r\nCookie: a\r\nAccept-Encoding: gzip\r\n\
             Range: bytes=0-3\r\nAccept: */*\r\n\r\n",
        );
        request.authorize("x-key", "value");
        let head = String::from_utf8(request.head("a.org", "/")).unwrap();
        insta::assert_snapshot!(head.replace('\r', ""), @r"
        GET / HTTP/1.1
        Host: a.org
        Accept: */*
        accept-encoding: identity
        x-key: value
        Connection: close
        ");
    }

    #[test]
    fn an_answer_says_that_the_connection_ends() {
        let text = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nhi";
        let answer = read_response(text).unwrap().unwrap();
        assert_eq!((answer.status, answer.length), (200, text.len() - 2));
        insta::assert_snapshot!(String::from_utf8(answer.head).unwrap().replace('\r', ""), @r"
        HTTP/1.1 200 OK
        Content-Length: 2
        Connection: close
        ");
        let meanwhile = read_response(b"HTTP/1.1 100 Continue\r\n\r\n")
            .unwrap()
            .unwrap();
        assert_eq!(meanwhile.head, b"HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(read_response(b"HTTP/1.1 200"), Ok(None));
        assert!(read_response(b"SSH-2.0-x\r\n\r\n").is_err());
        let chunked = |text: &[u8]| read_response(text).unwrap().unwrap().chunked;
        assert!(chunked(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
        ));
        assert!(!chunked(text));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_passed_on_is_read_as_the_same_request_again(
            method in "GET|POST|PUT|DELETE|HEAD", host in "[a-z]{1,8}\\.(org|test)", port in prop::sample::select(vec![80u16, 8080]),
            path in "(/[a-z0-9%?=&.]{0,12}){1,4}", fields in prop::collection::vec(("X-[A-Za-z]{1,8}", "[ -~]{0,20}"), 0..6),
            body in prop::sample::select(vec!["", "Content-Length: 7\r\n", "Transfer-Encoding: chunked\r\n"]), cut in any::<prop::sample::Index>()
        ) {
            let lines: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let lines = lines.concat();
            let authority = if port == 80 { host.clone() } else { format!("{host}:{port}") };
            let text = format!("{method} http://{authority}{path} HTTP/1.1\r\nHost: {authority}\r\n{lines}{body}\r\n");
            let once = exchange(&text);
            prop_assert_eq!(read_request(&text.as_bytes()[..cut.index(text.len())], Form::Proxy), Ok(None));
            let head = once.head(&authority, &once.path);
            match read_request(&head, Form::Inner(&once.target)) {
                Ok(Some((length, Request::Exchange(again)))) => {
                    prop_assert_eq!(length, head.len());
                    prop_assert_eq!(&again.path, &once.path);
                    prop_assert_eq!(again.body, once.body);
                    prop_assert_eq!(again.head(&authority, &again.path), head);
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(noise in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            drop(read_request(&noise, Form::Proxy));
            drop(read_response(&noise));
            let mut near = b"POST http://allowed.test/x HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\n\r\n".to_vec();
            let at = at.index(near.len());
            near[at] = byte;
            if let Ok(Some((length, Request::Exchange(exchange)))) = read_request(&near, Form::Proxy) {
                prop_assert!(length <= near.len());
                prop_assert_eq!(exchange.target.host.as_str(), "allowed.test");
                let head = exchange.head("allowed.test", &exchange.path);
                prop_assert!(read_request(&head, Form::Inner(&exchange.target)).is_ok_and(|read| read.is_some_and(|(length, _)| length == head.len())));
            }
        }
    }
}
