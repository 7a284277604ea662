//! `events`: the recorded facts, as lines or as JSON. The store is the truth; this prints it and
//! changes nothing.

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::cli::Globals;
use crate::event::Record;
use crate::exit::{Exit, Failure};
use crate::place::Place;
use crate::reporter::{Console, tell, words};
use crate::store::Store;
use crate::task::TaskId;

/// Between two looks at the store.
const LOOK: Duration = Duration::from_millis(100);

/// Print the recorded events.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  airlock events                     of all tasks
  airlock events 4f2k --json         everything that is known about one, a JSON object a line
  airlock events -f --after 120      only what is newer than event 120, and what is to come")]
pub struct Args {
    /// The task, or the start of its id; all tasks if not given.
    task: Option<String>,
    /// Go on: until the task rests, or for ever without one.
    #[arg(short, long)]
    follow: bool,
    /// Only events after this one.
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,
}

/// Prints them.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let Args {
        task,
        follow,
        mut after,
    } = args;
    let place = Place::find(globals)?;
    let task = task
        .map(|prefix| place.task(&prefix))
        .transpose()?
        .map(|view| view.spec.task);
    let mut store = place.store()?;
    loop {
        // Asked first, so that the events up to the end are printed before the end.
        let over = !follow || is_over(&place, task.as_ref())?;
        if store.is_none() {
            store = place.store()?;
        }
        for record in since(store.as_ref(), task.as_ref(), after)? {
            after = record.seq;
            print(console, &record);
        }
        if over || console.is_gone() {
            return Ok(Exit::Ok);
        }
        sleep(LOOK);
    }
}

fn is_over(place: &Place, task: Option<&TaskId>) -> Result<bool, Failure> {
    let Some(task) = task else { return Ok(false) };
    let view = place.task(task.as_str())?;
    Ok(view.stage.rests() || super::ls::unattended(place, &view))
}

fn since(store: Option<&Store>, task: Option<&TaskId>, after: u64) -> Result<Vec<Record>, Failure> {
    Ok(match (store, task) {
        (None, _) => Vec::new(),
        (Some(store), Some(task)) => store.of_task(task, after)?,
        (Some(store), None) => store.all(after)?,
    })
}

fn print(console: &Console, record: &Record) {
    if console.is_json() {
        console.json(&json!(record));
        return;
    }
    let told = tell(&record.event);
    let paint = console.paint();
    console.data(&format!(
        "{:>5}  {}  {}  {}",
        record.seq,
        words::moment(record.at),
        record.task,
        paint.put(told.tone, &told.text)
    ));
}
