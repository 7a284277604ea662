//! git's built-in conversions between a file's bytes and its blob: line ends and `$Id$`.
//! External filters do not exist here.

use std::borrow::Cow;
use std::convert::Infallible;

use git2::{ObjectType, Oid};
use gix_filter::eol;

use super::{Settings, Traits};

const KEYWORD: &[u8] = b"$Id";

/// The blob that git would make of a file. `indexed` is the blob that the base has at the path, asked for only
/// when it matters: line ends that are in the repository already are not "repaired" by accident.
pub(crate) fn to_git<'b, E>(
    bytes: &'b [u8],
    traits: &Traits,
    settings: &Settings,
    indexed: impl FnOnce() -> Result<Option<Vec<u8>>, E>,
) -> Result<Cow<'b, [u8]>, E> {
    let mut text = Cow::Borrowed(bytes);
    let may_change = traits.digest != eol::AttributesDigest::Binary && bytes.contains(&b'\r');
    if may_change {
        let before = if traits.digest.is_auto_text() {
            indexed()?
        } else {
            None
        };
        let mut buffer = Vec::new();
        let mut index_object = |buffer: &mut Vec<u8>| {
            Ok(before.as_ref().map(|blob| {
                buffer.clear();
                buffer.extend_from_slice(blob);
            }))
        };
        let options = eol::convert_to_git::Options {
            round_trip_check: None,
            config: settings.eol,
        };
        let changed = eol::convert_to_git(bytes, traits.digest, &mut buffer, &mut index_object, options)
            .expect("the only errors are of the round trip check, which is off, and of the callback, which has none");
        if changed {
            text = Cow::Owned(buffer);
        }
    }
    if traits.ident
        && let Some(shortened) = shorten_ids(&text)
    {
        text = Cow::Owned(shortened);
    }
    Ok(text)
}

/// The bytes that git would check out for a blob.
pub(crate) fn to_worktree<'b>(
    blob: &'b [u8],
    traits: &Traits,
    settings: &Settings,
) -> Cow<'b, [u8]> {
    let mut text = Cow::Borrowed(blob);
    if traits.ident
        && let Some(expanded) = expand_ids(blob)
    {
        text = Cow::Owned(expanded);
    }
    let mut buffer = Vec::new();
    let changed = eol::convert_to_worktree(&text, traits.digest, &mut buffer, settings.eol).expect(
        "the only error is a failed allocation, which ends the process everywhere else too",
    );
    if changed {
        text = Cow::Owned(buffer);
    }
    text
}

/// Never fails to say what the base has: for callers that hold the blob.
pub(crate) fn to_git_with<'b>(
    bytes: &'b [u8],
    traits: &Traits,
    settings: &Settings,
    indexed: Option<Vec<u8>>,
) -> Cow<'b, [u8]> {
    match to_git(bytes, traits, settings, || Ok::<_, Infallible>(indexed)) {
        Ok(text) => text,
        Err(never) => match never {},
    }
}

/// One `$Id...$` of a text.
struct Keyword {
    /// Behind `$Id`.
    inner: usize,
    /// Behind the closing dollar.
    end: usize,
}

/// The next keyword at or after `from`: `$Id$`, or `$Id:` and a closing dollar on the same line.
fn next_keyword(text: &[u8], mut from: usize) -> Option<Keyword> {
    loop {
        let rest = text.get(from..)?;
        let start = from
            + rest
                .windows(KEYWORD.len())
                .position(|window| window == KEYWORD)?;
        let inner = start + KEYWORD.len();
        match text.get(inner)? {
            b'$' => {
                return Some(Keyword {
                    inner,
                    end: inner + 1,
                });
            }
            b':' => {
                let tail = text.get(inner..)?;
                let stop = tail.iter().position(|byte| matches!(byte, b'$' | b'\n'));
                match stop {
                    Some(length) if tail.get(length) == Some(&b'$') => {
                        return Some(Keyword {
                            inner,
                            end: inner + length + 1,
                        });
                    }
                    _ => from = inner,
                }
            }
            _ => from = inner,
        }
    }
}

/// `$Id: anything$` becomes `$Id$`. `None`: there is none.
fn shorten_ids(text: &[u8]) -> Option<Vec<u8>> {
    replace(text, |value| !value.is_empty(), b"$")
}

/// `$Id$` becomes `$Id: <blob> $`. An expansion of git's own form is renewed, another system's is kept.
fn expand_ids(text: &[u8]) -> Option<Vec<u8>> {
    next_keyword(text, 0)?;
    let oid =
        Oid::hash_object(ObjectType::Blob, text).expect("hashing bytes in memory cannot fail");
    let foreign = |value: &[u8]| {
        // Behind the colon and the blank, a blank anywhere but at the end is not how git writes it.
        let words = value.get(2..).unwrap_or_default();
        words
            .iter()
            .position(|byte| *byte == b' ')
            .is_some_and(|blank| blank + 1 < words.len())
    };
    replace(
        text,
        |value| !foreign(value),
        format!(": {oid} $").as_bytes(),
    )
}

/// Puts `ending` behind each `$Id` whose value (between `$Id` and the closing dollar) is chosen.
fn replace(text: &[u8], chosen: impl Fn(&[u8]) -> bool, ending: &[u8]) -> Option<Vec<u8>> {
    let mut result = Vec::new();
    let (mut copied, mut from, mut found) = (0, 0, false);
    while let Some(keyword) = next_keyword(text, from) {
        let value = text.get(keyword.inner..keyword.end - 1).unwrap_or_default();
        if chosen(value) {
            result.extend_from_slice(text.get(copied..keyword.inner).unwrap_or_default());
            result.extend_from_slice(ending);
            (copied, from, found) = (keyword.end, keyword.end, true);
        } else if value.is_empty() {
            from = keyword.end;
        } else {
            from = keyword.inner;
        }
    }
    result.extend_from_slice(text.get(copied..).unwrap_or_default());
    found.then_some(result)
}

#[cfg(test)]
mod tests {
    use super::{expand_ids, shorten_ids};

    #[test]
    fn ids_are_shortened_only_on_one_line() {
        assert_eq!(shorten_ids(b"a $Id: x y$ b").unwrap(), b"a $Id$ b");
        assert_eq!(
            shorten_ids(b"$Id: x\n$ $Id: y $").unwrap(),
            b"$Id: x\n$ $Id$"
        );
        assert_eq!(shorten_ids(b"$Id$ $Idx$ $Id"), None);
    }

    #[test]
    fn ids_are_expanded_with_the_blob() {
        let oid = git2::Oid::hash_object(git2::ObjectType::Blob, b"$Id$\n").unwrap();
        assert_eq!(
            expand_ids(b"$Id$\n").unwrap(),
            format!("$Id: {oid} $\n").as_bytes()
        );
        assert_eq!(expand_ids(b"$Id: file.c,v 1.1 2001 $\n"), None);
        assert_eq!(expand_ids(b"none"), None);
    }
}
