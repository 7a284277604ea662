//! Named agents: what is here of them, their model behind the proxy, and what they say of their run.

use serde_json::Value;

use tests::TestEnv;

/// A profile of an agent that converses with its model.
fn profile(env: &TestEnv, name: &str, command: &str) -> String {
    let program = env.fake_agent();
    format!(
        r#"
[agent.{name}]
command = [{:?}, {command}, "{{prompt}}"]
[[agent.{name}.model]]
name = "fake"
dialect = "openai-chat"
upstream = "https://model.example"
methods = ["POST"]
paths = ["/v1/chat/completions"]
env = ["FAKE_BASE={{base}}/v1"]
[[agent.{name}.model.key]]
variable = "FAKE_KEY"
header = "authorization"
prefix = "Bearer "
[agent.{name}.result]
result = ["last type=result -> text"]
cost_usd = ["last type=result -> cost"]
session = ["first type=init -> session"]
input_tokens = ["sum type=step -> tokens"]
"#,
        program.to_str().unwrap()
    )
}

#[test]
fn an_agent_works_with_its_model_and_never_has_the_key() {
    let env = TestEnv::new();
    let repo = env.repository();
    env.configure(&profile(&env, "fake", "\"converse\""));
    let tested = repo.airlock(&["agents", "test", "fake", "--json"]).run();
    let object = tested.exits(0).json();
    assert_eq!(object["ok"], true, "{object:#}");
    let steps = object["steps"].as_array().unwrap();
    let bad: Vec<&Value> = steps.iter().filter(|step| step["ok"] != true).collect();
    assert!(bad.is_empty() && steps.len() == 12, "{object:#}");
}

#[test]
fn an_agent_that_fails_its_test_is_told_where() {
    let env = TestEnv::new();
    let repo = env.repository();
    env.configure(&(profile(&env, "mute", "\"say\"") + &profile(&env, "gone", "\"exit\", \"7\"")));
    let mute = repo
        .airlock(&["agents", "test", "mute", "--json"])
        .run()
        .exits(20)
        .json();
    let step = |name: &str| {
        let steps = mute["steps"].as_array().unwrap();
        steps
            .iter()
            .find(|step| step["step"] == name)
            .cloned()
            .unwrap()
    };
    assert_eq!(step("model reached")["ok"], false);
    assert_eq!(step("agent ended")["ok"], true);
    let gone = repo.airlock(&["agents", "test", "gone"]).run().exits(20);
    gone.prints("exited with code 7").prints("does not work");
    repo.airlock(&["agents", "test", "fkae"]).run().exits(2);
    let cursor = repo.airlock(&["agents", "test", "cursor"]).run().exits(3);
    cursor.says("not installed").says("cursor.com");
}

#[test]
fn what_an_agent_says_of_its_run_is_shown_as_that() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = r#"echo x = 1 > x.py; printf '\033[2Jnoise {"type":"init","session":"s-7"}\n'; printf '{"type":"step","tokens":5}\n{"type":"step","tokens":7}\n'; head -c 3000000 /dev/zero | tr '\0' '['; printf '\n{"type":"result","text":"Made \\u001b[31mx.py","cost":0.5}\n{"type":"result","cost":-3}\n'"#;
    let profile = profile(&env, "loud", "\"-c\"");
    let program = format!("{:?}", env.fake_agent().to_str().unwrap());
    env.configure(
        &profile
            .replace(&program, "\"sh\"")
            .replace("\"{prompt}\"", "\"{prompt}\", \"x\""),
    );
    let run = repo.airlock(&[
        "run", "--json", "--task", "t", "--agent", "loud", "--net", "none", "--prompt", script,
    ]);
    let agent = run.run().exits(0).json()["agent"].clone();
    assert_eq!(agent["result"], "Made \u{1b}[31mx.py");
    assert_eq!(agent["session"], "s-7");
    assert_eq!(agent["input_tokens"], 12);
    assert!(
        agent["cost_usd"].is_null(),
        "the last word on the cost makes no sense: {agent}"
    );
    assert!(repo.events("t").contains(&"answered".to_owned()));
    let shown = repo.airlock(&["show", "t"]).run().exits(0);
    shown
        .prints("what the agent says of it")
        .prints("session s-7");
    assert_eq!(repo.show("t")["agent"], agent);
}

