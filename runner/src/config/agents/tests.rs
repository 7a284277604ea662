//! The profiles that come with the program, and what is refused in anybody's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::*;
use crate::config::document::Source;
use crate::config::wishes::Wishes;
use crate::model::Dialect;

fn user(text: &str) -> Result<Wishes, ConfigError> {
    let source = Source::User(PathBuf::from("/c"));
    super::super::file::read(source, text.as_bytes(), Some(Path::new("/h")))
}

fn refusal(text: &str) -> String {
    user(text).unwrap_err().to_string()
}

fn caller(names: &[&str]) -> BTreeMap<OsString, OsString> {
    names
        .iter()
        .map(|name| ((*name).into(), format!("value of {name}").into()))
        .collect()
}

#[test]
fn every_built_in_profile_is_whole() {
    let agents = built_in();
    let names: Vec<&str> = agents.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "aider", "amp", "claude", "codex", "copilot", "cursor", "droid", "gemini", "goose",
            "mini", "opencode", "qwen"
        ]
    );
    for (name, agent) in &agents {
        let (agent, origin) = (&agent.value, &agent.origin);
        let command: Vec<OsString> = agent.command.iter().map(OsString::from).collect();
        assert!(has_place(&command), "{name}");
        assert_eq!(
            origin.to_string(),
            format!("the built-in profile of {name}")
        );
        assert!(
            !agent.state.is_empty() && !agent.domains.is_empty(),
            "{name}"
        );
        assert!(
            agent.install.is_some() && !agent.reading.result.is_empty(),
            "{name}"
        );
        let has_arguments = agent.models.iter().any(|model| !model.arguments.is_empty());
        let place = agent.command.iter().any(|word| word == "{model}");
        assert_eq!(
            has_arguments, place,
            "{name}: arguments and their place belong together"
        );
        for copy in &agent.copy {
            let kept = agent
                .state
                .iter()
                .any(|state| copy.value.starts_with(state.as_str()));
            assert!(kept, "{name}: {} is not the agent's", copy.value);
        }
        for model in &agent.models {
            assert!(!model.keys.is_empty(), "{name}");
            let told = model.env.iter().map(|entry| format!("{:?}", entry.value));
            let told: String = told.chain(model.arguments.clone()).collect();
            assert!(
                told.contains("{base}"),
                "{name} is not told where its model is"
            );
        }
    }
}

#[test]
fn no_profile_hands_a_credential_over_that_can_stay_outside() {
    for (name, agent) in built_in() {
        let keys = agent.value.models.iter().flat_map(|model| &model.keys);
        for key in keys {
            let passed = agent
                .value
                .env
                .iter()
                .any(|entry| entry.value.name() == key.variable);
            assert!(!passed, "{name} passes {}", key.variable);
        }
    }
}

#[test]
fn the_endpoint_is_told_and_nothing_of_the_credential_is() {
    let claude = &built_in()["claude"].value;
    let model = &claude.models[0];
    assert_eq!(model.dialect, Dialect::AnthropicMessages);
    let token = caller(&["ANTHROPIC_AUTH_TOKEN"]);
    let key = model.found(&token).unwrap();
    assert_eq!(
        (key.header.as_str(), key.prefix.as_str()),
        ("authorization", "Bearer ")
    );
    assert_eq!(model.found(&caller(&["OTHER"])), None);
    assert_eq!(model.service(&token).unwrap(), "https://api.anthropic.com");
    let gateway = BTreeMap::from([(
        "ANTHROPIC_BASE_URL".into(),
        "https://gate.example/v1/".into(),
    )]);
    assert_eq!(model.service(&gateway).unwrap(), "https://gate.example");
    let told = told(&model.env, "http://anthropic.airlock", &key.variable);
    assert_eq!(
        told[0].value,
        EnvEntry::Set(
            "ANTHROPIC_BASE_URL".to_owned(),
            "http://anthropic.airlock".to_owned()
        )
    );
    let codex = &built_in()["codex"].value.models[0];
    let words = codex
        .arguments("http://openai.airlock", "OPENAI_API_KEY")
        .join(" ");
    assert!(
        words.contains("base_url=\"http://openai.airlock/v1\", env_key=\"OPENAI_API_KEY\""),
        "{words}"
    );
}

