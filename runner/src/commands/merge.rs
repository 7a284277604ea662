//! `merge`: lands an accepted delivery.

use crate::cli::Globals;
use crate::config;
use crate::exit::{Exit, Failure};
use crate::place::Place;
use crate::reporter::Console;
use crate::supervisor::wire::Order;
use crate::task::Style;

/// Land an accepted delivery on its target branch.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  airlock merge 4f2k\n  airlock merge 4f2k --into release --style squash"
)]
pub struct Args {
    /// The task, or the start of its id.
    task: String,
    /// Another target than the branch that was checked out when the task began.
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// How the delivery joins its target.
    #[arg(long, value_enum)]
    style: Option<Style>,
    /// Land although the agent was not confined.
    #[arg(long)]
    allow_unconfined: bool,
}

/// Merges it.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let place = Place::find(globals)?;
    let view = place.task(&args.task)?;
    let style = match args.style.or(view.spec.merge) {
        Some(style) => style,
        None => configured(&place, &view.spec.base)?,
    };
    let task = view.spec.task;
    let order = Order::Merge {
        task: task.clone(),
        into: args.into,
        style,
        allow_unconfined: args.allow_unconfined,
    };
    super::carry(&place, console, &task, order)
}

/// What `[merge] style` says, in the user's file or else in the base commit's.
fn configured(place: &Place, base: &str) -> Result<Style, Failure> {
    let base = crate::place::resolve(&place.repository, base)?;
    let files = config::files(&place.repository, base)?;
    let said = files.user.style.or(files.repository.style);
    Ok(said.map_or(Style::Auto, |style| style.value))
}
