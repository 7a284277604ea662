//! The name that a TLS client asks for: the greeting is read, nothing is decrypted.
//!
//! Must never guess: a greeting that is cut, odd or hides its name is said to be so.

/// Longest greeting that is read, in bytes.
pub(super) const LONGEST: usize = 64 << 10;
/// Longest record of TLS.
const LONGEST_RECORD: usize = 16 << 10;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ENCRYPTED_HELLO: u16 = 0xfe0d;

/// What the first bytes of a connection are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// The beginning of a greeting: read on.
    Partial,
    /// Not TLS.
    NotTls,
    /// A greeting that asks for this name, as it is written there; none when it asks for none.
    Name(Option<String>),
    /// A greeting whose true name is encrypted.
    Hidden,
}

/// A greeting that no client writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// Longer than any that is met.
    #[error("the TLS greeting is longer than {LONGEST} bytes")]
    TooLong,
    /// Another record first, an odd version, lengths that do not fit into each other, a name that is no text, two names.
    #[error("the TLS greeting is malformed")]
    Malformed,
}

/// Reads what has come so far, from the first byte of the connection. What begins like TLS is TLS: servers forgive
/// records before a greeting, and greetings of old forms, that name nobody.
pub fn read_hello(bytes: &[u8]) -> Result<Hello, HelloError> {
    match bytes {
        [] | [0x14..=0x18] => return Ok(Hello::Partial),
        [HANDSHAKE, ..] => {}
        // The second is the greeting of SSL 2, by which TLS can be begun: its length with the first bit set, its kind, a
        // version.
        [0x14..=0x18, 3, ..] | [0x80..=0xbf, _, CLIENT_HELLO, 3, ..] => {
            return Err(HelloError::Malformed);
        }
        [0x80..=0xbf] | [0x80..=0xbf, _] | [0x80..=0xbf, _, CLIENT_HELLO] => {
            return Ok(Hello::Partial);
        }
        _ => return Ok(Hello::NotTls),
    }
    let Some(message) = handshake(bytes)? else {
        return if bytes.len() > LONGEST {
            Err(HelloError::TooLong)
        } else {
            Ok(Hello::Partial)
        };
    };
    greeting(&message)
}

/// The first handshake message, put together from its records; `None` while it is not whole.
fn handshake(mut bytes: &[u8]) -> Result<Option<Vec<u8>>, HelloError> {
    let mut message = Vec::new();
    loop {
        if let Some(length) = message_length(&message)?.filter(|length| message.len() >= *length) {
            message.truncate(length);
            return Ok(Some(message));
        }
        let [kind, major, _minor, high, low, rest @ ..] = bytes else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if *kind != HANDSHAKE || *major != 3 || length == 0 || length > LONGEST_RECORD {
            return Err(HelloError::Malformed);
        }
        let Some((record, rest)) = rest.split_at_checked(length) else {
            return Ok(None);
        };
        message.extend_from_slice(record);
        bytes = rest;
    }
}

/// Length of the message with its own head, once that is there.
fn message_length(message: &[u8]) -> Result<Option<usize>, HelloError> {
    let [kind, a, b, c, ..] = message else {
        return Ok(None);
    };
    let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
    if *kind != CLIENT_HELLO {
        return Err(HelloError::Malformed);
    }
    if length > LONGEST {
        return Err(HelloError::TooLong);
    }
    Ok(Some(length + 4))
}

fn greeting(message: &[u8]) -> Result<Hello, HelloError> {
    let mut fields = Fields(message.get(4..).unwrap_or_default());
    // Version and random.
    fields.take(34)?;
    for width in [1, 2, 1] {
        // Session, cipher suites, compression.
        fields.block(width)?;
    }
    if fields.0.is_empty() {
        return Ok(Hello::Name(None));
    }
    let mut extensions = Fields(fields.block(2)?);
    if !fields.0.is_empty() {
        return Err(HelloError::Malformed);
    }
    let (mut name, mut hidden, mut named) = (None, false, false);
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let body = extensions.block(2)?;
        match kind {
            SERVER_NAME if named => return Err(HelloError::Malformed),
            SERVER_NAME => {
                named = true;
                name = Some(server_name(body)?);
            }
            ENCRYPTED_HELLO => hidden = true,
            _ => {}
        }
    }
    Ok(if hidden {
        Hello::Hidden
    } else {
        Hello::Name(name)
    })
}

/// The one host name of the extension.
fn server_name(body: &[u8]) -> Result<String, HelloError> {
    let mut outer = Fields(body);
    let mut list = Fields(outer.block(2)?);
    let kind = list.take(1)?;
    let name = list.block(2)?;
    let whole = outer.0.is_empty() && list.0.is_empty() && kind == [0] && !name.is_empty();
    let text = std::str::from_utf8(name)
        .ok()
        .filter(|text| whole && text.is_ascii());
    text.map(str::to_owned).ok_or(HelloError::Malformed)
}

