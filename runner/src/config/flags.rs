//! The flags of `run`, and what they say. Reads the files that flags name; resolves nothing.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::environment::{EnvEntry, EnvError};
use super::file::{self, note_file};
use super::origin::{Given, Origin};
use super::quantity::{bytes, duration_ms};
use super::toolchains::{Choice, ToolWord};
use super::wishes::Wishes;
use super::words::{self, GateChoice};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::task::{BadTaskId, Cleanup, Isolation, Net, Style, TaskId};

/// A longer text is not meant for a person or an agent.
const LONGEST_TEXT: u64 = 4 << 20;

/// What a task is and how it is kept.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    /// The task's id; made up when not given
    #[arg(long, value_name = "ID", value_parser = task_id)]
    pub task: Option<TaskId>,
    /// An agent that is known by name: claude, codex, gemini … (`airlock agents` lists them), or your own
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Where the agent's model is, in place of its usual service: a URL with https, or with http to localhost
    #[arg(long, value_name = "URL")]
    pub model_url: Option<String>,
    /// What the agent is told
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    pub prompt: Option<String>,
    /// A file with what the agent is told; - is standard input
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    /// The task as JSON, in a file or on standard input (-); flags beat it
    #[arg(long, value_name = "FILE|-")]
    pub spec: Option<PathBuf>,
    /// The commit to start from [default: HEAD]
    #[arg(long, value_name = "REV")]
    pub base: Option<String>,
    /// The branch to land on [default: the one checked out now]
    #[arg(long, value_name = "BRANCH")]
    pub into: Option<String>,
    /// Land an accepted delivery at once; alone: fast-forward, else a merge commit
    #[arg(long, value_name = "STYLE", num_args = 0..=1, require_equals = true)]
    pub merge: Option<Option<Style>>,
    /// How far the agent is kept from this host [default: sandbox]
    #[arg(long, value_name = "MODE")]
    pub isolation: Option<Isolation>,
    /// What a room reaches: none, host (recorded as such), or allow:DOMAIN,DOMAIN…; an entry is example.org,
    /// *.example.org, HOST:PORT, NAME.airlock (a credential), or npm pypi crates go github debian [default: none]
    #[arg(long, value_name = "NET", value_parser = words::net)]
    pub net: Option<Net>,
    /// Toolchains that the room has, with their caches: rust, node, python, go, none, or auto, which is what the
    /// repository calls for [default: auto]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = words::toolchain)]
    pub toolchain: Vec<ToolWord>,
    /// Go without the `[setup]` of the configuration
    #[arg(long)]
    pub no_setup: bool,
    /// A further path that the room can read
    #[arg(long, value_name = "PATH")]
    pub ro: Vec<PathBuf>,
    /// A further path that the room can write
    #[arg(long, value_name = "PATH")]
    pub rw: Vec<PathBuf>,
    /// A value for the agent's environment, or the name of one of yours, which is never stored
    #[arg(long, value_name = "K[=V]", value_parser = env_entry)]
    pub env: Vec<EnvEntry>,
    /// Wall time of one attempt, such as 30s, 5m or 2h [default: none]
    #[arg(long, value_name = "DURATION", value_parser = duration_ms)]
    pub timeout: Option<u64>,
    /// Longest time without output, a changed file or processor time, such as 10m [default: none]
    #[arg(long, value_name = "DURATION", value_parser = duration_ms)]
    pub idle_timeout: Option<u64>,
    /// Memory of all processes of the task, files in its private folders too, such as 512M [default: 8G]
    #[arg(long, value_name = "SIZE", value_parser = file::memory)]
    pub memory: Option<u64>,
    /// Processes in the room [default: 512]
    #[arg(long, value_name = "N", value_parser = pids)]
    pub pids: Option<u64>,
    /// Space that the worktree takes on disk, such as 2G [default: 16G]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub disk: Option<u64>,
    /// Files and folders in the worktree [default: 1000000]
    #[arg(long, value_name = "N", value_parser = files)]
    pub files: Option<u64>,
    /// How often a refused delivery goes back to the agent, counting the first [default: 1]
    #[arg(long, value_name = "N", value_parser = attempts)]
    pub attempts: Option<u32>,
    /// What a gate does: fail, warn or off; diagram also images or lint
    #[arg(long, value_name = "NAME=MODE")]
    pub gate: Vec<GateChoice>,
    /// The agent's note about its work, whose claims are checked
    #[arg(long, value_name = "TEXT", conflicts_with = "note_file")]
    pub note: Option<String>,
    /// A file in the worktree that holds the agent's note when it ends
    #[arg(long, value_name = "PATH", value_parser = note_path)]
    pub note_file: Option<String>,
    /// When the checkout is removed [default: on-success]
    #[arg(long, value_name = "WHEN")]
    pub cleanup: Option<Cleanup>,
    /// A protected path that this task may touch
    #[arg(long, value_name = "PATH")]
    pub allow: Vec<String>,
    /// Land although the agent was not confined
    #[arg(long)]
    pub allow_unconfined: bool,
    /// The command to run in place of a named agent
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

