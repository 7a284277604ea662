//! Makes an agent's text harmless to look at: control, invisible and direction-changing characters become visible
//! escapes. It must never drop a character in silence.

use std::fmt::Write as _;

/// The text on one line, with `\n`, `\t`, `\u{1b}` and the like written out.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || is_unseen(c) => {
                // Writing to a string cannot fail.
                write!(out, "\\u{{{:x}}}", u32::from(c)).unwrap_or_default();
            }
            c => out.push(c),
        }
    }
    out
}

/// Zero-width, direction-changing, tag and private-use characters, and line separators.
fn is_unseen(c: char) -> bool {
    matches!(
        u32::from(c),
        0xad | 0x61c | 0x115f..=0x1160 | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xfff9..=0xfffb
            | 0xe000..=0xf8ff | 0xe0000..=0xe0fff | 0xf0000..=0x10_ffff
    )
}

/// At most `most` characters, with a mark when there were more.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or("")),
        None => text.to_owned(),
    }
}

/// Inert in HTML, within elements and quoted attributes alike.
#[must_use]
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in shown(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_unseen_is_left() {
        assert_eq!(
            shown("a\u{1b}[31m\r\nb\u{202e}\u{200b}\u{7f}"),
            "a\\u{1b}[31m\\r\\nb\\u{202e}\\u{200b}\\u{7f}"
        );
        assert_eq!(shown("日本 é ✓"), "日本 é ✓");
        assert_eq!(
            escape_html("<a href='x'>&\"\u{0}"),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\\u{0}"
        );
        assert_eq!(cut("abc", 2), "ab…");
    }
}
