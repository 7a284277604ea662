//! Claims beside measures: agrees, differs, or unverified, and what a difference does to the delivery.
//! A reading under which the claim is true is always taken; only what no reading bears out is accused.

use std::collections::HashMap;

use super::claims::About;
use super::{Claim, language, measure};
use crate::commit::short;
use crate::{
    Blob, ChangeKind, ClaimCheck, ClaimKind, ClaimValue, ClaimVerdict, Comparison, Delivery,
    FileFacts, Measure, Reason, Source, TreeEntry,
};

/// All claims with their verdicts, and the reasons that follow.
pub(super) fn all(
    found: &[Claim],
    delivery: &Delivery,
    files: &[FileFacts],
    digests: &HashMap<String, String>,
    source: &mut dyn Source,
) -> (Vec<ClaimCheck>, Vec<Reason>) {
    let mut checker = Checker {
        delivery,
        files,
        digests,
        tree: None,
        known: HashMap::new(),
        source,
    };
    let mut checks = Vec::new();
    let mut reasons = Vec::new();
    for claim in found {
        let outcome = checker.check(claim);
        if outcome.verdict == ClaimVerdict::Differs {
            reasons.push(reason(claim, &outcome));
        }
        checks.push(ClaimCheck {
            text: claim.text.clone(),
            line: claim.line,
            kind: claim.kind,
            path: claim.path.clone(),
            comparison: claim.comparison,
            claimed: claim.value.clone(),
            measured: outcome.measured,
            verdict: outcome.verdict,
        });
    }
    (checks, reasons)
}

struct Outcome {
    verdict: ClaimVerdict,
    measured: Option<ClaimValue>,
    /// Wrong enough to refuse.
    refuses: bool,
    missing: bool,
}

impl Outcome {
    fn unverified() -> Self {
        Self {
            verdict: ClaimVerdict::Unverified,
            measured: None,
            refuses: false,
            missing: false,
        }
    }

    fn agrees(measured: ClaimValue) -> Self {
        Self {
            verdict: ClaimVerdict::Agrees,
            measured: Some(measured),
            ..Self::unverified()
        }
    }

    fn differs(measured: Option<ClaimValue>, refuses: bool) -> Self {
        Self {
            verdict: ClaimVerdict::Differs,
            measured,
            refuses,
            missing: false,
        }
    }
}

struct Checker<'a> {
    delivery: &'a Delivery,
    files: &'a [FileFacts],
    digests: &'a HashMap<String, String>,
    tree: Option<Vec<TreeEntry>>,
    known: HashMap<String, Option<Measure>>,
    source: &'a mut dyn Source,
}

