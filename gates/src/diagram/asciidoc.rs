//! Reads `AsciiDoc` by its lines: block attributes, delimited blocks, block and inline pictures, sections.
//! It must never follow an `include::`.

use super::document::{Document, Form, Label, number};
use super::{html, labels};

/// Reads an `AsciiDoc` document; lines count from 1.
pub(super) fn read(text: &str, document: &mut Document) {
    let lines: Vec<&str> = text.lines().collect();
    let mut attributes: Option<&str> = None;
    let mut run: Vec<&str> = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let bare = line.trim();
        let mut next = at + 1;
        let mut keeps = false;
        if let Some(delimiter) = delimiter(bare) {
            next = delimited(&lines, at, delimiter, attributes, document);
        } else if let Some(inner) = block_attributes(bare) {
            // `[mermaid]` may be followed by `.Title` and further attribute lines.
            keeps = true;
            attributes = match attributes {
                Some(earlier) if label_of(inner).is_none() => Some(earlier),
                _ => Some(inner),
            };
        } else if bare.starts_with("//") {
            document.prose(
                number(at + 1),
                &format!("<!--{}-->", bare.trim_start_matches('/')),
            );
        } else if let Some(value) = bare.strip_prefix(":imagesdir:") {
            document.imagesdir = Some(value.trim().to_owned());
        } else if bare.starts_with("= ") || bare.starts_with("==") {
            document.sections.push(number(at + 1));
            document.prose(number(at + 1), bare);
        } else if !bare.is_empty() {
            keeps = bare.starts_with('.') && !bare.starts_with("..");
            next = paragraph(&lines, at, attributes, &mut run, document);
        }
        if next == at + 1 && !run.is_empty() && (bare.is_empty() || keeps) {
            flush(&mut run, at, document);
        }
        if !keeps {
            attributes = None;
        }
        at = next;
    }
    flush(&mut run, at, document);
}

fn flush(run: &mut Vec<&str>, at: usize, document: &mut Document) {
    if run.len() > 1 {
        let first = number((at + 1).saturating_sub(run.len()));
        document.block(first.max(1), Label::Plain, run.join("\n"));
    }
    run.clear();
}

fn paragraph<'t>(
    lines: &[&'t str],
    at: usize,
    attributes: Option<&str>,
    run: &mut Vec<&'t str>,
    document: &mut Document,
) -> usize {
    let line = lines.get(at).copied().unwrap_or("");
    let labelled = attributes.and_then(label_of);
    let literal = line.starts_with(' ') && run.is_empty();
    if labelled.is_some() || literal {
        let body: Vec<&str> = lines
            .iter()
            .skip(at)
            .take_while(|line| !line.trim().is_empty())
            .copied()
            .collect();
        let length = body.len();
        document.block(
            number(at + 1),
            labelled.unwrap_or(Label::Text),
            body.join("\n"),
        );
        pictures(line, number(at + 1), document);
        return at + length;
    }
    pictures(line, number(at + 1), document);
    document.prose(number(at + 1), line);
    run.push(line);
    at + 1
}

/// `[…]` alone on a line.
fn block_attributes(line: &str) -> Option<&str> {
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    (!inner.starts_with('[')).then_some(inner)
}

/// What a block's attributes say about its content; `None` when they say nothing.
fn label_of(attributes: &str) -> Option<Label> {
    let mut parts = attributes
        .split(',')
        .map(|part| part.trim().trim_matches('"'));
    let style = parts.next().unwrap_or("");
    let style = style.split(['%', '#', '.']).next().unwrap_or("");
    if let Some(tool) = labels::tool(style) {
        return Some(Label::Source(tool, style.to_owned()));
    }
    match style {
        "source" | "" => {
            let language = parts.next().filter(|part| !part.contains('='));
            let named = attributes
                .split(',')
                .find_map(|part| part.trim().strip_prefix("language="));
            match (style, language.or(named)) {
                (_, Some(language)) if !language.is_empty() => {
                    Some(labels::of_info(language.trim_matches('"')))
                }
                ("source", _) => Some(Label::Text),
                _ => None,
            }
        }
        "listing" | "literal" => Some(Label::Text),
        _ => None,
    }
}

/// `----`, `....`, `++++`, `////` and fences; tables and quoting blocks are read through.
fn delimiter(line: &str) -> Option<&str> {
    let fence = line.starts_with("```");
    let same = |mark: char| line.len() >= 4 && line.chars().all(|c| c == mark);
    (fence || ['-', '.', '+', '/'].into_iter().any(same)).then_some(line)
}

fn delimited(
    lines: &[&str],
    at: usize,
    delimiter: &str,
    attributes: Option<&str>,
    document: &mut Document,
) -> usize {
    let fence = delimiter.starts_with("```");
    let close = if fence { "```" } else { delimiter };
    let body: Vec<&str> = lines
        .iter()
        .skip(at + 1)
        .take_while(|line| line.trim_end() != close)
        .copied()
        .collect();
    let next = at + 2 + body.len();
    let line = number(at + 1);
    if delimiter.starts_with('/') {
        document.prose(line, &format!("<!--{}-->", body.join(" ")));
    } else if delimiter.starts_with('+') && attributes.and_then(label_of).is_none() {
        html::read(
            &("\n".repeat(at + 1) + &body.join("\n")),
            html::Place::Within,
            document,
        );
    } else {
        let info = delimiter.trim_start_matches('`');
        let said = attributes.and_then(label_of);
        let label = said.unwrap_or_else(|| {
            if fence {
                labels::of_info(info)
            } else {
                Label::Text
            }
        });
        document.block(line, label, body.join("\n"));
    }
    next
}

/// `image::x[]`, `image:x[]` and drawing macros such as `plantuml::x.puml[]`.
fn pictures(line: &str, number: u32, document: &mut Document) {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("image:") {
        let word_before = before
            .chars()
            .next_back()
            .is_some_and(|c| c.is_alphanumeric() || c == '`');
        let target = after.trim_start_matches(':');
        if let Some((target, _)) = target
            .split_once('[')
            .filter(|(target, _)| !target.contains(char::is_whitespace) && !word_before)
        {
            document.picture(number, Form::Searched(target.to_owned()));
        }
        rest = after;
    }
    if let Some((name, target)) = line.trim().split_once("::")
        && let Some(tool) = labels::tool(name).filter(|_| target.ends_with(']'))
    {
        let label = Label::Source(tool, name.to_owned());
        document.block(number, label, target.to_owned());
    }
}
