//! Units after a number, and how the number is meant: about, at least, at most.

use super::number::Number;
use super::words::{ends, ends_any, head, tail};
use crate::{ClaimKind, Comparison};

/// A unit found after a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) kind: ClaimKind,
    /// Bytes of the text up to the end of the unit.
    pub(super) length: usize,
    pub(super) scale: f64,
    /// A comparison that stands with the unit: `1000余行`, `500 字以内`.
    pub(super) said: Option<Comparison>,
}

/// The unit at the start of the text after a number.
pub(super) fn after(text: &str) -> Option<Unit> {
    let text = head(text, 80);
    chinese(text).or_else(|| english(text))
}

const CHINESE: [(&str, ClaimKind); 26] = [
    ("个字符", ClaimKind::Chars),
    ("字符", ClaimKind::Chars),
    ("个字节", ClaimKind::Bytes),
    ("字节", ClaimKind::Bytes),
    ("行", ClaimKind::Lines),
    ("个单词", ClaimKind::Words),
    ("个词", ClaimKind::Words),
    ("单词", ClaimKind::Words),
    ("个汉字", ClaimKind::CjkWords),
    ("个字", ClaimKind::CjkWords),
    ("字", ClaimKind::CjkWords),
    ("个新文件", ClaimKind::Files),
    ("个新增文件", ClaimKind::Files),
    ("个源文件", ClaimKind::Files),
    ("个文件", ClaimKind::Files),
    ("份文件", ClaimKind::Files),
    ("文件", ClaimKind::Files),
    ("个函数", ClaimKind::Functions),
    ("函数", ClaimKind::Functions),
    ("张图", ClaimKind::Images),
    ("幅图", ClaimKind::Images),
    ("个图", ClaimKind::Images),
    ("张配图", ClaimKind::Images),
    ("张插图", ClaimKind::Images),
    ("张截图", ClaimKind::Images),
    ("幅插图", ClaimKind::Images),
];

/// What must not follow a unit, since it makes another word of it.
const OTHER_WORDS: [&str; 12] = [
    "字段",
    "字典",
    "字体",
    "字母",
    "字面",
    "行为",
    "行业",
    "行程",
    "行动",
    "文件夹",
    "文件名",
    "图层",
];

fn chinese(text: &str) -> Option<Unit> {
    let spaces = text.len() - text.trim_start().len();
    let mut rest = text.get(spaces..)?;
    let mut said = None;
    for mark in ["余", "多"] {
        if let Some(more) = rest.strip_prefix(mark) {
            rest = more;
            said = Some(Comparison::Ge);
        }
    }
    rest = rest.trim_start();
    let (name, kind) = CHINESE.iter().find(|(name, _)| rest.starts_with(name))?;
    let last = name.chars().next_back().map_or(0, char::len_utf8);
    let word = rest.get(name.len() - last..).unwrap_or_default();
    let whole = rest.trim_start_matches('个');
    if OTHER_WORDS
        .iter()
        .any(|other| word.starts_with(other) || whole.starts_with(other))
    {
        return None;
    }
    let behind = rest.get(name.len()..).unwrap_or_default();
    let said = said.or_else(|| {
        let behind = behind.trim_start_matches("代码");
        if ["以内", "以下", "之内"]
            .iter()
            .any(|word| behind.starts_with(word))
        {
            Some(Comparison::Le)
        } else if behind.starts_with("以上") {
            Some(Comparison::Ge)
        } else if ["左右", "上下"].iter().any(|word| behind.starts_with(word)) {
            Some(Comparison::Approx)
        } else {
            None
        }
    });
    Some(Unit {
        kind: *kind,
        length: text.len() - rest.len() + name.len(),
        scale: 1.0,
        said,
    })
}

/// Words that may stand between a number and its unit.
const ADJECTIVES: [&str; 36] = [
    "new",
    "newly",
    "added",
    "modified",
    "changed",
    "updated",
    "edited",
    "deleted",
    "created",
    "additional",
    "more",
    "total",
    "python",
    "rust",
    "source",
    "markdown",
    "test",
    "png",
    "svg",
    "real",
    "unicode",
    "utf-8",
    "ascii",
    "non-blank",
    "nonblank",
    "separate",
    "different",
    "public",
    "helper",
    "small",
    "of",
    "png/svg",
    "jpeg",
    "unique",
    "json",
    "physical",
];

