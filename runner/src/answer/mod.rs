//! What an agent says of its own run: its last words, what it cost, under which id it kept the
//! session. Read from its output by the rule of its profile. Nothing is decided by it, and it is
//! shown as what the agent said: output can be hostile, torn, huge or missing, and a figure that
//! cannot be found is simply not there.
//!
//! Bounds: at most [`HEAD`] and [`TAIL`] bytes of the log are looked at, no line longer than
//! [`LONGEST_LINE`], no result longer than [`LONGEST_RESULT`].

mod selector;

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use selector::{BadSelector, Selector, Take};

/// Bytes of the beginning of a log that are looked at.
pub const HEAD: u64 = 512 << 10;
/// Bytes of its end.
pub const TAIL: u64 = 4 << 20;
/// A longer line is not read, in bytes.
pub const LONGEST_LINE: usize = 1 << 20;
/// What is kept of a result, in bytes.
pub const LONGEST_RESULT: usize = 64 << 10;
/// What is kept of a session's id, in characters.
const LONGEST_SESSION: usize = 200;
/// More than anybody pays for one attempt, in dollars.
const DEAREST: f64 = 1e6;
/// Of a log without any rule that says where the result begins, its last bytes are the result.
const REST: usize = 4 << 10;

/// How to read an agent's output; for each figure, the first rule that finds something counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reading {
    /// Its last words.
    pub result: Vec<Selector>,
    /// Dollars.
    pub cost_usd: Vec<Selector>,
    /// Its own id of the session.
    pub session: Vec<Selector>,
    /// Tokens that it sent.
    pub input_tokens: Vec<Selector>,
    /// Tokens that it got.
    pub output_tokens: Vec<Selector>,
}

/// What an agent said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// Its last words, cut to [`LONGEST_RESULT`].
    pub result: Option<String>,
    /// The result was longer.
    pub result_cut: bool,
    /// What it says that the attempt cost, in dollars.
    pub cost_usd: Option<f64>,
    /// Its id of the session.
    pub session: Option<String>,
    /// Tokens that it sent.
    pub input_tokens: Option<u64>,
    /// Tokens that it got.
    pub output_tokens: Option<u64>,
}

impl Answer {
    /// Reads the log of a job. A log that is not there says nothing.
    pub fn of_log(path: &Path, reading: &Reading) -> io::Result<Self> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.len();
        let mut bytes = Vec::new();
        if length > HEAD + TAIL {
            (&mut file).take(HEAD).read_to_end(&mut bytes)?;
            // The line that is cut here, and the one that the end begins in, are no lines of the agent's.
            bytes.push(b'\n');
            file.seek(SeekFrom::End(-i64::try_from(TAIL).unwrap_or(i64::MAX)))?;
        }
        file.take(HEAD + TAIL).read_to_end(&mut bytes)?;
        Ok(Self::of(&bytes, reading))
    }

    /// Reads an output.
    pub fn of(output: &[u8], reading: &Reading) -> Self {
        let mut figures = [
            &reading.result,
            &reading.cost_usd,
            &reading.session,
            &reading.input_tokens,
            &reading.output_tokens,
        ]
        .map(|rules| Figure::new(rules));
        let lines = output.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| line.len() <= LONGEST_LINE) {
            let text = String::from_utf8_lossy(line);
            let object = object_in(&text);
            for figure in &mut figures {
                figure.look(&text, object.as_ref());
            }
        }
        let [result, cost, session, input, output_tokens] =
            figures.map(|figure| figure.found(output));
        let (result, result_cut) = cut(result.unwrap_or_default());
        Self {
            result: Some(result).filter(|result| !result.is_empty()),
            result_cut,
            cost_usd: cost.and_then(|text| dollars(&text)),
            session: session.and_then(|text| session_id(&text)),
            input_tokens: input.and_then(|text| count(&text)),
            output_tokens: output_tokens.and_then(|text| count(&text)),
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One figure while the lines go by.
struct Figure<'r> {
    rules: &'r [Selector],
    found: Vec<Option<String>>,
}

