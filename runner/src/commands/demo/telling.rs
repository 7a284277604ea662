//! What the demo says when it is over: a table, the walls, and commands to look further. Pure but
//! for the console it prints on.

use serde_json::{Value, json};

use super::cast::first_reason;
use super::child::Ending;
use super::scene::Scene;
use super::walls::WayOut;
use crate::reporter::words::{duration, shell_word};
use crate::reporter::{Console, Tone};

/// Everything that was found.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The four parts.
    pub(super) endings: Vec<Ending>,
    /// The ways out that were tried.
    pub(super) ways: Vec<WayOut>,
    /// Whether the folder stays.
    pub(super) stays: bool,
}

impl Outcome {
    /// What differs from what was promised.
    pub(super) fn broken(&self) -> Vec<String> {
        let endings = self
            .endings
            .iter()
            .filter(|ending| !ending.part.kept(&ending.object))
            .map(|ending| {
                format!(
                    "{}: promised {}, ended {} ({})",
                    ending.part.name(),
                    ending.part.promise(),
                    ending.object["state"].as_str().unwrap_or("without a state"),
                    why(ending)
                )
            });
        let ways = self.ways.iter().filter(|way| !way.held);
        endings
            .chain(ways.map(|way| format!("escaper: {}: {}", way.attempt, way.proof)))
            .collect()
    }

    /// Prints it all.
    pub(super) fn print(&self, console: &Console, scene: &Scene) {
        if console.is_json() {
            console.json(&self.object(scene));
            return;
        }
        let paint = console.paint();
        let rows: Vec<Vec<String>> = self.endings.iter().map(row).collect();
        console.data("");
        console.table(&["task", "agent", "verdict", "why", "time"], &rows);
        console.data("");
        console.data(&paint.put(Tone::Strong, "What the escaper tried, seen from outside"));
        let rows: Vec<Vec<String>> = self.ways.iter().map(way_row).collect();
        console.table(&["attempt", "room", "what was found"], &rows);
        for line in self.broken() {
            console.data(&format!(
                "{} {line}",
                paint.put(Tone::Bad, "not as promised:")
            ));
        }
        if self.stays {
            console.data("");
            console.data(&paint.put(Tone::Strong, "Where to look next"));
            for line in walk(scene) {
                console.data(&format!("  {line}"));
            }
        }
    }

    fn object(&self, scene: &Scene) -> Value {
        let agents: Vec<Value> = self
            .endings
            .iter()
            .map(|ending| {
                json!({
                    "task": ending.part.name(),
                    "state": ending.object["state"],
                    "exit": ending.object["exit"],
                    "attempts": ending.object["agent"]["attempts"],
                    "promised": ending.part.promise(),
                    "kept": ending.part.kept(&ending.object),
                    "why": why(ending),
                    "ms": u64::try_from(ending.took.as_millis()).unwrap_or(u64::MAX),
                })
            })
            .collect();
        let ways: Vec<Value> = self
            .ways
            .iter()
            .map(|way| json!({"attempt": way.attempt, "held": way.held, "found": way.proof}))
            .collect();
        json!({
            "schema": 1,
            "as_promised": self.broken().is_empty(),
            "folder": self.stays.then(|| scene.folder()),
            "agents": agents,
            "ways_out": ways,
            "differs": self.broken(),
            "next": if self.stays { commands(scene) } else { Vec::new() },
        })
    }
}

fn row(ending: &Ending) -> Vec<String> {
    let state = ending.object["state"].as_str().unwrap_or("?").to_owned();
    let took = u64::try_from(ending.took.as_millis()).unwrap_or(u64::MAX);
    vec![
        ending.part.name().to_owned(),
        ending.part.character().to_owned(),
        state,
        why(ending),
        duration(took),
    ]
}

fn way_row(way: &WayOut) -> Vec<String> {
    let word = if way.held { "held" } else { "ESCAPED" };
    vec![way.attempt.to_owned(), word.to_owned(), way.proof.clone()]
}

/// Why it ended as it did, in one line.
fn why(ending: &Ending) -> String {
    let object = &ending.object;
    let summary = || object["summary"].as_str().unwrap_or_default().to_owned();
    match (object["state"].as_str(), &ending.first_refusal) {
        (Some("landed"), None) => {
            let stat = &object["diff_stat"];
            let target = object["merge"]["target"].as_str().unwrap_or_default();
            format!(
                "every gate passed; {} files, +{} lines, merged into {target}",
                stat["files"], stat["insertions"]
            )
        }
        (Some("landed"), Some(refusal)) => format!("first refused ({refusal}), fixed, merged"),
        (Some("empty"), _) => "got nowhere and delivered nothing".to_owned(),
        (Some("rejected"), _) => first_reason(&object["gates"]).unwrap_or_else(summary),
        _ => summary(),
    }
}

/// What to look at, and what it shows.
const STEPS: [(&str, &str); 5] = [
    (
        "show boaster",
        "files, gates, claims beside measures, evidence",
    ),
    (
        "events boaster",
        "how it was refused, told why, and judged again",
    ),
    ("logs escaper", "what the escaper believes it did"),
    ("diff artist", "the drawing that was refused"),
    (
        "evidence verify honest",
        "the signed evidence against the commit",
    ),
];

/// The same as lines to copy into a shell, each with what it shows.
fn walk(scene: &Scene) -> Vec<String> {
    let program = program();
    let mut lines = vec![
        format!("cd {}", shell_word(&scene.repository())),
        format!("export AIRLOCK_STATE={}", shell_word(&scene.state())),
    ];
    let steps = STEPS.map(|(step, what)| (format!("{program} {step}"), what));
    let log = (
        "git log --graph --stat".to_owned(),
        "two agents' work, merged side by side",
    );
    let remove = format!("rm -rf {}", shell_word(scene.folder()));
    let width = steps.iter().map(|(step, _)| step.len()).max().unwrap_or(0);
    let told = |(step, what): (String, &str)| format!("{step:<width$}   # {what}");
    lines.extend(steps.into_iter().chain([log]).map(told));
    lines.push(format!(
        "{remove}   # the end; nothing of it is anywhere else"
    ));
    lines
}

/// Commands that work as they stand, from anywhere.
fn commands(scene: &Scene) -> Vec<String> {
    let state = shell_word(&scene.state());
    let repository = shell_word(&scene.repository());
    let airlock = format!("AIRLOCK_STATE={state} {} -C {repository}", program());
    STEPS
        .iter()
        .map(|(step, _)| format!("{airlock} {step}"))
        .collect()
}

/// How this program was called, so that the commands above find it.
fn program() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let called = std::path::PathBuf::from(called);
    if called.components().count() < 2 {
        return "airlock".to_owned();
    }
    shell_word(&std::path::absolute(&called).unwrap_or(called))
}
