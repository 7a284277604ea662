//! The stub gate: added or changed Python and JSON parse, and the Python does something.
//! It judges blobs only, looks at nothing the delivery did not touch, and lets no file pass that it could not read.

mod each;
mod elision;
mod gutted;
pub(crate) mod json;
mod marks;
mod names;
mod python;
#[cfg(test)]
mod tests;
mod whole;

use crate::{Change, ChangeKind, Delivery, Gate, GateRun, Reason, Source};

use names::Kind;

pub(crate) fn judge(delivery: &Delivery, source: &mut dyn Source) -> GateRun {
    let mut reasons = Vec::new();
    let mut judged = 0_usize;
    for change in &delivery.changes {
        let Some((kind, blob)) = subject(change) else {
            continue;
        };
        judged += 1;
        if let Some(skip) = delivery.profile.skip_of(&change.path) {
            let message = format!("not judged: `{}` is skipped by {}", skip.glob, skip.set_by);
            reasons.push(Reason::info("skipped", message).at(&change.path));
        } else if names::is_template(&change.path) {
            reasons.push(template(&change.path));
        } else if blob.bytes > delivery.profile.max_file_bytes {
            reasons.push(too_large(
                change,
                kind,
                blob.bytes,
                delivery.profile.max_file_bytes,
            ));
        } else {
            reasons.extend(judge_file(delivery, change, kind, source));
        }
    }
    if judged == 0 {
        return GateRun::not_applicable(Gate::Stub, "no Python or JSON file was added or changed");
    }
    GateRun::of(Gate::Stub, reasons)
}

/// The kind and blob of a change that this gate judges.
fn subject(change: &Change) -> Option<(Kind, &crate::Blob)> {
    let kind = names::kind_of(&change.path)?;
    let blob = change.new.as_ref().filter(|blob| blob.is_file())?;
    let new_content = match change.kind {
        ChangeKind::Added | ChangeKind::Modified => true,
        ChangeKind::Deleted | ChangeKind::Mode => false,
        // The bytes are old; a new suffix makes them a new claim.
        ChangeKind::Renamed => change.from.as_deref().and_then(names::kind_of) != Some(kind),
    };
    new_content.then_some((kind, blob))
}

fn judge_file(
    delivery: &Delivery,
    change: &Change,
    kind: Kind,
    source: &mut dyn Source,
) -> Vec<Reason> {
    let path = change.path.as_str();
    let Some(bytes) = change.new.as_ref().and_then(|blob| source.blob(&blob.oid)) else {
        return vec![unreadable(path, "the delivered file")];
    };
    match kind {
        Kind::Json => json::judge(path, &bytes, delivery.profile.python),
        Kind::Python => {
            let old = change.old.as_ref().filter(|blob| blob.is_file());
            let base = match old {
                None => None,
                Some(blob) if blob.bytes > delivery.profile.max_file_bytes => None,
                Some(blob) => match source.blob(&blob.oid) {
                    Some(base) => Some(base),
                    None => return vec![unreadable(path, "the file in the base")],
                },
            };
            python::judge(path, &bytes, base.as_deref(), delivery.profile.python)
        }
    }
}

fn template(path: &str) -> Reason {
    Reason::warn("template", "is a template: not judged until it is rendered").at(path)
}

fn unreadable(path: &str, what: &str) -> Reason {
    Reason::unchecked(
        "unreadable",
        format!("the bytes of {what} could not be had"),
    )
    .at(path)
    .help("check the object database with `git fsck`")
}

fn too_large(change: &Change, kind: Kind, bytes: u64, limit: u64) -> Reason {
    let code = match kind {
        Kind::Python => "py.unjudgeable",
        Kind::Json => "json.unjudgeable",
    };
    Reason::fail(
        code,
        format!("has {bytes} bytes; files over {limit} bytes are not judged"),
    )
    .at(&change.path)
    .help("deliver it in smaller files, or skip the path in the configuration of the base")
}