impl<'r> Figure<'r> {
    fn new(rules: &'r [Selector]) -> Self {
        Self {
            rules,
            found: vec![None; rules.len()],
        }
    }

    fn look(&mut self, line: &str, object: Option<&Value>) {
        for (rule, found) in self.rules.iter().zip(&mut self.found) {
            match rule {
                Selector::Object { take, .. } => {
                    let value = object.and_then(|object| rule.in_object(object));
                    if let Some(text) = value.and_then(plain) {
                        add(found, text, *take);
                    }
                }
                Selector::Line { .. } => {
                    if let Some(text) = rule.in_line(line) {
                        *found = Some(text.to_owned());
                    }
                }
                Selector::Rest => {}
            }
        }
    }

    fn found(self, output: &[u8]) -> Option<String> {
        let rest = self.rules.contains(&Selector::Rest);
        let found = self.found.into_iter().flatten().next();
        found.or_else(|| rest.then(|| end_of(output)))
    }
}

fn add(found: &mut Option<String>, text: String, take: Take) {
    match (take, found.as_mut()) {
        (Take::First, Some(_)) => {}
        (Take::Sum, Some(sum)) => {
            if let (Ok(so_far), Some(more)) = (sum.parse::<f64>(), number(&text)) {
                *sum = (so_far + more).to_string();
            }
        }
        (Take::Sum, None) => *found = number(&text).map(|number| number.to_string()),
        (Take::Join, Some(joined)) => {
            // One more than what is kept, so that the cut is noticed.
            if joined.len() <= LONGEST_RESULT {
                joined.push_str(&text);
            }
        }
        (Take::Last, _) | (Take::First | Take::Join, None) => *found = Some(text),
    }
}

/// The JSON object of a line, also behind something that was printed without a line break.
fn object_in(line: &str) -> Option<Value> {
    let (at, _) = line.match_indices('{').next()?;
    let value: Value = serde_json::from_str(line.get(at..)?.trim_end()).ok()?;
    value.is_object().then_some(value)
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A number as people and programs print it: `1,234`, `$0.02`, `2.3k`.
fn number(text: &str) -> Option<f64> {
    let text: String = text.trim().replace([',', '_', '$'], "");
    let (digits, scale) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (text.get(..at)?, 1e3),
        Some((at, 'M')) => (text.get(..at)?, 1e6),
        Some(_) | None => (text.as_str(), 1.0),
    };
    let number = digits.parse::<f64>().ok()? * scale;
    (number.is_finite() && number >= 0.0).then_some(number)
}

fn dollars(text: &str) -> Option<f64> {
    number(text).filter(|dollars| *dollars < DEAREST)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
fn count(text: &str) -> Option<u64> {
    number(text)
        .filter(|count| *count < 1e15)
        .map(|count| count.round() as u64)
}

/// An id that can be put on a command line and into a table.
fn session_id(text: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_graphic();
    let good = !text.is_empty() && text.len() <= LONGEST_SESSION && text.chars().all(plain);
    good.then(|| text.to_owned())
}

/// The end of an output, from the beginning of a line, without what steers a terminal.
fn end_of(output: &[u8]) -> String {
    let from = output.len().saturating_sub(REST);
    let end = output.get(from..).unwrap_or_default();
    let whole = match (from, end.iter().position(|byte| *byte == b'\n')) {
        (0, _) | (_, None) => end,
        (_, Some(at)) => end.get(at + 1..).unwrap_or_default(),
    };
    without_escapes(&String::from_utf8_lossy(whole))
        .trim()
        .to_owned()
}

/// A text without control sequences.
fn without_escapes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            kept.extend((!c.is_control() || c == '\n' || c == '\t').then_some(c));
        } else if chars.next_if_eq(&'[').is_some() {
            while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
        } else {
            chars.next();
        }
    }
    kept
}

fn cut(mut text: String) -> (String, bool) {
    if text.len() <= LONGEST_RESULT {
        return (text, false);
    }
    text.truncate(text.floor_char_boundary(LONGEST_RESULT));
    (text, true)
}

#[cfg(test)]
mod tests;
