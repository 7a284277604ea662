//! What a note claims, read as numbers with a unit, test counts and hashes, in English and Chinese.
//! It must never guess: a number without a known unit, a demand or a hope is no claim.

mod hash;
mod number;
mod path;
mod sentence;
mod sizes;
mod table;
mod testing;
mod unit;
mod words;

use crate::{ClaimKind, ClaimValue, Comparison};

/// One claim as the note makes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claim {
    pub(crate) text: String,
    pub(crate) line: u32,
    pub(crate) kind: ClaimKind,
    pub(crate) value: ClaimValue,
    pub(crate) comparison: Comparison,
    pub(crate) path: Option<String>,
    /// Half of the last digit of a rounded number such as 12.5 KB; 0 when it is exact.
    pub(crate) slack: f64,
    pub(crate) about: About,
}

/// What a claim says of the delivery itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// Of files that were added.
    Added,
    /// Of files that were changed.
    Modified,
    /// Of files that were deleted.
    Deleted,
    /// Of everything that was touched, or a commit that the note calls its own.
    Own,
    /// It does not say.
    Unsaid,
}

/// Longest line of a note that is read, in bytes; a longer one is cut.
const LINE: usize = 20_000;

/// All claims of a note, in its order.
pub(super) fn read(note: &str) -> Vec<Claim> {
    let mut found = Vec::new();
    let mut table = None;
    for (at, line) in note.lines().enumerate() {
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let line = cut(line);
        if let Some(rows) = table::row(line, &mut table) {
            found.extend(rows.into_iter().map(|claim| Claim {
                line: number,
                ..claim
            }));
            continue;
        }
        let mut claims = hash::read(line);
        claims.extend(sentence::read(line));
        found.extend(claims.into_iter().map(|claim| Claim {
            line: number,
            ..claim
        }));
    }
    found
}

fn cut(line: &str) -> &str {
    let mut end = line.len().min(LINE);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.get(..end).unwrap_or_default()
}

/// The words of a claim, short enough to show.
fn shown(text: &str) -> String {
    text.trim().chars().take(200).collect()
}
