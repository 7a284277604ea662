//! One rule for one figure in an agent's output, as a short text that a profile can hold:
//!
//! - `last WHEN -> PATH` (also `first`, `sum`, `join`): in the JSON objects of the output, one a line,
//!   that have each `key=value` of WHEN, the value at PATH. Paths are names and list positions joined
//!   by dots; WHEN may be empty.
//! - `line PATTERN`: in the last line that has PATTERN, what stands at `{}`; `*` is any text.
//! - `rest`: the end of the output, whatever it is.
//!
//! Pure: text in, selector out. Never panics on any text.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// How several matches become one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// The last one.
    Last,
    /// The first one.
    First,
    /// Numbers, added up.
    Sum,
    /// Texts, one after the other.
    Join,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Selector {
    /// From JSON objects.
    Object {
        /// Which match counts.
        take: Take,
        /// Paths with the text that must stand there.
        when: Vec<(String, String)>,
        /// Where the value stands.
        at: String,
    },
    /// From a line of text.
    Line {
        /// Literal pieces before the value; any text may stand between two of them.
        before: Vec<String>,
        /// Literal pieces after it.
        after: Vec<String>,
    },
    /// The end of the output.
    Rest,
}

/// A text that is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a selector: write `last type=result -> result`, `sum -> cost`, `line Cost: ${{}}.` or `rest`"
)]
pub struct BadSelector(String);

impl TryFrom<String> for Selector {
    type Error = BadSelector;

    fn try_from(text: String) -> Result<Self, BadSelector> {
        parse(&text).ok_or(BadSelector(text))
    }
}

fn parse(text: &str) -> Option<Selector> {
    if text == "rest" {
        return Some(Selector::Rest);
    }
    let (word, rest) = text.split_once(' ')?;
    let take = match word {
        "last" => Take::Last,
        "first" => Take::First,
        "sum" => Take::Sum,
        "join" => Take::Join,
        "line" => return line(rest),
        _ => return None,
    };
    let (when, at) = rest.split_once("->")?;
    let at = at.trim();
    let when = when.split_whitespace().map(|pair| {
        let (path, value) = pair.split_once('=')?;
        (!path.is_empty()).then(|| (path.to_owned(), value.to_owned()))
    });
    (!at.is_empty() && !at.contains(char::is_whitespace)).then_some(())?;
    Some(Selector::Object {
        take,
        when: when.collect::<Option<_>>()?,
        at: at.to_owned(),
    })
}

fn line(pattern: &str) -> Option<Selector> {
    let (before, after) = pattern.split_once("{}")?;
    let pieces = |text: &str| text.split('*').map(str::to_owned).collect::<Vec<_>>();
    let all = before.is_empty() && after.is_empty();
    let good = !all && !after.contains("{}");
    good.then(|| Selector::Line {
        before: pieces(before),
        after: pieces(after),
    })
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object { take, when, at } => {
                f.write_str(match take {
                    Take::Last => "last ",
                    Take::First => "first ",
                    Take::Sum => "sum ",
                    Take::Join => "join ",
                })?;
                for (path, value) in when {
                    write!(f, "{path}={value} ")?;
                }
                write!(f, "-> {at}")
            }
            Self::Line { before, after } => {
                write!(f, "line {}{{}}{}", before.join("*"), after.join("*"))
            }
            Self::Rest => f.write_str("rest"),
        }
    }
}

impl From<Selector> for String {
    fn from(selector: Selector) -> Self {
        selector.to_string()
    }
}

impl Selector {
    /// The value that an object has for this rule.
    pub(super) fn in_object<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        let Self::Object { when, at, .. } = self else {
            return None;
        };
        let holds = |(path, wanted): &(String, String)| {
            at_path(object, path).is_some_and(|found| match found {
                Value::String(text) => text == wanted,
                Value::Bool(yes) => wanted == if *yes { "true" } else { "false" },
                Value::Number(number) => {
                    wanted.parse().is_ok_and(|wanted: Number| *number == wanted)
                }
                Value::Null | Value::Array(_) | Value::Object(_) => false,
            })
        };
        when.iter().all(holds).then(|| at_path(object, at))?
    }

    /// What a line has for this rule.
    pub(super) fn in_line<'t>(&self, line: &'t str) -> Option<&'t str> {
        let Self::Line { before, after } = self else {
            return None;
        };
        let mut rest = line;
        for piece in before {
            rest = rest.split_once(piece.as_str())?.1;
        }
        let mut after = after.iter().map(String::as_str);
        let first = after.next().unwrap_or_default();
        let (value, mut rest) = if first.is_empty() {
            (rest, "")
        } else {
            rest.split_once(first)?
        };
        for piece in after {
            rest = rest.split_once(piece)?.1;
        }
        Some(value.trim()).filter(|value| !value.is_empty())
    }
}

/// The value at a dotted path.
fn at_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| match value {
        Value::Object(map) => map.get(name),
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn selector(text: &str) -> Selector {
        Selector::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn selectors_read_as_they_are_written() {
        for text in [
            "last type=result -> result",
            "sum type=step_finish part.type=x -> part.cost",
            "first -> session_id",
            "join -> a.0.b",
            "line Cost: $* message, ${} session.",
            "rest",
        ] {
            assert_eq!(selector(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for bad in [
            "",
            "last",
            "last x",
            "last ->",
            "last -> a b",
            "most -> a",
            "line no place",
            "line {}",
            "line {} {}",
            "last type -> a",
            "Rest",
        ] {
            assert!(Selector::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn objects_are_searched_by_path_and_condition() {
        let event = json!({"type": "result", "ok": true, "n": [{"x": 7}], "result": "done"});
        let found = |text: &str| selector(text).in_object(&event).cloned();
        assert_eq!(found("last type=result -> result"), Some(json!("done")));
        assert_eq!(found("last ok=true -> n.0.x"), Some(json!(7)));
        assert_eq!(found("last type=other -> result"), None);
        assert_eq!(found("last n=7 -> result"), None);
        assert_eq!(found("last -> n.1.x"), None);
        assert_eq!(found("rest"), None);
    }

    #[test]
    fn lines_are_searched_by_pattern() {
        let cost = selector("line Cost: $* message, ${} session.");
        let line = "Tokens: 2.3k sent. Cost: $0.01 message, $0.02 session. Bye";
        assert_eq!(cost.in_line(line), Some("0.02"));
        assert_eq!(cost.in_line("Cost: $0.01 message"), None);
        assert_eq!(selector("line id: {}").in_line("id:  7 "), Some("7"));
        assert_eq!(selector("line id: {}").in_line("id: "), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_text_breaks_it(text in ".{0,40}", line in ".{0,60}") {
            if let Ok(selector) = Selector::try_from(text) {
                let again = selector.to_string();
                prop_assert_eq!(Selector::try_from(again), Ok(selector.clone()));
                selector.in_line(&line);
                selector.in_object(&json!({"a": [line]}));
            }
        }
    }
}
