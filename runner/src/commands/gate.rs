//! `gate`: judges any commit against a base. For CI and for people: needs no task, no room and no
//! state. The profile comes from the base commit's airlock.toml and the user's own file, so the
//! judged commit cannot change how it is judged.

use std::path::{Path, PathBuf};

use gates::report::{Format, Report, Role, Style};
use gates::{Gate, Verdict};
use worktrees::{Oid, Repository};

use crate::cli::Globals;
use crate::config::{self, Wishes};
use crate::delivery::{self, Input};
use crate::durable;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::judging;
use crate::place::here;
use crate::reporter::{Console, Paint, Tone};

/// Judge any commit against a base; for CI, needs no task.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  airlock gate                                   HEAD against where it left its upstream, or its parent
  airlock gate --base origin/main --format github
  airlock gate --base HEAD~20 --format json
  airlock gate --format sarif --output airlock.sarif
  airlock gate explain stub

Exit codes: 0 accepted, 10 a gate refused, 14 a gate could not check."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The commit to compare with [default: the merge base with the upstream, else the parent]
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// The commit to judge
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    head: String,
    /// A file with the author's note, whose claims are checked; - is standard input
    #[arg(long, value_name = "FILE")]
    note_file: Option<PathBuf>,
    /// text, json, sarif, junit, github, gitlab or html
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Write the report here instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What a gate does here: fail, warn or off; diagram also images or lint
    #[arg(long, value_name = "NAME=MODE")]
    gate: Vec<config::words::GateChoice>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Say what a gate checks and why, how to set it, and what it cannot see
    Explain {
        /// commit, tree, stub, audit or diagram
        gate: Gate,
    },
}

/// Judges, or explains.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let Args {
        verb,
        base,
        head,
        note_file,
        format,
        output,
        gate,
    } = args;
    if let Some(Verb::Explain { gate }) = verb {
        let text = gates::explain(gate);
        if console.is_json() {
            console.json(&serde_json::json!({"gate": gate.name(), "text": text}));
        } else {
            console.raw(text.as_bytes());
        }
        return Ok(Exit::Ok);
    }
    let directory = std::path::absolute(here(globals)).or_fail(Exit::Usage)?;
    let repository = crate::place::repository(globals)?;
    let head = crate::place::resolve(&repository, &head)?;
    let base = match &base {
        Some(base) => crate::place::resolve(&repository, base)?,
        None => usual_base(&repository, head)?,
    };
    let note = note_file
        .as_deref()
        .map(|file| config::text_of(file, &directory))
        .transpose()?;
    let files = config::files(&repository, base)?;
    let mut flags = Wishes::default();
    for choice in &gate {
        let word = config::Given::new(choice.word, config::Origin::Flag("--gate"));
        config::set_gate(&mut flags.gates, choice.gate, word);
    }
    let input = Input {
        task: None,
        run: None,
        base,
        commit: head,
        problems: &[],
        unconverted: &[],
        shadow: None,
        note,
        profile: config::profile(&[&flags], &files.user, &files.repository),
        protected: None,
    };
    let delivery = delivery::assemble(&repository, &input)?;
    let judgement = judging::judge(&repository, &delivery)?;
    let report = Report::of(&delivery, &judgement);
    let usual = if console.is_json() {
        Format::Json
    } else {
        Format::Text
    };
    write(
        console,
        &report,
        format.unwrap_or(usual),
        output.as_deref(),
        &directory,
    )?;
    Ok(match judgement.verdict() {
        Verdict::Accepted => Exit::Ok,
        Verdict::Rejected => Exit::GateFailed,
        Verdict::CouldNotCheck => Exit::CouldNotCheck,
    })
}

fn write(
    console: &Console,
    report: &Report,
    format: Format,
    output: Option<&Path>,
    directory: &Path,
) -> Result<(), Failure> {
    match output {
        Some(file) => {
            let file = directory.join(file);
            durable::write(&file, report.render(format).as_bytes(), 0o644).or_fail(Exit::Usage)?;
            console.talk(&format!("report written to {}", file.display()));
        }
        None if format == Format::Text => {
            console.raw(report.text(&Painted(console.paint())).as_bytes());
        }
        None => console.raw(report.render(format).as_bytes()),
    }
    Ok(())
}

/// Where a commit left its upstream; else its first parent.
fn usual_base(repository: &Repository, head: Oid) -> Result<Oid, Failure> {
    let parents = repository.commit_facts(head).or_fail(Exit::Usage)?.parents;
    let Some(parent) = parents.first().copied() else {
        return Err(
            Failure::usage(format!("commit {head} has no parent to compare with"))
                .advise("give --base REV; in CI, fetch more than one commit"),
        );
    };
    match repository.resolve("@{upstream}") {
        Ok(upstream) => Ok(shared(repository, head, upstream)?.unwrap_or(parent)),
        Err(_no_upstream) => Ok(parent),
    }
}

/// The first commit on the way back from `head` that `upstream` has too; none when `upstream` has
/// `head` itself, or nothing is found within reach.
fn shared(repository: &Repository, head: Oid, upstream: Oid) -> Result<Option<Oid>, Failure> {
    const REACH: usize = 2_000;
    let has = |commit| {
        let ancestor = commit == upstream
            || repository
                .is_ancestor(commit, upstream)
                .or_fail(Exit::Usage)?;
        Ok::<bool, Failure>(ancestor)
    };
    if has(head)? {
        return Ok(None);
    }
    let mut seen = std::collections::HashSet::from([head]);
    let mut waiting = std::collections::VecDeque::from([head]);
    while let Some(commit) = waiting.pop_front() {
        if seen.len() > REACH {
            return Ok(None);
        }
        for parent in repository
            .commit_facts(commit)
            .or_fail(Exit::Usage)?
            .parents
        {
            if has(parent)? {
                return Ok(Some(parent));
            }
            if seen.insert(parent) {
                waiting.push_back(parent);
            }
        }
    }
    Ok(None)
}

/// The terminal's colours for a report.
struct Painted(Paint);

impl Style for Painted {
    fn paint(&self, role: Role, text: &str) -> String {
        let tone = match role {
            Role::Title => Tone::Strong,
            Role::Good => Tone::Good,
            Role::Warning => Tone::Doubtful,
            Role::Bad => Tone::Bad,
            Role::Faint | Role::Code => Tone::Quiet,
            Role::Place | Role::Help => return text.to_owned(),
        };
        self.0.put(tone, text)
    }
}
