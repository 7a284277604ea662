//! `accept`: a person lets a refused delivery pass.

use gates::Gate;

use crate::cli::Globals;
use crate::exit::{Exit, Failure};
use crate::place::Place;
use crate::reporter::Console;
use crate::supervisor::wire::Order;

/// Let a delivery pass in spite of a red gate; the reason becomes part of the evidence.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  airlock accept 4f2k --override diagram --reason 'the drawing is the subject'"
)]
pub struct Args {
    /// The task, or the start of its id.
    task: String,
    /// A gate that refused; repeat for several.
    #[arg(long = "override", value_name = "GATE", required = true)]
    gates: Vec<Gate>,
    /// Why it may pass.
    #[arg(long, required = true)]
    reason: String,
}

/// Accepts it.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    if args.reason.trim().is_empty() {
        return Err(Failure::usage("an override needs a reason").advise("say why with --reason"));
    }
    let place = Place::find(globals)?;
    let task = place.task(&args.task)?.spec.task;
    let order = Order::Accept {
        task: task.clone(),
        gates: args.gates,
        reason: args.reason,
        by: super::user(),
    };
    super::carry(&place, console, &task, order)
}
