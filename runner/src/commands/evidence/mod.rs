//! `evidence`: reads and checks what the engine recorded about deliveries. Trusts a statement only
//! after its signature was checked; writes nothing but what `export` is asked for.

mod check;
mod find;
mod show;

use std::path::PathBuf;

use serde_json::json;

use crate::cli::Globals;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::StateRoot;
use crate::keyring;
use crate::place::here;
use crate::reporter::Console;

/// Read and check evidence.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  airlock evidence verify HEAD                  signature, and every file against the objects here
  airlock evidence verify 4f2k                  also that the note in git and our own file agree
  airlock evidence verify --key team.pem HEAD   by somebody else's key
  airlock evidence export HEAD > bundle.jsonl   for another verifier
  airlock evidence key > airlock.pem            the public key that others check with

Notes do not travel by themselves: git fetch origin refs/notes/airlock:refs/notes/airlock

Exit codes of verify: 0 it holds, 13 it does not, 3 there is none, 14 it could not be checked.")]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Show what was recorded, after checking who signed it
    Show(Target),
    /// Check signature, subjects and objects
    Verify(Target),
    /// Print the signed envelopes, one a line
    Export {
        /// What is looked at
        #[command(flatten)]
        target: Target,
        /// The statement of the newest envelope instead, as its signature covers it
        #[arg(long)]
        statement: bool,
        /// Write here instead of standard output
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Print the public key that checks what is signed here
    Key,
}

/// What is looked at, and by whose key.
#[derive(Debug, clap::Args)]
struct Target {
    /// A commit, a tree, a task's id, or a file with envelopes
    #[arg(default_value = "HEAD")]
    of: String,
    /// A public key (PEM) that is trusted; repeat for several [default: your own]
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
}

/// Does what the verb says.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let directory = std::path::absolute(here(globals)).or_fail(Exit::Usage)?;
    match args.verb {
        Verb::Key => key(console),
        Verb::Show(target) => {
            let found = find::find(globals, &directory, &target.of)?;
            let keys = check::keys(&target.key, &directory)?;
            show::show(console, &check::signed(&found, &keys)?)
        }
        Verb::Verify(target) => {
            let found = find::find(globals, &directory, &target.of)?;
            let keys = check::keys(&target.key, &directory)?;
            let checked = check::check(&found, &keys)?;
            show::verified(console, &found, &checked);
            Ok(Exit::Ok)
        }
        Verb::Export {
            target,
            statement,
            output,
        } => {
            let found = find::find(globals, &directory, &target.of)?;
            let bytes = if statement {
                let keys = check::keys(&target.key, &directory)?;
                check::signed(&found, &keys)?.evidence.bytes().to_vec()
            } else {
                let lines: Vec<String> = found
                    .envelopes
                    .iter()
                    .map(|line| format!("{line}\n"))
                    .collect();
                lines.concat().into_bytes()
            };
            match output {
                Some(file) => crate::durable::write(&directory.join(file), &bytes, 0o644)
                    .or_fail(Exit::Usage)?,
                None => console.raw(&bytes),
            }
            Ok(Exit::Ok)
        }
    }
}

fn key(console: &Console) -> Result<Exit, Failure> {
    let root = StateRoot::from_env()?;
    let public = keyring::open(&root)?.public();
    if console.is_json() {
        console.json(&json!({"keyid": public.id(), "pem": public.to_pem()}));
    } else {
        console.raw(public.to_pem().as_bytes());
        console.talk(&format!("key id {}", public.id()));
    }
    Ok(Exit::Ok)
}
