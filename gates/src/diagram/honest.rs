//! Finds the plain statement that a figure is missing, in English and Chinese.
//! A denial, a question or a condition is no statement.

use super::document::{Document, Prose};

/// A figure this many lines after the statement is meant by it.
const REACH: u32 = 6;

/// Lines that say plainly that a figure is missing.
pub(super) fn statements(document: &Document) -> Vec<u32> {
    let mut lines: Vec<u32> = document
        .prose
        .iter()
        .filter(|prose| says_missing(prose))
        .map(|prose| prose.line)
        .collect();
    lines.extend(document.prose.windows(2).filter_map(broken_statement));
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Whether one of the statements stands shortly before a line, in the same section.
pub(super) fn covers(statements: &[u32], sections: &[u32], line: u32) -> bool {
    let before = statements.partition_point(|statement| *statement <= line);
    let Some(&statement) = before.checked_sub(1).and_then(|at| statements.get(at)) else {
        return false;
    };
    let section = |line: u32| sections.partition_point(|start| *start <= line);
    line - statement <= REACH && section(statement) == section(line)
}

/// Most lines speak of no figure, and need no closer look.
fn mentions_figure(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    text.contains('图') || NOUNS.iter().any(|noun| lower.contains(noun))
}

/// A sentence that goes on in the next line.
fn broken_statement(pair: &[Prose]) -> Option<u32> {
    let [first, second] = pair else {
        return None;
    };
    let goes_on = second.line == first.line + 1
        && !first
            .text
            .trim_end()
            .ends_with(['.', '。', '!', '?', ':', '|'])
        && !second
            .text
            .trim_start()
            .starts_with(['#', '-', '*', '<', '|', '!', '[']);
    let figure = mentions_figure(&first.text) || mentions_figure(&second.text);
    if !goes_on || !figure {
        return None;
    }
    let joined = Prose {
        line: second.line,
        text: format!("{} {}", first.text.trim_end(), second.text.trim_start()),
    };
    says_missing(&joined).then_some(second.line)
}

fn says_missing(prose: &Prose) -> bool {
    let text = prose.text.trim();
    let marked = text.find("<!--").and_then(|at| text.get(at + 4..));
    if let Some(reason) =
        marked.and_then(|inner| inner.trim_start().strip_prefix("figure-missing:"))
    {
        return !reason.trim_end_matches("-->").trim().is_empty();
    }
    if text.starts_with("<!--") || !mentions_figure(text) {
        return false;
    }
    let plain: String = text
        .chars()
        .filter(|c| !matches!(c, '*' | '_' | '`' | '>'))
        .collect();
    let sentences = plain.split_inclusive(['.', '。', '!', '！', '?', '？', ';', '；']);
    sentences
        .into_iter()
        .any(|sentence| english(sentence) || chinese(sentence))
}

const NOUNS: &[&str] = &[
    "figure",
    "diagram",
    "image",
    "picture",
    "illustration",
    "chart",
    "graphic",
    "screenshot",
    "drawing",
    "flowchart",
    "graph",
    "schematic",
];
const ABSENT: &[&str] = &[
    "missing",
    "unavailable",
    "not available",
    "omitted",
    "not included",
    "not rendered",
    "not generated",
    "not drawn",
    "not produced",
    "could not be",
    "couldn't be",
    "cannot be",
    "can't be",
    "can not be",
    "was not able to",
    "were not able to",
    "unable to",
    "failed to render",
    "failed to generate",
    "not been generated",
    "not been rendered",
    "not present",
    "is absent",
    "could not generate",
    "could not render",
    "could not create",
    "could not produce",
    "could not draw",
    "cannot generate",
    "cannot render",
    "not yet available",
    "placeholder only",
];
/// What a figure "could not be".
const MADE: &[&str] = &[
    "generated",
    "rendered",
    "created",
    "produced",
    "drawn",
    "included",
    "made",
    "provided",
    "exported",
    "embedded",
    "render",
    "generate",
    "create",
    "produce",
    "draw",
    "include",
    "provide",
    "attached",
    "supplied",
    "built",
];

fn english(sentence: &str) -> bool {
    let text = sentence.to_lowercase();
    let denied = [
        "not missing",
        "n't missing",
        "never missing",
        "no longer missing",
        "no figure",
        "no image",
        "no diagram",
        "nothing is missing",
        "not unavailable",
        "figure out",
        "none missing",
        "without missing",
        "not omitted",
        "n't omitted",
        "missing no",
    ];
    let conditional = [
        "if ",
        "when ",
        "whether ",
        "whenever ",
        "unless ",
        "in case ",
        "should be ",
        "may be ",
        "might be ",
        "would be ",
    ];
    if denied.iter().any(|words| text.contains(words))
        || conditional.iter().any(|words| starts_word(&text, words))
        || text.trim_end().ends_with('?')
    {
        return false;
    }
    let Some(noun) = NOUNS.iter().filter_map(|noun| word_at(&text, noun)).min() else {
        return false;
    };
    let Some((absent, words)) = ABSENT
        .iter()
        .filter_map(|words| text.find(words).map(|at| (at, *words)))
        .min()
    else {
        return false;
    };
    let needs_made =
        ["be", "to"].iter().any(|end| words.ends_with(end)) || words.contains("not be");
    let after = text.get(absent + words.len()..).unwrap_or("");
    let made = !needs_made || MADE.iter().any(|made| after.contains(made));
    // "missing figure" as well as "figure … is missing", but not far apart.
    made && absent.abs_diff(noun) <= 120
}

fn word_at(text: &str, word: &str) -> Option<usize> {
    text.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = text
            .get(..*at)
            .and_then(|before| before.chars().next_back());
        let after = text.get(at + word.len()..).unwrap_or("");
        let after = after.strip_prefix('s').unwrap_or(after);
        !before.is_some_and(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric)
    })
}

