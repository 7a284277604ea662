//! One verb, one file: its arguments and what it does. Nothing here decides about a task; that is
//! [`crate::lifecycle`], on the supervisor's side of the socket.

pub mod accept;
pub mod agents;
pub mod bench;
pub mod completions;
pub mod deliver;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod events;
pub mod evidence;
pub mod exec;
pub mod gate;
pub mod init;
pub mod logs;
pub mod ls;
pub mod merge;
pub mod prune;
pub mod resume;
pub mod rm;
pub mod run;
pub mod show;
pub mod stop;
pub mod trust;
pub mod why;

use crate::client::{self, Carried};
use crate::exit::{Exit, Failure};
use crate::place::{self, Place};
use crate::reporter::{Console, Progress};
use crate::supervisor::wire::Order;
use crate::task::TaskId;
use crate::view::TaskView;

/// Gives an order about one task, shows its progress, and reports how the task stands afterwards.
fn carry(place: &Place, console: &Console, task: &TaskId, order: Order) -> Result<Exit, Failure> {
    let mut progress = Progress::new(console);
    match client::order(place, order, &mut progress) {
        Ok(Carried {
            interrupted,
            records,
            ..
        }) => {
            // Whoever saw a task from its first event need not read the store.
            let seen_whole = TaskView::fold(&records).ok().flatten();
            let view = seen_whole.map_or_else(|| stands(place, task), Ok)?;
            progress.finish(&view);
            Ok(if interrupted {
                Exit::Interrupted
            } else {
                view.exit()
            })
        }
        // What the task remembers is part of its report; anything else is only about this command.
        Err(failure) => match stands(place, task) {
            Ok(view)
                if view
                    .failure
                    .as_ref()
                    .is_some_and(|known| known.what == failure.what) =>
            {
                progress.finish(&view);
                Ok(failure.exit)
            }
            Ok(_) | Err(_) => Err(failure),
        },
    }
}

/// The task as it stands in the store.
fn stands(place: &Place, task: &TaskId) -> Result<TaskView, Failure> {
    let missing = || Failure::new(Exit::Internal, format!("task {task} was not recorded"));
    let store = place.store()?.ok_or_else(missing)?;
    place::view(&store, task)?.ok_or_else(missing)
}

/// The user, for the record.
pub(crate) fn user() -> String {
    nix::unistd::User::from_uid(nix::unistd::getuid())
        .ok()
        .flatten()
        .map_or_else(
            || format!("uid {}", nix::unistd::getuid()),
            |user| user.name,
        )
}
