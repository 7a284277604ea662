//! Rules over single functions: marked stubs refuse when the delivery wrote them; the rest is listed.

use std::collections::HashMap;

use super::marks;
use super::whole::list;
use crate::Reason;
use crate::python::{Callable, Context, Outline, Work};

/// `whole` says that the file as a whole is refused already, so that single findings would only repeat it.
pub(super) fn rules(outline: &Outline, base: Option<&Outline>, whole: bool) -> Vec<Reason> {
    let known = base.map(texts).unwrap_or_default();
    let mut reasons = Vec::new();
    let mut listed = Listed::default();
    for callable in &outline.callables {
        if callable.context == Context::Strong || callable.test.is_some() {
            continue;
        }
        let mark = marks::in_callable(outline, callable);
        match (callable.work, mark) {
            (Work::Real, Some(_)) => listed.add("py.marked-real", callable),
            (Work::Real, None) => {}
            (Work::Trivial, Some(_)) => listed.add("py.trivial", callable),
            (_, Some((line, mark))) => {
                let new = !known
                    .get(&callable.name)
                    .is_some_and(|old| old.contains(&outline.text_of(callable)));
                reasons.push(marked(callable, line, &mark, new));
            }
            (_, None) if !whole => listed.add_plain(callable),
            (_, None) => {}
        }
    }
    reasons.extend(listed.into_reasons());
    reasons
}

/// Source texts of the base by qualified name.
fn texts(base: &Outline) -> HashMap<String, Vec<&str>> {
    let mut texts: HashMap<String, Vec<&str>> = HashMap::new();
    for callable in &base.callables {
        texts
            .entry(callable.name.clone())
            .or_default()
            .push(base.text_of(callable));
    }
    texts
}

fn marked(callable: &Callable, line: u32, mark: &str, new: bool) -> Reason {
    let message = format!(
        "{} is marked as unfinished: `{mark}` on line {line}",
        callable.shown()
    );
    // A decorator or a base class may ask for such a body, so there the mark only warns.
    let refuses = new && matches!(callable.context, Context::None | Context::Small);
    let reason = if refuses {
        Reason::fail("py.marked-stub", message)
    } else {
        Reason::warn("py.marked-stub", message)
    };
    reason
        .line(callable.line)
        .help("write the real body and remove the mark; if it cannot be done, say so in the note and leave the function out")
}

#[derive(Default)]
struct Listed<'a> {
    groups: Vec<(&'static str, Vec<&'a Callable>)>,
}

impl<'a> Listed<'a> {
    fn add(&mut self, code: &'static str, callable: &'a Callable) {
        match self.groups.iter_mut().find(|(known, _)| *known == code) {
            Some((_, callables)) => callables.push(callable),
            None => self.groups.push((code, vec![callable])),
        }
    }

    /// Unmarked: a stand-in for work only where nothing else explains it.
    fn add_plain(&mut self, callable: &'a Callable) {
        if callable.context != Context::None {
            return;
        }
        match callable.work {
            Work::Constant if callable.parameters => self.add("py.const", callable),
            Work::Noise if !is_output(callable.own_name()) => self.add("py.noise", callable),
            Work::Echo => self.add("py.echo", callable),
            Work::Trivial => self.add("py.trivial", callable),
            Work::Constant | Work::Noise | Work::Empty | Work::Raises | Work::Real => {}
        }
    }

    fn into_reasons(self) -> Vec<Reason> {
        let reason = |(code, callables): (&str, Vec<&Callable>)| {
            let shown: Vec<String> = callables.iter().map(|callable| callable.shown()).collect();
            let line = callables.first().map_or(1, |callable| callable.line);
            let message = match code {
                "py.marked-real" => format!(
                    "says in a comment that it is not the real thing: {}",
                    list(&shown)
                ),
                _ => list(&shown),
            };
            Reason::warn(code, message)
                .line(line)
                .help("check that this is meant")
        };
        self.groups.into_iter().map(reason).collect()
    }
}

/// Names of functions whose work is to say something.
fn is_output(name: &str) -> bool {
    let name = name.to_lowercase();
    [
        "print", "write", "show", "display", "log", "emit", "echo", "report", "usage", "help",
        "warn", "debug", "info", "error", "dump", "banner", "notify", "say", "hello", "greet",
        "sleep", "wait", "pause", "delay",
    ]
    .iter()
    .any(|word| name.contains(word))
}
