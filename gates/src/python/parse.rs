//! Bytes to a parsed script, or the one reason why it is refused.
//! It must never accept what `CPython` of the target version refuses, as far as that can be known without running it.

use ruff_python_ast::{Mod, PythonVersion, Stmt};
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_unchecked};
use ruff_text_size::{Ranged as _, TextRange};

use super::{depth, scope, tabs};
use crate::PythonTarget;

/// Why a file is not Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// What follows the path in a sentence.
    pub(crate) message: String,
    pub(crate) help: String,
}

impl Refusal {
    pub(crate) fn new(code: &str, message: impl Into<String>, help: &str) -> Self {
        Self {
            code: code.to_owned(),
            line: 1,
            column: 1,
            message: message.into(),
            help: help.to_owned(),
        }
    }

    pub(crate) fn on(mut self, line: u32) -> Self {
        self.line = line;
        self
    }
}

/// A file that parses.
pub(crate) struct Script {
    pub(super) text: String,
    pub(super) parsed: Parsed<Mod>,
    pub(super) lines: Lines,
}

impl Script {
    pub(super) fn body(&self) -> &[Stmt] {
        match self.parsed.syntax() {
            Mod::Module(module) => &module.body,
            Mod::Expression(_) => &[],
        }
    }

    pub(super) fn line_of(&self, offset: impl Into<u32>) -> u32 {
        self.lines.line_of(offset.into())
    }

    pub(super) fn slice(&self, range: TextRange) -> &str {
        self.text
            .get(range.start().to_usize()..range.end().to_usize())
            .unwrap_or_default()
    }
}

/// Reads a whole file.
pub(crate) fn read_file(bytes: &[u8], target: PythonTarget) -> Result<Script, Refusal> {
    read_text(super::decode(bytes)?, target, Mode::Module)
}

/// Reads one code cell of a notebook: magics and a top-level `await` are legal there.
pub(crate) fn read_cell(text: &str, target: PythonTarget) -> Result<Script, Refusal> {
    read_text(text.to_owned(), target, Mode::Ipython)
}

fn read_text(text: String, target: PythonTarget, mode: Mode) -> Result<Script, Refusal> {
    depth::check(&text, mode)?;
    let version = PythonVersion {
        major: target.major,
        minor: target.minor,
    };
    let options = ParseOptions::from(mode).with_target_version(version);
    let parsed = parse_unchecked(&text, options);
    let lines = Lines::of(&text);
    let script = Script {
        text,
        parsed,
        lines,
    };
    match first_error(&script, version, mode) {
        Some((range, message)) => Err(syntax_refusal(&script, range, &message, target)),
        None => Ok(script),
    }
}

/// The grammar's first error; else the first of the target version, the compiler and the indentation.
fn first_error(script: &Script, version: PythonVersion, mode: Mode) -> Option<(TextRange, String)> {
    let grammar = script
        .parsed
        .errors()
        .iter()
        .min_by_key(|error| error.location.start())
        .map(|error| (error.location, error.error.to_string()));
    if grammar.is_some() {
        return grammar;
    }
    let newer = script
        .parsed
        .unsupported_syntax_errors()
        .iter()
        .map(|error| (error.range(), error.to_string()));
    let compiler = scope::errors(script, version, mode == Mode::Ipython);
    newer
        .chain(compiler)
        .chain(tabs::error(script))
        .min_by_key(|(range, _)| range.start())
}

fn syntax_refusal(
    script: &Script,
    range: TextRange,
    message: &str,
    target: PythonTarget,
) -> Refusal {
    let line = script.line_of(range.start());
    let (code, help) = cause(&script.text, line);
    let quoted = line_text(&script.text, line)
        .trim()
        .chars()
        .take(60)
        .collect::<String>();
    let message = if quoted.is_empty() {
        format!("does not parse as Python {target}: {message}")
    } else {
        format!("does not parse as Python {target}: {message} (at `{quoted}`)")
    };
    Refusal {
        code: code.to_owned(),
        line,
        column: script.lines.column_of(&script.text, range.start().into()),
        message,
        help: help.to_owned(),
    }
}

/// Damage that has a name, looked for in the lines so that the agent hears the cause.
fn cause(text: &str, error_line: u32) -> (&'static str, &'static str) {
    let mut fenced = false;
    let mut conflict = false;
    for line in lines_of(text) {
        fenced |= line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        conflict |= ["<<<<<<< ", ">>>>>>> ", "||||||| "]
            .iter()
            .any(|mark| line.starts_with(mark));
    }
    if conflict {
        (
            "py.syntax.conflict",
            "resolve the merge and remove the conflict markers",
        )
    } else if fenced {
        (
            "py.syntax.fenced",
            "remove the Markdown fence and the prose around the code",
        )
    } else if is_python2(line_text(text, error_line)) {
        ("py.syntax.py2", "this is Python 2: write it for Python 3")
    } else {
        (
            "py.syntax",
            "correct the line; run `python -m py_compile` on the file before delivering",
        )
    }
}

fn is_python2(line: &str) -> bool {
    let line = line.trim();
    let word = line.split_whitespace().next().unwrap_or_default();
    let rest = line.strip_prefix(word).unwrap_or_default().trim_start();
    let statement = matches!(word, "print" | "exec")
        && rest
            .chars()
            .next()
            .is_some_and(|c| c.is_alphanumeric() || "\"'_>`".contains(c));
    let except = word == "except" && rest.contains(',') && !rest.contains('(');
    let raise = word == "raise" && rest.contains(", ") && !rest.contains('(');
    statement || except || raise || line.contains("<>")
}

/// Line starts by LF, CRLF and CR, as `CPython` counts lines.
pub(super) struct Lines {
    starts: Vec<u32>,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (at, &byte) in bytes.iter().enumerate() {
            let ends = byte == b'\n' || (byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
            if ends {
                starts.push(u32::try_from(at + 1).unwrap_or(u32::MAX));
            }
        }
        Self { starts }
    }

    fn line_of(&self, offset: u32) -> u32 {
        let line = self.starts.partition_point(|&start| start <= offset);
        u32::try_from(line).unwrap_or(u32::MAX).max(1)
    }

    /// Byte offset at which the line of `offset` starts.
    pub(super) fn start_of(&self, offset: u32) -> u32 {
        let line = self.starts.partition_point(|&start| start <= offset);
        self.starts
            .get(line.saturating_sub(1))
            .copied()
            .unwrap_or(0)
    }

    fn column_of(&self, text: &str, offset: u32) -> u32 {
        let start = self.start_of(offset) as usize;
        let before = text.get(start..offset as usize).unwrap_or_default();
        u32::try_from(before.chars().count())
            .unwrap_or(u32::MAX)
            .saturating_add(1)
    }
}

pub(super) fn line_at(text: &str, offset: usize) -> u32 {
    Lines::of(text).line_of(u32::try_from(offset).unwrap_or(u32::MAX))
}

fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n')
        .flat_map(|line| line.trim_end_matches('\r').split('\r'))
}

fn line_text(text: &str, line: u32) -> &str {
    lines_of(text)
        .nth((line as usize).saturating_sub(1))
        .unwrap_or_default()
}
