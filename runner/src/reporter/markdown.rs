//! A task as Markdown for a comment on a pull request. Everything that an agent could have chosen
//! stands in code spans: there it is no link, no mention, no HTML and no heading. Pure.

use gates::{
    ChangeKind, ClaimCheck, ClaimValue, Finding, Judgement, Level, Measure, Reason, Syntax,
};

use super::agent_text::one_line;
use super::words::{counted, short, size};
use crate::view::TaskView;

/// Files, reasons and claims that a comment lists of each.
const FEW: usize = 50;

/// The comment.
pub fn comment(view: &TaskView) -> String {
    let mut lines = vec![
        format!("### Airlock: {}", view.stage),
        String::new(),
        code(&view.summary()),
        String::new(),
    ];
    lines.push(facts(view));
    if let Some(judgement) = &view.judgement {
        lines.extend(listed("Files", files(judgement)));
        lines.extend(listed("Gates", gates(judgement)));
        lines.extend(listed("Claims of the note", claims(judgement)));
    }
    if let Some(evidence) = &view.evidence {
        let signed = if evidence.signed {
            "signed"
        } else {
            "not signed"
        };
        lines.extend([
            String::new(),
            format!("Evidence ({signed}): {}", code(&evidence.digest)),
        ]);
    }
    lines.join("\n")
}

fn facts(view: &TaskView) -> String {
    let confined = if view.spec.isolation.confined() {
        ""
    } else {
        " (**not confined**)"
    };
    let commit = view.seal.as_ref().and_then(|seal| seal.commit.as_deref());
    format!(
        "Task {}, agent {}, isolation {}{confined}, base {}, commit {}.",
        code(view.spec.task.as_str()),
        code(&view.spec.agent),
        view.spec.isolation.as_str(),
        code(short(&view.spec.base)),
        commit.map_or_else(|| "none".to_owned(), code),
    )
}

fn listed(title: &str, mut items: Vec<String>) -> Vec<String> {
    if items.is_empty() {
        return Vec::new();
    }
    let more = items.len().saturating_sub(FEW);
    items.truncate(FEW);
    if more > 0 {
        items.push(format!("- … and {more} more"));
    }
    let mut lines = vec![String::new(), format!("**{title}**"), String::new()];
    lines.append(&mut items);
    lines
}

fn files(judgement: &Judgement) -> Vec<String> {
    judgement
        .files
        .iter()
        .map(|file| {
            let change = match file.change {
                ChangeKind::Added => "added",
                ChangeKind::Modified => "modified",
                ChangeKind::Deleted => "deleted",
                ChangeKind::Renamed => "renamed",
                ChangeKind::Mode => "mode changed",
            };
            let facts = measure(&file.now).map_or_else(String::new, |facts| format!(" ({facts})"));
            format!("- {} {change}{facts}", code(&file.path))
        })
        .collect()
}

fn gates(judgement: &Judgement) -> Vec<String> {
    let mut items = Vec::new();
    for run in &judgement.gates {
        items.push(format!("- {}: {}", run.gate, finding(run.finding)));
        for reason in run
            .reasons
            .iter()
            .filter(|reason| reason.level != Level::Info)
        {
            let place =
                place(reason).map_or_else(String::new, |place| format!("{} ", code(&place)));
            items.push(format!(
                "  - {place}{} {}",
                code(&reason.code),
                code(&reason.message)
            ));
            if !reason.help.is_empty() {
                items.push(format!("    {}", code(&reason.help)));
            }
        }
    }
    items
}

fn finding(finding: Finding) -> &'static str {
    match finding {
        Finding::Pass => "✅ pass",
        Finding::Warn => "⚠️ warn",
        Finding::Fail => "❌ fail",
        Finding::NotApplicable => "➖ not applicable",
        Finding::CouldNotCheck => "⚠️ could not check",
    }
}

fn claims(judgement: &Judgement) -> Vec<String> {
    let told = judgement.claims.iter();
    told.map(|claim| format!("- {}: {}", verdict(claim), code(&comparison(claim))))
        .collect()
}

fn verdict(claim: &ClaimCheck) -> &'static str {
    match claim.verdict {
        gates::ClaimVerdict::Agrees => "✅ agrees",
        gates::ClaimVerdict::Differs => "❌ differs",
        gates::ClaimVerdict::Unverified => "➖ not measured",
    }
}

/// Where a reason points: file, line, column, as far as it is known.
fn place(reason: &Reason) -> Option<String> {
    let path = one_line(reason.path.as_ref()?);
    Some(match (reason.line, reason.column) {
        (Some(line), Some(column)) => format!("{path}:{line}:{column}"),
        (Some(line), None) => format!("{path}:{line}"),
        (None, _) => path,
    })
}

/// One claim and its measure in words.
fn comparison(claim: &ClaimCheck) -> String {
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

/// Size, lines, language, and what a parser says; none for a file that is gone.
fn measure(now: &Measure) -> Option<String> {
    now.blob.as_ref()?;
    let mut facts = vec![size(now.bytes)];
    if now.language != "binary" {
        facts.push(counted(now.lines, "line"));
    }
    facts.push(now.language.clone());
    match (now.syntax, now.statements) {
        (Syntax::Ok, Some(statements)) => facts.push(counted(statements, "statement")),
        (Syntax::Ok, None) => facts.push("parses".to_owned()),
        (Syntax::Error, _) => facts.push("does not parse".to_owned()),
        (Syntax::NotChecked, _) => {}
    }
    Some(facts.join(", "))
}

/// A code span that its content cannot end: its fence is longer than any run of backticks within.
fn code(text: &str) -> String {
    let text = one_line(text);
    let mut longest = 0;
    let mut run = 0;
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 || text.is_empty() {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_code_span_from_within() {
        assert_eq!(code("plain"), "`plain`");
        assert_eq!(code("a `b` ``c"), "``` a `b` ``c ```");
        assert_eq!(
            code("<img src=x> @you\n# head"),
            "`<img src=x> @you # head`"
        );
    }

    #[test]
    fn a_comment_shows_names_as_code() {
        let view =
            super::super::report::tests::judged(gates::GateRun::of(gates::Gate::Stub, Vec::new()));
        insta::assert_snapshot!(comment(&view), @"
        ### Airlock: accepted

        `task t1 is accepted on branch airlock/r1/t1`

        Task `t1`, agent `sh`, isolation sandbox, base `bbbbbbbbbb`, commit `cccccccccccccccccccccccccccccccccccccccc`.

        **Files**

        - `calc.py` added (1.1 KiB, 40 lines, python, 7 statements)
        - `a b.py` added (1.1 KiB, 40 lines, python, 7 statements)

        **Gates**

        - commit: ✅ pass
        - stub: ✅ pass

        Evidence (signed): `sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff`
        ");
    }
}
