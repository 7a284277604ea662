//! How a path of a repository is shown to people and put into JSON.
//! Never the other way round: a shown path is not read back as a path.

use std::fmt::Write as _;

/// The shown form of a path: UTF-8 is kept as it is, every other byte becomes `\xNN`.
///
/// The result may hold control characters (a newline in a file name); who prints it escapes them.
pub fn shown(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a `String` cannot fail.
            let _infallible = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn keeps_text_and_marks_other_bytes() {
        assert_eq!(shown("src/ä.py".as_bytes()), "src/ä.py");
        assert_eq!(shown(b"a\xffb\xc3"), "a\\xffb\\xc3");
        assert_eq!(shown(b""), "");
    }
}
