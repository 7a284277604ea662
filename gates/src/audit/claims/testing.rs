//! Claims about tests: tool lines (pytest, cargo, unittest, jest) and sentences, and the honest "did not run them".

use super::number::Number;
use super::sentence::{Sentence, value_of};
use super::words::{ends_any, has_any, head, tail};
use super::{About, Claim, shown};
use crate::{ClaimKind, ClaimValue, Comparison};

/// "I did not run the tests."
pub(super) fn denied(sentence: &Sentence<'_>) -> Option<Claim> {
    let lower = sentence.lower.replace('’', "'");
    let english = has_any(&lower, &["test", "tests", "test suite"])
        && has_any(
            &lower,
            &[
                "not run",
                "didn't run",
                "haven't run",
                "not been run",
                "wasn't run",
                "weren't run",
                "not executed",
                "couldn't run",
                "can't run",
                "cannot run",
                "unable to run",
                "never ran",
                "never run",
                "without running",
                "not yet run",
                "no tests were run",
                "not ran",
                "did not execute",
            ],
        );
    let chinese = lower.contains("测试")
        && [
            "未运行",
            "没有运行",
            "没运行",
            "未执行",
            "没有执行",
            "没执行",
            "没跑",
            "未跑",
            "没有跑",
            "未能运行",
            "无法运行",
            "尚未运行",
        ]
        .iter()
        .any(|word| lower.contains(word))
        || ["未经测试", "未测试", "没有测试过"]
            .iter()
            .any(|word| lower.contains(word));
    (english || chinese).then(|| test_claim(sentence, ClaimKind::TestsRun, ClaimValue::Flag(false)))
}

/// Whether a line speaks of tests, so that a bare "1 ignored" in it is a count of them.
pub(super) fn concerns(lower: &str) -> bool {
    has_any(
        lower,
        &[
            "test", "tests", "pass", "passed", "passing", "passes", "failed", "failing", "failures",
        ],
    ) || ["测试", "用例", "通过"]
        .iter()
        .any(|word| lower.contains(word))
}

pub(super) fn read(sentence: &Sentence<'_>, used: &mut [bool]) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut at = 0;
    while let Some(number) = sentence.numbers.get(at) {
        let next = sentence.numbers.get(at + 1);
        if let Some(next) = next
            && is_fraction(sentence, number, next)
        {
            mark(used, at);
            mark(used, at + 1);
            claims.push(count(sentence, ClaimKind::TestsPassed, number));
            claims.push(count(sentence, ClaimKind::TestsTotal, next));
            at += 2;
            continue;
        }
        if let Some((kind, all)) = meaning(sentence, number) {
            mark(used, at);
            claims.push(count(sentence, kind, number));
            if all {
                claims.push(test_claim(
                    sentence,
                    ClaimKind::TestsFailed,
                    ClaimValue::Count(0),
                ));
            }
        }
        at += 1;
    }
    if claims.is_empty() && says_all_pass(&sentence.lower) {
        claims.push(test_claim(
            sentence,
            ClaimKind::TestsFailed,
            ClaimValue::Count(0),
        ));
    }
    claims
}

fn mark(used: &mut [bool], at: usize) {
    if let Some(slot) = used.get_mut(at) {
        *slot = true;
    }
}

fn test_claim(sentence: &Sentence<'_>, kind: ClaimKind, value: ClaimValue) -> Claim {
    Claim {
        text: shown(sentence.text),
        line: 0,
        kind,
        value,
        comparison: Comparison::Eq,
        path: None,
        slack: 0.0,
        about: About::Own,
    }
}

fn count(sentence: &Sentence<'_>, kind: ClaimKind, number: &Number) -> Claim {
    test_claim(sentence, kind, value_of(number.value))
}

/// `12/12 tests passing`, `10 of 12 tests pass`.
fn is_fraction(sentence: &Sentence<'_>, first: &Number, second: &Number) -> bool {
    let joint = sentence
        .text
        .get(first.end..second.start)
        .unwrap_or_default();
    let joint = joint.trim().to_lowercase();
    let joins = matches!(
        joint.as_str(),
        "/" | "of" | "out of" | "of the" | "out of the"
    );
    let behind = sentence.lower.get(second.end..).unwrap_or_default();
    let before = sentence.lower.get(..first.start).unwrap_or_default();
    let about = |text: &str| {
        has_any(
            text,
            &["pass", "passed", "passing", "tests", "test", "green", "ok"],
        ) || ["通过", "测试", "用例"]
            .iter()
            .any(|word| text.contains(word))
    };
    joins && first.value <= second.value && (about(head(behind, 40)) || about(tail(before, 30)))
}

/// Words that may stand between a count and what became of the tests.
const BETWEEN: [&str; 22] = [
    "test",
    "tests",
    "unit",
    "integration",
    "case",
    "cases",
    "checks",
    "specs",
    "have",
    "has",
    "are",
    "now",
    "were",
    "all",
    "of",
    "the",
    "existing",
    "new",
    "both",
    "that",
    "in",
    "total",
];

