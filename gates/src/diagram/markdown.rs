//! Reads Markdown by `pulldown-cmark`; what `CommonMark` does not know (containers, shortcodes, components, drawings
//! in running text) is read from the lines that the parser did not take for code.
//! It must never look inside code for markup.

use std::cell::RefCell;
use std::ops::Range;

use pulldown_cmark::{
    BrokenLink, CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd,
};

use super::document::{Document, Form, Label, Lines};
use super::{html, labels};

/// Reads a Markdown document; lines count from 1.
pub(super) fn read(text: &str, document: &mut Document) {
    let text = without_front_matter(text);
    let lines = Lines::of(&text);
    let mut masks = Masks::default();
    events(&text, &lines, document, &mut masks);
    let prose = masked(&text, &masks.code);
    html::read(&prose, html::Place::Within, document);
    for (at, line) in prose.lines().enumerate() {
        document.prose(super::document::number(at + 1), line);
    }
    masks.code.extend(masks.tables);
    let running = masked(&text, &masks.code);
    containers(&running, document);
    plain_runs(&running, document);
}

#[derive(Default)]
struct Masks {
    code: Vec<Range<usize>>,
    tables: Vec<Range<usize>>,
}

/// YAML or TOML at the top is data for the site generator; the lines stay, so that numbers hold.
fn without_front_matter(text: &str) -> String {
    let text = text.trim_start_matches('\u{feff}');
    let Some(mark) = ["---", "+++"]
        .into_iter()
        .find(|mark| text.lines().next() == Some(mark))
    else {
        return text.to_owned();
    };
    let mut end = 0;
    for (at, line) in text.split_inclusive('\n').enumerate().take(400) {
        end += line.len();
        if at > 0 && line.trim_end() == mark {
            let top = text.get(..end).unwrap_or("");
            let breaks = top.bytes().filter(|byte| *byte == b'\n').count();
            return "\n".repeat(breaks) + text.get(end..).unwrap_or("");
        }
    }
    text.to_owned()
}

fn events(text: &str, lines: &Lines, document: &mut Document, masks: &mut Masks) {
    let undefined = RefCell::new(Vec::new());
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
    let mut broken = |link: BrokenLink<'_>| {
        let full = matches!(link.link_type, LinkType::Reference | LinkType::Collapsed);
        if full && is_picture(text, link.span.start) && !link.reference.trim().is_empty() {
            undefined
                .borrow_mut()
                .push((link.span.start, link.reference.to_string()));
        }
        None::<(CowStr<'_>, CowStr<'_>)>
    };
    let parser = Parser::new_with_broken_link_callback(text, options, Some(&mut broken));
    let mut code: Option<(u32, Label, String)> = None;
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let label = match kind {
                    CodeBlockKind::Fenced(info) => fenced(&info, &range, lines, document),
                    CodeBlockKind::Indented => Label::Text,
                };
                code = Some((lines.at(range.start), label, String::new()));
                masks.code.push(lines.start_of(range.start)..range.end);
            }
            Event::End(TagEnd::CodeBlock) => {
                if let Some((line, label, content)) = code.take() {
                    document.block(line, label, content);
                }
            }
            Event::Text(content) => {
                if let Some((_, _, block)) = &mut code {
                    block.push_str(&content);
                }
            }
            Event::Code(_) => masks.code.push(range),
            Event::Start(Tag::Heading { .. }) => document.sections.push(lines.at(range.start)),
            Event::Start(Tag::Table(_)) => masks.tables.push(range),
            Event::Start(Tag::Image { dest_url, .. }) => {
                document.picture(lines.at(range.start), Form::Shown(dest_url.to_string()));
            }
            Event::Start(Tag::Link {
                dest_url,
                link_type,
                ..
            }) if link_type != LinkType::Autolink => {
                document.picture(lines.at(range.start), Form::Linked(dest_url.to_string()));
            }
            Event::Start(_)
            | Event::End(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }
    for (at, name) in undefined.into_inner() {
        document.picture(lines.at(at), Form::Undefined(name));
    }
}

