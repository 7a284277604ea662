//! `resume`: goes on with a task in the same tree.

use crate::cli::Globals;
use crate::config;
use crate::exit::{Exit, Failure};
use crate::place::Place;
use crate::reporter::Console;
use crate::reporter::report::resumes;
use crate::supervisor::wire::Order;
use crate::task::Secrets;

/// Go on with a task that was lost, stopped or failed, in the same tree.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  airlock resume 4f2k")]
pub struct Args {
    /// The task, or the start of its id.
    task: String,
}

/// Resumes it.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let place = Place::find(globals)?;
    let Args { task } = args;
    let view = place.task(&task)?;
    if !resumes(&view) {
        let what = format!(
            "task {} is {}: there is nothing to go on with",
            view.spec.task, view.stage
        );
        return Err(
            Failure::new(Exit::Conflict, what).advise("start a new task with `airlock run`")
        );
    }
    let task = view.spec.task;
    let named = view.spec.pass_env.iter();
    let secrets = Secrets {
        env: named
            .filter_map(|name| std::env::var(name).ok().map(|value| (name.clone(), value)))
            .collect(),
        keys: config::keys(&view.spec.credentials, &std::env::vars_os().collect())?,
    };
    super::carry(
        &place,
        console,
        &task,
        Order::Resume {
            task: task.clone(),
            secrets,
        },
    )
}