#[test]
fn a_users_profile_changes_what_it_names_and_a_repositorys_stands_alone() {
    let wishes = user("[agent.claude]\ncommand = [\"my-claude\", \"{prompt}\"]\n[agent.own]\ncommand = [\"own\"]\n").unwrap();
    let claude = &wishes.agents["claude"].value;
    assert_eq!(claude.command, ["my-claude", "{prompt}"]);
    assert_eq!(claude.models, built_in()["claude"].value.models);
    assert_eq!(wishes.agents["own"].value.models, []);
    let theirs = |text: &str| super::super::file::read(Source::Repository, text.as_bytes(), None);
    let wishes = theirs("[agent.claude]\ncommand = [\"x\", \"{prompt}\"]\n").unwrap();
    assert_eq!(wishes.agents["claude"].value.models, []);
    assert!(wishes.agents["claude"].value.env.is_empty());
    let model =
        "[[agent.x.model]]\nname = \"m\"\n[agent.x]\ncommand = [\"x\"]\ncopy = [\".x/y\"]\n";
    for text in [model, "[agent.x]\ncommand = [\"x\"]\ncopy = [\".x/y\"]\n"] {
        let refused = theirs(text).unwrap_err().to_string();
        assert!(
            refused.contains("only your own config.toml says"),
            "{refused}"
        );
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    let of = |text: &str| refusal(&format!("[agent.x]\ncommand = [\"x\"]\n{text}"));
    insta::assert_snapshot!(of("copy = [\".codex/auth.json\"]"), @r#"/c:3: bad value for `agent.x.copy`: ".codex/auth.json" looks like credentials, which no room gets"#);
    insta::assert_snapshot!(of("copy = [\"../x\"]"), @r#"/c:3: bad value for `agent.x.copy`: "../x" is not a path below your home, such as .x/NOTES.md"#);
    insta::assert_snapshot!(of("domains = [\"https://x.org\"]"), @r#"/c:3: bad value for `agent.x.domains`: "https://x.org" is no domain, such as api.example.org or *.example.org"#);
    insta::assert_snapshot!(of("min_version = \"new\""), @r#"/c:3: bad value for `agent.x.min_version`: "new" is no version, such as 1.2.3"#);
    insta::assert_snapshot!(of("[agent.x.result]\nsession = [\"somewhere\"]"), @r#"/c:4: bad value for `agent.x.result.session`: "somewhere" is not a selector: write `last type=result -> result`, `sum -> cost`, `line Cost: ${}.` or `rest`"#);
    insta::assert_snapshot!(of("[agent.x.result]\nprice = []"), @"/c:4: unknown key `agent.x.result.price`; known are cost_usd, input_tokens, output_tokens, result, session");
    let model = |text: &str| {
        of(&format!(
            "[[agent.x.model]]\nname = \"m\"\ndialect = \"openai-chat\"\nmethods = [\"POST\"]\npaths = [\"/v1/\"]\n{text}"
        ))
    };
    insta::assert_snapshot!(model("upstream = \"api.example.org\""), @"/c:8: bad value for `agent.x.model.upstream`: a URL such as https://api.example.org");
    insta::assert_snapshot!(model("upstream = \"https://a.example\"\n[[agent.x.model.key]]\nvariable = \"A=b\"\n"), @"/c:10: bad value for `agent.x.model.key.variable`: the name of a variable, such as MY_API_KEY");
    insta::assert_snapshot!(model("upstream = \"https://a.example\"\n[[agent.x.model.key]]\nvariable = \"A\"\nheader = \"x y\"\n"), @"/c:11: bad value for `agent.x.model.key.header`: the name of a header, such as x-api-key");
}