fn starts_word(text: &str, words: &str) -> bool {
    text.starts_with(words) || text.contains(&format!(" {words}"))
}

fn chinese(sentence: &str) -> bool {
    const FIGURES: &[&str] = &["图"];
    const ABSENT: &[&str] = &[
        "缺失",
        "缺少",
        "无法生成",
        "未能生成",
        "无法渲染",
        "未渲染",
        "未生成",
        "暂缺",
        "缺图",
        "无法绘制",
        "未能绘制",
        "不可用",
        "没有生成",
        "没能生成",
        "无法提供",
        "未提供",
        "未能渲染",
        "无法输出",
        "尚未生成",
        "生成失败",
        "渲染失败",
        "无法导出",
        "未附",
    ];
    const DENIED: &[&str] = &[
        "不缺",
        "没有缺",
        "并未缺",
        "无缺",
        "未缺",
        "如果",
        "若",
        "假如",
        "是否",
        "当图",
        "并非缺",
        "没缺",
        "不再缺",
        "试图",
        "企图",
        "缺陷",
        "缺点",
        "缺省",
        "缺页",
    ];
    let figure = FIGURES.iter().any(|word| sentence.contains(word));
    figure
        && ABSENT.iter().any(|word| sentence.contains(word))
        && !DENIED.iter().any(|word| sentence.contains(word))
        && !sentence.trim_end().ends_with(['?', '？'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str) -> bool {
        says_missing(&Prose {
            line: 1,
            text: text.to_owned(),
        })
    }

    #[test]
    fn plain_statements() {
        for text in [
            "**Figure missing:** no renderer here.",
            "The architecture diagram could not be generated in this environment.",
            "Missing figure: login sequence.",
            "> Image not available; see the text.",
            "Diagram not rendered (no browser).",
            "<!-- figure-missing: no tool to draw with -->",
            "配图缺失：没有绘图工具。",
            "此处的架构图无法生成。",
            "（缺图）",
            "We were unable to render the figure.",
        ] {
            assert!(says(text), "{text}");
        }
    }

    #[test]
    fn denials_conditions_and_other_words() {
        for text in [
            "The figure is not missing.",
            "No figure is missing here.",
            "If the figure is missing, run make.",
            "Is the diagram missing?",
            "We figure out the missing parts.",
            "The configuration is missing.",
            "The image cannot be larger than 4 MB.",
            "<!-- figure-missing: -->",
            "图没有缺失。",
            "如果图片缺失，请重新运行。",
            "试图修复缺失的字段",
            "The image is great.",
        ] {
            assert!(!says(text), "{text}");
        }
    }

    #[test]
    fn reach_and_section() {
        assert!(covers(&[3], &[1], 7));
        assert!(!covers(&[3], &[1], 10));
        assert!(!covers(&[3], &[1, 5], 6));
        assert!(!covers(&[8], &[1], 7));
        assert!(!covers(&[], &[], 7));
    }
}
