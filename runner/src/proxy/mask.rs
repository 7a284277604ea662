//! The value of a credential in what comes back from its upstream: struck out while it streams, byte for byte, so that
//! no length changes.
//!
//! Must never keep more than the beginning of a value. What a server encodes or cuts up is not recognised.

use crate::task::Key;

/// Shorter values are words that stand in any text, and no secrets.
const SHORTEST: usize = 8;

/// Strikes out one value. Pieces go in as they come; what comes out lags behind only while it could be the value's
/// beginning.
pub(super) struct Mask {
    value: Vec<u8>,
    held: Vec<u8>,
}

impl Mask {
    /// `None` for a value that is no secret.
    pub(super) fn new(key: &Key) -> Option<Self> {
        let value = key.reveal().as_bytes().to_vec();
        (value.len() >= SHORTEST).then(|| Self {
            value,
            held: Vec::new(),
        })
    }

    /// Takes the next piece and gives what is settled.
    pub(super) fn next(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(piece);
        let mut from = 0;
        while let Some(at) = find(bytes.get(from..).unwrap_or_default(), &self.value) {
            let end = from + at + self.value.len();
            bytes.get_mut(from + at..end).unwrap_or_default().fill(b'*');
            from = end;
        }
        let longest = (bytes.len() - from).min(self.value.len() - 1);
        let open = (1..=longest).rev().find(|length| {
            let beginning = self.value.get(..*length).unwrap_or_default();
            bytes.ends_with(beginning)
        });
        self.held = bytes.split_off(bytes.len() - open.unwrap_or(0));
        bytes
    }

    /// What was held back when nothing more comes.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// Something whole.
    pub(super) fn whole(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut masked = self.next(bytes);
        masked.extend(self.rest());
        masked
    }
}

fn find(bytes: &[u8], value: &[u8]) -> Option<usize> {
    let first = value.first()?;
    let mut from = 0;
    loop {
        let rest = bytes.get(from..)?;
        let at = from + rest.iter().position(|byte| byte == first)?;
        if bytes.get(at..)?.starts_with(value) {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mask(value: &str) -> Option<Mask> {
        Mask::new(&Key::new(value.to_owned()).unwrap())
    }

    #[test]
    fn a_value_is_struck_out_and_nothing_else() {
        let mut mask = mask("abababac").unwrap();
        let text = mask.whole(b"x abababac abababab abababababac");
        assert_eq!(text, b"x ******** abababab abab********");
        assert_eq!(mask.whole(b"abababac"), b"********");
    }

    #[test]
    fn no_more_is_held_back_than_could_be_the_value() {
        let mut mask = mask("canary-3f9a1c").unwrap();
        assert_eq!(mask.next(b"data: one\n\n"), b"data: one\n\n");
        assert_eq!(mask.next(b"data: can"), b"data: ");
        assert_eq!(mask.next(b"ary-3f9a1"), b"");
        assert_eq!(mask.next(b"c\n"), b"*************\n");
        assert_eq!(mask.next(b"canary"), b"");
        assert_eq!(mask.rest(), b"canary");
    }

    #[test]
    fn a_short_value_is_no_secret() {
        assert!(mask("1234567").is_none() && mask("12345678").is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn in_any_pieces_the_value_does_not_come_out_and_the_length_stays(
            value in "[ab]{8,10}", parts in prop::collection::vec("[ab]{0,12}", 0..6), piece in 1usize..20
        ) {
            let text = parts.join(&value);
            let mut streamed = mask(&value).unwrap();
            let mut out = Vec::new();
            for piece in text.as_bytes().chunks(piece) {
                out.extend(streamed.next(piece));
            }
            out.extend(streamed.rest());
            prop_assert_eq!(out.len(), text.len());
            prop_assert!(find(&out, value.as_bytes()).is_none());
            prop_assert_eq!(out, mask(&value).unwrap().whole(text.as_bytes()));
        }
    }
}
