//! `stop`: ends what a task does now; its tree and log stay.

use crate::cli::Globals;
use crate::client::{self, Unwatched};
use crate::exit::{Exit, Failure};
use crate::place::Place;
use crate::reporter::Console;
use crate::reporter::report::resumes;
use crate::supervisor::wire::Order;

/// Stop a running task.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  airlock stop 4f2k --reason 'wrong branch'")]
pub struct Args {
    /// The task, or the start of its id.
    task: String,
    /// Why, for the record.
    #[arg(long, default_value = "asked to stop")]
    reason: String,
}

/// Stops it and waits until its whole process tree is gone.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let place = Place::find(globals)?;
    let view = place.task(&args.task)?;
    let task = view.spec.task;
    if view.stage.rests() && view.execs.is_empty() {
        let what = format!("task {task} is {} already", view.stage);
        return Err(Failure::new(Exit::Conflict, what)
            .advise(format!("`airlock show {task}` says how it ended")));
    }
    let stop = Order::Stop {
        task: task.clone(),
        by: super::user(),
        reason: args.reason,
    };
    client::order(&place, stop, &mut Unwatched)?;
    client::order(&place, Order::Follow { task: task.clone() }, &mut Unwatched)?;
    let view = super::stands(&place, &task)?;
    if console.is_json() {
        console.json(&view.object());
    } else {
        let on = if resumes(&view) {
            format!("; `airlock resume {task}` goes on in the same tree")
        } else {
            String::new()
        };
        console.talk(&format!("{}{on}", view.summary()));
    }
    Ok(Exit::Ok)
}