/// Whether the reference at `start` is a picture's and not an index such as `vec![a][b]`.
fn is_picture(text: &str, start: usize) -> bool {
    let bytes = text.as_bytes();
    let mark = if bytes.get(start) == Some(&b'!') {
        start
    } else {
        start.wrapping_sub(1)
    };
    let before = bytes.get(mark.wrapping_sub(1)).copied().unwrap_or(b' ');
    bytes.get(mark) == Some(&b'!') && !before.is_ascii_alphanumeric() && before != b'\\'
}

/// `MyST` writes pictures as fences, too: the target stands in the info string.
fn fenced(info: &str, range: &Range<usize>, lines: &Lines, document: &mut Document) -> Label {
    for directive in ["{image}", "{figure}"] {
        if let Some(target) = info.strip_prefix(directive) {
            document.picture(lines.at(range.start), Form::Shown(target.trim().to_owned()));
            return Label::Code;
        }
    }
    labels::of_info(info)
}

/// The text with ranges blanked; line breaks stay.
fn masked(text: &str, ranges: &[Range<usize>]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in ranges {
        for byte in bytes.get_mut(range.clone()).unwrap_or_default() {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// `::: mermaid`, `{{< mermaid >}}`, `{% plantuml %}`, and `@startuml` without any fence.
fn containers(running: &str, document: &mut Document) {
    let lines: Vec<&str> = running.lines().collect();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let Some((label, ends)) = container(line) else {
            at += 1;
            continue;
        };
        let body: Vec<&str> = lines
            .iter()
            .skip(at + 1)
            .take_while(|line| !ends(line.trim()))
            .copied()
            .collect();
        let length = body.len();
        document.block(super::document::number(at + 1), label, body.join("\n"));
        at += length + 1;
    }
}

type Ends = fn(&str) -> bool;

fn container(line: &str) -> Option<(Label, Ends)> {
    let line = line.trim().trim_start_matches(['>', ' ']);
    let source =
        |info: &str| Some(labels::of_info(info)).filter(|label| matches!(label, Label::Source(..)));
    if let Some(info) = line.strip_prefix(":::") {
        return source(info.trim_start_matches(':'))
            .map(|label| (label, (|line| line.starts_with(":::")) as Ends));
    }
    for (open, close) in [("{{<", ">}}"), ("{{%", "%}}"), ("{%", "%}")] {
        let inner = line
            .strip_prefix(open)
            .and_then(|rest| rest.split_once(close));
        if let Some((inner, _)) = inner {
            let word = inner
                .trim()
                .trim_start_matches('-')
                .split_whitespace()
                .next()
                .unwrap_or("");
            return source(word).map(|label| {
                (
                    label,
                    (|line| {
                        line.starts_with("{{<") || line.starts_with("{{%") || line.starts_with("{%")
                    }) as Ends,
                )
            });
        }
    }
    if line.starts_with("@start") {
        let (tool, name) = labels::of_first_lines(line)?;
        return Some((Label::Source(tool, name), |line| line.starts_with("@end")));
    }
    None
}

/// Runs of lines outside code, with quote marks taken off: a drawing needs no fence.
fn plain_runs(running: &str, document: &mut Document) {
    let mut run: Vec<&str> = Vec::new();
    let mut first = 1;
    for (at, line) in running.lines().chain(std::iter::once("")).enumerate() {
        let bare = unquoted(line);
        if bare.trim().is_empty() {
            if run.len() > 1 {
                document.block(first, Label::Plain, run.join("\n"));
            }
            run.clear();
        } else {
            if run.is_empty() {
                first = super::document::number(at + 1);
            }
            run.push(bare);
        }
    }
}

fn unquoted(line: &str) -> &str {
    let mut line = line;
    while let Some(rest) = line.trim_start().strip_prefix('>') {
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    line
}
