//! What the proxy itself says to a room, in the words of the protocol that was spoken.

use sandbox::egress::{socks_answer, socks_code};

/// How a client asked for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// `CONNECT`.
    Connect,
    /// SOCKS5.
    Socks,
    /// By a name of the room's own, through the relay: nothing is answered.
    ByName,
}

impl Asked {
    /// The connection stands.
    pub(super) fn done(self) -> Vec<u8> {
        match self {
            Self::Connect => b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec(),
            Self::Socks => socks_answer(socks_code::DONE).to_vec(),
            Self::ByName => Vec::new(),
        }
    }

    /// It may not be.
    pub(super) fn refused(self, why: &str) -> Vec<u8> {
        match self {
            Self::Connect => http("403 Forbidden", why),
            Self::Socks => socks_answer(socks_code::REFUSED).to_vec(),
            Self::ByName => Vec::new(),
        }
    }

    /// It cannot be.
    pub(super) fn unreachable(self, why: &str) -> Vec<u8> {
        match self {
            Self::Connect => http("502 Bad Gateway", why),
            Self::Socks => socks_answer(socks_code::UNREACHABLE).to_vec(),
            Self::ByName => Vec::new(),
        }
    }
}

/// A whole answer of plain text.
pub(super) fn http(status: &str, text: &str) -> Vec<u8> {
    let length = text.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nX-Airlock: proxy\r\nConnection: close\r\n\r\n{text}"
    )
    .into_bytes()
}

/// TLS: there is no such name here.
pub(super) const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];
