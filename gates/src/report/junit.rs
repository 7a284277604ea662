//! `JUnit` XML: one suite a gate, one case a file, and one for the gate itself. No times: the judge has no clock.

use std::collections::BTreeMap;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::inert::shown;
use super::list::{Report, verdict_word};
use crate::{Finding, GateRun, Level, Reason};

pub(super) fn write(report: &Report) -> String {
    let name = format!(
        "airlock {} {}",
        shown(&report.repository),
        verdict_word(report.verdict())
    );
    let mut out = quick_junit::Report::new(name);
    for run in &report.judgement.gates {
        out.add_test_suite(suite(run));
    }
    // The writer fails only where its sink does, and a string does not.
    out.to_string().unwrap_or_default()
}

fn suite(run: &GateRun) -> TestSuite {
    let mut suite = TestSuite::new(run.gate.name());
    let mut by_path: BTreeMap<Option<&str>, Vec<&Reason>> = BTreeMap::new();
    by_path.entry(None).or_default();
    for reason in &run.reasons {
        by_path
            .entry(reason.path.as_deref())
            .or_default()
            .push(reason);
    }
    for (path, reasons) in by_path {
        let name = path.map_or_else(|| run.gate.name().to_owned(), shown);
        let skipped = path.is_none() && run.finding == Finding::NotApplicable;
        let mut case = TestCase::new(name, status(&reasons, skipped));
        case.set_classname(format!("airlock.{}", run.gate.name()));
        let notes: Vec<String> = reasons
            .iter()
            .filter(|reason| reason.level < Level::CouldNotCheck)
            .map(|reason| line(reason))
            .collect();
        if !notes.is_empty() {
            case.set_system_out(notes.join("\n"));
        }
        suite.add_test_case(case);
    }
    suite
}

fn status(reasons: &[&Reason], skipped: bool) -> TestCaseStatus {
    let heaviest = reasons.iter().max_by_key(|reason| reason.level);
    let kind = match heaviest.map(|reason| reason.level) {
        Some(Level::Fail) => NonSuccessKind::Failure,
        Some(Level::CouldNotCheck) => NonSuccessKind::Error,
        Some(Level::Warn | Level::Info) | None => {
            return if skipped {
                TestCaseStatus::skipped()
            } else {
                TestCaseStatus::success()
            };
        }
    };
    let mut status = TestCaseStatus::non_success(kind);
    if let Some(reason) = heaviest {
        status.set_type(shown(&reason.code));
        status.set_message(shown(&reason.message));
    }
    let lines: Vec<String> = reasons
        .iter()
        .filter(|reason| reason.level >= Level::CouldNotCheck)
        .map(|reason| line(reason))
        .collect();
    status.set_description(lines.join("\n"));
    status
}

fn line(reason: &Reason) -> String {
    let at = reason
        .line
        .map(|line| format!("line {line}: "))
        .unwrap_or_default();
    let help = if reason.help.is_empty() {
        String::new()
    } else {
        format!(" (help: {})", shown(&reason.help))
    };
    format!(
        "{at}{} {}{help}",
        shown(&reason.code),
        shown(&reason.message)
    )
}
