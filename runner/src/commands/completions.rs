//! `completions`: a script that teaches a shell the verbs and flags.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::{Cli, Globals};
use crate::exit::{Exit, Failure};
use crate::reporter::Console;

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  airlock completions bash > ~/.local/share/bash-completion/completions/airlock
  airlock completions zsh > ~/.zfunc/_airlock
  airlock completions fish > ~/.config/fish/completions/airlock.fish")]
pub struct Args {
    /// Which shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints it.
#[expect(
    clippy::needless_pass_by_value,
    reason = "every verb is called in the same way; this one has only a word to copy"
)]
pub fn run(_globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let Args { shell } = args;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "airlock", &mut script);
    console.raw(&script);
    Ok(Exit::Ok)
}
