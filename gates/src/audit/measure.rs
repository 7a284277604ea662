//! Sizes of one version of a file, from its blob, whatever `.gitattributes` says.

use std::borrow::Cow;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::{language, unreadable};
use crate::{Blob, MODE_LINK, MODE_SUBMODULE, Measure, Profile, Reason, Source, Syntax, python};

/// The measure and the SHA-256 of a side; an error when its bytes cannot be had.
pub(super) fn side(
    blob: &Blob,
    path: &str,
    profile: &Profile,
    source: &mut dyn Source,
) -> Result<(Measure, Option<String>), Reason> {
    if blob.mode == MODE_SUBMODULE || blob.bytes > profile.max_file_bytes {
        return Ok((unmeasured(blob), None));
    }
    let bytes = source.blob(&blob.oid).ok_or_else(unreadable)?;
    let mut measure = of_bytes(&bytes, path, profile);
    measure.mode = format!("{:06o}", blob.mode);
    measure.blob = Some(blob.oid.clone());
    if blob.mode == MODE_LINK {
        "link".clone_into(&mut measure.language);
        measure.syntax = Syntax::NotChecked;
        measure.statements = None;
        measure.functions = None;
    }
    Ok((measure, Some(hex(&Sha256::digest(&bytes)))))
}

/// What is known of a side without its bytes.
pub(super) fn unmeasured(blob: &Blob) -> Measure {
    let language = if blob.mode == MODE_SUBMODULE {
        "submodule"
    } else {
        "not read"
    };
    Measure {
        bytes: blob.bytes,
        language: language.to_owned(),
        mode: format!("{:06o}", blob.mode),
        blob: Some(blob.oid.clone()),
        ..Measure::default()
    }
}

fn hex(digest: &[u8]) -> String {
    let mut text = String::with_capacity(digest.len() * 2);
    for byte in digest {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}

/// Everything that follows from the bytes and the name.
pub(super) fn of_bytes(bytes: &[u8], path: &str, profile: &Profile) -> Measure {
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let kind = language::of(path);
    let Some(text) = text_of(bytes, kind) else {
        let language = if kind == "image" { "image" } else { "binary" };
        return Measure {
            bytes: size,
            language: language.to_owned(),
            ..Measure::default()
        };
    };
    let mut measure = Measure {
        bytes: size,
        language: kind.to_owned(),
        lines: lines(&text),
        ..Measure::default()
    };
    count_characters(&text, &mut measure);
    if path.contains("{{") {
        return measure;
    }
    match kind {
        "python" => {
            measure.syntax = Syntax::Error;
            if let Ok(script) = python::read_file(bytes, profile.python) {
                let (statements, functions) = script.counts();
                measure.syntax = Syntax::Ok;
                measure.statements = Some(statements);
                measure.functions = Some(functions);
            }
        }
        "json" | "notebook" => {
            let faults = crate::stub::json::judge(path, bytes, profile.python);
            let refused = faults.iter().any(|fault| fault.level == crate::Level::Fail);
            measure.syntax = if refused { Syntax::Error } else { Syntax::Ok };
        }
        _ => {}
    }
    measure
}

/// The text of a file, without a byte-order mark; `None` for binary content.
fn text_of<'a>(bytes: &'a [u8], kind: &str) -> Option<Cow<'a, str>> {
    for (mark, encoding) in [
        (&[0xFF_u8, 0xFE][..], encoding_rs::UTF_16LE),
        (&[0xFE, 0xFF], encoding_rs::UTF_16BE),
    ] {
        if let Some(rest) = bytes.strip_prefix(mark) {
            return Some(encoding.decode_without_bom_handling(rest).0);
        }
    }
    // As git decides: a NUL in the first 8,000 bytes.
    if bytes.iter().take(8000).any(|&byte| byte == 0) || kind == "image" {
        return None;
    }
    let body = bytes.strip_prefix(&[0xEF, 0xBB, 0xBF]).unwrap_or(bytes);
    if let Ok(text) = std::str::from_utf8(body) {
        return Some(Cow::Borrowed(text));
    }
    if kind == "python"
        && let Ok(text) = python::decode(bytes)
    {
        return Some(Cow::Owned(text));
    }
    // Not UTF-8 and not declared: one character a byte is the only count that assumes nothing.
    Some(Cow::Owned(
        body.iter().map(|&byte| char::from(byte)).collect(),
    ))
}

fn lines(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut count = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let crlf = byte == b'\r' && bytes.get(at + 1) == Some(&b'\n');
        count += u64::from((byte == b'\n' || byte == b'\r') && !crlf);
    }
    let unended = bytes
        .last()
        .is_some_and(|&byte| byte != b'\n' && byte != b'\r');
    count + u64::from(unended)
}

fn count_characters(text: &str, measure: &mut Measure) {
    let mut in_word = false;
    for c in text.chars() {
        measure.chars += 1;
        if is_cjk(c) {
            measure.cjk += 1;
            measure.words += 1;
            in_word = false;
        } else if c.is_whitespace() || (!c.is_ascii() && !c.is_alphanumeric()) {
            // Full-width punctuation ends a word and is none.
            in_word = false;
        } else if !in_word {
            measure.words += 1;
            in_word = true;
        }
    }
}

fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3134F
        | 0x3040..=0x30FF | 0xAC00..=0xD7A3 | 0x3005..=0x3007)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(bytes: &[u8], path: &str) -> Measure {
        of_bytes(bytes, path, &Profile::default())
    }

    #[test]
    fn line_ends_of_all_three_kinds() {
        for (text, count) in [
            ("", 0),
            ("a", 1),
            ("a\n", 1),
            ("a\nb", 2),
            ("a\r\nb\r\n", 2),
            ("a\rb\r", 2),
            ("a\r\r\n\n", 3),
            ("\n", 1),
        ] {
            assert_eq!(lines(text), count, "{text:?}");
        }
    }

    #[test]
    fn characters_words_and_statements() {
        let measure = measured("\u{feff}# 设计 doc\nx = 1\n".as_bytes(), "a.py");
        assert_eq!((measure.chars, measure.cjk, measure.words), (15, 2, 7));
        assert_eq!(measure.statements, Some(1));
        assert_eq!(measure.syntax, Syntax::Ok);
        assert_eq!(measured(b"x = (\n", "a.py").syntax, Syntax::Error);
        assert_eq!(measured(b"{\"a\": 1}", "a.json").syntax, Syntax::Ok);
        assert_eq!(measured(b"a\0b", "a.txt").language, "binary");
        assert_eq!(measured(b"fn main() {}", "a.rs").syntax, Syntax::NotChecked);
    }
}