/// What a count says of tests, and whether it says it of all of them.
fn meaning(sentence: &Sentence<'_>, number: &Number) -> Option<(ClaimKind, bool)> {
    let behind = head(sentence.lower.get(number.end..).unwrap_or_default(), 80);
    let before = tail(sentence.lower.get(..number.start).unwrap_or_default(), 40);
    if let Some(found) = chinese(before, behind) {
        return Some(found);
    }
    let all = ends_any(before, &["all", "all of the", "all the", "全部", "所有"]);
    let mut seen_test = false;
    for word in behind.split_whitespace().take(6) {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        match bare {
            "passed" | "pass" | "passing" | "passes" | "green" | "succeed" | "succeeded" => {
                return Some((ClaimKind::TestsPassed, all));
            }
            "failed" | "fail" | "failing" | "failure" | "failures" | "fails" => {
                return Some((ClaimKind::TestsFailed, false));
            }
            "skipped" | "ignored" | "skips" | "skip" => {
                return Some((ClaimKind::TestsSkipped, false));
            }
            "total" if has_any(&sentence.lower, &["tests", "passed"]) => {
                return Some((ClaimKind::TestsTotal, false));
            }
            _ => {}
        }
        seen_test |= bare == "tests" || bare == "test";
        if !BETWEEN.contains(&bare) || word.ends_with([',', ';', '.']) {
            break;
        }
    }
    let ran = ends_any(before, &["ran", "running", "executed", "collected"]);
    if ran && seen_test {
        return Some((ClaimKind::TestsTotal, false));
    }
    let labelled = [
        (
            ClaimKind::TestsPassed,
            &["passed", "pass", "passing", "passes"][..],
        ),
        (
            ClaimKind::TestsFailed,
            &["failed", "failures", "failing", "fail"][..],
        ),
        (ClaimKind::TestsSkipped, &["skipped", "ignored"][..]),
    ];
    let label = before.trim_end();
    let colon = label.ends_with([':', '=']);
    labelled
        .into_iter()
        .find(|(_, words)| colon && ends_any(label.trim_end_matches('='), words))
        .map(|(kind, _)| (kind, false))
}

fn chinese(before: &str, behind: &str) -> Option<(ClaimKind, bool)> {
    let behind = behind.trim_start();
    let lead = before
        .trim_end()
        .trim_end_matches([':', '：', '了'])
        .trim_end();
    for (word, kind) in [
        ("通过", ClaimKind::TestsPassed),
        ("失败", ClaimKind::TestsFailed),
        ("跳过", ClaimKind::TestsSkipped),
    ] {
        if lead.ends_with(word) && !lead.ends_with("未通过") {
            return Some((kind, false));
        }
    }
    let rest = ["个", "项", "条", "例"]
        .iter()
        .find_map(|measure| behind.strip_prefix(measure))
        .unwrap_or(behind);
    let rest = rest.trim_start();
    let tests = ["单元测试", "测试用例", "测试", "用例"]
        .iter()
        .find_map(|word| rest.strip_prefix(word));
    let said = tests.unwrap_or(rest).trim_start();
    let all = ["全部", "均", "都", "全"]
        .iter()
        .find_map(|word| said.strip_prefix(word));
    let said = all.unwrap_or(said).trim_start_matches("已").trim_start();
    let whole = all.is_some() || lead.ends_with("全部") || lead.ends_with("所有");
    if said.starts_with("通过") {
        return Some((ClaimKind::TestsPassed, whole));
    }
    if said.starts_with("失败") || said.starts_with("未通过") {
        return Some((ClaimKind::TestsFailed, false));
    }
    if said.starts_with("跳过") || said.starts_with("被跳过") {
        return Some((ClaimKind::TestsSkipped, false));
    }
    let ran = ["运行", "共运行", "执行", "跑"]
        .iter()
        .any(|word| lead.ends_with(word));
    (tests.is_some() && ran).then_some((ClaimKind::TestsTotal, false))
}

fn says_all_pass(lower: &str) -> bool {
    let english = has_any(
        lower,
        &[
            "all tests",
            "all the tests",
            "all unit tests",
            "all of the tests",
            "every test",
            "the tests all",
            "all existing tests",
        ],
    ) && has_any(
        lower,
        &[
            "pass",
            "passed",
            "passing",
            "passes",
            "green",
            "succeed",
            "succeeded",
        ],
    ) && !has_any(lower, &["not", "don't", "didn't"]);
    let chinese = [
        "所有测试",
        "全部测试",
        "测试全部",
        "测试均",
        "测试都",
        "所有用例",
        "全部用例",
        "用例全部",
    ]
    .iter()
    .any(|word| lower.contains(word))
        && lower.contains("通过")
        && !lower.contains("未通过");
    english || chinese
}