impl Checker<'_> {
    fn check(&mut self, claim: &Claim) -> Outcome {
        match claim.kind {
            ClaimKind::Chars
            | ClaimKind::Bytes
            | ClaimKind::Lines
            | ClaimKind::Words
            | ClaimKind::CjkWords
            | ClaimKind::Functions => self.size(claim),
            ClaimKind::Files => self.file_count(claim),
            ClaimKind::Images => self.image_count(claim),
            ClaimKind::Insertions | ClaimKind::Deletions => self.diff_lines(claim),
            ClaimKind::Commit => self.commit(claim),
            ClaimKind::Sha256 => self.digest(claim),
            // Only a run of the engine's own could bear these out.
            ClaimKind::TestsPassed
            | ClaimKind::TestsFailed
            | ClaimKind::TestsSkipped
            | ClaimKind::TestsTotal
            | ClaimKind::TestsRun
            | ClaimKind::CoveragePct => Outcome::unverified(),
        }
    }

    fn size(&mut self, claim: &Claim) -> Outcome {
        match &claim.path {
            Some(path) => match self.measure_of(path) {
                Found::Measured(measure) => compare(claim, &readings(claim.kind, &measure)),
                Found::Unreadable => Outcome::unverified(),
                Found::Nowhere => Outcome {
                    missing: true,
                    ..Outcome::differs(None, false)
                },
            },
            None => self.total(claim),
        }
    }

    /// A size without a file: any one file or their sum may be meant.
    fn total(&self, claim: &Claim) -> Outcome {
        let present: Vec<&Measure> = self
            .files
            .iter()
            .filter(|file| file.now.blob.is_some())
            .map(|file| &file.now)
            .collect();
        if present.is_empty() || present.iter().any(|measure| measure.language == "not read") {
            return Outcome::unverified();
        }
        let mut sum = 0_u64;
        for measure in &present {
            let values = readings(claim.kind, measure);
            let outcome = compare(claim, &values);
            if outcome.verdict == ClaimVerdict::Agrees {
                return outcome;
            }
            sum = sum.saturating_add(values.first().copied().unwrap_or(0));
        }
        let outcome = compare(claim, &[sum]);
        // Less than everything may be true of a part that the note does not name.
        let possible_part = number(&claim.value) < as_float(sum) && present.len() > 1;
        if outcome.verdict == ClaimVerdict::Differs && possible_part {
            return Outcome::unverified();
        }
        outcome
    }

    fn file_count(&self, claim: &Claim) -> Outcome {
        let count = |kinds: &[ChangeKind]| {
            let found = self
                .files
                .iter()
                .filter(|file| kinds.contains(&file.change))
                .count();
            u64::try_from(found).unwrap_or(u64::MAX)
        };
        let total = u64::try_from(self.files.len()).unwrap_or(u64::MAX);
        let own = match claim.about {
            About::Added => count(&[ChangeKind::Added]),
            About::Modified => {
                count(&[ChangeKind::Modified, ChangeKind::Renamed, ChangeKind::Mode])
            }
            About::Deleted => count(&[ChangeKind::Deleted]),
            About::Own => total,
            About::Unsaid => return Outcome::unverified(),
        };
        let outcome = compare(claim, &[own, total]);
        if outcome.verdict == ClaimVerdict::Differs {
            return Outcome::differs(outcome.measured, true);
        }
        outcome
    }

    fn image_count(&self, claim: &Claim) -> Outcome {
        let added = self
            .files
            .iter()
            .filter(|file| file.now.blob.is_some() && language::is_image(&file.path))
            .count();
        let outcome = compare(claim, &[u64::try_from(added).unwrap_or(u64::MAX)]);
        // A document may show pictures that were there before.
        if outcome.verdict == ClaimVerdict::Differs && claim.about != About::Added {
            return Outcome::unverified();
        }
        outcome
    }

    /// Exact only when every file is new or gone; a modified file would need the diff.
    fn diff_lines(&self, claim: &Claim) -> Outcome {
        let whole =
            |file: &FileFacts| matches!(file.change, ChangeKind::Added | ChangeKind::Deleted);
        if self.files.is_empty() || !self.files.iter().all(whole) {
            return Outcome::unverified();
        }
        let sum = if claim.kind == ClaimKind::Insertions {
            self.files.iter().map(|file| file.now.lines).sum()
        } else {
            let old = self.files.iter().filter_map(|file| file.before.as_ref());
            old.map(|old| old.lines).sum()
        };
        compare(claim, &[sum])
    }

    fn commit(&self, claim: &Claim) -> Outcome {
        let ClaimValue::Text(hash) = &claim.value else {
            return Outcome::unverified();
        };
        let agent = self.delivery.agent.commits.iter().map(|commit| &commit.oid);
        let known = [&self.delivery.commit, &self.delivery.base]
            .into_iter()
            .chain(agent)
            .find(|oid| oid.starts_with(hash.as_str()));
        match known {
            Some(oid) => Outcome::agrees(ClaimValue::Text(oid.clone())),
            None if claim.about != About::Own || self.delivery.agent.unreadable.is_some() => {
                Outcome::unverified()
            }
            None => Outcome::differs(Some(ClaimValue::Text(self.delivery.commit.clone())), true),
        }
    }

    fn digest(&self, claim: &Claim) -> Outcome {
        let ClaimValue::Text(hash) = &claim.value else {
            return Outcome::unverified();
        };
        if self.digests.values().any(|digest| digest == hash) {
            return Outcome::agrees(claim.value.clone());
        }
        // A digest may be of something that is not delivered.
        Outcome::unverified()
    }

    /// The measure of a file that the note names: changed, or anywhere in the tree.
    fn measure_of(&mut self, path: &str) -> Found {
        let wanted = path.trim_start_matches("./");
        let ends = |known: &str| known == wanted || known.ends_with(&format!("/{wanted}"));
        let changed: Vec<&FileFacts> = self.files.iter().filter(|file| ends(&file.path)).collect();
        let exact = changed.iter().find(|file| file.path == wanted);
        if let Some(file) = exact.or(changed.first()) {
            return match (file.now.language.as_str(), &file.now.blob) {
                ("not read", _) => Found::Unreadable,
                (_, Some(_)) => Found::Measured(file.now.clone()),
                (_, None) => file.before.clone().map_or(Found::Nowhere, Found::Measured),
            };
        }
        if let Some(known) = self.known.get(wanted) {
            return known.clone().map_or(Found::Unreadable, Found::Measured);
        }
        let source = &mut *self.source;
        let tree = self.tree.get_or_insert_with(|| source.entries());
        let entry = tree
            .iter()
            .find(|entry| entry.path == wanted)
            .or_else(|| tree.iter().find(|entry| ends(&entry.path)));
        let Some(entry) = entry else {
            // Without a listing nothing can be said to be missing.
            return if tree.is_empty() {
                Found::Unreadable
            } else {
                Found::Nowhere
            };
        };
        let blob = Blob {
            oid: entry.oid.clone(),
            mode: entry.mode,
            bytes: 0,
        };
        let measure = measure::side(&blob, &entry.path, &self.delivery.profile, source)
            .ok()
            .map(|(measure, _)| measure);
        self.known.insert(wanted.to_owned(), measure.clone());
        measure.map_or(Found::Unreadable, Found::Measured)
    }
}

