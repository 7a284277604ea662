//! Rules over a whole file: it holds something, and some callable of it works.

use crate::Reason;
use crate::python::{Callable, Contents, Context, Outline, TestFacts, Work};

/// At most one reason for the file as a whole, and what its tests cannot show.
pub(super) fn rules(outline: &Outline, test: bool) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let whole = contents(outline)
        .or_else(|| if test { hollow_test(outline) } else { None })
        .or_else(|| all_stub(outline))
        .or_else(|| hollow(outline))
        .or_else(|| partial(outline));
    let hollow = whole
        .as_ref()
        .is_some_and(|reason| reason.code == "py.hollow-test");
    reasons.extend(whole);
    if test && !hollow {
        reasons.extend(weak_tests(outline));
    }
    reasons
}

fn contents(outline: &Outline) -> Option<Reason> {
    let (code, message, help) = match outline.top.contents {
        Contents::Code => return None,
        Contents::Blank => (
            "py.empty",
            "holds nothing but white space",
            "write the module, or do not deliver the file",
        ),
        Contents::Inert => (
            "py.no-statements",
            "parses, but no statement in it does anything: only comments, docstrings, `pass`, `...`",
            "write the code that the comments describe, or do not deliver the file",
        ),
        Contents::Imports => (
            "py.imports-only",
            "holds imports and nothing that uses them",
            "write the code, or list the names in `__all__` if the file re-exports them",
        ),
        Contents::Bookkeeping => (
            "py.meta-only",
            "holds only names such as `__author__`",
            "write the module, or do not deliver the file",
        ),
        Contents::Noise => (
            "py.noise-only",
            "only prints or sleeps",
            "write the work whose success it announces",
        ),
    };
    Some(Reason::fail(code, message).line(1).help(help))
}

fn all_stub(outline: &Outline) -> Option<Reason> {
    let hole = |callable: &Callable| {
        callable.work.is_hole() && matches!(callable.context, Context::None | Context::Small)
    };
    let top = &outline.top;
    let any = !outline.callables.is_empty() || !top.empty_classes.is_empty();
    if !any
        || !outline.callables.iter().all(hole)
        || top.class_data
        || top.outside_call
        || top.work > 0
    {
        return None;
    }
    let classes = top
        .empty_classes
        .iter()
        .map(|(name, line)| format!("{name} (line {line}, empty class)"));
    let shown: Vec<String> = outline
        .callables
        .iter()
        .map(Callable::shown)
        .chain(classes)
        .collect();
    let line = outline
        .callables
        .iter()
        .map(|callable| callable.line)
        .chain(top.empty_classes.iter().map(|&(_, line)| line))
        .min();
    let count = shown.len();
    let says = if count == 1 {
        "the only definition does no work".to_owned()
    } else {
        format!("{count} definitions, none does work")
    };
    Some(
        Reason::fail("py.all-stub", format!("{says}: {}", list(&shown)))
            .line(line.unwrap_or(1))
            .help("write the bodies, or mark the class as Protocol/ABC if it is an interface"),
    )
}

fn hollow(outline: &Outline) -> Option<Reason> {
    let outside: Vec<&Callable> = outline
        .callables
        .iter()
        .filter(|callable| callable.context != Context::Strong)
        .collect();
    let works = outline
        .callables
        .iter()
        .any(|callable| callable.work == Work::Real);
    // A script whose own level does the work is not hollow for three empty callbacks.
    if outside.len() < 3 || works || outline.top.work >= outside.len() {
        return None;
    }
    let noise = outside
        .iter()
        .filter(|callable| callable.work == Work::Noise)
        .count();
    let fails =
        outside.iter().any(|callable| callable.work.is_hole()) || noise * 2 >= outside.len();
    let shown: Vec<String> = outside.iter().map(|callable| callable.shown()).collect();
    let message = format!(
        "{} callables, none does work: {}",
        outside.len(),
        list(&shown)
    );
    let line = outside.first().map_or(1, |callable| callable.line);
    let help = "write the bodies, or mark the class as Protocol/ABC if it is an interface";
    let reason = if fails {
        Reason::fail("py.hollow", message)
    } else {
        Reason::warn("py.hollow-const", message)
    };
    Some(reason.line(line).help(help))
}

