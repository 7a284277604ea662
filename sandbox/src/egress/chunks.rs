//! A chunked body: where it ends, and the same body written anew.
//!
//! Must never pass on a byte that comes after its end.

/// Most digits of a chunk's length.
const MOST_DIGITS: u8 = 15;
/// Longest extension of a length, and longest trailer, in bytes; both are dropped.
const LONGEST: u16 = 8 << 10;

/// A chunked body that is not well-formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the chunked body is malformed")]
pub struct ChunkError;

/// How far a chunked body has been read.
#[derive(Debug, Clone, Default)]
pub struct Chunks {
    state: State,
    /// Digits of the length so far, or dropped bytes so far.
    count: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the digits of a length.
    Length(u64),
    /// Behind them.
    Extension(u64),
    /// Before the line feed of a length.
    LengthEnd(u64),
    /// This many bytes of data to come.
    Data(u64),
    /// Before the line end of the data.
    DataReturn,
    DataEnd,
    /// At the start of a line after the last chunk.
    Trailer,
    /// Within such a line.
    TrailerLine,
    TrailerLineEnd,
    /// Before the last line feed.
    LastEnd,
    Over,
}

impl Default for State {
    fn default() -> Self {
        Self::Length(0)
    }
}

impl Chunks {
    /// Whether the body has ended.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Reads on; what is to be passed on is put behind `out`. Answers how many bytes belong to the body: fewer than
    /// there are only at its end.
    pub fn read(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, ChunkError> {
        let used = self.each(bytes, |piece| write_chunk(out, piece))?;
        if self.is_over() && used > 0 {
            write_end(out);
        }
        Ok(used)
    }

    /// The same, and puts the data alone behind `out`.
    pub fn data(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, ChunkError> {
        self.each(bytes, |piece| out.extend_from_slice(piece))
    }

    fn each(&mut self, bytes: &[u8], mut give: impl FnMut(&[u8])) -> Result<usize, ChunkError> {
        let mut at = 0;
        while let Some(rest) = bytes
            .get(at..)
            .filter(|rest| !rest.is_empty() && !self.is_over())
        {
            if let State::Data(left) = self.state {
                let length = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
                give(rest.get(..length).unwrap_or_default());
                let left = left - length as u64;
                self.state = if left == 0 {
                    State::DataReturn
                } else {
                    State::Data(left)
                };
                at += length;
                continue;
            }
            let byte = rest.first().copied().unwrap_or_default();
            self.step(byte)?;
            at += 1;
        }
        Ok(at)
    }

    fn step(&mut self, byte: u8) -> Result<(), ChunkError> {
        self.state = match (self.state, byte) {
            (State::Length(length), byte) if byte.is_ascii_hexdigit() => {
                self.count += 1;
                if self.count > u16::from(MOST_DIGITS) {
                    return Err(ChunkError);
                }
                let digit = char::from(byte).to_digit(16).ok_or(ChunkError)?;
                State::Length(length << 4 | u64::from(digit))
            }
            (State::Length(length), b'\r') if self.count > 0 => State::LengthEnd(length),
            (State::Length(length), b';') if self.count > 0 => State::Extension(length),
            (State::Extension(length), b'\r') => State::LengthEnd(length),
            (State::Extension(length), byte) if is_text(byte) => {
                self.drop_one()?;
                State::Extension(length)
            }
            (State::LengthEnd(0), b'\n') => self.begin(State::Trailer),
            (State::LengthEnd(length), b'\n') => self.begin(State::Data(length)),
            (State::DataReturn, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => self.begin(State::Length(0)),
            (State::Trailer, b'\r') => State::LastEnd,
            (State::LastEnd, b'\n') => State::Over,
            (State::TrailerLine, b'\r') => State::TrailerLineEnd,
            (State::TrailerLineEnd, b'\n') => State::Trailer,
            (State::Trailer | State::TrailerLine, byte) if is_text(byte) => {
                self.drop_one()?;
                State::TrailerLine
            }
            _ => return Err(ChunkError),
        };
        Ok(())
    }

    fn begin(&mut self, state: State) -> State {
        self.count = 0;
        state
    }

    fn drop_one(&mut self) -> Result<(), ChunkError> {
        self.count += 1;
        if self.count > LONGEST {
            Err(ChunkError)
        } else {
            Ok(())
        }
    }
}

/// Puts a chunk of this data behind `out`; none for none, since that would be the end.
pub fn write_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if !data.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
        out.extend_from_slice(data);
        out.extend_from_slice(b"\r\n");
    }
}

/// Puts the end of a chunked body behind `out`.
pub fn write_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= 0x20 && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(bytes: &[u8]) -> Result<(usize, Vec<u8>, bool), ChunkError> {
        let (mut chunks, mut out) = (Chunks::default(), Vec::new());
        let used = chunks.read(bytes, &mut out)?;
        Ok((used, out, chunks.is_over()))
    }

    #[test]
    fn a_body_ends_where_it_ends() {
        let body = b"3;name=x\r\nabc\r\n0A\r\n0123456789\r\n0\r\nX-Check: 1\r\n\r\n";
        let (used, out, over) = whole(&[&body[..], b"GET / HTTP/1.1\r\n"].concat()).unwrap();
        assert_eq!((used, over), (body.len(), true));
        assert_eq!(out, b"3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n");
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for bytes in [
            &b"\r\n"[..],
            b"x\r\n",
            b"0x3\r\nabc\r\n",
            b" 3\r\nabc\r\n",
            b"3 \r\nabc\r\n",
            b"+3\r\nabc\r\n",
            b"-1\r\n",
            b"3\nabc\r\n",
            b"3\r\nabcd\r\n",
            b"3;a\nb\r\nabc\r\n",
            b"ffffffffffffffff0\r\n",
            b"0\r\nA: b\nC: d\r\n\r\n",
            b"0\r\n\r\r\n",
        ] {
            assert_eq!(
                whole(bytes),
                Err(ChunkError),
                "{:?}",
                String::from_utf8_lossy(bytes)
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn in_any_pieces_the_same_data_comes_out(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
            behind in prop::collection::vec(any::<u8>(), 0..20), piece in 1usize..50
        ) {
            let mut body = Vec::new();
            for chunk in &chunks {
                body.extend(format!("{:X}\r\n", chunk.len()).bytes());
                body.extend(chunk);
                body.extend(b"\r\n");
            }
            body.extend(b"0\r\n\r\n");
            let length = body.len();
            body.extend(&behind);
            let (mut reader, mut out, mut used) = (Chunks::default(), Vec::new(), 0);
            for piece in body.chunks(piece) {
                used += reader.read(piece, &mut out).unwrap();
            }
            prop_assert_eq!((used, reader.is_over()), (length, true));
            // Read once more, what came out is one body and holds the same data.
            let (used, again, over) = whole(&out).unwrap();
            prop_assert_eq!((used, over), (out.len(), true));
            prop_assert_eq!(&again, &out);
            let data: Vec<u8> = chunks.concat();
            let mut alone = Vec::new();
            Chunks::default().data(&out, &mut alone).unwrap();
            prop_assert_eq!(alone, data);
        }

        #[test]
        fn no_bytes_are_too_much(bytes in "[0-9a-f;\r\nx ]{0,60}") {
            if let Ok((used, _, over)) = whole(bytes.as_bytes()) {
                prop_assert!(over || used == bytes.len());
            }
        }
    }
}
