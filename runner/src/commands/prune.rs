//! `prune`: removes every task whose work is proved to be safe elsewhere, or empty, and setups that are of no use. Decides from
//! events; the removal itself proves again from the tree.

use std::time::Duration;

use serde_json::json;

use crate::cli::Globals;
use crate::client::{self, Unwatched};
use crate::event::Checkout;
use crate::exit::{Exit, Failure};
use crate::place::{Place, view};
use crate::reporter::Console;
use crate::setup::Setups;
use crate::stage::Stage;
use crate::supervisor::now_ms;
use crate::supervisor::wire::Order;
use crate::view::TaskView;

/// Remove every task whose work is proved to be safe elsewhere, or empty.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  airlock prune --dry-run\n  airlock prune --min-age 7d")]
pub struct Args {
    /// Say what would be removed, and remove nothing.
    #[arg(long)]
    dry_run: bool,
    /// Only tasks that have rested this long, such as 30m, 12h or 7d.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = crate::config::duration)]
    min_age: u64,
    /// Results of setups that no task has used this long.
    #[arg(long, value_name = "DURATION", default_value = "336h", value_parser = crate::config::duration)]
    setup_age: u64,
}

/// Prunes.
#[expect(
    clippy::needless_pass_by_value,
    reason = "every verb is called in the same way"
)]
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let Args {
        dry_run,
        min_age,
        setup_age,
    } = args;
    let place = Place::find(globals)?;
    let mut removed = Vec::new();
    let mut kept = Vec::new();
    for task in tasks(&place)? {
        let id = task.spec.task.clone();
        let age = now_ms().saturating_sub(task.changed);
        match proof(&task) {
            Ok(reason) if age < min_age => kept.push((id, format!("{reason}, but too young"))),
            Ok(reason) if dry_run => removed.push((id, reason)),
            Ok(reason) => {
                let order = Order::Remove {
                    task: id.clone(),
                    discard: false,
                };
                match client::order(&place, order, &mut Unwatched) {
                    Ok(_) => removed.push((id, reason)),
                    Err(failure) => kept.push((id, failure.to_string())),
                }
            }
            Err(reason) => kept.push((id, reason)),
        }
    }
    let setups = unused_setups(&place, setup_age, dry_run)?;
    if console.is_json() {
        let list = |tasks: &[(crate::task::TaskId, String)]| -> Vec<serde_json::Value> {
            tasks
                .iter()
                .map(|(task, reason)| json!({"task": task, "reason": reason}))
                .collect()
        };
        console.json(&json!({"schema": 1, "dry_run": dry_run, "removed": list(&removed), "kept": list(&kept), "setups": setups}));
        return Ok(Exit::Ok);
    }
    let done = if dry_run { "would remove" } else { "removed" };
    let row = |verb: &str, (task, reason): (crate::task::TaskId, String)| {
        vec![verb.to_owned(), task.to_string(), reason]
    };
    let mut rows: Vec<Vec<String>> = removed.into_iter().map(|task| row(done, task)).collect();
    rows.extend(kept.into_iter().map(|task| row("kept", task)));
    rows.extend(setups.into_iter().map(|key| {
        let because = "no task has used this setup for long".to_owned();
        vec![done.to_owned(), key, because]
    }));
    if rows.is_empty() {
        console.talk("no tasks");
    } else {
        console.table(&["", "task", "because"], &rows);
    }
    Ok(Exit::Ok)
}

/// Results of setups that go, or would.
fn unused_setups(place: &Place, age: u64, dry_run: bool) -> Result<Vec<String>, Failure> {
    let setups = Setups::of(&place.folder);
    let mut gone = Vec::new();
    for name in setups.unused(Duration::from_millis(age)) {
        if dry_run || setups.remove(&name)? {
            gone.push(name);
        }
    }
    Ok(gone)
}

fn tasks(place: &Place) -> Result<Vec<TaskView>, Failure> {
    let Some(store) = place.store()? else {
        return Ok(Vec::new());
    };
    let mut tasks = Vec::new();
    for id in store.tasks("")? {
        tasks.extend(view(&store, &id)?.filter(|task| !task.removed));
    }
    Ok(tasks)
}

/// Why a task may go, or why not.
fn proof(task: &TaskView) -> Result<String, String> {
    match task.stage {
        Stage::Landed => Ok("landed".to_owned()),
        Stage::Empty => Ok("nothing was delivered".to_owned()),
        Stage::Discarded => Ok("discarded".to_owned()),
        Stage::Accepted => Err(format!("accepted on {} and not landed", task.spec.branch)),
        Stage::Rejected
        | Stage::Failed
        | Stage::Timeout
        | Stage::OverLimit
        | Stage::Stopped
        | Stage::Lost
            if task.checkout == Some(Checkout::Removed) =>
        {
            Ok("its checkout is gone and its work is kept in refs/airlock".to_owned())
        }
        Stage::Rejected
        | Stage::Failed
        | Stage::Timeout
        | Stage::OverLimit
        | Stage::Stopped
        | Stage::Lost
        | Stage::Queued
        | Stage::Preparing
        | Stage::Running
        | Stage::Waiting
        | Stage::Sealing
        | Stage::Gating
        | Stage::Landing => Err(format!("it is {}", task.stage)),
    }
}
