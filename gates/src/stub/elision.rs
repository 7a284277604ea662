//! Comments that stand in the place of code: "... rest of the code unchanged".

use super::marks::{excerpt, has_word};
use crate::Reason;
use crate::python::{Comment, Outline};

pub(super) fn rule(outline: &Outline) -> Vec<Reason> {
    outline
        .comments
        .iter()
        .filter(|comment| comment.alone && stands_for_code(comment))
        .map(|comment| {
            Reason::fail(
                "py.elision",
                format!(
                    "a comment stands in the place of code: `{}`",
                    excerpt(&comment.text)
                ),
            )
            .line(comment.line)
            .help(
                "write the file in full: what the comment leaves out is missing from the delivery",
            )
        })
        .collect()
}

/// What is left out.
const THINGS: [&str; 22] = [
    "code",
    "methods",
    "method",
    "functions",
    "function",
    "implementation",
    "class",
    "classes",
    "file",
    "module",
    "imports",
    "logic",
    "tests",
    "body",
    "definitions",
    "fields",
    "attributes",
    "handlers",
    "routes",
    "endpoints",
    "content",
    "script",
];

/// What is said of it.
const WHICH: [&str; 10] = [
    "rest of",
    "remaining",
    "existing",
    "previous",
    "other",
    "original",
    "unchanged",
    "same",
    "more",
    "the rest",
];

fn stands_for_code(comment: &Comment) -> bool {
    let text = comment.text.to_lowercase();
    let text = text.trim();
    if text.chars().count() > 100 {
        return false;
    }
    let dots = text.starts_with("...") || text.starts_with('…');
    let ends = text.ends_with("...") || text.ends_with('…');
    english(text, dots, ends) || chinese(text, dots || ends)
}

fn english(text: &str, dots: bool, ends: bool) -> bool {
    let thing = THINGS.iter().any(|word| has_word(text, word));
    let which = WHICH.iter().any(|word| has_word(text, word));
    let words = text
        .split_whitespace()
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .count();
    // `... existing methods ...`: dots in front, a short phrase, nothing that reads like a sentence about the code.
    if dots && thing && which && words <= 8 {
        return true;
    }
    if dots
        && ends
        && words > 0
        && words <= 4
        && which
        && !text.contains(|c: char| c.is_ascii_digit())
    {
        return true;
    }
    let kept = [
        "unchanged",
        "remains the same",
        "stays the same",
        "remain the same",
        "same as before",
        "omitted",
        "goes here",
        "remains as is",
    ]
    .iter()
    .any(|word| has_word(text, word));
    let rest = [
        "rest of the",
        "rest of your",
        "remaining",
        "existing",
        "other",
    ]
    .iter()
    .any(|word| text.starts_with(word) || text.starts_with(&format!("the {word}")));
    let brevity = has_word(text, "omitted for brevity") || has_word(text, "omitted for clarity");
    (rest && thing && kept && words <= 9) || (brevity && thing && words <= 9) || (dots && brevity)
}

fn chinese(text: &str, dots: bool) -> bool {
    let rest = [
        "其余",
        "其他",
        "其它",
        "剩余",
        "剩下",
        "原有",
        "现有",
        "已有",
        "原来的",
    ]
    .iter()
    .any(|word| text.contains(word));
    let thing = [
        "代码", "方法", "函数", "逻辑", "部分", "内容", "实现", "导入", "测试",
    ]
    .iter()
    .any(|word| text.contains(word));
    let kept = [
        "不变",
        "省略",
        "同上",
        "同前",
        "保留",
        "与之前相同",
        "和之前一样",
        "略",
    ]
    .iter()
    .any(|word| text.contains(word));
    let short = text.chars().count() <= 30;
    let left_out =
        text.contains("此处省略") || text.contains("省略其余") || text.contains("代码省略");
    short && ((rest && thing && (kept || dots)) || left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> bool {
        stands_for_code(&Comment {
            line: 1,
            margin: 0,
            alone: true,
            text: text.to_owned(),
        })
    }

    #[test]
    fn comments_that_stand_for_code() {
        for text in [
            "... rest of the code unchanged ...",
            "... existing methods ...",
            "... (rest of the implementation remains the same)",
            "rest of the class remains unchanged",
            "existing code unchanged",
            "remaining methods omitted for brevity",
            "... other functions ...",
            "… previous imports …",
            "其余代码保持不变",
            "其他方法不变",
            "... 其余部分 ...",
            "此处省略若干行",
            "原有逻辑保留",
        ] {
            assert!(found(text), "{text}");
        }
    }

    #[test]
    fn comments_about_code_that_is_there() {
        for text in [
            "... and the other one is closed by the caller",
            "skip the rest of the file",
            "The rest of the code assumes a sorted list",
            "existing code may pass None here",
            "unchanged",
            "Other methods",
            "...",
            "leave the remaining fields alone",
            "the same function is used by the parser",
            "保持与其他模块一致的命名",
        ] {
            assert!(!found(text), "{text}");
        }
    }
}
