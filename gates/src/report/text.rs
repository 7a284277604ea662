//! The report for a terminal: verdict, gates, reasons, claims beside measures. Colours are the caller's: a
//! [`Style`] is asked for each piece. Everything an agent wrote is inert before it is painted.

use super::inert::{cut, shown};
use super::list::{Item, Report, finding_word, place, verdict_word};
use crate::{
    ClaimCheck, ClaimKind, ClaimValue, ClaimVerdict, Comparison, Finding, GateRun, Level, Syntax,
    Verdict,
};

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A headline.
    Title,
    /// Accepted, pass, agrees.
    Good,
    /// Worth a look.
    Warning,
    /// Refused, differs.
    Bad,
    /// Side matter.
    Faint,
    /// A place in a file.
    Place,
    /// A stable code.
    Code,
    /// What to do.
    Help,
}

/// Paints pieces of a report. The text given is inert; painting must not change its width.
pub trait Style {
    /// The text with whatever marks the terminal needs around it.
    fn paint(&self, role: Role, text: &str) -> String;
}

/// No colours.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Style for Plain {
    fn paint(&self, _role: Role, text: &str) -> String {
        text.to_owned()
    }
}

pub(super) fn write(report: &Report, style: &dyn Style) -> String {
    let mut lines = head(report, style);
    lines.push(String::new());
    for run in &report.judgement.gates {
        lines.push(gate_line(run, style));
    }
    lines.extend(reasons(report, style));
    lines.extend(claims(report, style));
    lines.extend(files(report, style));
    lines.join("\n") + "\n"
}

fn verdict_role(verdict: Verdict) -> Role {
    match verdict {
        Verdict::Accepted => Role::Good,
        Verdict::Rejected => Role::Bad,
        Verdict::CouldNotCheck => Role::Warning,
    }
}

pub(super) fn abbreviated(oid: &str) -> String {
    shown(oid.get(..12).unwrap_or(oid))
}

fn head(report: &Report, style: &dyn Style) -> Vec<String> {
    let verdict = report.verdict();
    let about = format!(
        "{} {} on {}",
        shown(&report.repository),
        abbreviated(&report.commit),
        abbreviated(&report.base)
    );
    let mut lines = vec![format!(
        "{}  {}",
        style.paint(verdict_role(verdict), verdict_word(verdict)),
        style.paint(Role::Title, &about)
    )];
    if let Some(task) = &report.task {
        let mut parts = vec![format!("task {}", shown(&task.task))];
        parts.extend(task.run.as_ref().map(|run| format!("run {}", shown(run))));
        parts.extend(
            task.agent
                .as_ref()
                .map(|agent| format!("agent {}", shown(agent))),
        );
        parts.extend(task.isolation.as_ref().map(|mode| shown(mode)));
        lines.push(style.paint(Role::Faint, &parts.join(" · ")));
        lines.extend(
            task.summary
                .as_ref()
                .map(|summary| cut(&shown(summary), 200)),
        );
        for (gate, reason, by) in &task.overrides {
            let word = format!(
                "{} overridden by {}: {}",
                gate.name(),
                shown(by),
                shown(reason)
            );
            lines.push(style.paint(Role::Warning, &word));
        }
    }
    lines
}

pub(super) fn mark(finding: Finding) -> &'static str {
    match finding {
        Finding::Pass => "✓",
        Finding::Warn => "!",
        Finding::Fail => "✗",
        Finding::NotApplicable => "–",
        Finding::CouldNotCheck => "?",
    }
}

fn finding_role(finding: Finding) -> Role {
    match finding {
        Finding::Pass => Role::Good,
        Finding::Warn | Finding::CouldNotCheck => Role::Warning,
        Finding::Fail => Role::Bad,
        Finding::NotApplicable => Role::Faint,
    }
}

fn gate_line(run: &GateRun, style: &dyn Style) -> String {
    let role = finding_role(run.finding);
    let name = format!("{:<8}", run.gate.name());
    let word = format!("{:<15}", finding_word(run.finding));
    let line = format!(
        "  {} {name} {}  {}",
        style.paint(role, mark(run.finding)),
        style.paint(role, &word),
        style.paint(Role::Faint, &summary(run))
    );
    line.trim_end().to_owned()
}

