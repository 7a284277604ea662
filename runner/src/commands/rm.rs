//! `rm`: removes tasks.

use crate::cli::Globals;
use crate::client::{self, Unwatched};
use crate::exit::{Exit, Failure};
use crate::place::Place;
use crate::reporter::Console;
use crate::supervisor::wire::Order;

/// Remove a task; work that is nowhere else needs --discard.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  airlock rm 4f2k\n  airlock rm 4f2k --discard    throws its work away"
)]
pub struct Args {
    /// The tasks, or the starts of their ids.
    #[arg(required = true)]
    tasks: Vec<String>,
    /// Throw away work that is nowhere else.
    #[arg(long)]
    discard: bool,
}

/// Removes them; the first refusal ends it.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let Args { tasks, discard } = args;
    let place = Place::find(globals)?;
    let mut removed = Vec::new();
    for prefix in &tasks {
        let task = place.task(prefix)?.spec.task;
        client::order(
            &place,
            Order::Remove {
                task: task.clone(),
                discard,
            },
            &mut Unwatched,
        )?;
        console.talk(&format!("removed task {task}"));
        removed.push(task);
    }
    if console.is_json() {
        console.json(&serde_json::json!({"schema": 1, "removed": removed}));
    }
    Ok(Exit::Ok)
}