#[test]
fn agents_are_listed_with_what_is_here_of_them() {
    let env = TestEnv::new();
    let repo = env.repository();
    env.configure(&profile(&env, "fake", "\"exit\", \"0\""));
    let list = repo
        .airlock(&["agents", "--json"])
        .env("FAKE_KEY", "k-123")
        .run()
        .exits(0);
    assert!(
        !list.stdout.contains("k-123"),
        "the key itself is never shown"
    );
    let list = list.json();
    let agents = list["agents"].as_array().unwrap();
    let of = |name: &str| {
        agents
            .iter()
            .find(|agent| agent["name"] == name)
            .cloned()
            .unwrap()
    };
    for name in [
        "claude", "codex", "gemini", "opencode", "aider", "goose", "copilot", "cursor", "qwen",
        "mini",
    ] {
        assert!(of(name)["install"].is_string(), "{name}");
    }
    let fake = of("fake");
    assert_eq!(
        (&fake["installed"], &fake["net"][0]),
        (&true.into(), &"fake.airlock".into())
    );
    assert_eq!(
        (
            &fake["credential"]["variable"],
            &fake["credential"]["stays_outside"]
        ),
        (&"FAKE_KEY".into(), &true.into())
    );
    let profile = repo.airlock(&["agents", "show", "claude"]).run().exits(0);
    profile
        .prints("[agent.claude]")
        .prints("upstream = \"https://api.anthropic.com\"");
}

#[test]
fn an_agent_that_is_not_installed_is_an_error_with_its_install_command() {
    let env = TestEnv::new();
    let repo = env.repository();
    let run = repo
        .airlock(&["run", "--agent", "opencode", "--prompt", "x"])
        .env("PATH", "/usr/bin:/bin");
    run.run()
        .exits(2)
        .says("agent opencode is not installed")
        .says("npm install -g opencode-ai");
    assert_eq!(repo.references().len(), 1, "nothing was made");
}

#[test]
fn a_room_reaches_what_its_agent_needs_and_flags_decide() {
    let env = TestEnv::new();
    let repo = env.repository();
    let text = profile(&env, "fake", "\"exit\", \"0\"");
    env.configure(&text.replace(
        "[[agent.fake.model]]",
        "domains = [\"api.example.org\"]\n[[agent.fake.model]]",
    ));
    let net = |task: &str, flags: &[&str], key: bool| {
        let start = [
            "run", "--json", "--task", task, "--agent", "fake", "--prompt", "x",
        ];
        let mut call = repo.airlock(&start).args(flags);
        if key {
            call = call.env("FAKE_KEY", "k-123");
        }
        let object = call.run().exits(11).json();
        object["isolation"]["net"].as_str().unwrap().to_owned()
    };
    assert_eq!(net("a", &[], true), "allow:fake.airlock");
    assert_eq!(net("b", &[], false), "allow:api.example.org");
    assert_eq!(net("c", &["--net", "none"], true), "none");
    assert_eq!(
        net("d", &["--net", "allow:other.example"], true),
        "allow:other.example,fake.airlock"
    );
    let events = repo.airlock(&["events", "a", "--json"]).run().exits(0);
    assert!(
        !events.stdout.contains("k-123"),
        "a credential is in the events"
    );
    events
        .prints("credential fake")
        .prints("FAKE_KEY of your environment");
}

#[test]
fn a_repository_says_nothing_about_credentials() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("airlock.toml", profile(&env, "fake", "\"exit\", \"0\""));
    repo.commit("asks for a credential");
    let run = repo.airlock(&["run", "--agent", "fake", "--prompt", "x"]);
    run.run().exits(2).says("only your own config.toml says");
}