fn task_id(text: &str) -> Result<TaskId, BadTaskId> {
    TaskId::try_from(text.to_owned())
}

fn env_entry(text: &str) -> Result<EnvEntry, EnvError> {
    EnvEntry::parse(text)
}

fn pids(text: &str) -> Result<u64, String> {
    let pids = text
        .parse()
        .map_err(|_not_one| format!("{text:?} is not a number"))?;
    file::pids_problem(pids).map_or(Ok(pids), Err)
}

fn files(text: &str) -> Result<u64, String> {
    let files = text
        .parse()
        .map_err(|_not_one| format!("{text:?} is not a number"))?;
    file::files_problem(files).map_or(Ok(files), Err)
}

fn attempts(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_not_one| format!("{text:?} is not a number"))
        .and_then(file::attempts)
}

fn note_path(text: &str) -> Result<String, String> {
    note_file(text).map(|()| text.to_owned())
}

impl Flags {
    /// What the flags say; relative paths start at `here`.
    pub fn wishes(&self, here: &Path) -> Result<Wishes, Failure> {
        fn given<T: Clone>(value: Option<&T>, flag: &'static str) -> Option<Given<T>> {
            value.map(|value| Given::new(value.clone(), Origin::Flag(flag)))
        }
        fn all<T>(values: impl Iterator<Item = T>, flag: &'static str) -> Vec<Given<T>> {
            values
                .map(|value| Given::new(value, Origin::Flag(flag)))
                .collect()
        }
        let prompt = match &self.prompt_file {
            Some(file) => Some(Given::new(
                text_of(file, here)?,
                Origin::Flag("--prompt-file"),
            )),
            None => given(self.prompt.as_ref(), "--prompt"),
        };
        let toolchain = (!self.toolchain.is_empty())
            .then(|| Choice::of(&self.toolchain))
            .transpose()
            .or_fail(Exit::Usage)?;
        let command = (!self.command.is_empty()).then_some(&self.command);
        let mut wishes = Wishes {
            task: given(self.task.as_ref(), "--task"),
            prompt,
            agent: given(self.agent.as_ref(), "--agent"),
            model_url: given(self.model_url.as_ref(), "--model-url"),
            command: given(command, "the command line"),
            base: given(self.base.as_ref(), "--base"),
            into: given(self.into.as_ref(), "--into"),
            merge: given(self.merge.as_ref(), "--merge"),
            isolation: given(self.isolation.as_ref(), "--isolation"),
            net: given(self.net.as_ref(), "--net"),
            no_setup: self.no_setup,
            toolchain: given(toolchain.as_ref(), "--toolchain"),
            ro: all(self.ro.iter().map(|path| here.join(path)), "--ro"),
            rw: all(self.rw.iter().map(|path| here.join(path)), "--rw"),
            env: all(self.env.iter().cloned(), "--env"),
            attempts: given(self.attempts.as_ref(), "--attempts"),
            note: given(self.note.as_ref(), "--note"),
            note_file: given(self.note_file.as_ref(), "--note-file"),
            cleanup: given(self.cleanup.as_ref(), "--cleanup"),
            allow: all(self.allow.iter().cloned(), "--allow"),
            allow_unconfined: self
                .allow_unconfined
                .then(|| Given::new(true, Origin::Flag("--allow-unconfined"))),
            ..Wishes::default()
        };
        wishes.limits.timeout_ms = given(self.timeout.as_ref(), "--timeout");
        wishes.limits.idle_ms = given(self.idle_timeout.as_ref(), "--idle-timeout");
        wishes.limits.memory = given(self.memory.as_ref(), "--memory");
        wishes.limits.pids = given(self.pids.as_ref(), "--pids");
        wishes.limits.disk = given(self.disk.as_ref(), "--disk");
        wishes.limits.files = given(self.files.as_ref(), "--files");
        for choice in &self.gate {
            file::set(
                &mut wishes.gates,
                choice.gate,
                Given::new(choice.word, Origin::Flag("--gate")),
            );
        }
        Ok(wishes)
    }
}