enum Found {
    Measured(Measure),
    Unreadable,
    Nowhere,
}

/// The values that a claim of this kind may mean, the usual one first.
fn readings(kind: ClaimKind, measure: &Measure) -> Vec<u64> {
    match kind {
        ClaimKind::Chars => vec![measure.chars],
        ClaimKind::Bytes => vec![measure.bytes],
        ClaimKind::Lines => vec![measure.lines],
        ClaimKind::Words => vec![measure.words],
        // 字 is counted with and without punctuation.
        ClaimKind::CjkWords => vec![measure.words, measure.cjk, measure.chars],
        ClaimKind::Functions => measure.functions.into_iter().collect(),
        ClaimKind::Files
        | ClaimKind::Images
        | ClaimKind::Insertions
        | ClaimKind::Deletions
        | ClaimKind::TestsPassed
        | ClaimKind::TestsFailed
        | ClaimKind::TestsSkipped
        | ClaimKind::TestsTotal
        | ClaimKind::TestsRun
        | ClaimKind::CoveragePct
        | ClaimKind::Commit
        | ClaimKind::Sha256 => Vec::new(),
    }
}

fn number(value: &ClaimValue) -> f64 {
    match value {
        ClaimValue::Count(count) => as_float(*count),
        ClaimValue::Decimal(decimal) => *decimal,
        ClaimValue::Flag(_) | ClaimValue::Text(_) => 0.0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^53")]
fn as_float(count: u64) -> f64 {
    count as f64
}

fn compare(claim: &Claim, measured: &[u64]) -> Outcome {
    let Some(&usual) = measured.first() else {
        return Outcome::unverified();
    };
    if let Some(&value) = measured
        .iter()
        .find(|&&value| holds(claim, as_float(value)))
    {
        return Outcome::agrees(ClaimValue::Count(value));
    }
    let claimed = number(&claim.value);
    let nearest = measured
        .iter()
        .copied()
        .min_by(|a, b| {
            (as_float(*a) - claimed)
                .abs()
                .total_cmp(&(as_float(*b) - claimed).abs())
        })
        .unwrap_or(usual);
    let found = as_float(nearest);
    // A line or two is how counting differs, whatever the ratio.
    let far = claimed.max(found) > 2.0 * claimed.min(found) && (claimed - found).abs() > 2.0;
    Outcome::differs(Some(ClaimValue::Count(nearest)), far)
}

fn holds(claim: &Claim, measured: f64) -> bool {
    let claimed = number(&claim.value);
    match claim.comparison {
        Comparison::Eq => (claimed - measured).abs() < 0.5,
        Comparison::Ge => measured >= claimed - claim.slack,
        Comparison::Le => measured <= claimed + claim.slack,
        Comparison::Approx => {
            let binary = claimed * 1.024_f64.powi(if claimed >= 1e6 { 2 } else { 1 });
            let rounded = claim.slack > 0.0
                && claim.kind == ClaimKind::Bytes
                && (binary - measured).abs() <= claim.slack * 1.1;
            (claimed - measured).abs() <= (claimed * 0.1).max(claim.slack) || rounded
        }
    }
}

fn reason(claim: &Claim, outcome: &Outcome) -> Reason {
    let kind = words(claim.kind);
    let claimed = shown(&claim.value);
    let message = match (&outcome.measured, claim.kind) {
        _ if outcome.missing => {
            format!(
                "the note claims {claimed} {kind} of a file that is not in the delivery: `{}`",
                claim.text
            )
        }
        (Some(ClaimValue::Text(commit)), ClaimKind::Commit) => format!(
            "the note claims commit {claimed}, which is neither the delivered commit {} nor one of the agent's: `{}`",
            short(commit),
            claim.text
        ),
        (Some(measured), _) => {
            let share = 100.0 * number(measured) / number(&claim.value).max(1.0);
            let bound = match claim.comparison {
                Comparison::Eq => "",
                Comparison::Approx => "about ",
                Comparison::Ge => "at least ",
                Comparison::Le => "at most ",
            };
            format!(
                "the note claims {bound}{claimed} {kind}, measured {} ({share:.0}%): `{}`",
                shown(measured),
                claim.text
            )
        }
        (None, _) => format!("the note claims {claimed} {kind}: `{}`", claim.text),
    };
    let code = if outcome.missing {
        "claim.no-file"
    } else if claim.kind == ClaimKind::Commit {
        "claim.commit"
    } else if claim.kind == ClaimKind::Files {
        "claim.files"
    } else {
        "claim.size"
    };
    let reason = if outcome.refuses {
        Reason::fail(code, message)
    } else {
        Reason::warn(code, message)
    };
    let reason =
        reason.help("deliver what the note says, or correct the note to what was delivered");
    match &claim.path {
        Some(path) => reason.at(path),
        None => reason,
    }
}

fn shown(value: &ClaimValue) -> String {
    match value {
        ClaimValue::Flag(flag) => flag.to_string(),
        ClaimValue::Decimal(decimal) => decimal.to_string(),
        ClaimValue::Text(text) => text.clone(),
        ClaimValue::Count(count) => grouped(*count),
    }
}

/// `17,141`
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn words(kind: ClaimKind) -> &'static str {
    match kind {
        ClaimKind::Chars => "characters",
        ClaimKind::Bytes => "bytes",
        ClaimKind::Lines => "lines",
        ClaimKind::Words | ClaimKind::CjkWords => "words",
        ClaimKind::Files => "files",
        ClaimKind::Functions => "functions",
        ClaimKind::Images => "images",
        ClaimKind::Insertions => "insertions",
        ClaimKind::Deletions => "deletions",
        ClaimKind::TestsPassed => "passed tests",
        ClaimKind::TestsFailed => "failed tests",
        ClaimKind::TestsSkipped => "skipped tests",
        ClaimKind::TestsTotal => "tests",
        ClaimKind::TestsRun => "test run",
        ClaimKind::CoveragePct => "per cent coverage",
        ClaimKind::Commit => "commit",
        ClaimKind::Sha256 => "digest",
    }
}
