//! Bytes as lower-case hexadecimal text, as digests are written.

use std::fmt::Write as _;

/// Two digits a byte.
pub fn of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}
