//! `agents`: the agents that can be named, what is here of each, and a test of one in a real room
//! against a scripted model. Changes nothing of the user's.

pub(crate) mod look;
mod show;
mod test;

use serde_json::json;

use crate::cli::Globals;
use crate::config;
use crate::exit::{Exit, Failure};
use crate::reporter::Console;

/// List the agents that can be named, or test one against a scripted model.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  airlock agents                 which are installed, which version, which credential is there
  airlock agents show codex      its profile, as it could stand in config.toml
  airlock agents test claude     try it in a real room, without key or network

A profile of yours, [agent.NAME] in config.toml, changes the keys that it names.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Print a profile
    Show {
        /// The agent
        name: String,
    },
    /// Run an agent against a scripted model, in a real room, without key or network
    Test(test::Args),
}

/// Does what was asked.
pub fn run(_globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    match args.verb {
        None => list(console),
        Some(Verb::Show { name }) => show::run(console, &name),
        Some(Verb::Test(args)) => test::run(console, &args),
    }
}

fn list(console: &Console) -> Result<Exit, Failure> {
    let found = look::all(config::agents_of_the_user()?);
    if console.is_json() {
        let agents: Vec<_> = found.iter().map(look::Found::object).collect();
        console.json(&json!({"schema": 1, "agents": agents}));
        return Ok(Exit::Ok);
    }
    let rows: Vec<Vec<String>> = found.iter().map(look::Found::row).collect();
    let headers = [
        "agent",
        "version",
        "credential",
        "network",
        "program, or how to get it",
    ];
    console.table(&headers, &rows);
    Ok(Exit::Ok)
}

/// One agent by name.
fn named(name: &str) -> Result<config::Given<config::Agent>, Failure> {
    let mut agents = config::agents_of_the_user()?;
    let known: Vec<String> = agents.keys().cloned().collect();
    agents.remove(name).ok_or_else(|| {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let hint = config::nearest(name, &known);
        let hint = hint.map_or_else(String::new, |near| format!(", did you mean {near:?}?"));
        Failure::usage(format!("no agent is called {name:?}{hint}"))
            .advise(format!("known are {}", known.join(", ")))
    })
}
