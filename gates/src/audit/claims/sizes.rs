//! Sizes and counts: a number, its unit, how it is meant, the file it is said of.

use super::number::Number;
use super::sentence::{Sentence, value_of};
use super::unit::{self, Unit};
use super::words::{ends_any, has_any, head, tail};
use super::{About, Claim, shown};
use crate::{ClaimKind, Comparison};

const DEMANDS: [&str; 24] = [
    "asked for",
    "asked",
    "target",
    "requested",
    "required",
    "requirement",
    "requirements",
    "requires",
    "must",
    "wanted",
    "goal",
    "limit",
    "minimum",
    "maximum",
    "needs",
    "needed",
    "at least as",
    "要求",
    "目标",
    "需要",
    "规定",
    "上限",
    "下限",
    "应为",
];

const ACTUAL: [&str; 12] = [
    "delivered",
    "wrote",
    "written",
    "produced",
    "got",
    "actual",
    "actually",
    "came to",
    "ended up",
    "实际",
    "交付",
    "实为",
];

pub(super) fn read(
    sentence: &Sentence<'_>,
    used: &mut [bool],
    carried: &mut Option<ClaimKind>,
) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut at = 0;
    while let Some(number) = sentence.numbers.get(at).copied() {
        let mine = !std::mem::replace(used.get_mut(at).unwrap_or(&mut false), true);
        at += 1;
        if !mine {
            continue;
        }
        if let Some((second, unit)) = range_end(sentence, &number, at) {
            used.get_mut(at).into_iter().for_each(|slot| *slot = true);
            at += 1;
            if !is_demand(sentence, number.start) {
                claims.push(claim(sentence, &number, unit, Comparison::Ge));
                claims.push(claim(sentence, &second, unit, Comparison::Le));
            }
            continue;
        }
        let after = sentence.text.get(number.end..).unwrap_or_default();
        let before = sentence.text.get(..number.start).unwrap_or_default();
        if is_position(before, after) {
            continue;
        }
        if let Some(percent) = coverage(sentence, &number, before, after) {
            claims.push(percent);
            continue;
        }
        if let Some(unit) = unit::after(after) {
            if is_demand(sentence, number.start) {
                *carried = Some(unit.kind);
            } else {
                let comparison = unit::comparison(before, &number, &unit);
                claims.push(claim(sentence, &number, unit, comparison));
            }
        } else if let Some(kind) = *carried
            && ends_any(&tail(before, 40).to_lowercase(), &ACTUAL)
        {
            let unit = Unit {
                kind,
                length: 0,
                scale: 1.0,
                said: None,
            };
            let comparison = unit::comparison(before, &number, &unit);
            claims.push(claim(sentence, &number, unit, comparison));
        }
    }
    claims
}

/// `1,000 to 1,200 words`, `between 1,000 and 1,200 words`, `1000-1200字`.
fn range_end(sentence: &Sentence<'_>, first: &Number, next: usize) -> Option<(Number, Unit)> {
    let second = *sentence.numbers.get(next)?;
    let joint = sentence
        .text
        .get(first.end..second.start)?
        .trim()
        .to_lowercase();
    let before = sentence.lower.get(..first.start).unwrap_or_default();
    let joins = matches!(
        joint.as_str(),
        "to" | "-" | "–" | "—" | "~" | "～" | "到" | "至"
    ) || (matches!(joint.as_str(), "and" | "和" | "与")
        && ends_any(before, &["between", "介于", "在"]));
    if !joins || second.value <= first.value {
        return None;
    }
    let unit = unit::after(sentence.text.get(second.end..)?)?;
    Some((second, unit))
}

fn is_position(before: &str, after: &str) -> bool {
    before.trim_end().ends_with('第')
        || ends_any(
            &tail(before, 24).to_lowercase(),
            &[
                "line", "lines", "port", "version", "python", "issue", "pr", "page", "step",
                "section", "chapter",
            ],
        ) && !after.trim_start().starts_with("lines")
}

/// Whether the clause around a number asks for something instead of claiming it.
fn is_demand(sentence: &Sentence<'_>, at: usize) -> bool {
    let before = sentence.text.get(..at).unwrap_or_default();
    let breaks = [",", "，", "、", " but ", "但", ":", "："];
    let clause_start = breaks
        .iter()
        .filter_map(|mark| before.rfind(mark).map(|found| found + mark.len()))
        .max()
        .unwrap_or(0);
    let rest = sentence.text.get(at..).unwrap_or_default();
    let clause_end = rest
        .char_indices()
        .find(|&(index, c)| {
            let next = rest
                .get(index + c.len_utf8()..)
                .and_then(|s| s.chars().next());
            matches!(c, '，' | '、')
                || (c == ',' && !next.is_some_and(|n| n.is_ascii_digit() && index < 4))
        })
        .map_or(rest.len(), |(index, _)| index);
    let clause = sentence
        .text
        .get(clause_start..at + clause_end)
        .unwrap_or_default()
        .to_lowercase();
    if has_any(&clause, &DEMANDS) {
        return true;
    }
    // "不少于2000字,实际2315字": a bound that an actual number answers.
    let bound = has_any(
        &clause,
        &["不少于", "不超过", "至少", "at least", "at most", "不低于"],
    );
    let answered = rest.get(clause_end..).is_some_and(|more| {
        let more = more.to_lowercase();
        has_any(&more, &["实际", "actual", "actually", "delivered", "实为"])
    });
    bound && answered
}

