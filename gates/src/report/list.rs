//! The one list that every format is written from.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::text::Plain;
use super::{github, gitlab, html, json, junit, sarif, text};
use crate::{Delivery, Finding, Gate, Judgement, Level, Verdict};

/// A judged commit, ready to be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Short name of the repository.
    pub repository: String,
    /// Commit that it was compared with.
    pub base: String,
    /// The judged commit.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// What is known of the task; `None` when a commit was judged without one.
    pub task: Option<TaskFacts>,
    /// What the gates say.
    pub judgement: Judgement,
}

/// What a report says about the task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFacts {
    /// The task's id.
    pub task: String,
    /// The run's id.
    pub run: Option<String>,
    /// One line about what was asked for or done.
    pub summary: Option<String>,
    /// Isolation mode and, when so, that it was unconfined.
    pub isolation: Option<String>,
    /// The agent's name and how it ended.
    pub agent: Option<String>,
    /// Gates that a person overrode: gate, reason, name.
    pub overrides: Vec<(Gate, String, String)>,
    /// Digest of the signed statement.
    pub digest: Option<String>,
}

/// One reason with its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Which gate says it.
    pub gate: Gate,
    /// Its weight.
    pub level: Level,
    /// The file in its shown form.
    pub path: Option<&'a str>,
    /// Line from 1.
    pub line: Option<u32>,
    /// Column from 1.
    pub column: Option<u32>,
    /// Stable code.
    pub code: &'a str,
    /// What was found: an agent's words may be in it.
    pub message: &'a str,
    /// What to do; may be empty.
    pub help: &'a str,
}

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// For a terminal, without colours.
    Text,
    /// One object, as DESIGN.md has it.
    Json,
    /// SARIF 2.1.0.
    Sarif,
    /// `JUnit` XML.
    Junit,
    /// GitHub workflow commands.
    Github,
    /// GitLab code quality JSON.
    Gitlab,
    /// One page.
    Html,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 7] = [
        Self::Text,
        Self::Json,
        Self::Sarif,
        Self::Junit,
        Self::Github,
        Self::Gitlab,
        Self::Html,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Sarif => "sarif",
            Self::Junit => "junit",
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Html => "html",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No format has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no report format is called `{name}`; there are text, json, sarif, junit, github, gitlab, html"
)]
pub struct UnknownFormat {
    /// What was given.
    pub name: String,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat {
            name: name.to_owned(),
        })
    }
}

impl Report {
    /// The report of a judged delivery.
    #[must_use]
    pub fn of(delivery: &Delivery, judgement: &Judgement) -> Self {
        let task = delivery.task.clone().map(|task| TaskFacts {
            task,
            run: delivery.run.clone(),
            ..TaskFacts::default()
        });
        Self {
            repository: delivery.repository.clone(),
            base: delivery.base.clone(),
            commit: delivery.commit.clone(),
            tree: delivery.tree.clone(),
            task,
            judgement: judgement.clone(),
        }
    }

    /// All reasons, gate by gate.
    pub fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.judgement.gates.iter().flat_map(|run| {
            run.reasons.iter().map(|reason| Item {
                gate: run.gate,
                level: reason.level,
                path: reason.path.as_deref(),
                line: reason.line,
                column: reason.column,
                code: &reason.code,
                message: &reason.message,
                help: &reason.help,
            })
        })
    }

    /// The verdict over all gates.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.judgement.verdict()
    }

    /// Writes the report in a format; ends with a line break.
    #[must_use]
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Text => self.text(&Plain),
            Format::Json => json::write(self),
            Format::Sarif => sarif::write(self),
            Format::Junit => junit::write(self),
            Format::Github => github::write(self),
            Format::Gitlab => gitlab::write(self),
            Format::Html => html::write(self),
        }
    }

    /// The report for a terminal; `style` paints.
    #[must_use]
    pub fn text(&self, style: &dyn text::Style) -> String {
        text::write(self, style)
    }

    /// The report as a JSON value.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        json::value(self)
    }

    /// Markdown for a GitHub step summary or a merge request; below 1 MiB.
    #[must_use]
    pub fn summary_markdown(&self) -> String {
        github::summary(self)
    }
}

/// The words for a verdict.
pub(super) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted => "accepted",
        Verdict::Rejected => "rejected",
        Verdict::CouldNotCheck => "could not check",
    }
}

/// The words for a finding.
pub(super) fn finding_word(finding: Finding) -> &'static str {
    match finding {
        Finding::Pass => "pass",
        Finding::Warn => "warn",
        Finding::Fail => "fail",
        Finding::NotApplicable => "not applicable",
        Finding::CouldNotCheck => "could not check",
    }
}

/// `path:line:column`, made inert; empty when the item is about the delivery as a whole.
pub(super) fn place(item: &Item<'_>) -> String {
    let mut place = item.path.map(super::shown).unwrap_or_default();
    if let (false, Some(line)) = (place.is_empty(), item.line) {
        place = format!("{place}:{line}");
        if let Some(column) = item.column {
            place = format!("{place}:{column}");
        }
    }
    place
}

/// The same for a finding in whatever line it stands: hash of gate, code, path, and message without its numbers.
/// `seen` tells equal ones apart by their order.
pub(super) fn fingerprint(
    item: &Item<'_>,
    seen: &mut std::collections::HashMap<String, usize>,
) -> String {
    use sha2::{Digest as _, Sha256};
    let message: String = item
        .message
        .chars()
        .filter(|c| !c.is_ascii_digit())
        .collect();
    let parts = [
        item.gate.name(),
        item.code,
        item.path.unwrap_or(""),
        &message,
    ];
    let key = parts.join("\u{0}");
    let count = seen.entry(key.clone()).or_default();
    *count += 1;
    let digest = Sha256::digest(format!("{key}\u{0}{count}"));
    hex(digest.get(..20).unwrap_or_default())
}

/// Bytes as lower-case hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    let digits = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.collect()
}