/// Bytes that are taken from the front.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn take(&mut self, length: usize) -> Result<&'b [u8], HelloError> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(HelloError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u16, HelloError> {
        match self.take(2)? {
            [high, low] => Ok(u16::from_be_bytes([*high, *low])),
            _ => Err(HelloError::Malformed),
        }
    }

    /// A block behind its length of `width` bytes.
    fn block(&mut self, width: usize) -> Result<&'b [u8], HelloError> {
        let digits = self.take(width)?;
        let length = digits
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte));
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(width: usize, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&length[4 - width..], body].concat()
    }

    /// A greeting with these extensions, in records of at most `piece` bytes.
    fn hello(extensions: &[(u16, Vec<u8>)], piece: usize) -> Vec<u8> {
        let mut list = Vec::new();
        for (kind, body) in extensions {
            list.extend(kind.to_be_bytes());
            list.extend(block(2, body));
        }
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend(block(1, &[1; 32]));
        body.extend(block(2, &[0x13, 1, 0x13, 2]));
        body.extend(block(1, &[0]));
        body.extend(block(2, &list));
        let message = [&[CLIENT_HELLO][..], &block(3, &body)].concat();
        let record = |piece: &[u8]| [&[HANDSHAKE, 3, 1][..], &block(2, piece)].concat();
        message.chunks(piece).flat_map(record).collect()
    }

    fn sni(name: &[u8]) -> (u16, Vec<u8>) {
        (SERVER_NAME, block(2, &[&[0][..], &block(2, name)].concat()))
    }

    #[test]
    fn the_name_is_found_in_whole_and_in_split_greetings() {
        let extensions = [(10, vec![0; 4]), sni(b"Example.org"), (16, vec![1])];
        let found = Ok(Hello::Name(Some("Example.org".to_owned())));
        for piece in [1 << 14, 100, 7, 1] {
            assert_eq!(read_hello(&hello(&extensions, piece)), found, "{piece}");
        }
        assert_eq!(
            read_hello(&hello(&[(10, vec![0])], 100)),
            Ok(Hello::Name(None))
        );
    }

    #[test]
    fn what_is_no_greeting_or_hides_its_name_is_said_to_be_so() {
        assert_eq!(read_hello(b"GET / HTTP/1.1"), Ok(Hello::NotTls));
        assert_eq!(read_hello(b"SSH-2.0-x"), Ok(Hello::NotTls));
        assert_eq!(read_hello(b""), Ok(Hello::Partial));
        let hidden = hello(
            &[sni(b"public.example"), (ENCRYPTED_HELLO, vec![0; 30])],
            99,
        );
        assert_eq!(read_hello(&hidden), Ok(Hello::Hidden));
        for odd in [
            hello(&[sni(b"a.org"), sni(b"b.org")], 99),
            hello(&[sni(b"")], 99),
            hello(&[sni("ä.org".as_bytes())], 99),
            hello(&[(SERVER_NAME, vec![0, 9, 0])], 99),
        ] {
            assert_eq!(read_hello(&odd), Err(HelloError::Malformed));
        }
        let good = hello(&[sni(b"a.org")], 99);
        for before in [
            &b"\x15\x03\x01\0\x02\x01\0"[..],
            b"\x14\x03\x03\0\x01\x01",
            b"\x17\x03\x03\0\x01\0",
            b"\x18\x03\x03\0\x01\0",
            b"\x16\x03\x01\0\0",
        ] {
            let late = [before, &good].concat();
            assert_eq!(read_hello(&late), Err(HelloError::Malformed), "{before:?}");
        }
        let old = [&[HANDSHAKE, 2][..], &good[2..]].concat();
        assert_eq!(read_hello(&old), Err(HelloError::Malformed));
        assert_eq!(
            read_hello(b"\x80\x2e\x01\x03\x01\0\x15"),
            Err(HelloError::Malformed)
        );
        for partial in [&b"\x14"[..], b"\x15", b"\x16", b"\x80", b"\x80\x2e\x01"] {
            assert_eq!(read_hello(partial), Ok(Hello::Partial), "{partial:?}");
        }
        for other in [
            &b"\x14\x05"[..],
            b"\xff\xfb\x01",
            b"\x80\x2e\x02",
            b"\x05\0",
        ] {
            assert_eq!(read_hello(other), Ok(Hello::NotTls), "{other:?}");
        }
        let endless = [&[HANDSHAKE, 3, 1, 0, 4, CLIENT_HELLO, 0xff, 0, 0][..]].concat();
        assert_eq!(read_hello(&endless), Err(HelloError::TooLong));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_greeting_gives_its_name_and_only_when_it_is_whole(
            name in "[a-z0-9.-]{1,80}", others in prop::collection::vec((11u16..60_000, prop::collection::vec(any::<u8>(), 0..40)), 0..6),
            at in 0usize..7, piece in 1usize..300, cut in any::<prop::sample::Index>()
        ) {
            let mut extensions = others;
            extensions.insert(at.min(extensions.len()), sni(name.as_bytes()));
            let whole = hello(&extensions, piece);
            let mut more = whole.clone();
            more.extend(b"\x14\x03\x03\x00\x01\x01");
            prop_assert_eq!(read_hello(&whole), Ok(Hello::Name(Some(name.clone()))));
            prop_assert_eq!(read_hello(&more), Ok(Hello::Name(Some(name))));
            let part = &whole[..cut.index(whole.len())];
            prop_assert_eq!(read_hello(part), Ok(Hello::Partial));
        }

        #[test]
        fn no_bytes_are_too_much(bytes in prop::collection::vec(any::<u8>(), 0..400), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
            drop(read_hello(&bytes));
            let mut near = hello(&[sni(b"example.org")], 50);
            for (at, byte) in flips {
                let at = at.index(near.len());
                near[at] = byte;
            }
            if let Ok(Hello::Name(Some(name))) = read_hello(&near) {
                prop_assert!(!name.is_empty() && name.is_ascii());
            }
        }
    }
}
