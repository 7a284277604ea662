//! As much of HTTP/1.1 as agents' clients use: a request with a body of known length or in chunks, an
//! answer in one piece or as events. Bounds: [`LONGEST_HEAD`] and [`LONGEST_BODY`]; what is longer or
//! malformed ends the connection. Knows no model.

use std::io;

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};

use serde_json::Value;

use super::Reply;

/// Bytes of a request's head.
const LONGEST_HEAD: usize = 64 << 10;
/// Bytes of a request's body.
const LONGEST_BODY: usize = 32 << 20;

/// A request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// The first header of a name, given in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        all.find(|(own, _)| own == name)
            .map(|(_, value)| value.as_str())
    }

    /// Reads the next one; none at the end of the connection.
    pub(super) async fn read<S>(stream: &mut BufReader<S>) -> io::Result<Option<Self>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut left = LONGEST_HEAD;
        let first = line(stream, &mut left).await?;
        let mut words = first.split_ascii_whitespace();
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Ok(None);
        };
        let mut request = Self {
            method: method.to_owned(),
            path: target.split('?').next().unwrap_or_default().to_owned(),
            ..Self::default()
        };
        loop {
            let text = line(stream, &mut left).await?;
            if text.is_empty() {
                break;
            }
            let (name, value) = text
                .split_once(':')
                .ok_or_else(|| bad("a header without a colon"))?;
            request
                .headers
                .push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
        if request.header("expect").is_some() {
            stream
                .get_mut()
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await?;
        }
        request.body = request.read_body(stream).await?;
        Ok(Some(request))
    }

    async fn read_body<S>(&self, stream: &mut BufReader<S>) -> io::Result<Vec<u8>>
    where
        S: AsyncRead + Unpin,
    {
        let mut body = Vec::new();
        if self.header("transfer-encoding").is_some() {
            loop {
                let mut left = 1 << 10;
                let size = line(stream, &mut left).await?;
                let size = size.split(';').next().unwrap_or_default().trim();
                let size =
                    usize::from_str_radix(size, 16).map_err(|_not_one| bad("a bad chunk"))?;
                piece(stream, size, &mut body).await?;
                line(stream, &mut left).await?;
                if size == 0 {
                    return Ok(body);
                }
            }
        }
        let length = self.header("content-length").map_or(Ok(0), str::parse);
        piece(
            stream,
            length.map_err(|_not_one| bad("a bad length"))?,
            &mut body,
        )
        .await?;
        Ok(body)
    }
}

fn bad(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

async fn piece<S>(stream: &mut BufReader<S>, size: usize, body: &mut Vec<u8>) -> io::Result<()>
where
    S: AsyncRead + Unpin,
{
    if size > LONGEST_BODY - body.len().min(LONGEST_BODY) {
        return Err(bad("a body that is too long"));
    }
    let before = body.len();
    body.resize(before + size, 0);
    stream
        .read_exact(body.get_mut(before..).unwrap_or_default())
        .await?;
    Ok(())
}

/// A line without its end; empty at the end of the stream, too.
async fn line<S>(stream: &mut BufReader<S>, left: &mut usize) -> io::Result<String>
where
    S: AsyncRead + Unpin,
{
    let mut bytes = Vec::new();
    let most = u64::try_from(*left).unwrap_or(u64::MAX);
    let read = stream.take(most).read_until(b'\n', &mut bytes).await?;
    *left -= read.min(*left);
    if read > 0 && bytes.last() != Some(&b'\n') {
        return Err(bad("a line that is too long or torn"));
    }
    Ok(String::from_utf8_lossy(&bytes)
        .trim_end_matches(['\r', '\n'])
        .to_owned())
}

/// Writes an answer. `body`: whether the client wants more than the head.
pub(super) async fn write<S>(
    stream: &mut S,
    status: &str,
    reply: &Reply,
    body: bool,
) -> io::Result<()>
where
    S: AsyncWrite + Unpin,
{
    let (kind, text) = match reply {
        Reply::One(value) => ("application/json", value.to_string()),
        Reply::Events { events, end } => {
            let event = |(name, data): &(Option<&str>, Value)| {
                let name = name.map_or_else(String::new, |name| format!("event: {name}\n"));
                format!("{name}data: {data}\n\n")
            };
            let end = end.map(|end| format!("data: {end}\n\n"));
            let pieces: Vec<String> = events.iter().map(event).chain(end).collect();
            ("text/event-stream", pieces.concat())
        }
    };
    let length = text.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\ncache-control: no-cache\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    if body {
        stream.write_all(text.as_bytes()).await?;
    }
    stream.flush().await
}
