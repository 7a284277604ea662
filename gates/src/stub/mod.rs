//! The stub gate: added or changed Python and JSON parse, and the Python does something.
//! It judges blobs only, looks at nothing the delivery did not touch, and lets no file pass that it could not read.

mod each;
mod elision;
mod gutted;
pub(crate) mod json;
mod link;
mod marks;
mod names;
mod python;
#[cfg(test)]
mod tests;
mod whole;

use crate::{Blob, Change, ChangeKind, Delivery, Gate, GateRun, MODE_LINK, Reason, Source};

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
            let limit = delivery.profile.max_file_bytes;
            reasons.push(too_large(&change.path, kind, blob.bytes, limit));
        } else {
            reasons.extend(judge_file(delivery, change, (kind, blob), source));
        }
    }
    if judged == 0 {
        return GateRun::not_applicable(Gate::Stub, "no Python or JSON file was added or changed");
    }
    GateRun::of(Gate::Stub, reasons)
}

/// The kind and blob of a change that this gate judges.
fn subject(change: &Change) -> Option<(Kind, &Blob)> {
    let kind = names::kind_of(&change.path)?;
    let judged = |blob: &&Blob| blob.is_file() || blob.mode == MODE_LINK;
    let blob = change.new.as_ref().filter(judged)?;
    let new_content = match change.kind {
        ChangeKind::Added | ChangeKind::Modified => true,
        ChangeKind::Deleted => false,
        // The text of a link became the content of a file, or the other way round.
        ChangeKind::Mode => change
            .old
            .as_ref()
            .is_some_and(|old| old.is_file() != blob.is_file()),
        // The bytes are old; a new suffix makes them a new claim.
        ChangeKind::Renamed => change.from.as_deref().and_then(names::kind_of) != Some(kind),
    };
    new_content.then_some((kind, blob))
}

fn judge_file(
    delivery: &Delivery,
    change: &Change,
    (kind, blob): (Kind, &Blob),
    source: &mut dyn Source,
) -> Vec<Reason> {
    let path = change.path.as_str();
    if blob.mode == MODE_LINK {
        return judge_link(delivery, (path, kind), blob, source);
    }
    let Some(bytes) = source.blob(&blob.oid) else {
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

/// A link is judged by what it leads to, unless that is judged under a name of the same kind.
fn judge_link(
    delivery: &Delivery,
    (path, kind): (&str, Kind),
    link: &Blob,
    source: &mut dyn Source,
) -> Vec<Reason> {
    let (target, oid) = match link::follow(path, &link.oid, source) {
        link::Target::File(target, oid) => (target, oid),
        link::Target::Nowhere(named) => return vec![leads_nowhere(path, &named)],
        link::Target::Unreadable => return vec![unreadable(path, "the delivered link")],
    };
    if names::kind_of(&target) == Some(kind) && delivery.profile.skip_of(&target).is_none() {
        return Vec::new();
    }
    let Some(bytes) = source.blob(&oid) else {
        return vec![unreadable(path, "the file that the link leads to")];
    };
    if bytes.len() as u64 > delivery.profile.max_file_bytes {
        let limit = delivery.profile.max_file_bytes;
        return vec![too_large(path, kind, bytes.len() as u64, limit)];
    }
    match kind {
        Kind::Json => json::judge(path, &bytes, delivery.profile.python),
        Kind::Python => python::judge(path, &bytes, None, delivery.profile.python),
    }
}

fn leads_nowhere(path: &str, named: &str) -> Reason {
    Reason::fail(
        "link.nowhere",
        format!("is a link to {named:?}, which is no file of the delivery"),
    )
    .at(path)
    .help("deliver the file itself, or a relative link to a file of the repository")
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

fn too_large(path: &str, kind: Kind, bytes: u64, limit: u64) -> Reason {
    let code = match kind {
        Kind::Python => "py.unjudgeable",
        Kind::Json => "json.unjudgeable",
    };
    Reason::fail(
        code,
        format!("has {bytes} bytes; files over {limit} bytes are not judged"),
    )
    .at(path)
    .help("deliver it in smaller files, or skip the path in the configuration of the base")
}
