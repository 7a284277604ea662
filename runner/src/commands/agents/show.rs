//! `agents show`: the profile of one agent, in the form of `[agent.NAME]` of config.toml, so that it
//! can be taken from there and changed. What somebody reads here is what a run uses.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::answer::Selector;
use crate::config::{Agent, Endpoint, EnvEntry, Given};
use crate::exit::{Exit, Failure};
use crate::reporter::Console;

/// Prints it.
pub(super) fn run(console: &Console, name: &str) -> Result<Exit, Failure> {
    let agent = super::named(name)?;
    if console.is_json() {
        console.json(&object(name, &agent));
    } else {
        console.talk(&format!("# {}", agent.origin));
        console.data(text(name, &agent.value).trim_end());
    }
    Ok(Exit::Ok)
}

fn env(entries: &[Given<EnvEntry>]) -> Vec<String> {
    let entries = entries.iter().map(|entry| match &entry.value {
        EnvEntry::Set(name, value) => format!("{name}={value}"),
        EnvEntry::Pass(name) => name.clone(),
    });
    entries.collect()
}

fn values(texts: &[Given<String>]) -> Vec<String> {
    texts.iter().map(|text| text.value.clone()).collect()
}

fn rules(agent: &Agent) -> [(&'static str, Vec<String>); 5] {
    let texts = |rules: &[Selector]| rules.iter().map(ToString::to_string).collect();
    let reading = &agent.reading;
    [
        ("result", texts(&reading.result)),
        ("cost_usd", texts(&reading.cost_usd)),
        ("session", texts(&reading.session)),
        ("input_tokens", texts(&reading.input_tokens)),
        ("output_tokens", texts(&reading.output_tokens)),
    ]
}

fn object(name: &str, agent: &Given<Agent>) -> Value {
    let Given { value, origin } = agent;
    let model = |model: &Endpoint| {
        let key = |key: &crate::config::Key| json!({"variable": key.variable, "header": key.header, "prefix": key.prefix});
        json!({
            "name": model.name, "dialect": model.dialect.as_str(), "upstream": model.upstream,
            "upstream_from": model.upstream_from, "methods": model.methods, "paths": model.paths,
            "env": env(&model.env), "arguments": model.arguments,
            "key": model.keys.iter().map(key).collect::<Vec<_>>(),
        })
    };
    json!({
        "schema": 1, "name": name, "origin": origin.to_string(), "command": value.command,
        "env": env(&value.env), "state": value.state, "copy": values(&value.copy),
        "files": value.files, "domains": values(&value.domains), "install": value.install, "version": value.version,
        "min_version": value.min_version.as_ref().map(ToString::to_string),
        "model": value.models.iter().map(model).collect::<Vec<_>>(),
        "result": rules(value).into_iter().collect::<std::collections::BTreeMap<_, _>>(),
    })
}

/// A profile as TOML.
pub(super) fn text(name: &str, agent: &Agent) -> String {
    let mut toml = Toml(format!("[agent.{name}]\n"));
    toml.list("command", &agent.command);
    toml.list("env", &env(&agent.env));
    toml.list("state", &agent.state);
    toml.list("copy", &values(&agent.copy));
    toml.list("domains", &values(&agent.domains));
    toml.list("version", &agent.version);
    toml.line(
        "min_version",
        agent.min_version.as_ref().map(ToString::to_string),
    );
    toml.line("install", agent.install.clone());
    if !agent.files.is_empty() {
        toml.head(&format!("[agent.{name}.files]"));
    }
    for (path, text) in &agent.files {
        let quoted = toml::Value::from(path.as_str()).to_string();
        toml.line(&quoted, Some(text.clone()));
    }
    for model in &agent.models {
        toml.head(&format!("[[agent.{name}.model]]"));
        toml.line("name", Some(model.name.clone()));
        toml.line("dialect", Some(model.dialect.to_string()));
        toml.line("upstream", model.upstream.clone());
        toml.line("upstream_from", model.upstream_from.clone());
        toml.list("methods", &model.methods);
        toml.list("paths", &model.paths);
        toml.list("env", &env(&model.env));
        toml.list("arguments", &model.arguments);
        for key in &model.keys {
            toml.head(&format!("[[agent.{name}.model.key]]"));
            toml.line("variable", Some(key.variable.clone()));
            toml.line("header", Some(key.header.clone()));
            toml.line(
                "prefix",
                Some(key.prefix.clone()).filter(|prefix| !prefix.is_empty()),
            );
        }
    }
    toml.head(&format!("[agent.{name}.result]"));
    for (figure, rules) in rules(agent) {
        toml.list(figure, &rules);
    }
    toml.0
}

struct Toml(String);

impl Toml {
    fn head(&mut self, head: &str) {
        writeln!(self.0, "\n{head}").expect("writing to a string");
    }

    fn line(&mut self, key: &str, value: Option<String>) {
        if let Some(value) = value {
            let value = toml::Value::from(value);
            writeln!(self.0, "{key} = {value}").expect("writing to a string");
        }
    }

    fn list(&mut self, key: &str, values: &[String]) {
        if !values.is_empty() {
            let list = toml::Value::from(values.to_vec());
            writeln!(self.0, "{key} = {list}").expect("writing to a string");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Source, built_in_agents, read_file};

    #[test]
    fn what_is_shown_reads_as_the_profile_itself() {
        for (name, agent) in built_in_agents() {
            let text = text(&name, &agent.value);
            let source = Source::User("/c".into());
            let wishes = read_file(source, text.as_bytes(), None).unwrap();
            let read = &wishes.agents[&name].value;
            assert_eq!(super::text(&name, read), text, "{name}");
            assert_eq!(
                (&read.reading, &read.command),
                (&agent.value.reading, &agent.value.command)
            );
        }
    }
}
