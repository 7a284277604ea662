//! One agent's run as a child process: the real command line, its answer, and how long it took.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::cast::Part;
use super::scene::Scene;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::reporter::Lane;

/// How often a merge is tried again when the other one was quicker.
const MERGES: u32 = 5;

/// What became of a part.
#[derive(Debug)]
pub(super) struct Ending {
    /// Whose.
    pub(super) part: Part,
    /// The object that the run ended with.
    pub(super) object: Value,
    /// Why the first attempt was refused, if it was.
    pub(super) first_refusal: Option<String>,
    /// From start to end.
    pub(super) took: Duration,
}

/// Plays one part to its end.
pub(super) fn play(scene: &Scene, part: Part, lane: &Lane) -> Result<Ending, Failure> {
    let begun = Instant::now();
    let mut run = scene.airlock();
    run.args([
        "run",
        "--task",
        part.name(),
        "--merge",
        "--timeout",
        "60s",
        "--attempts",
    ]);
    run.arg(part.attempts().to_string())
        .args(["--", "sh"])
        .arg(part.script_path());
    let mut object = answer(run, lane)?;
    for _ in 0..MERGES {
        if !was_overtaken(&object) {
            break;
        }
        let mut merge = scene.airlock();
        merge.args(["merge", part.name()]);
        object = answer(merge, lane)?;
    }
    let first_refusal = first_refusal(scene, part)?;
    Ok(Ending {
        part,
        object,
        first_refusal,
        took: begun.elapsed(),
    })
}

/// Whether a delivery is good but the target moved while it was landing.
fn was_overtaken(object: &Value) -> bool {
    object["state"] == "accepted" && object["failure"]["exit"] == serde_json::json!(Exit::Conflict)
}

/// Runs a command of ours, shows what it says, and takes its answer.
pub(in crate::commands) fn answer(mut command: Command, lane: &Lane) -> Result<Value, Failure> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .or_fail(Exit::Internal)?;
    let talk = BufReader::new(child.stderr.take().expect("stderr was asked to be a pipe"));
    // The answer is one line at the very end; the pipe holds it until the talk is over.
    let mut last = String::new();
    for line in talk.split(b'\n') {
        let line = line.or_fail(Exit::Internal)?;
        last = String::from_utf8_lossy(&line).into_owned();
        lane.say(&last);
    }
    let mut data = String::new();
    let mut pipe = child.stdout.take().expect("stdout was asked to be a pipe");
    pipe.read_to_string(&mut data).or_fail(Exit::Internal)?;
    let status = child.wait().or_fail(Exit::Internal)?;
    let object: Value = data
        .lines()
        .last()
        .and_then(|line| serde_json::from_str(line).ok())
        .unwrap_or_default();
    if object["exit"] == Exit::SandboxUnavailable.code()
        && let Ok(failure) = serde_json::from_value(object["failure"].clone())
    {
        // Without a room there is nothing to show.
        return Err(failure);
    }
    if object["state"].is_string() {
        return Ok(object);
    }
    Err(refused(&object, &format!("{status}: {last}")))
}

/// A run that could not even begin, as its own failure.
fn refused(object: &Value, status: &str) -> Failure {
    let error = &object["error"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let exit = match object["exit"].as_u64() {
        Some(code) if code == u64::from(Exit::SandboxUnavailable.code()) => {
            Exit::SandboxUnavailable
        }
        Some(_) | None => Exit::Internal,
    };
    let what = text(&error["what"])
        .unwrap_or_else(|| format!("a run of the demo gave no answer ({status})"));
    let mut failure = Failure::new(exit, what);
    failure.causes.extend(
        error["causes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(text),
    );
    failure.next = text(&error["next"]);
    failure
}

/// The reason that an earlier attempt was given back, from the recorded events.
fn first_refusal(scene: &Scene, part: Part) -> Result<Option<String>, Failure> {
    let output = scene
        .airlock()
        .args(["events", part.name()])
        .output()
        .or_fail(Exit::Internal)?;
    let records = String::from_utf8_lossy(&output.stdout);
    let records = records
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut judgements = records.filter(|record| record["event"] == "judged");
    Ok(judgements.find_map(|record| super::cast::first_reason(&record["judgement"]["gates"])))
}