/// How many of each weight, or the only word there is.
pub(super) fn summary(run: &GateRun) -> String {
    let count = |level: Level| {
        run.reasons
            .iter()
            .filter(|reason| reason.level == level)
            .count()
    };
    let named = [
        (Level::Fail, "refused"),
        (Level::CouldNotCheck, "unchecked"),
        (Level::Warn, "noted"),
    ];
    let parts: Vec<String> = named
        .into_iter()
        .map(|(level, word)| (count(level), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    match (parts.is_empty(), run.reasons.first()) {
        (true, Some(only)) => cut(&shown(&only.message), 100),
        _ => parts.join(", "),
    }
}

/// Refusals first; what is only for the record stays in the gate's own line and the other formats.
fn reasons(report: &Report, style: &dyn Style) -> Vec<String> {
    let mut items: Vec<Item<'_>> = report
        .items()
        .filter(|item| item.level > Level::Info)
        .collect();
    items.sort_by_key(|item| std::cmp::Reverse(item.level));
    let mut lines = Vec::new();
    for item in items {
        let (role, word) = match item.level {
            Level::Fail => (Role::Bad, "fail"),
            Level::CouldNotCheck => (Role::Warning, "could not check"),
            Level::Warn | Level::Info => (Role::Warning, "warn"),
        };
        let place = place(&item);
        let place = if place.is_empty() {
            item.gate.name().to_owned()
        } else {
            place
        };
        lines.push(String::new());
        lines.push(format!(
            "{} {} {}",
            style.paint(role, word),
            style.paint(Role::Place, &place),
            style.paint(Role::Code, &shown(item.code))
        ));
        lines.push(format!("  {}", shown(item.message)));
        if !item.help.is_empty() {
            lines.push(format!(
                "  {}",
                style.paint(Role::Help, &format!("help: {}", shown(item.help)))
            ));
        }
    }
    lines
}

/// The claim's words, for tables.
pub(super) fn claim_value(kind: ClaimKind, comparison: Comparison, value: &ClaimValue) -> String {
    let sign = match comparison {
        Comparison::Eq => "",
        Comparison::Approx => "about ",
        Comparison::Ge => "at least ",
        Comparison::Le => "at most ",
    };
    let value = match value {
        ClaimValue::Flag(true) => "yes".to_owned(),
        ClaimValue::Flag(false) => "no".to_owned(),
        ClaimValue::Count(count) => grouped(*count),
        ClaimValue::Decimal(number) => format!("{number}"),
        ClaimValue::Text(text) => cut(&shown(text), 60),
    };
    format!("{sign}{value} {}", kind_word(kind))
}

fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn kind_word(kind: ClaimKind) -> String {
    let name = serde_json::to_value(kind).ok();
    name.as_ref()
        .and_then(serde_json::Value::as_str)
        .unwrap_or("")
        .replace('_', " ")
}

pub(super) fn claim_word(verdict: ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Agrees => "agrees",
        ClaimVerdict::Differs => "differs",
        ClaimVerdict::Unverified => "unverified",
    }
}

pub(super) fn measured(claim: &ClaimCheck) -> String {
    claim.measured.as_ref().map_or_else(
        || "not measured".to_owned(),
        |value| claim_value(claim.kind, Comparison::Eq, value),
    )
}

fn claims(report: &Report, style: &dyn Style) -> Vec<String> {
    let claims = &report.judgement.claims;
    if claims.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), style.paint(Role::Title, "the note's claims")];
    for claim in claims {
        let role = match claim.verdict {
            ClaimVerdict::Agrees => Role::Good,
            ClaimVerdict::Differs => Role::Bad,
            ClaimVerdict::Unverified => Role::Faint,
        };
        let of = claim
            .path
            .as_deref()
            .map(|path| format!(" ({})", shown(path)))
            .unwrap_or_default();
        let said = claim_value(claim.kind, claim.comparison, &claim.claimed);
        let word = format!("{:<10}", claim_word(claim.verdict));
        lines.push(format!(
            "  {} claimed {said}, measured {}{of}",
            style.paint(role, &word),
            measured(claim)
        ));
    }
    lines
}

/// One line a file, as the engine measured it.
fn files(report: &Report, style: &dyn Style) -> Vec<String> {
    const MOST: usize = 50;
    let files = &report.judgement.files;
    if files.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), style.paint(Role::Title, "files")];
    for file in files.iter().take(MOST) {
        let sizes = format!(
            "{} bytes, {} lines",
            grouped(file.now.bytes),
            grouped(file.now.lines)
        );
        let statements = file
            .now
            .statements
            .map(|count| format!(", {count} statements"))
            .unwrap_or_default();
        let syntax = match file.now.syntax {
            Syntax::Error => ", does not parse",
            Syntax::Ok | Syntax::NotChecked => "",
        };
        let detail = format!(
            "{} {}, {sizes}{statements}{syntax}",
            change_word(file.change),
            shown(&file.now.language)
        );
        lines.push(format!(
            "  {}  {}",
            style.paint(Role::Place, &shown(&file.path)),
            style.paint(Role::Faint, &detail)
        ));
    }
    if files.len() > MOST {
        lines.push(format!("  and {} more", files.len() - MOST));
    }
    lines
}

pub(super) fn change_word(kind: crate::ChangeKind) -> &'static str {
    match kind {
        crate::ChangeKind::Added => "added",
        crate::ChangeKind::Modified => "modified",
        crate::ChangeKind::Deleted => "deleted",
        crate::ChangeKind::Renamed => "renamed",
        crate::ChangeKind::Mode => "mode changed",
    }
}
