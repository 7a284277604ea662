//! `exec`: a command of a person's own in the room of a task.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::IsTerminal as _;

use sandbox::{Exit as JobExit, Outcome};
use serde_json::json;

use crate::cli::Globals;
use crate::config::{EnvEntry, EnvError, quantity};
use crate::exit::{Exit, Failure, OrFail as _, Status};
use crate::foreground::{self, Finished, Window};
use crate::place::Place;
use crate::reporter::{Console, Passing};
use crate::supervisor::wire::Wish;

use crate::view;

/// Added to the number of the signal that ended a command, as a shell does.
const SIGNALLED: i32 = 128;
/// A command that is not there, as a shell has it.
const NOT_FOUND: u8 = 127;
/// A command that cannot be executed.
const NOT_EXECUTABLE: u8 = 126;

/// Run a command in the room of a task, in front of you.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The task, or the start of its id
    task: String,
    /// Wall time of the command, such as 30s, 5m or 2h [default: none]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration_ms)]
    timeout: Option<u64>,
    /// A value for its environment, or the name of one of yours
    #[arg(long, value_name = "K[=V]", value_parser = entry)]
    env: Vec<EnvEntry>,
    /// Give it a terminal of its own: for a shell, an editor, a debugger
    #[arg(short, long)]
    tty: bool,
    /// Pass its output on as it is, also to a terminal, which it can do to whatever that lets it
    #[arg(long)]
    raw: bool,
    /// The command
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  airlock exec 4f2k -- git status
  airlock exec 4f2k --timeout 5m -- cargo test
  airlock exec 4f2k -- tar c src > src.tar
  airlock exec 4f2k -t -- bash

It runs behind the walls of the task: beside the agent while that works, else in the same tree, in a room that is
opened again for it. What it changes counts with the next seal: `airlock deliver` judges the tree as it is then.
Output goes to you and is not kept. Ctrl-C asks it to end, once more ends it. It ends with its last process, and
when you go away.

Exit codes: those of the command, 128 and the number of a signal that ended it, 126 or 127 when it could not be
executed or was not there. Else one of Airlock's own, with a line that begins with `error:`: 2 usage, 3 no such
task, 4 the task cannot be entered now, 21 timeout, 23 over limit, 30 no sandbox, 31 lost, 130 interrupted.
With --json the last object tells them apart.";

fn entry(text: &str) -> Result<EnvEntry, EnvError> {
    EnvEntry::parse(text)
}

/// Runs it.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Status, Failure> {
    let place = Place::find(globals)?;
    if args.tty && !(std::io::stdin().is_terminal() && console.is_terminal()) {
        return Err(
            Failure::usage("--tty needs a terminal on standard input and output")
                .advise("leave it out: streams are passed through without one as well"),
        );
    }
    let mut env = environment(&args.env)?;
    if args.tty
        && let Ok(term) = std::env::var("TERM")
    {
        env.entry("TERM".to_owned()).or_insert(term);
    }
    let wish = Wish {
        task: args.task,
        argv: args.command,
        env,
        timeout_ms: args.timeout,
        terminal: args.tty,
    };
    let mut passing = Passing::new(console, args.raw || args.tty);
    let window = args
        .tty
        .then(Window::open)
        .transpose()
        .or_fail(Exit::Internal)?;
    let finished = foreground::run(&place, wish, window.as_ref(), &mut passing);
    // The person's terminal is his own again before anything is said.
    drop(window);
    Ok(told(console, &finished?))
}

fn environment(entries: &[EnvEntry]) -> Result<BTreeMap<String, String>, Failure> {
    let mut env = BTreeMap::new();
    for entry in entries {
        let (name, value) = match entry {
            EnvEntry::Set(name, value) => (name, value.clone()),
            EnvEntry::Pass(name) => {
                let value = std::env::var_os(name)
                    .ok_or_else(|| EnvError::Absent(name.clone()))
                    .or_fail(Exit::Usage)?;
                let text = value.into_string();
                let text = text.map_err(|_bytes| EnvError::NotText(name.clone()));
                (name, text.or_fail(Exit::Usage)?)
            }
        };
        env.insert(name.clone(), value);
    }
    Ok(env)
}

/// Says what is not the command's own end, and gives the code.
fn told(console: &Console, finished: &Finished) -> Status {
    let status = status(finished);
    let outcome = &finished.outcome;
    let ours = match &outcome.exit {
        JobExit::Code(_) | JobExit::Signal(_) => None,
        JobExit::NotStarted { reason } => Some(format!("the command was never started: {reason}")),
        JobExit::TimedOut => Some("the command ran out of time and was ended".to_owned()),
        JobExit::IdleTimedOut => {
            Some("the command did nothing for too long and was ended".to_owned())
        }
        JobExit::OverLimit { limit } => Some(format!("the command passed its limit: {limit}")),
        JobExit::Stopped { .. } if finished.interrupted.is_some() => None,
        JobExit::Stopped { by, reason } => Some(format!("the command was ended by {by}: {reason}")),
        JobExit::Lost => {
            Some("the command's keeper went away: how it ended is not known".to_owned())
        }
    };
    if let Some(ours) = &ours {
        console.problem(ours);
    }
    if console.is_json() {
        console.json(&object(finished, ours.as_deref(), status));
    }
    status
}

fn object(finished: &Finished, ours: Option<&str>, status: Status) -> serde_json::Value {
    let Outcome {
        exit,
        code,
        signal,
        elapsed_ms,
        ..
    } = &finished.outcome;
    json!({
        "schema": 1, "task": finished.task, "job": finished.job, "outcome": view::cause(exit), "code": code,
        "signal": signal, "elapsed_ms": elapsed_ms, "interrupted": finished.interrupted.is_some(), "error": ours,
        "exit": status.code(),
    })
}

fn status(finished: &Finished) -> Status {
    let of_signal =
        |number: i32| Status::of_command(u8::try_from(SIGNALLED + number).unwrap_or(u8::MAX));
    match &finished.outcome.exit {
        JobExit::Code(code) => Status::of_command(u8::try_from(*code).unwrap_or(u8::MAX)),
        JobExit::Signal(number) => of_signal(*number),
        JobExit::NotStarted { .. } if finished.errno == Some(nix::errno::Errno::ENOENT as i32) => {
            Status::of_command(NOT_FOUND)
        }
        JobExit::NotStarted { .. } => Status::of_command(NOT_EXECUTABLE),
        JobExit::TimedOut => Exit::Timeout.into(),
        JobExit::IdleTimedOut => Exit::IdleTimeout.into(),
        JobExit::OverLimit { .. } => Exit::OverLimit.into(),
        JobExit::Stopped { .. } => finished
            .interrupted
            .map_or(Exit::Interrupted.into(), of_signal),
        JobExit::Lost => Exit::Lost.into(),
    }
}
