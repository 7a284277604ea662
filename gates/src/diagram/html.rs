//! Reads HTML, alone or inside another format: pictures, `<pre>` text, drawing tools behind a class or an element.
//! A tag scanner, not a tree builder: one pass, every byte looked at a bounded number of times.

use super::document::{Document, Form, Label, Lines, Tool};
use super::labels;
use super::svg::Ink;
use super::tags::{Tag, Tags, unescape};

pub(super) use super::tags::Place;

/// Elements of site generators that draw, by name as written.
fn drawing_element(name: &str) -> Option<Tool> {
    match name {
        "Mermaid" | "mermaid" | "MermaidDiagram" | "Mermaid.Diagram" | "mermaid-diagram" => {
            Some(Tool::Mermaid)
        }
        "PlantUML" | "Plantuml" | "PlantUml" | "plantuml" | "uml" | "startuml" => {
            Some(Tool::Plantuml)
        }
        "Graphviz" | "graphviz" | "GraphViz" => Some(Tool::Graphviz),
        "Kroki" | "Nomnoml" | "nomnoml" | "Wavedrom" | "WaveDrom" | "Svgbob" | "D2" => {
            Some(Tool::Other)
        }
        _ => None,
    }
}

fn drawing_class(tag: &Tag) -> Option<(Tool, String)> {
    let code = tag.is("pre") || tag.is("code");
    let classes = tag
        .attribute("class")
        .or(tag.attribute("classname"))
        .unwrap_or("");
    let lang = if code {
        tag.attribute("lang").or(tag.attribute("data-lang"))
    } else {
        None
    };
    let plain = |name: &str| {
        matches!(
            name.to_ascii_lowercase().as_str(),
            "mermaid" | "plantuml" | "graphviz" | "nomnoml" | "wavedrom" | "svgbob" | "ditaa"
        )
    };
    classes
        .split_whitespace()
        .chain(lang)
        .filter(|name| {
            plain(name) || code || name.starts_with("language-") || name.starts_with("lang-")
        })
        .find_map(|name| labels::tool(name).map(|tool| (tool, name.to_owned())))
}

/// Reads the HTML of `text` into the document; lines count from 1.
pub(super) fn read(text: &str, place: Place, document: &mut Document) {
    let lines = Lines::of(text);
    let mut tags = Tags::of(text);
    let mut prose_from = 0;
    while let Some(tag) = tags.next() {
        if place == Place::Page {
            prose(text, prose_from, tag.start, &lines, document);
        }
        if !tag.closing {
            element(&tag, &mut tags, &lines, place, document);
        }
        if place == Place::Page && is_heading(&tag) && !tag.closing {
            document.sections.push(lines.at(tag.start));
        }
        prose_from = tags.at;
    }
    if place == Place::Page {
        prose(text, prose_from, text.len(), &lines, document);
    }
    for (at, content) in std::mem::take(&mut tags.comments) {
        document.prose(lines.at(at), &format!("<!--{content}-->"));
    }
}

fn is_heading(tag: &Tag) -> bool {
    matches!(
        tag.name.to_ascii_lowercase().as_str(),
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "section" | "article"
    )
}

fn prose(text: &str, from: usize, to: usize, lines: &Lines, document: &mut Document) {
    let mut at = from;
    for line in text.get(from..to).unwrap_or("").split_inclusive('\n') {
        document.prose(lines.at(at), &unescape(line));
        at += line.len();
    }
}

fn element(tag: &Tag, tags: &mut Tags<'_>, lines: &Lines, place: Place, document: &mut Document) {
    let line = lines.at(tag.start);
    let name = tag.name.to_ascii_lowercase();
    let tool = drawing_element(&tag.name).map(|tool| (tool, tag.name.clone()));
    if let Some((tool, named)) =
        tool.or_else(|| (name != "pre").then(|| drawing_class(tag)).flatten())
    {
        let whole = tags.text.get(tag.start..tag.end).unwrap_or("");
        let inner = if tag.empty {
            whole
        } else {
            tags.body(tag, &name, place)
        };
        document.block(line, Label::Source(tool, named), inner.to_owned());
        return;
    }
    match name.as_str() {
        "script" | "style" | "textarea" | "template" if !tag.empty => {
            tags.body(tag, &name, place);
        }
        "pre" if !tag.empty => {
            let inner = tags.body(tag, "pre", place);
            preformatted(tag, inner, line, document);
        }
        "svg" if !tag.empty => {
            let inner = tags.body(tag, "svg", place);
            if !inner.is_empty() || place == Place::Page {
                vector(tag, inner, line, document);
            }
        }
        "img" | "source" | "object" | "embed" => pictures(tag, line, document),
        "a" => {
            if let Some(target) = tag.attribute("href") {
                document.picture(line, Form::Linked(target.to_owned()));
            }
        }
        _ => {}
    }
}

