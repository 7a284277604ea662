//! `agents test`: one agent in the room that it gets by default, against a model that follows a
//! script, on a repository of its own. Needs no key and no network: the credential is made up, and the
//! proxy adds it as it would add a real one. Leaves nothing.

mod scene;
mod script;
mod verdict;

use std::time::Instant;

use serde_json::{Value, json};

use self::scene::Scene;
use self::verdict::Point;
use super::{look, show};
use crate::commands::demo;
use crate::config::{Agent, Endpoint, Given};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::hex;
use crate::model;
use crate::reporter::{Console, Lane, Tone};

/// Run an agent against a scripted model, in a real room, without key or network.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  airlock agents test claude
  airlock agents test opencode --model openai     by another of its endpoints
  airlock agents test codex --json                for a script

The agent edits a file with its own tools, runs git status, a test and git commit, and ends; the work
is sealed, judged and landed in a repository that is thrown away.

Exit codes: 0 all of it worked, 20 something did not, 3 not installed, 14 the agent cannot be told
where its model is, 21 no end in time, 30 no room on this host.")]
pub(super) struct Args {
    /// The agent
    name: String,
    /// Which of its endpoints [default: its first]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Wall time
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    timeout: String,
}

/// Tests it.
pub(super) fn run(console: &Console, args: &Args) -> Result<Exit, Failure> {
    let began = Instant::now();
    let agent = super::named(&args.name)?;
    let caller = std::env::vars_os().collect();
    let found = look::one(args.name.clone(), agent, &caller).asked(&caller);
    let installed = installed(&found)?;
    let endpoint = endpoint(&found.agent.value, args)?;
    let tested = Tested::with(&found.agent, endpoint)?;
    let (task, heard, log) = tested.perform(console, args)?;
    let mut points = vec![installed];
    points.extend(verdict::points(
        &heard,
        &task,
        endpoint.dialect,
        &tested.key,
    ));
    let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let good = points.iter().all(|point| point.good != Some(false));
    tell(console, &found, &points, took);
    if !good && !console.is_json() {
        console.talk("the end of what the agent printed:");
        console.agent_lines(&log);
    }
    Ok(match (good, task["state"].as_str()) {
        (true, _) => Exit::Ok,
        (false, Some("timeout")) => Exit::Timeout,
        (false, _) => Exit::AgentFailed,
    })
}

fn installed(found: &look::Found) -> Result<Point, Failure> {
    let Some(program) = &found.program else {
        let what = format!("agent {} is not installed", found.name);
        let install = found.agent.value.install.as_deref();
        let advice = install.map_or_else(
            || "install it".to_owned(),
            |how| format!("install it: {how}"),
        );
        return Err(Failure::new(Exit::NotFound, what).advise(advice));
    };
    let version = found
        .version
        .as_ref()
        .map_or("no version".to_owned(), ToString::to_string);
    let detail = format!("{version} at {}", program.display());
    // A program that says no version is tried all the same.
    Ok(Point::new(
        "installed",
        found.supported() != Some(false),
        detail,
    ))
}

fn endpoint<'a>(agent: &'a Agent, args: &Args) -> Result<&'a Endpoint, Failure> {
    let models = agent.models.iter();
    let mut fitting =
        models.filter(|model| args.model.as_ref().is_none_or(|name| *name == model.name));
    fitting.next().ok_or_else(|| {
        let names: Vec<&str> = agent.models.iter().map(|model| model.name.as_str()).collect();
        match (&args.model, names.is_empty()) {
            (Some(name), false) => Failure::usage(format!("agent {} has no endpoint {name:?}", args.name))
                .advise(format!("it has {}", names.join(", "))),
            (_, true) | (None, false) => Failure::new(
                Exit::CouldNotCheck,
                format!("agent {} cannot be tested: its profile knows no way to tell it where its model is", args.name),
            )
            .advise("it speaks to its own service only"),
        }
    })
}

