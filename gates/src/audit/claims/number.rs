//! Numbers in a text: `17,141`, `12.5`, `1.2k`, `1.2万`, `三千五百`, `three`.
//! Versions, issue numbers, dates and parts of names are no numbers here.

use std::ops::Range;

use super::words::is_cjk;

/// A number with its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) value: f64,
    /// Value of one step of the last written digit: 100 for `1.2k`.
    pub(super) step: f64,
    /// Written with a suffix such as k or 万.
    pub(super) scaled: bool,
}

/// All numbers outside the masked ranges, which are sorted.
pub(super) fn all(text: &str, masks: &[Range<usize>]) -> Vec<Number> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut mask = masks.iter().peekable();
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        while mask.peek().is_some_and(|range| range.end <= at) {
            mask.next();
        }
        if let Some(range) = mask.peek()
            && range.contains(&at)
        {
            at = range.end;
            continue;
        }
        let number = if c.is_ascii_digit() {
            let (number, end) = digits(text, at);
            if number.is_none() {
                at = end;
                continue;
            }
            number
        } else if numeral(c).is_some() {
            let (number, end) = chinese(text, at);
            if number.is_none() {
                at = end;
                continue;
            }
            number
        } else if c.is_ascii_alphabetic() {
            let end = word_end(text, at);
            let number = english(text, at, end);
            if number.is_none() {
                at = end;
                continue;
            }
            number
        } else {
            None
        };
        match number {
            Some(number) => {
                at = number.end;
                found.push(number);
            }
            None => at += c.len_utf8(),
        }
    }
    found
}

fn word_end(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(rest.len())
}

/// A number in digits, and where reading goes on when it is none.
fn digits(text: &str, start: usize) -> (Option<Number>, usize) {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = start;
    while digit(end) {
        end += 1;
    }
    let first_group = end - start <= 3;
    while first_group
        && bytes.get(end) == Some(&b',')
        && (1..=3).all(|step| digit(end + step))
        && !digit(end + 4)
    {
        end += 4;
    }
    let whole = end;
    if bytes.get(end) == Some(&b'.') && digit(end + 1) {
        end += 1;
        while digit(end) {
            end += 1;
        }
    }
    let decimals = end.saturating_sub(whole + 1);
    let version = bytes.get(end) == Some(&b'.') && digit(end + 1);
    let before = text.get(..start).and_then(|s| s.chars().next_back());
    let glued = before.is_some_and(|c| c.is_ascii_alphanumeric() || "_#.$\\".contains(c));
    let plain: String = text.get(start..end).unwrap_or_default().replace(',', "");
    let Ok(value) = plain.parse::<f64>() else {
        return (None, end);
    };
    let (scale, after) = scale(text, end);
    if version || glued {
        return (None, skip_glued(text, after));
    }
    let step = scale * 0.1_f64.powi(i32::try_from(decimals).unwrap_or(0));
    let number = Number {
        start,
        end: after,
        value: (value * scale * 1000.0).round() / 1000.0,
        step,
        scaled: scale > 1.0,
    };
    (Some(number), after)
}

/// The rest of a version or a name: `.7-rc1`.
fn skip_glued(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_')
        .unwrap_or(rest.len())
}

fn scale(text: &str, end: usize) -> (f64, usize) {
    let rest = text.get(end..).unwrap_or_default();
    let mut chars = rest.chars();
    let first = chars.next();
    let next = chars.next();
    let alone = !next.is_some_and(|c| c.is_ascii_alphanumeric());
    match first {
        Some('k' | 'K') if alone => (1000.0, end + 1),
        Some('m' | 'M') if alone => (1_000_000.0, end + 1),
        Some('万') => (10_000.0, end + '万'.len_utf8()),
        Some('千') => (1000.0, end + '千'.len_utf8()),
        _ => (1.0, end),
    }
}

fn numeral(c: char) -> Option<f64> {
    let value = match c {
        '零' | '〇' => 0,
        '一' => 1,
        '二' | '两' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '六' => 6,
        '七' => 7,
        '八' => 8,
        '九' => 9,
        '十' | '百' | '千' | '万' => 10,
        _ => return None,
    };
    Some(f64::from(value))
}

fn power(c: char) -> Option<f64> {
    match c {
        '十' => Some(10.0),
        '百' => Some(100.0),
        '千' => Some(1000.0),
        '万' => Some(10_000.0),
        _ => None,
    }
}

/// A Chinese numeral; a lone 一 says no count ("一个" is an article).
fn chinese(text: &str, start: usize) -> (Option<Number>, usize) {
    let rest = text.get(start..).unwrap_or_default();
    let (mut total, mut section, mut digit) = (0.0, 0.0, 0.0);
    let mut end = start;
    for c in rest.chars().take_while(|c| numeral(*c).is_some()).take(20) {
        end += c.len_utf8();
        match power(c) {
            Some(power) if power > 9999.0 => {
                total += (section + digit) * power;
                section = 0.0;
                digit = 0.0;
            }
            Some(power) => {
                section += if digit == 0.0 { power } else { digit * power };
                digit = 0.0;
            }
            None => digit = numeral(c).unwrap_or(0.0),
        }
    }
    let value = total + section + digit;
    let number = Number {
        start,
        end,
        value,
        step: 1.0,
        scaled: false,
    };
    ((value > 1.0).then_some(number), end)
}

const ENGLISH: [&str; 11] = [
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];

fn english(text: &str, start: usize, end: usize) -> Option<Number> {
    let word = text.get(start..end)?.to_ascii_lowercase();
    let at = ENGLISH.iter().position(|known| *known == word)?;
    let before = text.get(..start)?.chars().next_back();
    if before.is_some_and(|c| is_cjk(c) || c == '-' || c == '_') {
        return None;
    }
    let value = u32::try_from(at + 2).ok().map(f64::from)?;
    Some(Number {
        start,
        end,
        value,
        step: 1.0,
        scaled: false,
    })
}
