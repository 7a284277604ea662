//! Which command runs, under which name, with the prompt in its place. Looks for no program.

use std::ffi::OsString;
use std::path::Path;

use super::agents::{self, Agent};
use super::origin::{Given, Origin};
use super::reach::Way;
use super::scene::Scene;
use super::{branch, file};
use crate::answer::Reading;
use crate::exit::{Exit, Failure, OrFail as _};

/// The word of a profile's command in whose place the model's arguments stand.
const MODEL: &str = "{model}";

/// The agent with its command line.
pub(super) struct Chosen<'s> {
    pub(super) name: String,
    pub(super) argv: Vec<OsString>,
    pub(super) profile: Option<&'s Given<Agent>>,
    pub(super) origin: Origin,
    /// How its output is read.
    pub(super) reading: Option<Reading>,
}

impl Scene<'_> {
    /// The profile of the named agent: the user's, the repository's, the one that comes with the program.
    pub(super) fn named_profile(&self) -> Option<&Given<Agent>> {
        let layers = &self.layers;
        let name = layers.pick(|wishes| wishes.agent.as_ref())?;
        let of_files = layers.pick(|wishes| wishes.agents.get(&name.value));
        of_files.or_else(|| self.built_in.get(&name.value))
    }

    /// The command of the command line, or that of the named agent.
    pub(super) fn agent(&self, attempts: u32, way: &Way<'_>) -> Result<Chosen<'_>, Failure> {
        let layers = &self.layers;
        let name = layers.pick(|wishes| wishes.agent.as_ref());
        let profile = self.named_profile();
        if let Some(command) = layers.pick(|wishes| wishes.command.as_ref()) {
            let name = match name {
                Some(name) => name.value.clone(),
                None => program_name(&command.value)?,
            };
            let argv = self.told(&name, &command.value, None)?;
            return Ok(Chosen {
                name,
                argv,
                profile,
                origin: command.origin.clone(),
                reading: reading(profile),
            });
        }
        let name = name.ok_or_else(|| {
            Failure::usage(
                "nothing to run: give a command after --, or --agent NAME with --prompt TEXT",
            )
            .advise("airlock run -- sh -c 'echo hello > hello.txt'")
        })?;
        let profile = profile.ok_or_else(|| self.unknown_agent(name))?;
        let of_model = match way {
            Way::Local(local) => local.arguments(),
            Way::Direct | Way::Shut => Vec::new(),
        };
        let words = profile.value.command.iter();
        let words = words.flat_map(|word| match word.as_str() {
            MODEL => of_model.clone(),
            _ => vec![word.clone()],
        });
        let command: Vec<OsString> = words.map(OsString::from).collect();
        let argv = self.told(&name.value, &command, Some(attempts))?;
        Ok(Chosen {
            name: name.value.clone(),
            argv,
            profile: Some(profile),
            origin: profile.origin.clone(),
            reading: reading(Some(profile)),
        })
    }

    /// The command with the prompt in its place, or with the goal where a prompt belongs. A command
    /// of the user's own (no `attempts`) may hold braces that mean nothing to us.
    fn told(
        &self,
        name: &str,
        command: &[OsString],
        attempts: Option<u32>,
    ) -> Result<Vec<OsString>, Failure> {
        let prompt = self.layers.pick(|wishes| wishes.prompt.as_ref());
        let goal = self.layers.pick(|wishes| wishes.goal.as_ref());
        let text = prompt.or_else(|| goal.filter(|_| agents::has_place(command)));
        if text.is_none() && attempts.is_none() {
            return Ok(command.to_vec());
        }
        let text = text.map(|text| agents::prompt_for(&text.value, attempts.unwrap_or(1)));
        agents::fill(name, command, text.as_deref()).or_fail(Exit::Usage)
    }

    fn unknown_agent(&self, name: &Given<String>) -> Failure {
        let layers = &self.layers;
        let known = file::agent_names(&[
            &layers.user.agents,
            &layers.repository.agents,
            &self.built_in,
        ]);
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        let hint = super::nearest(&name.value, &names)
            .map_or_else(String::new, |near| format!(", did you mean {near:?}?"));
        Failure::usage(format!(
            "no agent is called {:?} ({}){hint}",
            name.value, name.origin
        ))
        .advise(format!(
            "known are {}; add your own as [agent.{}] in config.toml",
            names.join(", "),
            branch::slug(&name.value)
        ))
    }
}

fn reading(profile: Option<&Given<Agent>>) -> Option<Reading> {
    let reading = &profile?.value.reading;
    (*reading != Reading::default()).then(|| reading.clone())
}

/// What a command is called when nobody names it.
fn program_name(command: &[OsString]) -> Result<String, Failure> {
    let program = command.first().filter(|program| !program.is_empty());
    let program = program.ok_or_else(|| Failure::usage("the command is empty"))?;
    let name = Path::new(program).file_name().unwrap_or(program);
    Ok(name.to_string_lossy().into_owned())
}
