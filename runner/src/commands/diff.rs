//! `diff`: the base against the delivery, from objects alone. Runs no program and no filter; a tree
//! that was not sealed yet has no delivery, and is not read here.

use serde_json::{Value, json};
use worktrees::{ChangeKind, FileChange, Oid, Repository, shown};

use crate::cli::Globals;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::place::Place;
use crate::reporter::{Console, Paint, Tone, words};
use crate::view::TaskView;

/// Print the difference between the base and the delivery.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  airlock diff 4f2k
  airlock diff 4f2k --stat
  airlock diff 4f2k --name-only -z | xargs -0 ls -l
  airlock diff 4f2k | git apply --check        piped, it is the exact patch")]
pub struct Args {
    /// The task, or the start of its id.
    task: String,
    /// Only how many lines of each file.
    #[arg(long, conflicts_with = "name_only")]
    stat: bool,
    /// Only the paths.
    #[arg(long)]
    name_only: bool,
    /// End each path with a NUL, and print it as it is.
    #[arg(short = 'z', requires = "name_only")]
    zero: bool,
}

/// Prints it.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let Args {
        task,
        stat,
        name_only,
        zero,
    } = args;
    let place = Place::find(globals)?;
    let view = place.task(&task)?;
    let Some(head) = delivery(&view, console)? else {
        if console.is_json() {
            console.json(&object(&view, None, &[], &[]));
        }
        return Ok(Exit::Ok);
    };
    let repository = &place.repository;
    let base = oid(&view.spec.base)?;
    let changes = repository.changes(base, head).or_fail(Exit::Internal)?;
    if name_only && !console.is_json() {
        names(console, &changes, zero);
        return Ok(Exit::Ok);
    }
    let patch = patch(repository, base, head)?;
    let counts = line_counts(&patch);
    if console.is_json() {
        let mut object = object(&view, Some(head), &changes, &counts);
        if !stat && !name_only {
            object["patch"] = Value::from(String::from_utf8_lossy(&patch));
        }
        console.json(&object);
    } else if stat {
        print_stat(console, &changes, &counts);
    } else if console.is_terminal() {
        console.agent_text(coloured(&patch, console.paint()).as_bytes());
    } else {
        console.agent_bytes(&patch);
    }
    Ok(Exit::Ok)
}

/// The sealed commit; none when the delivery is empty.
fn delivery(view: &TaskView, console: &Console) -> Result<Option<Oid>, Failure> {
    let id = &view.spec.task;
    match &view.seal {
        Some(seal) => {
            if seal.commit.is_none() {
                console.talk(&format!(
                    "task {id} delivered nothing: its tree is that of the base"
                ));
            }
            seal.commit.as_deref().map(oid).transpose()
        }
        None => Err(Failure::new(
            Exit::NotFound,
            format!("task {id} is {} and has no delivery yet", view.stage),
        )
        .advise(format!(
            "`airlock deliver {id}` seals and judges what is in its tree once the agent has stopped"
        ))),
    }
}

fn oid(text: &str) -> Result<Oid, Failure> {
    text.parse::<Oid>().or_fail(Exit::Internal)
}

fn patch(repository: &Repository, base: Oid, head: Oid) -> Result<Vec<u8>, Failure> {
    repository.patch(base, head).or_fail(Exit::Internal)
}

fn names(console: &Console, changes: &[FileChange], zero: bool) {
    if zero {
        let names: Vec<u8> = changes
            .iter()
            .flat_map(|change| [change.path.as_slice(), b"\0"].concat())
            .collect();
        console.raw(&names);
    } else {
        let names: String = changes
            .iter()
            .map(|change| shown(&change.path) + "\n")
            .collect();
        console.agent_text(names.as_bytes());
    }
}

/// Lines added and removed in a file; none where it is binary or only its mode or name changed.
type Lines = Option<(u64, u64)>;

/// Counts per file, in the order of the patch, which is that of the changes.
fn line_counts(patch: &[u8]) -> Vec<Lines> {
    let mut counts: Vec<Lines> = Vec::new();
    let mut in_hunk = false;
    for line in patch.split(|byte| *byte == b'\n') {
        // Within a hunk every line has a sign before it, so that content cannot pass for a header.
        if line.starts_with(b"diff --git ") {
            counts.push(None);
            in_hunk = false;
        } else if line.starts_with(b"@@ ") {
            in_hunk = true;
        } else if let Some(count) = counts.last_mut().filter(|_| in_hunk) {
            let (added, removed) = count.get_or_insert((0, 0));
            match line.first() {
                Some(b'+') => *added += 1,
                Some(b'-') => *removed += 1,
                Some(_) | None => {}
            }
        }
    }
    counts
}

fn print_stat(console: &Console, changes: &[FileChange], counts: &[Lines]) {
    let (mut added, mut removed) = (0, 0);
    let rows: Vec<Vec<String>> = changes
        .iter()
        .zip(counts)
        .map(|(change, lines)| {
            let (plus, minus) = lines.unwrap_or_default();
            added += plus;
            removed += minus;
            let lines = lines.map_or_else(
                || "no text".to_owned(),
                |(plus, minus)| format!("+{plus} -{minus}"),
            );
            vec![shown(&change.path), kind(&change.kind).to_owned(), lines]
        })
        .collect();
    console.table(&["file", "change", "lines"], &rows);
    console.data(&format!(
        "{}, +{added} -{removed}",
        words::counted(changes.len() as u64, "file")
    ));
}

fn kind(kind: &ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Renamed { .. } => "renamed",
        ChangeKind::ModeChanged => "mode",
    }
}

fn object(view: &TaskView, head: Option<Oid>, changes: &[FileChange], counts: &[Lines]) -> Value {
    let files: Vec<Value> = changes
        .iter()
        .zip(counts)
        .map(|(change, lines)| {
            json!({
                "path": shown(&change.path),
                "change": kind(&change.kind),
                "insertions": lines.map(|lines| lines.0),
                "deletions": lines.map(|lines| lines.1),
            })
        })
        .collect();
    json!({
        "schema": 1,
        "task": view.spec.task,
        "base": view.spec.base,
        "commit": head.map(|head| head.to_string()),
        "files": files,
    })
}

/// The patch with the colours that people know from git.
fn coloured(patch: &[u8], paint: Paint) -> String {
    let text = String::from_utf8_lossy(patch);
    let mut shown = String::with_capacity(text.len() + text.len() / 4);
    for line in text.split_inclusive('\n') {
        let (line, end) = line
            .strip_suffix('\n')
            .map_or((line, ""), |line| (line, "\n"));
        let tone = match line.as_bytes() {
            [b'+', ..] => Some(Tone::Good),
            [b'-', ..] => Some(Tone::Bad),
            [b'@', ..] => Some(Tone::Doubtful),
            [b' ' | b'\\', ..] | [] => None,
            _ => Some(Tone::Strong),
        };
        shown.push_str(&tone.map_or_else(|| line.to_owned(), |tone| paint.put(tone, line)));
        shown.push_str(end);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_for_each_file() {
        let patch = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n+diff --git q\n \ndiff --git a/y b/y\nold mode 100644\nnew mode 100755\ndiff --git a/z b/z\nBinary files a/z and b/z differ\n";
        assert_eq!(line_counts(patch), [Some((2, 1)), None, None]);
    }

    #[test]
    fn an_uncoloured_patch_is_left_as_it_is() {
        let patch = "diff --git a/x b/x\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n";
        assert_eq!(coloured(patch.as_bytes(), Paint::PLAIN), patch);
    }
}
