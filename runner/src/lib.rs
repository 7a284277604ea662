//! The `airlock` binary: command line, configuration, task lifecycle and supervisor.
//!
//! The way through the code: [`cli`] names the verbs, [`commands`] has a file for each. A verb that
//! changes something gives an [`supervisor::wire::Order`] over a socket ([`client`]); the
//! [`supervisor`] carries it out in [`lifecycle`], one file a stage, and records each fact as an
//! [`event`] in the [`store`] before the next stage begins. [`stage`] says which orders of events can
//! be, [`view`] folds them to what is shown. Gates judge in a child process ([`judging`]).
//!
//! Invariants: only [`reporter`] writes to standard output and error; only the supervisor writes the
//! store; nothing here runs a program on a task's tree or opens its git dir as a repository; tokio is
//! in [`supervisor`], the proxy and the scripted [`model`] alone.

mod agent_view;
pub mod answer;
pub mod cli;
pub mod client;
pub mod commands;
pub mod config;
pub mod delivery;
pub mod durable;
pub mod event;
pub mod exit;
pub mod foreground;
pub mod hex;
pub mod home;
pub mod itself;
pub mod judging;
pub mod keyring;
pub mod lifecycle;
pub mod model;
pub mod net;
pub mod place;
pub mod protected;
pub mod proxy;
pub mod reporter;
pub mod setup;
pub mod spec_file;
pub mod spec_limits;
pub mod stage;
pub mod store;
pub mod supervisor;
pub mod task;
pub mod toolchain;
pub mod trust;
pub mod version;
pub mod view;
pub mod why;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use crate::exit::Exit;
use crate::reporter::Console;

/// Runs the command line that this process was started with.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = sandbox::hidden(&args) {
        return code;
    }
    match args.get(1).and_then(|word| word.to_str()) {
        Some(judging::SUBCOMMAND) => return judging::child(),
        Some(supervisor::SUBCOMMAND) => return supervisor::main(args.get(2..).unwrap_or_default()),
        Some(_) | None => {}
    }
    let cli = match cli::Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, everything else is a usage error.
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Ok
            };
            error.print().ok();
            return exit.into();
        }
    };
    let console = Console::new(&cli.globals);
    match cli.run(&console) {
        Ok(status) => {
            let lost = console.settle(Exit::Ok);
            if lost == Exit::Ok {
                status.into()
            } else {
                lost.into()
            }
        }
        Err(failure) => {
            console.failure(&failure);
            console.settle(failure.exit).into()
        }
    }
}
