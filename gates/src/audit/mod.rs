//! The audit gate: what was delivered, measured from the blobs, beside what the note claims.
//! A claim is accused only of what the engine measured itself; everything else stays unverified.

mod check;
mod claims;
mod language;
mod measure;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::{
    Blob, ChangeKind, ClaimCheck, Delivery, FileFacts, Gate, GateRun, Measure, Reason, Source,
};

pub(crate) use claims::Claim;

/// The gate's result with its measures.
pub(crate) struct Audit {
    pub(crate) run: GateRun,
    pub(crate) files: Vec<FileFacts>,
    pub(crate) claims: Vec<ClaimCheck>,
}

pub(crate) fn judge(delivery: &Delivery, source: &mut dyn Source) -> Audit {
    let mut reasons = Vec::new();
    let mut files = Vec::new();
    let mut digests = HashMap::new();
    for change in &delivery.changes {
        let mut side = |blob: Option<&Blob>, path: &str, delivered: bool| {
            let blob = blob?;
            let (measure, digest) = match measure::side(blob, path, &delivery.profile, source) {
                Ok(measured) => measured,
                Err(reason) => {
                    reasons.push(reason.at(path));
                    (measure::unmeasured(blob), None)
                }
            };
            if delivered && let Some(digest) = digest {
                digests.insert(change.path.clone(), digest);
            }
            Some(measure)
        };
        let now = side(change.new.as_ref(), &change.path, true);
        let same = change.old.as_ref().map(|b| &b.oid) == change.new.as_ref().map(|b| &b.oid);
        let before = match (&now, change.kind) {
            (_, ChangeKind::Added) => None,
            (Some(now), _) if same => Some(now.clone()),
            _ => side(
                change.old.as_ref(),
                change.from.as_deref().unwrap_or(&change.path),
                false,
            ),
        };
        files.push(FileFacts {
            path: change.path.clone(),
            change: change.kind,
            from: change.from.clone(),
            now: now.unwrap_or_else(absent),
            before,
        });
    }
    let found = delivery
        .note
        .as_deref()
        .map(claims::read)
        .unwrap_or_default();
    let (claims, said) = check::all(&found, delivery, &files, &digests, source);
    reasons.extend(said);
    Audit {
        run: GateRun::of(Gate::Audit, reasons),
        files,
        claims,
    }
}

/// A deleted file: nothing there.
fn absent() -> Measure {
    Measure {
        language: "none".to_owned(),
        mode: "000000".to_owned(),
        ..Measure::default()
    }
}

/// Facts without judging claims, for when the gate is switched off: the record always has them.
pub(crate) fn facts(delivery: &Delivery, source: &mut dyn Source) -> Vec<FileFacts> {
    judge(
        &Delivery {
            note: None,
            ..delivery.clone()
        },
        source,
    )
    .files
}

/// A reason for a blob that cannot be had.
fn unreadable() -> Reason {
    Reason::unchecked(
        "unreadable",
        "the bytes of the file could not be had, so it was not measured",
    )
    .help("check the object database with `git fsck`")
}
