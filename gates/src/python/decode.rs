//! From bytes to text as `CPython` does it: byte-order mark, PEP 263 cookie, strict decoding, no NUL.
//! It must never replace a bad byte: what does not decode is refused.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use super::Refusal;

/// Text of a Python file without its byte-order mark.
pub(crate) fn decode(bytes: &[u8]) -> Result<String, Refusal> {
    if is_lfs_pointer(bytes) {
        return Err(Refusal::new(
            "lfs-pointer",
            "is a Git LFS pointer, not the file",
            "commit the file itself, or fetch it with `git lfs pull` before delivering",
        ));
    }
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err(encoding_refusal("is UTF-16, which Python does not read", 1));
    }
    let (body, marked) = match bytes.strip_prefix(&[0xEF, 0xBB, 0xBF]) {
        Some(rest) => (rest, true),
        None => (bytes, false),
    };
    let text = match cookie(body) {
        Some((name, line)) => decode_as(body, &name, line, marked)?,
        None => decode_utf8(body)?,
    };
    match text.find('\0') {
        Some(at) => Err(Refusal::new(
            "py.nul",
            "holds a NUL character, which Python refuses",
            "remove the NUL; a binary file must not be named .py",
        )
        .on(super::parse::line_at(&text, at))),
        None => Ok(text),
    }
}

/// Whether the bytes are the pointer text that Git LFS keeps in place of a file.
pub(crate) fn is_lfs_pointer(bytes: &[u8]) -> bool {
    bytes.len() < 1024 && bytes.starts_with(b"version https://git-lfs.github.com/spec/")
}

fn encoding_refusal(message: impl Into<String>, line: u32) -> Refusal {
    Refusal::new(
        "py.encoding",
        message,
        "save the file as UTF-8 without a byte-order mark",
    )
    .on(line)
}

fn decode_utf8(bytes: &[u8]) -> Result<String, Refusal> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            let at = error.valid_up_to();
            let byte = bytes.get(at).copied().unwrap_or_default();
            let good = bytes.get(..at).unwrap_or_default();
            let line = line_of_byte(good);
            Err(encoding_refusal(
                format!("is not UTF-8 (byte 0x{byte:02x}) and declares no other encoding"),
                line,
            ))
        }
    }
}

fn line_of_byte(before: &[u8]) -> u32 {
    let ends = before.split(|&byte| byte == b'\n').count();
    u32::try_from(ends).unwrap_or(u32::MAX)
}

