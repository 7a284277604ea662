//! One self-contained page: no script, no outside request, everything escaped, light and dark, prints well.

use super::inert::{cut, escape_html};
use super::list::{Item, Report, finding_word, place, verdict_word};
use super::text;
use crate::{ClaimVerdict, Finding, Level, Syntax, Verdict};

const STYLE: &str = include_str!("page.css");
/// Rows of one table; the JSON has all of them.
const MOST: usize = 2000;

pub(super) fn write(report: &Report) -> String {
    let verdict = verdict_word(report.verdict());
    let title = format!(
        "{verdict}: {} {}",
        report.repository,
        text::abbreviated(&report.commit)
    );
    [
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n".to_owned(),
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n".to_owned(),
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n".to_owned(),
        format!("<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n", escape_html(&title)),
        head(report),
        gates(report),
        findings(report),
        claims(report),
        files(report),
        "</main>\n</body>\n</html>\n".to_owned(),
    ]
    .concat()
}

fn head(report: &Report) -> String {
    let verdict = report.verdict();
    let class = match verdict {
        Verdict::Accepted => "good",
        Verdict::Rejected => "bad",
        Verdict::CouldNotCheck => "warn",
    };
    let mut facts = vec![
        ("repository", report.repository.clone()),
        ("commit", report.commit.clone()),
        ("base", report.base.clone()),
        ("tree", report.tree.clone()),
    ];
    let mut summary = String::new();
    if let Some(task) = &report.task {
        facts.push(("task", task.task.clone()));
        facts.extend(task.run.iter().map(|run| ("run", run.clone())));
        facts.extend(task.agent.iter().map(|agent| ("agent", agent.clone())));
        facts.extend(
            task.isolation
                .iter()
                .map(|mode| ("isolation", mode.clone())),
        );
        facts.extend(
            task.digest
                .iter()
                .map(|digest| ("evidence", digest.clone())),
        );
        for (gate, reason, by) in &task.overrides {
            facts.push(("override", format!("{gate} by {by}: {reason}")));
        }
        summary = task
            .summary
            .iter()
            .map(|text| format!("<p>{}</p>\n", escape_html(&cut(text, 500))))
            .collect::<Vec<_>>()
            .concat();
    }
    let facts: String = facts
        .iter()
        .map(|(name, value)| {
            format!(
                "<div><dt>{name}</dt><dd>{}</dd></div>\n",
                escape_html(&cut(value, 500))
            )
        })
        .collect::<Vec<_>>()
        .concat();
    format!(
        "<header class=\"{class}\">\n<h1>{}</h1>\n{summary}<dl>\n{facts}</dl>\n</header>\n",
        verdict_word(verdict)
    )
}

fn finding_class(finding: Finding) -> &'static str {
    match finding {
        Finding::Pass => "good",
        Finding::Warn | Finding::CouldNotCheck => "warn",
        Finding::Fail => "bad",
        Finding::NotApplicable => "faint",
    }
}

fn gates(report: &Report) -> String {
    let rows: String = report
        .judgement
        .gates
        .iter()
        .map(|run| {
            let class = finding_class(run.finding);
            let word = format!("{} {}", text::mark(run.finding), finding_word(run.finding));
            format!(
                "<tr><th scope=\"row\">{}</th><td class=\"{class}\">{word}</td><td>{}</td></tr>\n",
                run.gate,
                escape_html(&text::summary(run))
            )
        })
        .collect::<Vec<_>>()
        .concat();
    section("Gates", &["gate", "finding", ""], &rows, "")
}

fn section(title: &str, columns: &[&str], rows: &str, more: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heads: String = columns
        .iter()
        .map(|name| format!("<th scope=\"col\">{name}</th>"))
        .collect::<Vec<_>>()
        .concat();
    format!(
        "<section>\n<h2>{title}</h2>\n<div class=\"wide\"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n{more}</section>\n"
    )
}

fn more(count: usize) -> String {
    if count > MOST {
        format!("<p>and {} more</p>\n", count - MOST)
    } else {
        String::new()
    }
}

fn findings(report: &Report) -> String {
    let mut items: Vec<Item<'_>> = report.items().collect();
    items.sort_by_key(|item| std::cmp::Reverse(item.level));
    let list: String = items
        .iter()
        .take(MOST)
        .map(finding)
        .collect::<Vec<_>>()
        .concat();
    if list.is_empty() {
        return String::new();
    }
    format!(
        "<section>\n<h2>Findings</h2>\n<ul class=\"findings\">\n{list}</ul>\n{}</section>\n",
        more(items.len())
    )
}

fn finding(item: &Item<'_>) -> String {
    let (class, word) = match item.level {
        Level::Fail => ("bad", "fail"),
        Level::CouldNotCheck => ("warn", "could not check"),
        Level::Warn => ("warn", "warn"),
        Level::Info => ("faint", "info"),
    };
    let place = place(item);
    let place = if place.is_empty() {
        item.gate.name().to_owned()
    } else {
        place
    };
    let help = if item.help.is_empty() {
        String::new()
    } else {
        format!("<p class=\"help\">{}</p>", escape_html(item.help))
    };
    format!(
        "<li><p><span class=\"tag {class}\">{word}</span> <code>{}</code> <span class=\"faint\">{} {}</span></p><p>{}</p>{help}</li>\n",
        escape_html(&cut(&place, 400)),
        item.gate,
        escape_html(item.code),
        escape_html(&cut(item.message, 2000)),
    )
}

fn claims(report: &Report) -> String {
    let claims = &report.judgement.claims;
    let rows: String = claims
        .iter()
        .take(MOST)
        .map(|claim| {
            let class = match claim.verdict {
                ClaimVerdict::Agrees => "good",
                ClaimVerdict::Differs => "bad",
                ClaimVerdict::Unverified => "faint",
            };
            format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td><code>{}</code></td><td class=\"{class}\">{}</td></tr>\n",
                escape_html(&cut(&claim.text, 300)),
                escape_html(&text::claim_value(claim.kind, claim.comparison, &claim.claimed)),
                escape_html(&text::measured(claim)),
                escape_html(claim.path.as_deref().unwrap_or("")),
                text::claim_word(claim.verdict),
            )
        })
        .collect::<Vec<_>>()
        .concat();
    section(
        "Claims and measures",
        &["the note says", "claimed", "measured", "file", ""],
        &rows,
        &more(claims.len()),
    )
}

fn files(report: &Report) -> String {
    let files = &report.judgement.files;
    let rows: String = files
        .iter()
        .take(MOST)
        .map(|file| {
            let syntax = match file.now.syntax {
                Syntax::Ok => "parses",
                Syntax::Error => "does not parse",
                Syntax::NotChecked => "",
            };
            let statements = file.now.statements.map(|count| count.to_string()).unwrap_or_default();
            format!(
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{statements}</td><td>{syntax}</td></tr>\n",
                escape_html(&cut(&file.path, 400)),
                text::change_word(file.change),
                escape_html(&file.now.language),
                file.now.bytes,
                file.now.lines,
            )
        })
        .collect::<Vec<_>>()
        .concat();
    section(
        "Files",
        &[
            "path",
            "change",
            "language",
            "bytes",
            "lines",
            "statements",
            "syntax",
        ],
        &rows,
        &more(files.len()),
    )
}