/// The text of a file that a flag names; `-` is standard input.
pub fn text_of(file: &Path, here: &Path) -> Result<String, Failure> {
    let shown = if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    };
    let read = |source: &mut dyn io::Read| {
        let mut bytes = Vec::new();
        source
            .take(LONGEST_TEXT + 1)
            .read_to_end(&mut bytes)
            .map(|_| bytes)
    };
    let bytes = if file == Path::new("-") {
        read(&mut io::stdin().lock())
    } else {
        fs::File::open(here.join(file)).and_then(|mut file| read(&mut file))
    };
    let bytes = bytes.map_err(|error| Failure {
        causes: vec![error.to_string()],
        ..Failure::new(Exit::Usage, format!("cannot read {shown}"))
    })?;
    if bytes.len() as u64 > LONGEST_TEXT {
        return Err(Failure::usage(format!(
            "{shown} is longer than {LONGEST_TEXT} bytes"
        )));
    }
    String::from_utf8(bytes)
        .map_err(|_not_text| Failure::usage(format!("{shown} is not UTF-8 text")))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Run {
        #[command(flatten)]
        flags: Flags,
    }

    fn parse(words: &[&str]) -> Result<Flags, clap::Error> {
        Run::try_parse_from(["run"].iter().chain(words)).map(|run| run.flags)
    }

    fn complaint(words: &[&str]) -> String {
        parse(words)
            .unwrap_err()
            .to_string()
            .lines()
            .next()
            .unwrap()
            .to_owned()
    }

    #[test]
    fn merge_alone_has_no_style() {
        assert_eq!(parse(&[]).unwrap().merge, None);
        assert_eq!(parse(&["--merge", "--", "true"]).unwrap().merge, Some(None));
        assert_eq!(
            parse(&["--merge=squash"]).unwrap().merge,
            Some(Some(Style::Squash))
        );
    }

    #[test]
    fn the_command_keeps_its_own_flags() {
        let flags = parse(&["--net", "host", "--", "sh", "-c", "--net none"]).unwrap();
        assert_eq!(
            flags.command,
            ["sh", "-c", "--net none"].map(OsString::from)
        );
        assert_eq!(flags.net, Some(Net::Host));
    }

    #[test]
    fn bad_values_say_what_is_good() {
        insta::assert_snapshot!(complaint(&["--timeout", "10"]), @r#"error: invalid value '10' for '--timeout <DURATION>': "10" has no unit: write 10s for seconds or 10m for minutes"#);
        insta::assert_snapshot!(complaint(&["--gate", "stubb=warn"]), @r#"error: invalid value 'stubb=warn' for '--gate <NAME=MODE>': "stubb" is not one of commit, tree, stub, audit, diagram, did you mean "stub"?"#);
        insta::assert_snapshot!(complaint(&["--env", "LD_PRELOAD=x"]), @"error: invalid value 'LD_PRELOAD=x' for '--env <K[=V]>': LD_PRELOAD can never be set in a room: it changes how programs are loaded or where git works");
        insta::assert_snapshot!(complaint(&["--pids", "2"]), @"error: invalid value '2' for '--pids <N>': 2 is not from 8 to 1000000");
        insta::assert_snapshot!(complaint(&["--memory", "2M"]), @r#"error: invalid value '2M' for '--memory <SIZE>': "2M" is less than 16M"#);
        insta::assert_snapshot!(complaint(&["--files", "0"]), @"error: invalid value '0' for '--files <N>': 0 is not from 1 to 1000000000");
        insta::assert_snapshot!(complaint(&["--task", "A/B"]), @r#"error: invalid value 'A/B' for '--task <ID>': bad task id "A/B": use 1 to 64 of a-z, 0-9, '-', '_', starting with a letter or digit"#);
        insta::assert_snapshot!(complaint(&["--note-file", "/etc/passwd"]), @r#"error: invalid value '/etc/passwd' for '--note-file <PATH>': "/etc/passwd" is not a path within the worktree, such as notes/done.md"#);
    }

    #[test]
    fn paths_start_at_the_folder_of_the_command() {
        let wishes = parse(&["--ro", "x", "--rw", "/y"])
            .unwrap()
            .wishes(Path::new("/here"))
            .unwrap();
        assert_eq!(wishes.ro[0].value, Path::new("/here/x"));
        assert_eq!(wishes.rw[0].value, Path::new("/y"));
    }
}
