//! `ls`: the tasks of this repository, newest first. Explains a task that nobody works on any more;
//! changes nothing.

use sandbox::HeldLock;
use serde_json::{Value, json};

use crate::cli::Globals;
use crate::exit::{Exit, Failure};
use crate::place::{self, Place};
use crate::reporter::{Console, words};
use crate::stage::Stage;
use crate::store::Store;
use crate::supervisor::now_ms;
use crate::task::TaskId;
use crate::view::TaskView;

/// List the tasks of this repository.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  airlock ls                      newest first
  airlock ls --state rejected     only what a gate refused
  airlock ls --all --json         also what was removed, for scripts")]
pub struct Args {
    /// Also those that were removed.
    #[arg(short, long)]
    all: bool,
    /// Only those in this state; repeat for several.
    #[arg(long = "state", value_name = "STATE", value_parser = stage)]
    states: Vec<Stage>,
}

fn stage(text: &str) -> Result<Stage, String> {
    serde_json::from_value(Value::from(text)).map_err(|error| {
        let known = error.to_string();
        let known = known
            .split_once("expected one of ")
            .map_or("", |(_, known)| known);
        format!("no state is called `{text}`; known are {known}")
    })
}

/// Lists them.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let Args { all, states } = args;
    let place = Place::find(globals)?;
    let entries = entries(&place)?;
    let wanted: Vec<&Entry> = entries
        .iter()
        .rev()
        .filter(|entry| match &entry.view {
            Ok(view) => {
                (all || !view.removed) && (states.is_empty() || states.contains(&view.stage))
            }
            Err(_) => states.is_empty(),
        })
        .collect();
    if console.is_json() {
        console.json(&wanted.iter().map(|entry| entry.object()).collect());
    } else if wanted.is_empty() {
        let name = place.repository.name();
        console.talk(&if entries.is_empty() {
            format!("no tasks in {name}; `airlock run` starts one")
        } else {
            format!("no such tasks in {name}; `airlock ls --all` lists every one")
        });
    } else {
        let now = now_ms();
        let rows: Vec<Vec<String>> = wanted.iter().map(|entry| entry.row(now)).collect();
        console.table(
            &[
                "task", "state", "agent", "age", "attempts", "files", "summary",
            ],
            &rows,
        );
    }
    Ok(Exit::Ok)
}

/// Whether a task should go on but no supervisor is there to take it on.
pub(super) fn unattended(place: &Place, view: &TaskView) -> bool {
    !view.stage.rests() && !HeldLock::is_held(&place.folder.supervisor_lock())
}

/// What to say of such a task.
pub(super) fn explanation(task: &TaskId) -> String {
    format!("no supervisor; `airlock resume {task}` takes it up")
}

struct Entry {
    id: TaskId,
    /// A task whose events make no sense must not hide the others.
    view: Result<TaskView, Failure>,
    unattended: bool,
}

fn entries(place: &Place) -> Result<Vec<Entry>, Failure> {
    let Some(store) = place.store()? else {
        return Ok(Vec::new());
    };
    let ids = store.tasks("")?;
    Ok(ids
        .into_iter()
        .filter_map(|id| entry(place, &store, id))
        .collect())
}

fn entry(place: &Place, store: &Store, id: TaskId) -> Option<Entry> {
    let view = place::view(store, &id).transpose()?;
    let unattended = view.as_ref().is_ok_and(|view| unattended(place, view));
    Some(Entry {
        id,
        view,
        unattended,
    })
}

impl Entry {
    fn row(&self, now: u64) -> Vec<String> {
        match &self.view {
            Ok(view) => vec![
                self.id.to_string(),
                view.stage.to_string(),
                view.spec.agent.clone(),
                words::age(now.saturating_sub(view.created)),
                view.attempts.to_string(),
                view.seal
                    .as_ref()
                    .and_then(|seal| seal.diff_stat)
                    .map_or(0, |stat| stat.files)
                    .to_string(),
                if self.unattended {
                    format!("({})", explanation(&self.id))
                } else {
                    view.summary()
                },
            ],
            Err(failure) => {
                let unknown = || "?".to_owned();
                let state = "unreadable".to_owned();
                let summary = failure.to_string();
                vec![
                    self.id.to_string(),
                    state,
                    unknown(),
                    unknown(),
                    unknown(),
                    unknown(),
                    summary,
                ]
            }
        }
    }

    fn object(&self) -> Value {
        match &self.view {
            Ok(view) => {
                let mut object = view.object();
                object["supervised"] = Value::from(!self.unattended);
                if self.unattended {
                    object["note"] = Value::from(explanation(&self.id));
                }
                object
            }
            Err(failure) => {
                json!({"schema": 1, "task": self.id, "state": "unreadable", "error": failure})
            }
        }
    }
}
