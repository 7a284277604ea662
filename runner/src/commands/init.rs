//! `init`: a commented airlock.toml for the repository. Writes that one file and never over one that
//! is there.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use crate::cli::Globals;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::reporter::Console;

/// Write a commented airlock.toml.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  airlock init                    in the top folder of the checkout
  airlock init --diagram lint     for a repository that renders Mermaid or PlantUML

Tasks read the file from the commit that they start from, so commit it.")]
pub struct Args {
    /// What the diagram gate asks of figures: real images, lint for rendered sources, or off
    #[arg(long, value_name = "MODE", value_parser = ["images", "lint", "off"])]
    diagram: Option<String>,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

const NAME: &str = "airlock.toml";

/// Writes the file.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let repository = crate::place::repository(globals)?;
    let folder = repository.checkout().ok_or_else(|| {
        Failure::usage("a bare repository has no folder to write airlock.toml into")
            .advise("write it in a checkout and commit it")
    })?;
    let path = folder.join(NAME);
    if !args.force && path.symlink_metadata().is_ok() {
        return Err(Failure::new(
            Exit::Conflict,
            format!("{} is already there", path.display()),
        )
        .advise("edit it, or replace it with --force"));
    }
    let diagram = args.diagram.unwrap_or_else(|| asked(console));
    write(&path, &text(&diagram), args.force)?;
    if console.is_json() {
        console.json(&serde_json::json!({"path": path, "diagram": diagram}));
    } else {
        console.data(&path.display().to_string());
    }
    console.talk("commit it: tasks read it from the commit that they start from");
    Ok(Exit::Ok)
}

fn asked(console: &Console) -> String {
    let rendered =
        console.confirm("Do your documents hold Mermaid or PlantUML that your site renders?");
    if rendered == Some(true) {
        "lint".to_owned()
    } else {
        "images".to_owned()
    }
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let fail = |error: io::Error| Failure {
        causes: vec![error.to_string()],
        ..Failure::new(Exit::Usage, format!("cannot write {}", path.display()))
    };
    if force {
        return crate::durable::write(path, text.as_bytes(), 0o644).or_fail(Exit::Usage);
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(fail)?;
    file.write_all(text.as_bytes()).map_err(fail)
}

/// The file; what is commented out shows the defaults.
fn text(diagram: &str) -> String {
    let chosen = if diagram == "images" { "# " } else { "" };
    format!(
        r#"# How Airlock runs and judges tasks in this repository. `airlock run --help` explains the words.
#
# Tasks read this file from the commit that they start from. It may narrow what a user's own
# configuration allows; what widens it (net, ro, rw, env, agents, allow) needs `airlock trust`.

[task]
# branch = "airlock/{{run}}/{{task}}"     # branch of a delivery; {{agent}} is known too
# attempts = 1                        # how often a refused delivery goes back to the agent
# timeout = "2h"                      # wall time of one attempt; none by default
# idle_timeout = "10m"                # without output, a changed file or processor time; none by default
# cleanup = "on-success"              # when the checkout goes: always, on-success, never
# note_file = "NOTE.md"               # where agents leave their note, within the tree

# Commands that prepare a tree, such as installing packages: run once, in a room of their own on the base, and again
# when an input changes. Each task gets a copy of what they leave in the folders that are kept.
[setup]
# commands = ["npm ci"]
# inputs = ["package-lock.json"]      # lock files and manifests that the base has
# keep = ["node_modules"]             # also .venv and target; folders that git ignores
# net = "none"                        # what the commands reach; more needs `airlock trust`
# timeout = "15m"

[sandbox]
# net = "none"                        # "host", or what is let through: ["npm", "example.org", "*.example.net:8443"]
# ro = ["/opt/toolchain"]             # further paths that a room can read
# rw = []                             # ... and write
# env = ["CI=true"]                   # K=V, or K to hand over the user's value
# toolchain = "auto"                  # what the base calls for; "none", or of ["rust", "node", "python", "go"]
# memory = "8G"                       # of all processes and private folders of a task
# pids = 512
# disk = "16G"                        # of the worktree
# files = 1000000                     # in the worktree
# home = "1G"
# tmp = "1G"
# file_size = "512M"
# output = "16M"

# Each gate: "fail" refuses, "warn" only says so, "off" does not run.
[gates]
# commit = "fail"
# tree = "fail"
# skip = ["tests/data/"]              # files that no gate judges; each is recorded

[gates.stub]
# mode = "fail"
# python = "3.14"                     # the version that Python files must be valid for

[gates.audit]
# mode = "fail"
# max_file = "10M"                    # a larger file is refused as not judgeable

[gates.diagram]
# "images": a figure is a real image in the tree.
# "lint": labelled Mermaid, PlantUML and the like are allowed, for sites that render them.
{chosen}mode = "{diagram}"

# A section [agent.NAME] with a command is an agent of this repository's own; its command, domains and
# environment need `airlock trust`. Your own agents, and what they sign in with, stand in your
# config.toml: `airlock agents show NAME` prints a profile to start from.

# Paths that take effect on a host, in CI or on how work is judged (hooks, CI files, editor tasks,
# this file) are protected already.
[protect]
# paths = ["Makefile", "deploy/"]
# allow = []

[merge]
# into = "main"                       # else the branch that is checked out when a task starts
# style = "auto"                      # auto, ff, squash, rebase, merge
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Source, asks, read_file};

    #[test]
    fn the_file_reads_as_nothing_but_the_defaults() {
        let wishes = read_file(Source::Repository, text("images").as_bytes(), None).unwrap();
        assert!(asks(&wishes).is_empty());
        assert!(wishes.gates.diagram.is_none() && wishes.branch.is_none());
    }

    #[test]
    fn every_line_is_good_once_it_is_uncommented() {
        let lines: Vec<String> = text("lint")
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(setting)
                    if setting
                        .split_once(" = ")
                        .is_some_and(|(key, _)| !key.contains(' ')) =>
                {
                    setting.to_owned()
                }
                Some(_) | None => line.to_owned(),
            })
            .collect();
        let wishes = read_file(Source::Repository, lines.join("\n").as_bytes(), None).unwrap();
        assert_eq!(
            wishes.gates.diagram.unwrap().value,
            gates::DiagramMode::Lint
        );
        assert_eq!(wishes.attempts.unwrap().value, 1);
        assert_eq!(wishes.setup.commands.len(), 1);
        assert_eq!(wishes.setup.timeout_ms.unwrap().value, 900_000);
        assert!(wishes.toolchain.unwrap().value.detect);
        assert_eq!(wishes.limits.file_size.unwrap().value, 512 << 20);
        assert_eq!(wishes.gates.modes.len(), 4);
    }
}
