//! One Python file: refused by the parser, or judged by the rules over the whole file and over each function.

use super::{each, elision, gutted, names, whole};
use crate::python::{Outline, Refusal, read_file};
use crate::verdict::Level;
use crate::{PythonTarget, Reason};

pub(super) fn judge(
    path: &str,
    bytes: &[u8],
    base: Option<&[u8]>,
    target: PythonTarget,
) -> Vec<Reason> {
    let script = match read_file(bytes, target) {
        Ok(script) => script,
        Err(refusal) => return vec![refused(path, &refusal)],
    };
    let test = names::is_test(path);
    let mut reasons = Vec::new();
    if names::is_marker(path) {
        reasons.extend(text_warnings(&script.outline(false)));
    } else {
        let outline = script.outline(test);
        let base = base.and_then(|bytes| read_file(bytes, target).ok());
        let base = base.map(|script| script.outline(false));
        reasons.extend(whole::rules(&outline, test));
        let whole_file = reasons.iter().any(|reason| reason.level == Level::Fail);
        reasons.extend(gutted::rule(&outline, base.as_ref()));
        reasons.extend(elision::rule(&outline));
        reasons.extend(each::rules(&outline, base.as_ref(), whole_file));
        reasons.extend(text_warnings(&outline));
    }
    for reason in &mut reasons {
        reason.path = Some(path.to_owned());
    }
    reasons
}

fn refused(path: &str, refusal: &Refusal) -> Reason {
    Reason::fail(&refusal.code, refusal.message.clone())
        .at(path)
        .line(refusal.line)
        .column(refusal.column)
        .help(refusal.help.clone())
}

/// Things a reader does not see, or reads wrongly.
fn text_warnings(outline: &Outline) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let bidi = |c: char| matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    if let Some(at) = outline.text().find(bidi) {
        let before = outline.text().get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        reasons.push(
            Reason::warn(
                "py.bidi",
                "holds a character that changes the direction of text",
            )
            .line(u32::try_from(line).unwrap_or(u32::MAX))
            .help("write it as an escape such as \\u202e, so that a reader sees it"),
        );
    }
    for &line in &outline.comma_excepts {
        reasons.push(
            Reason::warn(
                "py.except-comma",
                "`except A, b:` catches both names since Python 3.14; in Python 2 it named the error",
            )
            .line(line)
            .help("write `except A as b:` or `except (A, B):`"),
        );
    }
    reasons
}
