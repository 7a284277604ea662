//! GitHub: workflow commands for annotations, and Markdown for the step summary.
//!
//! A runner shows ten annotations of a kind and drops the rest in silence, so refusals come first and the rest is
//! counted. Everything else is printed between `::stop-commands::` and its token: the token is a hash over the commit
//! and the text it encloses, which text that stands in that commit cannot hold.

use sha2::{Digest as _, Sha256};

use super::inert::{cut, escape_html, shown};
use super::list::{Item, Report, finding_word, place, verdict_word};
use super::text::{self, Plain};
use crate::Level;

/// Annotations of a kind that a step shows.
const MOST: usize = 10;
/// A step summary may hold 1 MiB; some is left for the end.
const LARGEST: usize = 1_000_000;

pub(super) fn write(report: &Report) -> String {
    let mut out = String::new();
    let mut left = Vec::new();
    for (command, levels) in [
        ("error", &[Level::Fail, Level::CouldNotCheck][..]),
        ("warning", &[Level::Warn]),
    ] {
        let mut items: Vec<Item<'_>> = report
            .items()
            .filter(|item| levels.contains(&item.level))
            .collect();
        items.sort_by_key(|item| std::cmp::Reverse(item.level));
        for item in items.iter().take(MOST) {
            out.push_str(&annotation(command, item));
        }
        if items.len() > MOST {
            left.push(format!(
                "and {} more {command}s, see the list below",
                items.len() - MOST
            ));
        }
    }
    let body = format!("{}\n{}", report.text(&Plain), left.join("\n"));
    let token = token(report, &body);
    format!(
        "{out}::stop-commands::{token}\n{}\n::{token}::\n",
        body.trim_end()
    )
}

fn token(report: &Report, body: &str) -> String {
    let digest = Sha256::digest(format!("{}\u{0}{body}", report.commit));
    super::list::hex(&digest)
}

fn annotation(command: &str, item: &Item<'_>) -> String {
    let mut properties = Vec::new();
    if let Some(path) = item.path {
        properties.push(format!("file={}", property(path)));
        properties.extend(item.line.map(|line| format!("line={line}")));
        properties.extend(item.column.map(|column| format!("col={column}")));
    }
    properties.push(format!(
        "title={}",
        property(&format!("{} {}", item.gate, item.code))
    ));
    let help = if item.help.is_empty() {
        String::new()
    } else {
        format!("\nHelp: {}", shown(item.help))
    };
    format!(
        "::{command} {}::{}\n",
        properties.join(","),
        data(&format!("{}{help}", shown(item.message)))
    )
}

/// Escapes of a command's message; our own line break stays one.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(&shown(text)).replace(':', "%3A").replace(',', "%2C")
}

/// Text in a Markdown table or list: no markup, no HTML, no mention, one line.
fn markdown(text: &str) -> String {
    let mut out = String::new();
    for c in escape_html(text).chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '(' | ')' => {
                out.push('\\');
                out.push(c);
            }
            '@' => out.push_str("&#64;"),
            ':' => out.push_str("&#58;"),
            c => out.push(c),
        }
    }
    out
}

pub(super) fn summary(report: &Report) -> String {
    let mut out = format!(
        "## Airlock: {}\n\n{} `{}` on `{}`\n\n| gate | finding | |\n|---|---|---|\n",
        verdict_word(report.verdict()),
        markdown(&report.repository),
        text::abbreviated(&report.commit).replace('`', ""),
        text::abbreviated(&report.base).replace('`', ""),
    );
    for run in &report.judgement.gates {
        let row = format!(
            "| {} | {} {} | {} |\n",
            run.gate,
            text::mark(run.finding),
            finding_word(run.finding),
            markdown(&text::summary(run))
        );
        out.push_str(&row);
    }
    let mut items: Vec<Item<'_>> = report
        .items()
        .filter(|item| item.level > Level::Info)
        .collect();
    items.sort_by_key(|item| std::cmp::Reverse(item.level));
    let mut rows: Vec<String> = Vec::new();
    if !items.is_empty() {
        rows.push("\n### Findings\n\n".to_owned());
    }
    rows.extend(items.iter().map(bullet));
    rows.extend(claims(report));
    for (at, row) in rows.iter().enumerate() {
        if out.len() + row.len() > LARGEST {
            return format!("{out}\nand {} more lines\n", rows.len() - at);
        }
        out.push_str(row);
    }
    out
}

fn bullet(item: &Item<'_>) -> String {
    let word = match item.level {
        Level::Fail => "**fail**",
        Level::CouldNotCheck => "**could not check**",
        Level::Warn | Level::Info => "warn",
    };
    let help = if item.help.is_empty() {
        String::new()
    } else {
        format!("<br>{}", markdown(item.help))
    };
    let message = cut(item.message, 2000);
    format!(
        "- {word} {} {}: {}{help}\n",
        markdown(&place(item)),
        markdown(item.code),
        markdown(&message)
    )
}

fn claims(report: &Report) -> Vec<String> {
    if report.judgement.claims.is_empty() {
        return Vec::new();
    }
    let mut rows = vec![
        "\n### Claims and measures\n\n| claimed | measured | file | |\n|---|---|---|---|\n"
            .to_owned(),
    ];
    rows.extend(report.judgement.claims.iter().map(|claim| {
        format!(
            "| {} | {} | {} | {} |\n",
            markdown(&text::claim_value(
                claim.kind,
                claim.comparison,
                &claim.claimed
            )),
            markdown(&text::measured(claim)),
            markdown(claim.path.as_deref().unwrap_or("")),
            text::claim_word(claim.verdict),
        )
    }));
    rows
}