/// One test.
struct Tested {
    scene: Scene,
    /// Variables of the caller's that could be credentials; none of them takes part.
    without: Vec<String>,
    variable: String,
    key: String,
}

impl Tested {
    fn with(agent: &Given<Agent>, endpoint: &Endpoint) -> Result<Self, Failure> {
        // The profile as it is, but for what it takes from the user's home and the other endpoints.
        let profile = Agent {
            copy: Vec::new(),
            models: vec![endpoint.clone()],
            ..agent.value.clone()
        };
        let variable = endpoint.keys.first().map(|key| key.variable.clone());
        let variable = variable.ok_or_else(|| {
            let what = format!("endpoint {} has no key", endpoint.name);
            Failure::usage(what).advise("say in its profile which variable holds one")
        })?;
        let keys = agent.value.sign_in().map(str::to_owned);
        Ok(Self {
            scene: Scene::set(&show::text("tested", &profile))?,
            without: keys.collect(),
            variable,
            key: made_up_key()?,
        })
    }

    /// Runs the whole task; answers it, what the model heard, and the end of the agent's output.
    fn perform(
        &self,
        console: &Console,
        args: &Args,
    ) -> Result<(Value, Vec<model::Heard>, String), Failure> {
        let script = script::script(&self.scene.repository());
        let served = model::serve(script).or_fail(Exit::Internal)?;
        let mut run = self.scene.airlock(&self.without);
        run.env(&self.variable, &self.key)
            .args([
                "--json", "run", "--task", "test", "--agent", "tested", "--merge",
            ])
            .args(["--timeout", &args.timeout, "--prompt", script::PROMPT])
            .args([
                "--model-url",
                &format!("http://localhost:{}", served.port()),
            ]);
        if console.verbosity() == 0 && !console.is_terminal() {
            run.arg("--quiet");
        }
        let lane = Lane::begin(console, &args.name);
        let answer = demo::answer(run, &lane);
        let tone = if answer.is_ok() {
            Tone::Good
        } else {
            Tone::Bad
        };
        lane.end(tone, "has ended");
        let task = answer?;
        Ok((task, served.heard(), self.log()))
    }

    fn log(&self) -> String {
        let mut logs = self.scene.airlock(&self.without);
        logs.args(["logs", "test", "--tail", "20"]);
        let output = logs
            .output()
            .map(|output| output.stdout)
            .unwrap_or_default();
        String::from_utf8_lossy(&output).into_owned()
    }
}

/// A credential that nobody has.
fn made_up_key() -> Result<String, Failure> {
    let mut chance = [0u8; 12];
    rustix::rand::getrandom(&mut chance, rustix::rand::GetRandomFlags::empty())
        .or_fail(Exit::Internal)?;
    Ok(format!("made-up-{}", hex::of(&chance)))
}

fn tell(console: &Console, found: &look::Found, points: &[Point], took: u64) {
    let good = points.iter().all(|point| point.good != Some(false));
    if console.is_json() {
        let steps: Vec<Value> = points.iter().map(Point::object).collect();
        let version = found.version.as_ref().map(ToString::to_string);
        console.json(&json!({
            "schema": 1, "agent": found.name, "version": version, "ok": good, "ms": took, "steps": steps,
        }));
        return;
    }
    let row = |point: &Point| {
        let state = match point.good {
            Some(true) => "ok",
            Some(false) => "failed",
            None => "-",
        };
        vec![
            point.name.to_owned(),
            state.to_owned(),
            point.detail.clone(),
        ]
    };
    console.table(
        &["step", "", "detail"],
        &points.iter().map(row).collect::<Vec<_>>(),
    );
    let verdict = if good { "works" } else { "does not work" };
    let duration = crate::reporter::words::duration(took);
    console.data(&format!(
        "{} {verdict} in its default room: {duration}",
        found.name
    ));
}
