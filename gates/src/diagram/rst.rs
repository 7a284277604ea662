//! Reads reStructuredText by its lines: directives, literal blocks, pictures, titles.
//! It must never follow an `include`.

use super::document::{Document, Form, Label, number};
use super::{html, labels};

/// Reads a reStructuredText document; lines count from 1.
pub(super) fn read(text: &str, document: &mut Document) {
    let lines: Vec<&str> = text.lines().collect();
    let mut run: Vec<&str> = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let next = if is_title(&lines, at) {
            document.sections.push(number(at + 1));
            document.prose(number(at + 1), line);
            at + 2
        } else if let Some(directive) = Directive::of(line) {
            directive.read(&lines, at, document)
        } else if line.trim_start().starts_with(".. ") || line.trim() == ".." {
            comment(&lines, at, document)
        } else {
            document.prose(number(at + 1), line);
            run.push(line);
            let literal = line.trim_end().ends_with("::");
            if !line.trim().is_empty() && !literal {
                at += 1;
                continue;
            }
            if literal {
                literal_block(&lines, at, document)
            } else {
                at + 1
            }
        };
        flush(&mut run, at, document);
        at = next;
    }
    flush(&mut run, at, document);
}

/// Hands the collected running text over; it ended before or at line index `at`.
fn flush(run: &mut Vec<&str>, at: usize, document: &mut Document) {
    while run.last().is_some_and(|line| line.trim().is_empty()) {
        run.pop();
    }
    if run.len() > 1 {
        let first = number((at + 1).saturating_sub(run.len()));
        document.block(first.max(1), Label::Plain, run.join("\n"));
    }
    run.clear();
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_title(lines: &[&str], at: usize) -> bool {
    let (Some(title), Some(under)) = (lines.get(at), lines.get(at + 1)) else {
        return false;
    };
    let under = under.trim_end();
    let Some(mark) = under.chars().next().filter(char::is_ascii_punctuation) else {
        return false;
    };
    let drawn = mark == '|' || mark == '+';
    !drawn
        && under.len() >= 3
        && under.chars().all(|c| c == mark)
        && !title.trim().is_empty()
        && title.chars().any(char::is_alphanumeric)
        && indent(title) == 0
        && title.trim().chars().count() <= under.len() * 2
}

/// Lines below `at` that are indented deeper than `deeper_than`; ends before the first that is not.
fn content<'t>(lines: &[&'t str], from: usize, deeper_than: usize) -> (Vec<&'t str>, usize) {
    let mut end = from;
    let mut last = from;
    while let Some(line) = lines.get(end) {
        let blank = line.trim().is_empty();
        if !blank && indent(line) <= deeper_than {
            break;
        }
        end += 1;
        if !blank {
            last = end;
        }
    }
    (
        lines.get(from..last).unwrap_or_default().to_vec(),
        last.max(from),
    )
}

fn comment(lines: &[&str], at: usize, document: &mut Document) -> usize {
    let line = lines.get(at).copied().unwrap_or("");
    let (body, next) = content(lines, at + 1, indent(line));
    let is_target = line.trim_start().starts_with(".. _") || line.trim_start().starts_with(".. [");
    if is_target {
        return at + 1;
    }
    let words = line.trim_start().trim_start_matches("..").trim();
    document.prose(
        number(at + 1),
        &format!("<!-- {words} {} -->", body.join(" ")),
    );
    next.max(at + 1)
}

fn literal_block(lines: &[&str], at: usize, document: &mut Document) -> usize {
    let line = lines.get(at).copied().unwrap_or("");
    let (body, next) = content(lines, at + 1, indent(line));
    if body.is_empty() {
        return at + 1;
    }
    let blank = body
        .iter()
        .take_while(|line| line.trim().is_empty())
        .count();
    document.block(number(at + 2 + blank), Label::Text, body.join("\n"));
    next
}

struct Directive<'t> {
    indent: usize,
    name: &'t str,
    argument: &'t str,
}

impl<'t> Directive<'t> {
    /// `.. name:: argument`, `.. |sub| name:: argument`.
    fn of(line: &'t str) -> Option<Self> {
        let inner = line.trim_start().strip_prefix(".. ")?.trim_start();
        let inner = match inner.strip_prefix('|') {
            Some(rest) => rest.split_once('|')?.1.trim_start(),
            None => inner,
        };
        let (name, argument) = inner.split_once("::")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
        let named = !name.is_empty() && name.chars().all(plain);
        named.then(|| Self {
            indent: indent(line),
            name,
            argument: argument.trim(),
        })
    }

    /// Returns the index of the next line to read.
    fn read(&self, lines: &[&str], at: usize, document: &mut Document) -> usize {
        let line = number(at + 1);
        let (body, next) = content(lines, at + 1, self.indent);
        let next = next.max(at + 1);
        let text = || without_options(&body);
        let name = self.name.to_ascii_lowercase();
        match name.as_str() {
            "image" | "figure" => {
                document.picture(line, Form::Searched(self.argument.to_owned()));
                // A figure's caption may hold more.
                at + 1
            }
            "code-block" | "code" | "sourcecode" | "highlight" | "code-cell" => {
                document.block(line, labels::of_info(self.argument), text());
                next
            }
            "parsed-literal" => {
                document.block(line, Label::Text, text());
                next
            }
            "raw" if self.argument.starts_with("html") => {
                html::read(
                    &("\n".repeat(at + 1) + &body.join("\n")),
                    html::Place::Within,
                    document,
                );
                next
            }
            "kroki" => {
                let named = labels::tool(self.argument).unwrap_or(super::document::Tool::Other);
                document.block(line, Label::Source(named, name), text());
                next
            }
            "graph" | "digraph" => {
                let source = super::document::Tool::Graphviz;
                document.block(line, Label::Source(source, name), text());
                next
            }
            "raw" | "literalinclude" | "doctest" | "prompt" | "ipython" | "productionlist"
            | "math" | "testcode" => next,
            _ => match labels::tool(&name) {
                Some(tool) => {
                    document.block(
                        line,
                        Label::Source(tool, name),
                        format!("{}\n{}", self.argument, text()),
                    );
                    next
                }
                None => at + 1,
            },
        }
    }
}

/// A directive's content without its `:option: value` lines.
fn without_options(body: &[&str]) -> String {
    let is_option = |line: &&&str| {
        let line = line.trim();
        line.strip_prefix(':')
            .is_some_and(|rest| rest.contains(':'))
    };
    let options = body.iter().take_while(is_option).count();
    body.get(options..).unwrap_or_default().join("\n")
}
