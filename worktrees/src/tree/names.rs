//! Names that may not be in a tree: those that lead out of it, and those that some system takes for `.git`.

/// Whether a name is a single component that stays where it is.
pub(crate) fn is_safe(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/') && !name.contains(&0)
}

/// Whether git, Windows (case, trailing dots and blanks, streams, short names) or macOS (case, invisible
/// characters) could take the name for `.git`.
pub(crate) fn looks_like_git(name: &[u8]) -> bool {
    let visible = without_invisible(name);
    let stream = visible
        .split(|byte| *byte == b':')
        .next()
        .unwrap_or_default();
    let end = stream
        .iter()
        .rposition(|byte| !matches!(byte, b'.' | b' '))
        .map_or(0, |last| last + 1);
    let stem = stream.get(..end).unwrap_or_default();
    stem.eq_ignore_ascii_case(b".git") || stem.eq_ignore_ascii_case(b"git~1")
}

/// Drops the characters that HFS+ ignores when it compares names.
fn without_invisible(name: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(name) else {
        return name.to_vec();
    };
    let ignored = |letter: char| matches!(letter, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    text.chars()
        .filter(|letter| !ignored(*letter))
        .collect::<String>()
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::{is_safe, looks_like_git};

    #[test]
    fn finds_look_alikes() {
        for name in [
            ".git",
            ".GIT",
            ".git.",
            ".Git . ",
            "git~1",
            ".git::$INDEX_ALLOCATION",
            ".g\u{200c}it",
            "GIT~1",
        ] {
            assert!(looks_like_git(name.as_bytes()), "{name:?}");
        }
        for name in [
            ".gitignore",
            ".github",
            "git",
            "x.git",
            "git~2",
            ".gitt",
            ".git_",
        ] {
            assert!(!looks_like_git(name.as_bytes()), "{name:?}");
        }
    }

    #[test]
    fn names_stay_in_their_folder() {
        assert!(is_safe(b"a\nb"));
        assert!(!is_safe(b"..") && !is_safe(b".") && !is_safe(b"") && !is_safe(b"a/b"));
    }
}
