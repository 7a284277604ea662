//! The command line: global options, one variant for each verb, dispatch. Knows no work itself;
//! each verb is a file in [`crate::commands`].

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands;
use crate::exit::{Failure, Status};
use crate::reporter::Console;

/// Runs coding tasks in a locked room and lets out only work that it has checked itself.
#[derive(Debug, Parser)]
#[command(name = "airlock", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// What every verb takes.
    #[command(flatten)]
    pub globals: Globals,
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  airlock run --merge -- sh -c 'echo \"x = 1\" > x.py'    one task: room, gates, evidence, landing
  airlock run --agent codex --prompt 'add a parser'     a real agent
  airlock ls                                            tasks of this repository
  airlock exec 4f2k -- git status                       a command in a task's room
  airlock gate --base HEAD~1                            judge any commit; needs no task
  airlock demo                                          see it work, without key or network

Exit codes: 0 ok, 1 internal, 2 usage, 3 not found, 4 state conflict, 10 gate failed, 11 empty,
12 merge conflict, 13 evidence invalid, 14 could not check, 20 agent failed, 21 timeout,
22 idle timeout, 23 over limit, 30 sandbox unavailable, 31 lost, 130 interrupted.";

/// Options of every verb.
#[derive(Debug, Clone, Args)]
pub struct Globals {
    /// Work as if started in this folder.
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Print data as JSON on standard output.
    #[arg(long, global = true)]
    pub json: bool,
    /// Say only what failed.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more; twice for the engine's own trace.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Never use colours.
    #[arg(long, global = true)]
    pub no_color: bool,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a task: worktree, room, agent, seal, gates, evidence, and landing with --merge.
    Run(Box<commands::run::Args>),
    /// List the tasks of this repository.
    Ls(commands::ls::Args),
    /// Show one task.
    Show(commands::show::Args),
    /// Print the output of a task's agent, or of one of its jobs.
    Logs(commands::logs::Args),
    /// Print the recorded events.
    Events(commands::events::Args),
    /// Print the difference between the base and the delivery.
    Diff(commands::diff::Args),
    /// Run a command in the room of a task, in front of you.
    Exec(commands::exec::Args),
    /// Say what a task's room refused, and what would allow it.
    Why(commands::why::Args),
    /// Stop a running task.
    Stop(commands::stop::Args),
    /// Seal and judge what is in a task's tree now.
    Deliver(commands::deliver::Args),
    /// Let a delivery pass in spite of a red gate; the reason becomes part of the evidence.
    Accept(commands::accept::Args),
    /// Land an accepted delivery on its target branch.
    Merge(commands::merge::Args),
    /// Go on with a task that was lost, stopped or failed, in the same tree.
    Resume(commands::resume::Args),
    /// Remove a task; work that is nowhere else needs --discard.
    Rm(commands::rm::Args),
    /// Remove every task whose work is proved to be safe elsewhere, or empty.
    Prune(commands::prune::Args),
    /// Judge any commit against a base; for CI, needs no task.
    Gate(commands::gate::Args),
    /// Read and check evidence.
    Evidence(commands::evidence::Args),
    /// Allow what this repository's airlock.toml asks for beyond your own configuration.
    Trust(commands::trust::Args),
    /// List the agents that can be named, or test one against a scripted model.
    Agents(commands::agents::Args),
    /// Write a commented airlock.toml.
    Init(commands::init::Args),
    /// Say what this host can do, and what to mend.
    Doctor(commands::doctor::Args),
    /// Four scripted agents in real rooms: what Airlock lets out and what it holds.
    Demo(commands::demo::Args),
    /// Measure a whole task against the same steps by hand.
    Bench(commands::bench::Args),
    /// Print a completion script for a shell.
    Completions(commands::completions::Args),
}

impl Cli {
    /// Does what was asked.
    pub fn run(self, console: &Console) -> Result<Status, Failure> {
        let globals = &self.globals;
        let exit = match self.verb {
            Verb::Exec(args) => return commands::exec::run(globals, console, args),
            Verb::Run(args) => commands::run::run(globals, console, *args),
            Verb::Ls(args) => commands::ls::run(globals, console, args),
            Verb::Show(args) => commands::show::run(globals, console, args),
            Verb::Logs(args) => commands::logs::run(globals, console, args),
            Verb::Events(args) => commands::events::run(globals, console, args),
            Verb::Diff(args) => commands::diff::run(globals, console, args),
            Verb::Why(args) => commands::why::run(globals, console, args),
            Verb::Stop(args) => commands::stop::run(globals, console, args),
            Verb::Deliver(args) => commands::deliver::run(globals, console, args),
            Verb::Accept(args) => commands::accept::run(globals, console, args),
            Verb::Merge(args) => commands::merge::run(globals, console, args),
            Verb::Resume(args) => commands::resume::run(globals, console, args),
            Verb::Rm(args) => commands::rm::run(globals, console, args),
            Verb::Prune(args) => commands::prune::run(globals, console, args),
            Verb::Gate(args) => commands::gate::run(globals, console, args),
            Verb::Evidence(args) => commands::evidence::run(globals, console, args),
            Verb::Trust(args) => commands::trust::run(globals, console, args),
            Verb::Agents(args) => commands::agents::run(globals, console, args),
            Verb::Init(args) => commands::init::run(globals, console, args),
            Verb::Doctor(args) => commands::doctor::run(globals, console, args),
            Verb::Demo(args) => commands::demo::run(globals, console, args),
            Verb::Bench(args) => commands::bench::run(globals, console, args),
            Verb::Completions(args) => commands::completions::run(globals, console, args),
        };
        exit.map(Status::from)
    }
}
