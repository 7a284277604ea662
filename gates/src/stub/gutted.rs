//! A function that worked in the base and is a stub now. Same qualified name; a new body elsewhere does not count.

use std::collections::HashMap;

use crate::Reason;
use crate::python::{Callable, Context, Outline, Work};

pub(super) fn rule(outline: &Outline, base: Option<&Outline>) -> Vec<Reason> {
    let Some(base) = base else {
        return Vec::new();
    };
    let before = by_name(base);
    let now = by_name(outline);
    let mut reasons = Vec::new();
    for callable in &outline.callables {
        let key = key(callable);
        let worked = before
            .get(&key)
            .and_then(|old| old.iter().find(|old| old.work == Work::Real));
        let Some(old) = worked else {
            continue;
        };
        let works_still = now
            .get(&key)
            .is_some_and(|all| all.iter().any(|one| one.work == Work::Real));
        let abstract_now = callable.context == Context::Strong && old.context != Context::Strong;
        let idle = matches!(
            callable.work,
            Work::Empty | Work::Raises | Work::Constant | Work::Noise
        );
        if idle && !works_still && !abstract_now {
            reasons.push(gutted(callable, old));
        }
    }
    reasons
}

fn key(callable: &Callable) -> (&str, &str) {
    (&callable.name, &callable.variant)
}

fn by_name(outline: &Outline) -> HashMap<(&str, &str), Vec<&Callable>> {
    let mut found: HashMap<(&str, &str), Vec<&Callable>> = HashMap::new();
    for callable in &outline.callables {
        found.entry(key(callable)).or_default().push(callable);
    }
    found
}

fn gutted(callable: &Callable, old: &Callable) -> Reason {
    let lines = old.end_line.saturating_sub(old.line) + 1;
    let noun = if lines == 1 { "line" } else { "lines" };
    Reason::fail(
        "py.gutted",
        format!(
            "{} did work in the base ({lines} {noun} there) and is a stub now",
            callable.shown()
        ),
    )
    .line(callable.line)
    .help("restore the body; if the function should go, delete it, and say why in the note")
}
