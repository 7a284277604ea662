//! Words that say a body is not the real thing. A mark alone proves nothing: the caller looks at the body first.

use crate::python::{Callable, Outline, Work};

/// Marks in a comment beside the body, as words or phrases of the lower-cased text.
const IN_COMMENTS: [&str; 33] = [
    "todo",
    "fixme",
    "placeholder",
    "for now",
    "simulate",
    "simulates",
    "simulated",
    "simulating",
    "simulation of",
    "mock",
    "mocked",
    "mock data",
    "fake data",
    "dummy data",
    "stub",
    "stubbed",
    "not implemented",
    "not yet implemented",
    "unimplemented",
    "to be implemented",
    "implement me",
    "implement later",
    "implementation goes here",
    "your code here",
    "add logic here",
    "add implementation",
    "real implementation",
    "actual implementation",
    "in a real",
    "in production",
    "tbd",
    "wip",
    "pretend",
];

/// Marks in a docstring: there "mock" or "for now" may be the subject.
const IN_DOCSTRINGS: [&str; 14] = [
    "todo",
    "fixme",
    "placeholder",
    "not implemented yet",
    "not yet implemented",
    "simulates",
    "simulate",
    "mock implementation",
    "mock data",
    "dummy implementation",
    "stub implementation",
    "in a real implementation",
    "to be done",
    "implement me",
];

/// The same in Chinese, found anywhere in a comment or a docstring.
const CHINESE: [&str; 16] = [
    "待实现",
    "占位",
    "暂时返回",
    "暂时",
    "模拟",
    "未实现",
    "尚未实现",
    "待完成",
    "待补充",
    "以后实现",
    "稍后实现",
    "假数据",
    "暂不实现",
    "先返回",
    "实际应该",
    "真实实现",
];

/// Marks that count in a plain string: there a word such as "mock" is data.
const IN_STRINGS: [&str; 8] = [
    "todo",
    "fixme",
    "placeholder",
    "not implemented yet",
    "not yet implemented",
    "simulating",
    "simulated",
    "for now",
];

/// Phrases that say so even of a body that does some work.
const OUTRIGHT: [&str; 20] = [
    "in a real implementation",
    "in the real implementation",
    "real implementation would",
    "real implementation should",
    "a real implementation",
    "actual implementation would",
    "in a production implementation",
    "in a real system",
    "in a real application",
    "in a real app",
    "in a real scenario",
    "in a real-world",
    "in production, this",
    "in production this would",
    "placeholder implementation",
    "placeholder logic",
    "for demonstration purposes",
    "for demo purposes",
    "simplified implementation for",
    "just a placeholder",
];

const OUTRIGHT_ZH: [&str; 7] = [
    "实际实现中",
    "真实实现中",
    "实际应用中",
    "生产环境中应",
    "占位实现",
    "模拟实现",
    "仅作演示",
];

/// The first mark inside a callable: its line and its words.
pub(super) fn in_callable(outline: &Outline, callable: &Callable) -> Option<(u32, String)> {
    let comments = || {
        let found = outline.comments_of(callable).iter();
        found.map(|comment| (comment.line, comment.text.as_str()))
    };
    let doc = || {
        callable
            .doc
            .iter()
            .flat_map(|(line, text)| numbered(*line, text))
    };
    if callable.work == Work::Real {
        return first(comments().chain(doc()), &OUTRIGHT, &OUTRIGHT_ZH);
    }
    // What subclasses write is no hole in this class.
    let left_to_others = |&(_, text): &(u32, &str)| {
        let text = text.to_lowercase();
        callable.work.is_hole()
            && ["subclass", "overrid", "derived class"]
                .iter()
                .any(|word| text.contains(word))
    };
    first(
        comments().filter(|said| !left_to_others(said)),
        &IN_COMMENTS,
        &CHINESE,
    )
    .or_else(|| {
        first(
            doc().filter(|said| !left_to_others(said)),
            &IN_DOCSTRINGS,
            &CHINESE,
        )
    })
    .or_else(|| {
        let strings = callable
            .strings
            .iter()
            .map(|(line, text)| (*line, text.as_str()));
        first(strings, &IN_STRINGS, &[])
    })
}

fn numbered(line: u32, text: &str) -> impl Iterator<Item = (u32, &str)> {
    (line..).zip(text.split('\n'))
}

fn first<'a, T: Iterator<Item = (u32, &'a str)>>(
    texts: T,
    words: &[&str],
    anywhere: &[&str],
) -> Option<(u32, String)> {
    for (line, text) in texts {
        let lower = text.to_lowercase();
        let found = words.iter().any(|word| has_word(&lower, word))
            || anywhere.iter().any(|word| lower.contains(word));
        if found {
            return Some((line, excerpt(text)));
        }
    }
    None
}

/// The first 60 characters of the first line.
pub(super) fn excerpt(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(60).collect();
    if line.chars().count() > 60 {
        short.push('…');
    }
    short
}

/// Whether a phrase stands in a text with no letter or digit on either side.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|s| s.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|s| s.chars().next());
        let joins = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        !joins(before) && !joins(after)
    })
}