fn hollow_test(outline: &Outline) -> Option<Reason> {
    let tests: Vec<&Callable> = outline
        .callables
        .iter()
        .filter(|callable| callable.test.is_some())
        .collect();
    let idle = |callable: &&Callable| {
        matches!(
            callable.work,
            Work::Empty | Work::Constant | Work::Noise | Work::Trivial
        )
    };
    if tests.is_empty() || !tests.iter().all(idle) {
        return None;
    }
    let shown: Vec<String> = tests.iter().map(|callable| callable.shown()).collect();
    Some(
        Reason::fail(
            "py.hollow-test",
            format!("no test in it can fail: {}", list(&shown)),
        )
        .line(tests.first().map_or(1, |callable| callable.line))
        .help("call the code under test and assert what it returns"),
    )
}

fn partial(outline: &Outline) -> Option<Reason> {
    let stubs: Vec<&Callable> = outline
        .callables
        .iter()
        .filter(|callable| {
            callable.work.is_hole() && callable.context == Context::None && callable.test.is_none()
        })
        .collect();
    let outside = outline
        .callables
        .iter()
        .filter(|callable| callable.context != Context::Strong)
        .count();
    if stubs.len() < 2 || stubs.len() * 2 < outside {
        return None;
    }
    let shown: Vec<String> = stubs.iter().map(|callable| callable.shown()).collect();
    Some(
        Reason::warn(
            "py.partial-stub",
            format!(
                "{} of {outside} callables are stubs: {}",
                stubs.len(),
                list(&shown)
            ),
        )
        .line(stubs.first().map_or(1, |callable| callable.line))
        .help("write the missing bodies"),
    )
}

/// Whether a fact holds of a test.
type Holds = fn(&TestFacts) -> bool;

fn weak_tests(outline: &Outline) -> Vec<Reason> {
    let tests: Vec<(&Callable, TestFacts)> = outline
        .callables
        .iter()
        .filter_map(|callable| callable.test.map(|facts| (callable, facts)))
        .collect();
    let mut reasons = Vec::new();
    let all_skipped = !tests.is_empty() && tests.iter().all(|(_, facts)| facts.skipped);
    if let Some(line) = outline.top.skips_all.or_else(|| all_skipped.then_some(1)) {
        reasons.push(
            Reason::warn("py.skip-all", "skips every test in it")
                .line(line)
                .help("mend what is flaky, or delete the tests"),
        );
    }
    let groups: [(&str, &str, &str, Holds); 3] = [
        (
            "py.exit-zero",
            "ends the run with success",
            "let the test return",
            |facts| facts.exits_zero,
        ),
        (
            "py.swallow",
            "catches the assertion's own error",
            "catch only the error that the code under test raises",
            |facts| facts.swallows,
        ),
        (
            "py.no-assert",
            "asserts nothing",
            "assert what the code under test returns or raises",
            |facts| !facts.asserts && !facts.imports && !facts.skipped,
        ),
    ];
    for (code, what, help, holds) in groups {
        let found: Vec<&Callable> = tests
            .iter()
            .filter(|(_, facts)| holds(facts))
            .map(|(callable, _)| *callable)
            .collect();
        let Some(first) = found.first() else {
            continue;
        };
        let shown: Vec<String> = found
            .iter()
            .map(|callable| format!("{} (line {})", callable.name, callable.line))
            .collect();
        reasons.push(
            Reason::warn(code, format!("{what}: {}", list(&shown)))
                .line(first.line)
                .help(help),
        );
    }
    reasons
}

/// At most eight of a list, then how many more there are.
pub(super) fn list(shown: &[String]) -> String {
    let head = shown
        .iter()
        .take(8)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match shown.len().checked_sub(8) {
        Some(more) if more > 0 => format!("{head} and {more} more"),
        _ => head,
    }
}
