//! SOCKS5 as far as it is let in: no sign-in, CONNECT, names.
//!
//! Must never take an address in place of a name.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::host::Host;
use super::judge::Target;
use super::refusal::Refusal;

const VERSION: u8 = 5;
const CONNECT: u8 = 1;

/// Codes of an answer.
pub mod code {
    /// The connection stands.
    pub const DONE: u8 = 0;
    /// The host could not be reached.
    pub const UNREACHABLE: u8 = 4;
    /// Against the rules.
    pub const REFUSED: u8 = 2;
    /// Another command than CONNECT.
    pub const COMMAND: u8 = 7;
    /// A kind of address that is not known.
    pub const KIND: u8 = 8;
}

/// What is wrong with a SOCKS request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SocksError {
    /// Not SOCKS5.
    #[error("this is not SOCKS5")]
    Malformed,
    /// Another command than CONNECT.
    #[error("only CONNECT is let in")]
    Command,
    /// Understood, and against the rules.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl SocksError {
    /// The code of the answer.
    pub fn code(&self) -> u8 {
        match self {
            Self::Malformed => code::KIND,
            Self::Command => code::COMMAND,
            Self::Refused(_) => code::REFUSED,
        }
    }
}

/// Reads the greeting. `None`: it is not whole. Else how many bytes it had, and the answer to it; an answer that ends
/// with 255 ends the conversation.
pub fn read_greeting(bytes: &[u8]) -> Result<Option<(usize, [u8; 2])>, SocksError> {
    match bytes {
        [] | [VERSION] => Ok(None),
        [VERSION, count, rest @ ..] => {
            let count = usize::from(*count);
            let Some(offered) = rest.get(..count) else {
                return Ok(None);
            };
            let chosen = if offered.contains(&0) { 0 } else { 255 };
            Ok(Some((2 + count, [VERSION, chosen])))
        }
        _ => Err(SocksError::Malformed),
    }
}

/// Reads the request. `None`: it is not whole. Else how many bytes it had, and where it wants to go.
pub fn read_socks(bytes: &[u8]) -> Result<Option<(usize, Target)>, SocksError> {
    let [version, command, reserved, kind, rest @ ..] = bytes else {
        return Ok(None);
    };
    if (*version, *reserved) != (VERSION, 0) {
        return Err(SocksError::Malformed);
    }
    if *command != CONNECT {
        return Err(SocksError::Command);
    }
    let (width, skipped) = match (kind, rest.first()) {
        (1, _) => (4, 0),
        (4, _) => (16, 0),
        (3, Some(length)) => (usize::from(*length), 1),
        (3, None) => return Ok(None),
        _ => return Err(SocksError::Malformed),
    };
    let Some(([name, port], used)) = fields(rest, skipped, width) else {
        return Ok(None);
    };
    let port = port
        .iter()
        .fold(0, |port, byte| port << 8 | u16::from(*byte));
    let text = match *kind {
        1 => <[u8; 4]>::try_from(name).map(|four| Ipv4Addr::from(four).to_string()),
        4 => <[u8; 16]>::try_from(name).map(|six| Ipv6Addr::from(six).to_string()),
        _ => Ok(String::from_utf8_lossy(name).into_owned()),
    };
    let text = text.map_err(|_length| SocksError::Malformed)?;
    let host = Host::parse(&text).map_err(|error| Refusal::of_name(&text, Some(port), &error))?;
    if port == 0 {
        return Err(SocksError::Malformed);
    }
    Ok(Some((4 + used, Target { host, port })))
}

/// Name and port, and where they end.
fn fields(bytes: &[u8], skipped: usize, width: usize) -> Option<([&[u8]; 2], usize)> {
    let name = bytes.get(skipped..skipped + width)?;
    let end = skipped + width + 2;
    let port = bytes.get(end - 2..end)?;
    Some(([name, port], end))
}

/// The answer to a request.
pub fn answer(code: u8) -> [u8; 10] {
    [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_taken_and_addresses_refused() {
        assert_eq!(read_greeting(&[5, 2, 2, 0]), Ok(Some((4, [5, 0]))));
        assert_eq!(read_greeting(&[5, 1, 2]), Ok(Some((3, [5, 255]))));
        assert_eq!(read_greeting(&[5, 2, 0]), Ok(None));
        assert_eq!(read_greeting(&[4, 1, 0]), Err(SocksError::Malformed));
        let request = [&[5, 1, 0, 3, 11][..], b"example.org", &[1, 187]].concat();
        let target = Target {
            host: Host::parse("example.org").unwrap(),
            port: 443,
        };
        assert_eq!(read_socks(&request), Ok(Some((18, target))));
        for address in [
            &[5, 1, 0, 1, 127, 0, 0, 1, 0, 80][..],
            &[&[5, 1, 0, 4][..], &[0; 15], &[1, 0, 80]].concat(),
            &[&[5, 1, 0, 3, 9][..], b"127.0.0.1", &[0, 80]].concat(),
        ] {
            assert!(matches!(
                read_socks(address),
                Err(SocksError::Refused(Refusal::Address { .. }))
            ));
        }
        assert_eq!(read_socks(&[5, 3, 0, 1]), Err(SocksError::Command));
        assert_eq!(read_socks(&[5, 1, 0, 9]), Err(SocksError::Malformed));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            drop(read_greeting(&bytes));
            if let Ok(Some((length, _))) = read_socks(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }

        #[test]
        fn a_request_is_whole_or_partial(name in "[a-z]{1,20}\\.[a-z]{1,20}", port in 1u16.., cut in any::<prop::sample::Index>()) {
            let length = u8::try_from(name.len()).unwrap();
            let request = [&[5, 1, 0, 3, length][..], name.as_bytes(), &port.to_be_bytes()].concat();
            let target = Target { host: Host::parse(&name).unwrap(), port };
            prop_assert_eq!(read_socks(&request), Ok(Some((request.len(), target))));
            prop_assert_eq!(read_socks(&request[..cut.index(request.len())]), Ok(None));
        }
    }
}
