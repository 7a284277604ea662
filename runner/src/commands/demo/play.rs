//! The course of the demo: set the scene, play the four parts side by side, look at the walls, tell.

use std::path::PathBuf;
use std::thread;

use super::cast::Part;
use super::child::{self, Ending};
use super::scene::Scene;
use super::telling::Outcome;
use super::walls::Walls;
use crate::cli::Globals;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::place::here;
use crate::reporter::{Console, Lane, Tone};

/// Four scripted agents in real rooms: what Airlock lets out and what it holds.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  airlock demo                      everything stays in a temporary folder, to look at
  airlock demo --folder ./demo      the same in a folder of your choice
  airlock demo --remove --json      for a script: nothing stays")]
pub struct Args {
    /// The folder to play in; it must not exist [default: a fresh temporary one].
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Remove the folder at the end.
    #[arg(long)]
    remove: bool,
}

/// Plays it.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let Args { folder, remove } = args;
    let scene = Scene::set(folder.map(|folder| here(globals).join(folder)))?;
    let outcome = play(console, &scene, !remove);
    if let Ok(outcome) = &outcome {
        outcome.print(console, &scene);
    }
    if remove || outcome.is_err() {
        worktrees::remove_tree(scene.folder()).or_fail(Exit::Internal)?;
    }
    let as_promised = outcome?.broken().is_empty();
    Ok(if as_promised {
        Exit::Ok
    } else {
        Exit::Internal
    })
}

fn play(console: &Console, scene: &Scene, stays: bool) -> Result<Outcome, Failure> {
    let walls = Walls::raise(scene)?;
    console.talk(&format!(
        "four agents work side by side on {}",
        scene.repository().display()
    ));
    let endings: Result<Vec<Ending>, Failure> = thread::scope(|scope| {
        let parts = Part::ALL.map(|part| scope.spawn(move || act(console, scene, part)));
        let joined = parts.map(|part| {
            part.join()
                .expect("a part reports its failures and does not panic")
        });
        joined.into_iter().collect()
    });
    let endings = endings?;
    let ways = walls.inspect(scene)?;
    Ok(Outcome {
        endings,
        ways,
        stays,
    })
}

fn act(console: &Console, scene: &Scene, part: Part) -> Result<Ending, Failure> {
    let lane = Lane::begin(console, part.name());
    let ending = child::play(scene, part, &lane);
    match &ending {
        Ok(ending) => {
            let tone = if part.kept(&ending.object) {
                Tone::Good
            } else {
                Tone::Bad
            };
            lane.end(tone, ending.object["summary"].as_str().unwrap_or_default());
        }
        Err(failure) => lane.end(Tone::Bad, &failure.what),
    }
    ending
}
