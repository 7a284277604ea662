//! The gates' findings and the note's claims as lines for a person. Pure; shows what the judge
//! said and adds no opinion.

use gates::{ClaimCheck, ClaimValue, ClaimVerdict, Finding, GateRun, Level, Reason};

use super::agent_text::one_line;
use super::paint::{Paint, Tone};
use super::progress::mark;
use super::words::counted;

/// Reasons that one gate gets in a short report.
const FEW: usize = 12;

/// The tone of a finding.
pub(super) fn tone(finding: Finding) -> Tone {
    match finding {
        Finding::Pass => Tone::Good,
        Finding::Warn | Finding::CouldNotCheck => Tone::Doubtful,
        Finding::Fail => Tone::Bad,
        Finding::NotApplicable => Tone::Quiet,
    }
}

/// The words for a finding.
pub(super) fn finding_words(finding: Finding) -> &'static str {
    match finding {
        Finding::Pass => "pass",
        Finding::Warn => "warn",
        Finding::Fail => "fail",
        Finding::NotApplicable => "not applicable",
        Finding::CouldNotCheck => "could not check",
    }
}

/// One gate after the other with its reasons. `full` also shows what is only for the record, and
/// every reason.
pub fn gate_lines(runs: &[GateRun], full: bool, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    for run in runs {
        let tone = tone(run.finding);
        let name = format!("{:<9}", run.gate.to_string());
        let name = if tone == Tone::Quiet {
            paint.put(tone, &name)
        } else {
            name
        };
        let words = paint.put(tone, finding_words(run.finding));
        lines.push(format!("{} {name}{words}", paint.put(tone, mark(tone))));
        let told = |reason: &&Reason| full || reason.level != Level::Info;
        let count = run.reasons.iter().filter(told).count();
        let most = if full { count } else { FEW };
        for reason in run.reasons.iter().filter(told).take(most) {
            lines.extend(reason_lines(reason, paint));
        }
        if count > most {
            lines.push(format!(
                "    … and {}",
                counted((count - most) as u64, "more reason")
            ));
        }
    }
    lines
}

fn reason_lines(reason: &Reason, paint: Paint) -> Vec<String> {
    let tone = match reason.level {
        Level::Info => Tone::Quiet,
        Level::Warn | Level::CouldNotCheck => Tone::Doubtful,
        Level::Fail => Tone::Bad,
    };
    let mut line = String::from("    ");
    if let Some(place) = place(reason) {
        line.push_str(&paint.put(Tone::Strong, &place));
        line.push_str("  ");
    }
    line.push_str(&paint.put(tone, &reason.code));
    line.push_str("  ");
    line.push_str(&one_line(&reason.message));
    let mut lines = vec![line];
    if !reason.help.is_empty() {
        lines.push(format!(
            "      {} {}",
            paint.put(Tone::Quiet, "help:"),
            one_line(&reason.help)
        ));
    }
    lines
}

/// Where a reason points: file, line, column, as far as it is known.
pub(super) fn place(reason: &Reason) -> Option<String> {
    let path = one_line(reason.path.as_ref()?);
    Some(match (reason.line, reason.column) {
        (Some(line), Some(column)) => format!("{path}:{line}:{column}"),
        (Some(line), None) => format!("{path}:{line}"),
        (None, _) => path,
    })
}

/// What the note claims beside what was measured.
pub fn claim_lines(claims: &[ClaimCheck], paint: Paint) -> Vec<String> {
    claims
        .iter()
        .map(|claim| {
            let (tone, words) = match claim.verdict {
                ClaimVerdict::Agrees => (Tone::Good, "agrees"),
                ClaimVerdict::Differs => (Tone::Bad, "differs"),
                ClaimVerdict::Unverified => (Tone::Quiet, "not measured"),
            };
            format!(
                "{} {}  {}",
                paint.put(tone, mark(tone)),
                comparison(claim),
                paint.put(tone, words)
            )
        })
        .collect()
}

/// One claim and its measure in words.
pub(super) fn comparison(claim: &ClaimCheck) -> String {
    let path = claim
        .path
        .as_ref()
        .map_or_else(String::new, |path| format!(" of {}", one_line(path)));
    let kind = serde_json::to_value(claim.kind).ok();
    let kind = kind
        .as_ref()
        .and_then(serde_json::Value::as_str)
        .unwrap_or("")
        .replace('_', " ");
    let measured = claim
        .measured
        .as_ref()
        .map_or_else(String::new, |measured| {
            format!(", measured {}", value(measured))
        });
    format!(
        "“{}”: claims {} {kind}{path}{measured}",
        one_line(&claim.text),
        value(&claim.claimed)
    )
}

fn value(value: &ClaimValue) -> String {
    match value {
        ClaimValue::Flag(true) => "yes".to_owned(),
        ClaimValue::Flag(false) => "no".to_owned(),
        ClaimValue::Count(count) => count.to_string(),
        ClaimValue::Decimal(number) => number.to_string(),
        ClaimValue::Text(text) => one_line(text),
    }
}

#[cfg(test)]
mod tests {
    use gates::{ClaimKind, Comparison, Gate};

    use super::*;

    #[test]
    fn a_red_gate_says_where_why_and_what_to_do() {
        let reason = Reason::fail("py.no-statements", "only comments")
            .at("calc.py\u{1b}[2J")
            .line(1)
            .help("write the code");
        let quiet = Reason::info("measured", "34 bytes");
        let runs = [
            GateRun::of(Gate::Commit, vec![quiet]),
            GateRun::of(Gate::Stub, vec![reason]),
            GateRun::not_applicable(Gate::Diagram, "no document"),
        ];
        insta::assert_snapshot!(gate_lines(&runs, false, Paint::PLAIN).join("\n"), @r"
        ✓ commit   pass
        ✗ stub     fail
            calc.py:1  py.no-statements  only comments
              help: write the code
        · diagram  not applicable
        ");
    }

    #[test]
    fn many_reasons_are_cut_unless_all_are_wanted() {
        let reasons: Vec<Reason> = (0..30).map(|_| Reason::fail("a", "b")).collect();
        let runs = [GateRun::of(Gate::Stub, reasons)];
        let lines = gate_lines(&runs, false, Paint::PLAIN);
        assert_eq!(lines.last().unwrap(), "    … and 18 more reasons");
        assert_eq!(gate_lines(&runs, true, Paint::PLAIN).len(), 31);
    }

    #[test]
    fn a_boast_stands_beside_the_measure() {
        let claim = ClaimCheck {
            text: "wrote 17141 characters".to_owned(),
            line: 1,
            kind: ClaimKind::Chars,
            path: Some("a.py".to_owned()),
            comparison: Comparison::Eq,
            claimed: ClaimValue::Count(17141),
            measured: Some(ClaimValue::Count(1225)),
            verdict: ClaimVerdict::Differs,
        };
        insta::assert_snapshot!(
            claim_lines(&[claim], Paint::PLAIN).join("\n"),
            @"✗ “wrote 17141 characters”: claims 17141 chars of a.py, measured 1225  differs"
        );
    }
}