fn coverage(sentence: &Sentence<'_>, number: &Number, before: &str, after: &str) -> Option<Claim> {
    let percent = after.trim_start();
    let percent =
        percent.starts_with('%') || percent.starts_with('％') || percent.starts_with("percent");
    let named = has_any(&sentence.lower, &["coverage", "covers", "覆盖率"]);
    if !percent || !named || is_demand(sentence, number.start) {
        return None;
    }
    let unit = Unit {
        kind: ClaimKind::CoveragePct,
        length: 0,
        scale: 1.0,
        said: None,
    };
    let comparison = unit::comparison(before, number, &unit);
    Some(claim(sentence, number, unit, comparison))
}

fn claim(sentence: &Sentence<'_>, number: &Number, unit: Unit, comparison: Comparison) -> Claim {
    let of_a_file = matches!(
        unit.kind,
        ClaimKind::Chars
            | ClaimKind::Bytes
            | ClaimKind::Lines
            | ClaimKind::Words
            | ClaimKind::CjkWords
            | ClaimKind::Functions
    );
    let rounded = number.scaled || unit.scale > 1.0;
    Claim {
        text: shown(sentence.text),
        line: 0,
        kind: unit.kind,
        value: value_of(number.value * unit.scale),
        comparison,
        path: of_a_file
            .then(|| path_of(sentence, number, unit.length))
            .flatten(),
        slack: if rounded {
            number.step * unit.scale / 2.0
        } else {
            0.0
        },
        about: about(sentence, number, &unit),
    }
}

/// The last file named before the number; else one that follows it directly: "312 lines to src/a.py".
fn path_of(sentence: &Sentence<'_>, number: &Number, unit: usize) -> Option<String> {
    let before = sentence
        .names
        .iter()
        .rev()
        .find(|named| named.range.end <= number.start);
    if let Some(named) = before {
        return Some(named.path.clone());
    }
    let end = number.end + unit;
    let named = sentence
        .names
        .iter()
        .find(|named| named.range.start >= end)?;
    let between = sentence.text.get(end..named.range.start)?.to_lowercase();
    let joint = between.trim_matches(|c: char| c.is_whitespace() || "`'\"(".contains(c));
    let words: Vec<&str> = joint.split_whitespace().collect();
    let last = words.last().copied().unwrap_or_default();
    let leads = matches!(
        last,
        "to" | "in" | "into" | "of" | "for" | "at" | "到" | "至" | "the" | "file"
    );
    let english = words.len() <= 4 && leads && !joint.contains([',', '，']);
    (english || joint.ends_with("写入")).then(|| named.path.clone())
}

/// Whether the clause says that the files are the delivery's.
fn about(sentence: &Sentence<'_>, number: &Number, unit: &Unit) -> About {
    let before = sentence.lower.get(..number.start).unwrap_or_default();
    let clause_start = [",", "，", "、", " and "]
        .iter()
        .filter_map(|mark| before.rfind(mark).map(|found| found + mark.len()))
        .max()
        .unwrap_or(0);
    let behind = sentence.lower.get(number.end..).unwrap_or_default();
    let near = format!(
        "{} | {}",
        before.get(clause_start..).unwrap_or_default(),
        head(behind, unit.length + 12)
    );
    let says = |words: &[&str]| {
        words.iter().any(|word| {
            let ascii = word.is_ascii();
            (ascii && has_any(&near, &[word])) || (!ascii && near.contains(word))
        })
    };
    if says(&[
        "added",
        "created",
        "new",
        "wrote",
        "written",
        "generated",
        "produced",
        "add",
        "create",
        "新增",
        "创建",
        "新建",
        "生成",
        "添加",
        "绘制",
    ]) {
        About::Added
    } else if says(&["modified", "updated", "edited", "修改", "更新", "改动"]) {
        About::Modified
    } else if says(&["deleted", "removed", "删除", "移除"]) {
        About::Deleted
    } else if says(&["changed", "touched", "across", "涉及", "变更"]) {
        About::Own
    } else {
        About::Unsaid
    }
}
