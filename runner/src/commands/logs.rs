//! `logs`: what a job printed. Reads the captured file, never a file in a task's tree; says so when
//! there is none or when something is missing from it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::cli::Globals;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::place::Place;
use crate::reporter::Console;
use crate::reporter::agent_text::Filter;
use crate::reporter::words::counted;
use crate::task::TaskId;
use crate::view::TaskView;

/// Between two looks at a log that is being followed.
const LOOK: Duration = Duration::from_millis(50);

/// Print the output of a task's agent, or of one of its jobs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  airlock logs 4f2k                what the agent printed, last attempt
  airlock logs 4f2k -f             follow it until the task rests
  airlock logs 4f2k --tail 20
  airlock logs 4f2k --raw > log    the bytes as they came, control sequences and all")]
pub struct Args {
    /// The task, or the start of its id.
    task: String,
    /// A job of it; the agent's last one if not given.
    job: Option<String>,
    /// Go on until the task rests.
    #[arg(short, long)]
    follow: bool,
    /// Only the last lines.
    #[arg(long, value_name = "LINES")]
    tail: Option<usize>,
    /// The bytes as they are. They can do to a terminal whatever it lets them.
    #[arg(long)]
    raw: bool,
}

/// Prints it.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let Args {
        task,
        job,
        follow,
        tail,
        raw,
    } = args;
    let place = Place::find(globals)?;
    let view = place.task(&task)?;
    let filter = (!raw).then(|| console.filter());
    let id = view.spec.task.clone();
    let mut printer = Printer {
        console,
        task: id.clone(),
        job: String::new(),
        filter,
    };
    if follow {
        return follow_task(&place, view, job.as_deref(), tail, &mut printer);
    }
    printer.job = job_of(&place, &view, job.as_deref())?;
    let path = place.folder.task(id.as_str()).log(&printer.job);
    let bytes =
        std::fs::read(&path).map_err(|error| unreadable(&error, &id, &printer.job, &path))?;
    printer.print(last_lines(&bytes, tail));
    printer.end();
    remark(console, &view, &printer.job);
    Ok(Exit::Ok)
}

/// The job that is meant. Names are those of folders that the engine made, and nothing else.
fn job_of(place: &Place, view: &TaskView, named: Option<&str>) -> Result<String, Failure> {
    let id = &view.spec.task;
    let Some(job) = named else {
        return view.job.clone().ok_or_else(|| {
            Failure::new(
                Exit::NotFound,
                format!("task {id} is {} and has run nothing so far", view.stage),
            )
        });
    };
    let known = jobs(place, id);
    if known.iter().any(|known| known == job) {
        return Ok(job.to_owned());
    }
    let advice = match known.as_slice() {
        [] => "it has run nothing so far".to_owned(),
        known => format!("it has {}", known.join(", ")),
    };
    Err(Failure::new(Exit::NotFound, format!("task {id} has no job {job:?}")).advise(advice))
}

fn jobs(place: &Place, id: &TaskId) -> Vec<String> {
    let folder = place.folder.task(id.as_str()).jobs();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

fn unreadable(error: &io::Error, id: &TaskId, job: &str, path: &Path) -> Failure {
    let missing = error.kind() == io::ErrorKind::NotFound;
    let exit = if missing {
        Exit::NotFound
    } else {
        Exit::Internal
    };
    let mut failure = Failure::new(
        exit,
        format!("cannot read the output of job {job} of task {id}"),
    );
    failure.causes.push(format!("{}: {error}", path.display()));
    if missing {
        failure.advise("it was never started, or its files were removed")
    } else {
        failure
    }
}

/// What a reader must know about an output that is over.
fn remark(console: &Console, view: &TaskView, job: &str) {
    let outcome = view
        .outcome
        .as_ref()
        .filter(|_| view.job.as_deref() == Some(job));
    if let Some(outcome) = outcome.filter(|outcome| outcome.output_dropped > 0) {
        let dropped = counted(outcome.output_dropped, "byte");
        console.warn(&format!(
            "{dropped} from the middle of this output were not kept: the limit of output was passed"
        ));
    }
}

fn last_lines(bytes: &[u8], tail: Option<usize>) -> &[u8] {
    let Some(lines) = tail else { return bytes };
    if lines == 0 {
        return &[];
    }
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let ends = body
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, byte)| **byte == b'\n');
    match ends.map(|(at, _)| at).nth(lines - 1) {
        Some(end) => bytes.get(end + 1..).unwrap_or_default(),
        None => bytes,
    }
}

struct Printer<'a> {
    console: &'a Console,
    task: TaskId,
    job: String,
    filter: Option<Filter>,
}

impl Printer<'_> {
    fn print(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.console.is_json() {
            let text = String::from_utf8_lossy(bytes);
            self.console
                .json(&json!({"schema": 1, "task": self.task, "job": self.job, "text": text}));
        } else if let Some(filter) = &mut self.filter {
            self.console.agent_lines(&filter.push(bytes));
        } else {
            self.console.agent_bytes(bytes);
        }
    }

    fn end(&mut self) {
        if let Some(filter) = self.filter.as_mut().filter(|_| !self.console.is_json()) {
            self.console.agent_lines(&filter.end());
        }
    }
}

/// Prints what comes until the task rests or nobody is left to move it.
fn follow_task(
    place: &Place,
    mut view: TaskView,
    job: Option<&str>,
    mut tail: Option<usize>,
    printer: &mut Printer<'_>,
) -> Result<Exit, Failure> {
    let mut open: Option<File> = None;
    loop {
        // Asked before the file is read: what was written before the end is printed before the end.
        let over = view.stage.rests() || super::ls::unattended(place, &view);
        let current = match job {
            Some(_) => job_of(place, &view, job)?,
            None => view.job.clone().unwrap_or_default(),
        };
        if current != printer.job {
            printer.end();
            printer.job = current;
            open = None;
        }
        if open.is_none() && !printer.job.is_empty() {
            open = File::open(place.folder.task(view.spec.task.as_str()).log(&printer.job)).ok();
        }
        if let Some(file) = &mut open {
            let mut bytes = Vec::new();
            io::copy(file, &mut bytes).or_fail(Exit::Internal)?;
            printer.print(last_lines(&bytes, tail.take()));
        }
        if over || printer.console.is_gone() {
            printer.end();
            return Ok(ending(printer.console, &view));
        }
        sleep(LOOK);
        view = place.task(view.spec.task.as_str())?;
    }
}

fn ending(console: &Console, view: &TaskView) -> Exit {
    if view.stage.rests() {
        console.talk(&view.summary());
    } else {
        console.warn(&super::ls::explanation(&view.spec.task));
    }
    Exit::Ok
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_counted_as_people_do() {
        assert_eq!(last_lines(b"a\nb\nc\n", Some(2)), b"b\nc\n");
        assert_eq!(last_lines(b"a\nb\nc", Some(2)), b"b\nc");
        assert_eq!(last_lines(b"a\n", Some(5)), b"a\n");
        assert_eq!(last_lines(b"a\n", Some(0)), b"");
        assert_eq!(last_lines(b"a\nb\n", None), b"a\nb\n");
    }
}