fn preformatted(tag: &Tag, inner: &str, line: u32, document: &mut Document) {
    let mut label =
        drawing_class(tag).map_or(Label::Text, |(tool, name)| Label::Source(tool, name));
    let mut plain = String::with_capacity(inner.len());
    let mut from = 0;
    for nested in Tags::of(inner) {
        plain.push_str(inner.get(from..nested.start).unwrap_or(""));
        from = nested.end;
        if nested.closing || label != Label::Text {
            continue;
        }
        if let Some((tool, name)) = drawing_class(&nested) {
            label = Label::Source(tool, name);
        } else if let Some(target) = nested.attribute("src").filter(|_| nested.is("img")) {
            document.picture(line, Form::Shown(target.to_owned()));
        }
    }
    plain.push_str(inner.get(from..).unwrap_or(""));
    if label == Label::Text && names_a_language(tag, inner) {
        label = Label::Code;
    }
    document.block(line, label, unescape(&plain));
}

fn names_a_language(tag: &Tag, inner: &str) -> bool {
    let first = Tags::of(inner).next().filter(|nested| nested.is("code"));
    let code = first.as_ref().and_then(|nested| nested.attribute("class"));
    tag.attribute("class")
        .into_iter()
        .chain(code)
        .flat_map(str::split_whitespace)
        .any(|class| {
            let language = class
                .strip_prefix("language-")
                .or_else(|| class.strip_prefix("lang-"));
            language.map_or(matches!(class, "rust" | "python" | "sourceCode"), |name| {
                labels::of_info(name) == Label::Code
            })
        })
}

fn vector(tag: &Tag, inner: &str, line: u32, document: &mut Document) {
    let mut ink = Ink::default();
    ink.open("svg", &|name| tag.attribute(name).map(str::to_owned));
    for nested in Tags::of(inner) {
        let name = nested.name.to_ascii_lowercase();
        if nested.closing {
            ink.close(&name);
        } else {
            ink.open(&name, &|name| nested.attribute(name).map(str::to_owned));
            if nested.empty {
                ink.close(&name);
            }
        }
    }
    if inner.trim().is_empty() && tag.attribute("id").is_some() {
        // An empty, named canvas is filled by a script: nothing to judge here.
        ink.hide();
    }
    document.picture(line, Form::Inline(ink, inner.to_owned()));
}

fn pictures(tag: &Tag, line: u32, document: &mut Document) {
    let mut targets: Vec<&str> = Vec::new();
    if tag.is("img") {
        targets.extend(tag.attribute("src"));
    }
    if tag.is("object") {
        targets.extend(
            tag.attribute("data")
                .filter(|target| super::images::has_picture_ending(target)),
        );
    }
    if tag.is("embed") {
        targets.extend(
            tag.attribute("src")
                .filter(|target| super::images::has_picture_ending(target)),
        );
    }
    if let Some(set) = tag.attribute("srcset") {
        targets.extend(candidates(set));
    }
    for target in targets {
        if !target.trim().is_empty() {
            document.picture(line, Form::Shown(target.trim().to_owned()));
        }
    }
}

/// The addresses in a `srcset`; a data address holds a comma of its own.
fn candidates(set: &str) -> Vec<&str> {
    if set.trim_start().starts_with("data:") {
        return set.split_whitespace().take(1).collect();
    }
    set.split(", ")
        .flat_map(|part| part.split(",\n"))
        .filter_map(|part| part.split_whitespace().next())
        .map(|target| target.trim_matches(','))
        .collect()
}
