//! `trust`: what the repository's airlock.toml asks for beyond the user's own configuration, and
//! whether the user agrees. The file is the one of HEAD, which is what a task starts from.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::cli::Globals;
use crate::config::{self, Ask};
use crate::exit::{Exit, Failure};
use crate::place::Place;
use crate::reporter::Console;
use crate::trust::Trust;

/// Allow what this repository's airlock.toml asks for beyond your own configuration.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  airlock trust             show what is asked for, and ask whether to allow it
  airlock trust --yes       allow it without a question
  airlock trust --revoke    take it back

Agreement is to exactly what is shown: when airlock.toml asks for anything else, you are asked again.")]
pub struct Args {
    /// Agree without a question
    #[arg(long, conflicts_with = "revoke")]
    yes: bool,
    /// Take back every agreement with this repository
    #[arg(long)]
    revoke: bool,
    /// Read airlock.toml from this commit
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    base: String,
}

/// Shows, agrees or revokes.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let Args { yes, revoke, base } = args;
    let place = Place::find(globals)?;
    let trust = Trust::of(&place.root);
    let repository = place.repository.common_dir();
    if revoke {
        let count = trust.revoke(repository)?;
        if console.is_json() {
            console.json(&json!({"revoked": count}));
        } else if count == 0 {
            console.data("there was nothing to take back");
        } else {
            console.data(
                "taken back: airlock.toml may only narrow what your own configuration allows",
            );
        }
        return Ok(Exit::Ok);
    }
    let base = crate::place::resolve(&place.repository, &base)?;
    let asks = config::asks(&config::files(&place.repository, base)?.repository);
    let mut trusted = asks.is_empty() || trust.covers(repository, &asks)?;
    if !console.is_json() {
        show(console, &place, &asks, trusted);
    }
    if !trusted {
        let agreed = yes || console.confirm("Allow it?") == Some(true);
        if agreed {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            trust.agree(
                repository,
                &asks,
                i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
            )?;
            trusted = true;
            console.talk("allowed, for this repository and exactly these wishes");
        }
    }
    if console.is_json() {
        let lines: Vec<String> = asks.iter().map(ToString::to_string).collect();
        let digest = crate::trust::digest(repository, &asks);
        console.json(&json!({"asks": lines, "digest": digest, "trusted": trusted}));
    }
    Ok(if trusted { Exit::Ok } else { Exit::Usage })
}

fn show(console: &Console, place: &Place, asks: &[Ask], trusted: bool) {
    if asks.is_empty() {
        console.data(&format!(
            "airlock.toml of {} asks for nothing beyond your own configuration",
            place.repository.name()
        ));
        return;
    }
    let state = if trusted {
        "and you allow it"
    } else {
        "and you have not allowed it"
    };
    console.data(&format!(
        "airlock.toml of {} asks for this, {state}:",
        place.repository.name()
    ));
    for ask in asks {
        console.data(&format!("  {ask}"));
    }
    if !trusted {
        console.talk("`airlock trust --yes` allows exactly this");
    }
}
