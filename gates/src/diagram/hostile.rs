//! Hostile text: nothing panics, and size costs no more than one pass.

use proptest::prelude::*;

use super::document::{Document, Format};
use super::tests::{codes, fence};

const FORMATS: [(Format, &str); 5] = [
    (Format::Markdown, "a.md"),
    (Format::Restructured, "a.rst"),
    (Format::Asciidoc, "a.adoc"),
    (Format::Html, "a.html"),
    (Format::Notebook, "a.ipynb"),
];

#[test]
fn hostile_sizes_take_one_pass() {
    let wide = "+-".repeat(200);
    let pieces = [
        "```\n",
        "+",
        "+-+\n| |\n",
        "> ",
        "- ",
        "[",
        "![",
        "<pre>",
        "|\nv\n",
        "┌┐\n",
        ":::",
        "/\\\n",
        "a -> ",
        "| a ",
        "<!--",
        "<svg ",
        ".. x::\n",
        "----\n",
        "[a]\n",
    ];
    for piece in pieces.into_iter().chain([wide.as_str()]) {
        let text = piece.repeat(120_000 / piece.len());
        for (format, _) in FORMATS {
            for block in &Document::read(format, &text).blocks {
                let _seen = super::shape::look(block);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for (_, path) in FORMATS {
            codes(path, &text);
        }
        super::picture::judge("a.svg", &bytes);
        super::picture::judge("a.png", &bytes);
        super::picture::judge_data(&text);
    }

    #[test]
    fn no_drawing_panics(text in r"[-+|/\\<>v^ \n┌┐└┘─│├┤┬┴┼▶▼→↓.'`_=A図]{0,400}") {
        for (_, path) in FORMATS {
            codes(path, &fence(&text));
            codes(path, &text);
        }
    }

    #[test]
    fn no_markup_panics(parts in proptest::collection::vec(prop::sample::select(vec![
        "```", "\n", "mermaid", "<pre>", "</pre>", "<svg", ">", "![", "](", ")", "[a]", ".. image::", " x.png", "::\n", "[source,", "----\n", "<!--", "-->",
        "data:image/png;base64,", "'", "\"", "{", "}", "    ", "\t", "|", ":::", "@startuml", "é", "图", "%2", "&#x110000;", "\u{0}",
    ]), 0..60)) {
        let text = parts.concat();
        for (_, path) in FORMATS {
            codes(path, &text);
        }
    }
}
