//! `why`: what a task's room refused, by which rule, and what would allow it; or which rule governs a path. Reads the
//! task's record and logs; changes nothing.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use sandbox::Denials;

use crate::cli::Globals;
use crate::config;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::place::Place;
use crate::reporter::Console;
use crate::reporter::agent_text::one_line;
use crate::reporter::words::counted;
use crate::view::TaskView;
use crate::why::{self, Governed, Group, Inferred, Surroundings};

/// Say what a task's room refused, by which rule, and what would allow it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  airlock why 4f2k                      hosts, limits, tools and system calls that were refused
  airlock why 4f2k --path ~/.cargo      which rule governs a path in its room
  airlock why 4f2k --json

What is marked inferred is guessed from what the commands printed: refused paths cannot be recorded.")]
pub struct Args {
    /// The task, or the start of its id.
    task: String,
    /// A path as the room sees it; a relative one starts at the worktree.
    #[arg(long, value_name = "PATH")]
    path: Option<PathBuf>,
}

/// So much of the end of each log is looked at.
const TAIL: u64 = 1 << 20;

/// Says it.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let Args { task, path } = args;
    let place = Place::find(globals)?;
    let view = place.task(&task)?;
    let around = surroundings(&place);
    let path = path.map(|path| why::governs(&view.spec, &around, &path));
    let file = place.folder.task(view.spec.task.as_str()).denials();
    let denials = Denials::read(&file).or_fail(Exit::Internal)?;
    let guesses = guesses(&place, &view, &around);
    if console.is_json() {
        console.json(&why::object(
            view.spec.task.as_str(),
            &denials,
            &guesses,
            path.as_ref(),
        ));
        return Ok(Exit::Ok);
    }
    if let Some(governed) = &path {
        print_path(console, governed);
        return Ok(Exit::Ok);
    }
    let groups = why::grouped(&denials);
    for group in &groups {
        print_group(console, group);
    }
    print_guesses(console, &guesses);
    if groups.is_empty() && guesses.is_empty() {
        console.data("nothing was refused");
    }
    if denials.full {
        console.warn("the record is full: there were more refusals");
    }
    if denials.broken > 0 {
        let lines = counted(denials.broken as u64, "line");
        console.warn(&format!("{lines} of {} cannot be read", file.display()));
    }
    Ok(Exit::Ok)
}

fn surroundings(place: &Place) -> Surroundings {
    let own = [
        place.root.path().to_owned(),
        place.repository.common_dir().to_owned(),
    ];
    Surroundings {
        worktree: place.repository.room_path(),
        forbidden: config::own_folder().into_iter().chain(own).collect(),
    }
}

fn guesses(place: &Place, view: &TaskView, around: &Surroundings) -> Vec<Inferred> {
    let folder = place.folder.task(view.spec.task.as_str());
    let jobs = std::fs::read_dir(folder.jobs())
        .into_iter()
        .flatten()
        .flatten();
    let mut jobs: Vec<String> = jobs
        .filter_map(|job| job.file_name().into_string().ok())
        .collect();
    jobs.sort();
    let mut known = Vec::new();
    for job in jobs {
        // Without a log there is nothing to guess from.
        if let Some(text) = tail(&folder.log(&job)) {
            why::infer(&view.spec, around, &job, &text, &mut known);
        }
    }
    known
}

fn tail(log: &Path) -> Option<String> {
    let mut file = File::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))
        .ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn print_group(console: &Console, group: &Group<'_>) {
    console.data(&format!("refused by {}", one_line(group.rule)));
    for denial in &group.denials {
        let job = denial
            .job
            .as_ref()
            .map_or_else(String::new, |job| format!(" (job {})", one_line(job)));
        let times = counted(denial.count, "time");
        console.data(&format!(
            "  {} {}  {times}{job}",
            denial.kind.as_str(),
            one_line(&denial.what)
        ));
        match &denial.allow {
            Some(allow) => print_remedy(console, &why::remedy(allow)),
            None => console.data("      nothing allows it"),
        }
    }
    console.data("");
}

fn print_guesses(console: &Console, guesses: &[Inferred]) {
    if guesses.is_empty() {
        return;
    }
    console.data("inferred from what was printed");
    for guess in guesses {
        let times = counted(guess.count, "time");
        console.data(&format!(
            "  {:?}  {times} (job {})",
            one_line(&guess.line),
            one_line(&guess.job)
        ));
        console.data(&format!("      likely rule: {}", one_line(&guess.rule)));
        if let Some(allow) = &guess.allow {
            print_remedy(console, &why::remedy(allow));
        }
    }
    console.data("");
}

fn print_remedy(console: &Console, lines: &[String]) {
    for line in lines {
        console.data(&format!("      allow with: {}", one_line(line)));
    }
}

fn print_path(console: &Console, governed: &Governed) {
    let path = one_line(&governed.path.display().to_string());
    console.data(&format!("{path} is {}", governed.reach.as_str()));
    console.data(&format!("  rule: {}", one_line(&governed.rule)));
    if let Some(never) = governed.never {
        console.data(&format!("  {never}"));
    }
    if let Some(allow) = &governed.allow {
        print_remedy(console, &why::remedy(allow));
    }
}
