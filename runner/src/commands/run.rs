//! `run`: a whole task.

use crate::cli::Globals;
use crate::client::{self, Unwatched};
use crate::config;
use crate::exit::{Exit, Failure};
use crate::place::{Place, here};
use crate::reporter::Console;
use crate::supervisor::wire::Order;
use crate::task::Spec;

/// Run a task: worktree, room, agent, seal, gates, evidence, and landing with --merge.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What is asked for.
    #[command(flatten)]
    flags: config::Flags,
    /// Answer as soon as the task is recorded; `airlock logs -f ID` follows it.
    #[arg(short, long)]
    detach: bool,
}

const EXAMPLES: &str = "\
Examples:
  airlock run --merge -- sh -c 'printf \"def add(a, b):\\n    return a + b\\n\" > calc.py'
  airlock run --agent claude --prompt 'fix the flaky test' --attempts 3 --timeout 30m
  airlock run --spec task.json
  airlock run -d --agent codex --prompt-file TODO.md
  airlock run --net allow:npm,example.org -- npm test

The command runs in a locked room at the repository's own path. The room has the toolchains that the
base commit calls for, from your own installation and caches (--toolchain). When it ends, Airlock commits the
files itself, judges that commit, signs the evidence, and with --merge lands it. The agent may leave
a note about its work in the file named by AIRLOCK_NOTE; a refused attempt finds the reasons in the
file named by AIRLOCK_FEEDBACK.

Network. An entry of --net allow:… is a host (example.org), all hosts below one (*.example.org), either with a
port that is the only one (example.org:8443), or a group: npm pypi crates go github debian. HOST:PORT names a host
explicitly: only then may its address be a local one and the protocol any, as in localhost:5432, which is then this
host's port in the room, too. In the room every client is pointed to the proxy, and each host that is named one by
one has an address there, so that clients which know no proxy work as well. Addresses are never let through.
A credential stays outside of the room; in your own config.toml:

  [sandbox.credentials.model]          # --net allow:model.airlock: the room has http://model.airlock/v1/…
  upstream = \"https://api.example.com\"  # https, or http to localhost
  env = \"MODEL_KEY\"                    # or file = \"~/.config/model.key\"
  header = \"x-api-key\"                 # else authorization, with prefix = \"Bearer \"
  paths = [\"/v1/\"]                     # what it is for; methods are GET and POST unless named";

/// Says what of the host's network the room reaches, and by whose word.
fn tell_reach(console: &Console, spec: &Spec) {
    let Some(policy) = spec.net.policy().filter(|_| spec.isolation.confined()) else {
        return;
    };
    let said = spec.origins.get("net").map_or("", String::as_str);
    console.talk(&format!("the room reaches {policy} ({said})"));
    for credential in &spec.credentials {
        console.talk(&format!(
            "{}.airlock is {}, signed in with {}, which stays outside",
            credential.name,
            credential.upstream,
            config::key_place(credential)
        ));
    }
    if spec.credentials.is_empty() && said.starts_with("the built-in profile") {
        console.warn(&format!(
            "no credential for {} was found that could stay outside; `airlock agents` says what is looked for",
            spec.agent
        ));
    }
}

/// Runs it.
pub fn run(globals: &Globals, console: &Console, args: Args) -> Result<Exit, Failure> {
    let place = Place::find(globals)?;
    let request = config::Request {
        flags: args.flags,
        directory: here(globals),
    };
    let (spec, secrets) = config::resolve(request, &place.repository, &place.root, &|question| {
        console.confirm(question)
    })?;
    if !spec.isolation.confined() {
        let said = spec.origins.get("isolation").map_or("", String::as_str);
        console.warn(&format!(
            "isolation {} ({said}): the agent is NOT confined",
            spec.isolation.as_str()
        ));
    }
    tell_reach(console, &spec);
    let task = spec.task.clone();
    let order = Order::Run {
        spec: Box::new(spec),
        secrets,
        detach: args.detach,
    };
    if args.detach {
        client::order(&place, order, &mut Unwatched)?;
        let view = super::stands(&place, &task)?;
        if console.is_json() {
            console.json(
                &serde_json::json!({"task": task, "run": view.spec.run, "state": view.stage}),
            );
        } else {
            console.data(task.as_str());
            console.talk(&format!(
                "task {task} runs; `airlock logs -f {task}` follows it"
            ));
        }
        return Ok(Exit::Ok);
    }
    super::carry(&place, console, &task, order)
}