fn english(text: &str) -> Option<Unit> {
    let mut at = 0;
    let first = text.chars().next()?;
    if !(first.is_whitespace() || first == '-' || first == '+' || first.is_ascii_alphabetic()) {
        return None;
    }
    let said = (first == '+').then_some(Comparison::Ge);
    if first == '-' || first == '+' {
        at = 1;
    }
    for _ in 0..3 {
        let rest = text.get(at..)?;
        let lead = rest.len() - rest.trim_start_matches([' ', '\u{a0}', '\t']).len();
        let rest = rest.trim_start_matches([' ', '\u{a0}', '\t']);
        let length = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "-/".contains(c)))
            .unwrap_or(rest.len());
        let word = rest.get(..length)?;
        at += lead + length;
        if let Some((kind, scale)) = named(word) {
            return Some(Unit {
                kind,
                length: at,
                scale,
                said,
            });
        }
        if word.is_empty() || !ADJECTIVES.contains(&word.to_ascii_lowercase().as_str()) {
            return None;
        }
    }
    None
}

pub(super) fn named(word: &str) -> Option<(ClaimKind, f64)> {
    let unit = match word {
        "KB" | "kB" | "KiB" | "kb" => (ClaimKind::Bytes, 1000.0),
        "MB" | "MiB" | "mb" => (ClaimKind::Bytes, 1_000_000.0),
        "GB" | "GiB" => (ClaimKind::Bytes, 1_000_000_000.0),
        "LOC" | "SLOC" | "loc" => (ClaimKind::Lines, 1.0),
        "B" => (ClaimKind::Bytes, 1.0),
        other => match other.to_ascii_lowercase().as_str() {
            "characters" | "character" | "chars" | "char" => (ClaimKind::Chars, 1.0),
            "bytes" | "byte" => (ClaimKind::Bytes, 1.0),
            "lines" | "line" => (ClaimKind::Lines, 1.0),
            "words" | "word" => (ClaimKind::Words, 1.0),
            "files" | "file" => (ClaimKind::Files, 1.0),
            "functions" | "function" => (ClaimKind::Functions, 1.0),
            "figures" | "figure" | "images" | "image" | "pictures" | "picture" | "diagrams"
            | "screenshots" => (ClaimKind::Images, 1.0),
            "insertions" | "insertion" => (ClaimKind::Insertions, 1.0),
            "deletions" | "deletion" => (ClaimKind::Deletions, 1.0),
            _ => return None,
        },
    };
    Some(unit)
}

const AT_MOST: [&str; 17] = [
    "under",
    "at most",
    "up to",
    "less than",
    "fewer than",
    "no more than",
    "not more than",
    "below",
    "within",
    "a maximum of",
    "不超过",
    "不到",
    "不多于",
    "至多",
    "最多",
    "低于",
    "小于",
];

const AT_LEAST: [&str; 15] = [
    "at least",
    "over",
    "more than",
    "no less than",
    "no fewer than",
    "not less than",
    "exceeding",
    "exceeds",
    "超过",
    "至少",
    "不少于",
    "不低于",
    "逾",
    "多于",
    "大于",
];

const ABOUT: [&str; 18] = [
    "about",
    "around",
    "approximately",
    "approx",
    "approx.",
    "roughly",
    "nearly",
    "almost",
    "some",
    "circa",
    "ca.",
    "c.",
    "约",
    "大约",
    "近",
    "接近",
    "大概",
    "差不多",
];

/// How a number is meant, by the words in front of it.
pub(super) fn comparison(before: &str, number: &Number, unit: &Unit) -> Comparison {
    if let Some(said) = unit.said {
        return said;
    }
    let before = tail(before, 40).to_lowercase();
    let sign = before.trim_end().chars().next_back();
    // "不超过" holds "超过", "不少于" holds "少于", "不低于" holds "低于".
    let at_least = ends_any(&before, &["不少于", "不低于"]);
    let fewer = ends_any(&before, &AT_MOST) || ends(&before, "少于");
    if (fewer && !at_least) || matches!(sign, Some('<' | '≤')) {
        return Comparison::Le;
    }
    if ends_any(&before, &AT_LEAST) || matches!(sign, Some('>' | '≥')) {
        return Comparison::Ge;
    }
    let about = ends_any(&before, &ABOUT) || matches!(sign, Some('~' | '≈' | '～'));
    if about || number.scaled || unit.scale > 1.0 {
        Comparison::Approx
    } else {
        Comparison::Eq
    }
}