fn decode_as(bytes: &[u8], name: &str, line: u32, marked: bool) -> Result<String, Refusal> {
    let codec = codec_of(name).ok_or_else(|| {
        encoding_refusal(
            format!("declares the encoding `{name}`, which is unknown"),
            line,
        )
    })?;
    let normal = name.to_ascii_lowercase().replace('_', "-");
    if marked && normal != "utf-8" && !normal.starts_with("utf-8-") {
        return Err(encoding_refusal(
            format!("has a UTF-8 byte-order mark and declares `{name}`"),
            line,
        ));
    }
    let decoded = match codec {
        Codec::Ascii if bytes.is_ascii() => std::str::from_utf8(bytes).ok().map(str::to_owned),
        Codec::Ascii => None,
        Codec::Known(encoding) if encoding == UTF_8 => return decode_utf8(bytes),
        Codec::Known(encoding) => encoding
            .decode_without_bom_handling_and_without_replacement(bytes)
            .map(std::borrow::Cow::into_owned),
        // Every byte is one character: as Latin-1 the structure of the program is the same.
        Codec::SingleByte => Some(bytes.iter().map(|&byte| char::from(byte)).collect()),
    };
    decoded.ok_or_else(|| {
        encoding_refusal(
            format!("does not decode as `{name}`, which it declares"),
            line,
        )
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Codec {
    Ascii,
    Known(&'static Encoding),
    SingleByte,
}

/// Names that `CPython` knows and WHATWG spells otherwise or leaves out.
fn codec_of(name: &str) -> Option<Codec> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let codec = match name.as_str() {
        "utf8" | "utf-8" | "u8" | "utf-8-sig" | "cp65001" | "utf" => Codec::Known(UTF_8),
        "ascii" | "us-ascii" | "646" => Codec::Ascii,
        "latin-1" | "latin1" | "latin" | "l1" | "iso8859" | "8859" | "cp819" => Codec::SingleByte,
        "mbcs" | "ansi" => Codec::Known(WINDOWS_1252),
        other if other.starts_with("utf-16") || other.starts_with("utf-32") => return None,
        other => return codec_by_family(other),
    };
    Some(codec)
}

fn codec_by_family(name: &str) -> Option<Codec> {
    if let Some(rest) = name
        .strip_prefix("iso-8859-")
        .or_else(|| name.strip_prefix("iso8859-"))
    {
        if rest == "1" || rest.starts_with("1-") {
            return Some(Codec::SingleByte);
        }
        return Encoding::for_label(format!("iso-8859-{rest}").as_bytes()).map(Codec::Known);
    }
    if let Some(page) = name.strip_prefix("cp").or_else(|| name.strip_prefix("ibm")) {
        let label = match page {
            "932" => "shift_jis".to_owned(),
            "936" => "gbk".to_owned(),
            "949" => "euc-kr".to_owned(),
            "950" => "big5".to_owned(),
            other => format!("windows-{other}"),
        };
        return match Encoding::for_label(label.as_bytes()) {
            Some(encoding) => Some(Codec::Known(encoding)),
            None => DOS_PAGES.contains(&page).then_some(Codec::SingleByte),
        };
    }
    if name.starts_with("mac-") || name == "hp-roman8" || name == "koi8-t" {
        return Some(Codec::SingleByte);
    }
    let label = match name {
        "eucjp" | "ujis" => "euc-jp",
        "euckr" | "uhc" => "euc-kr",
        "sjis" | "shiftjis" | "s-jis" | "shift-jis" => "shift_jis",
        "big5-hkscs" | "big5hkscs" => "big5",
        "hz" | "hz-gb-2312" => return None,
        other => other,
    };
    Encoding::for_label(label.as_bytes())
        .or_else(|| Encoding::for_label(label.replace('-', "_").as_bytes()))
        .filter(|encoding| encoding.is_ascii_compatible() || *encoding == encoding_rs::ISO_2022_JP)
        .map(Codec::Known)
}

const DOS_PAGES: [&str; 16] = [
    "437", "720", "737", "775", "850", "852", "855", "857", "858", "860", "861", "862", "863",
    "864", "865", "869",
];

/// The encoding that line 1 or 2 declares, with its line.
fn cookie(bytes: &[u8]) -> Option<(String, u32)> {
    let mut rest = bytes;
    for line in 1..=2_u32 {
        let end = rest
            .iter()
            .position(|&byte| byte == b'\n' || byte == b'\r')
            .unwrap_or(rest.len());
        let (this, after) = rest.split_at_checked(end)?;
        if let Some(name) = cookie_in(this) {
            return Some((name, line));
        }
        let blank = this
            .iter()
            .find(|byte| !matches!(byte, b' ' | b'\t' | 0x0C))
            .is_none_or(|&byte| byte == b'#');
        if !blank {
            return None;
        }
        rest = match after {
            [b'\r', b'\n', more @ ..] | [_, more @ ..] => more,
            [] => return None,
        };
    }
    None
}

/// `^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)`
fn cookie_in(line: &[u8]) -> Option<String> {
    let start = line
        .iter()
        .position(|byte| !matches!(byte, b' ' | b'\t' | 0x0C))?;
    let comment = line.get(start..).filter(|rest| rest.starts_with(b"#"))?;
    let mut from = 0;
    while let Some(found) = find(comment.get(from..)?, b"coding") {
        let after = comment.get(from + found + 6..)?;
        if let [b':' | b'=', value @ ..] = after {
            let name: Vec<u8> = value
                .iter()
                .skip_while(|byte| matches!(byte, b' ' | b'\t'))
                .take_while(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
                .copied()
                .collect();
            if !name.is_empty() {
                return String::from_utf8(name).ok();
            }
        }
        from += found + 6;
    }
    None
}

fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len())
        .position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(bytes: &[u8]) -> String {
        decode(bytes).map_or_else(|refusal| refusal.code, |_| "ok".to_owned())
    }

    #[test]
    fn decoding_follows_cpython() {
        let table: [(&[u8], &str); 17] = [
            (b"x = 1\n", "ok"),
            (b"\xEF\xBB\xBFx = 1\n", "ok"),
            (b"\xEF\xBB\xBF# coding: utf-8\nx = 1\n", "ok"),
            (b"\xEF\xBB\xBF# coding: latin-1\nx = 1\n", "py.encoding"),
            (b"# coding: latin-1\nx = '\xE9'\n", "ok"),
            (
                b"#!/bin/sh\n# -*- coding: iso-8859-15 -*-\nx = '\xE9'\n",
                "ok",
            ),
            (b"#\n#\n# coding: latin-1\nx = '\xE9'\n", "py.encoding"),
            (b"x = 1\n# coding: latin-1\ny = '\xE9'\n", "py.encoding"),
            (b"# coding: ascii\nx = '\xE9'\n", "py.encoding"),
            (b"# coding: klingon\nx = 1\n", "py.encoding"),
            (b"# vim: set fileencoding=cp1252 :\nx = '\x80'\n", "ok"),
            (b"# coding: shift_jis\nx = '\x82\xa0'\n", "ok"),
            (b"# coding: cp437\nx = '\x82'\n", "ok"),
            (b"\xFF\xFEx\0", "py.encoding"),
            (b"x = 1\0\n", "py.nul"),
            (b"x = '\xE9'\n", "py.encoding"),
            (
                b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
                "lfs-pointer",
            ),
        ];
        for (bytes, want) in table {
            assert_eq!(code(bytes), want, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
