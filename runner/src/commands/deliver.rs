//! `deliver`: seals and judges what is in a task's tree now.

use std::fs;
use std::path::PathBuf;

use crate::cli::Globals;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::place::Place;
use crate::reporter::Console;
use crate::supervisor::wire::Order;

/// Seal and judge what is in a task's tree now.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  airlock deliver 4f2k --note 'wrote 120 lines in 3 files'")]
pub struct Args {
    /// The task, or the start of its id.
    task: String,
    /// The agent's note, whose claims are compared with what is measured.
    #[arg(long, conflicts_with = "note_file")]
    note: Option<String>,
    /// A file that holds the note.
    #[arg(long, value_name = "FILE")]
    note_file: Option<PathBuf>,
}

/// Delivers it.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let place = Place::find(globals)?;
    let task = place.task(&args.task)?.spec.task;
    let note = match &args.note_file {
        Some(file) => Some(fs::read_to_string(file).or_fail(Exit::Usage)?),
        None => args.note,
    };
    super::carry(
        &place,
        console,
        &task,
        Order::Deliver {
            task: task.clone(),
            note,
        },
    )
}
