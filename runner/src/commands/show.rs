//! `show`: everything about one task that a person, a script or a pull request wants. Changes
//! nothing.

use crate::cli::Globals;
use crate::exit::{Exit, Failure};
use crate::place::Place;
use crate::reporter::report::{self, Depth};
use crate::reporter::{Console, comment};

/// Show one task.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  airlock show 4f2k                the report
  airlock show 4f2k --json         the object that `run --json` ends with
  airlock show 4f2k --markdown     for a comment on a pull request; agent text is inert")]
pub struct Args {
    /// The task, or the start of its id.
    task: String,
    /// As Markdown, in which nothing that an agent wrote is a link, a mention or HTML.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// Shows it.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let Args { task, markdown } = args;
    let place = Place::find(globals)?;
    let view = place.task(&task)?;
    if console.is_json() {
        console.json(&view.object());
    } else if markdown {
        console.data(&comment(&view));
    } else {
        report::print(console, &view, Depth::Full);
        if super::ls::unattended(&place, &view) {
            console.warn(&super::ls::explanation(&view.spec.task));
        }
    }
    Ok(Exit::Ok)
}
