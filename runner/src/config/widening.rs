//! What the repository's `airlock.toml` asks for beyond what a user allows by default. Gates are
//! not among it: a repository sets its own gates, since its file comes from the base commit and a
//! delivery that touches it is refused (a mode in the user's file is a floor all the same, see
//! [`super::profile()`]). Compares; stores and asks nothing.

use super::defaults::{BOUNDS, SETUP_TIMEOUT_MS};
use super::environment::EnvEntry;
use super::origin::Given;
use super::quantity;
use super::wishes::{Limits, Wishes};
use crate::task::{Isolation, Net};

/// One thing that the repository asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Ask {
    /// The setting, such as `sandbox.rw`.
    pub key: String,
    /// Its value, in one form however it was written.
    pub value: String,
}

impl std::fmt::Display for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = {}", legible(&self.key), legible(&self.value))
    }
}

/// What a person agrees to must look like what it is: no line breaks, no control or direction marks.
fn legible(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let mut shown = String::new();
    for c in text.chars() {
        if hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

impl Ask {
    fn new(key: &str, value: impl Into<String>) -> Self {
        Self {
            key: key.to_owned(),
            value: value.into(),
        }
    }
}

/// Everything that the repository's file asks for, in a fixed order.
pub fn asks(repository: &Wishes) -> Vec<Ask> {
    let mut asks = Vec::new();
    if let Some(Given {
        value: net @ (Net::Host | Net::Allow(_)),
        ..
    }) = &repository.net
    {
        asks.push(Ask::new("sandbox.net", net.to_string()));
    }
    if let Some(Given {
        value: net @ (Net::Host | Net::Allow(_)),
        ..
    }) = &repository.setup.net
    {
        asks.push(Ask::new("setup.net", net.to_string()));
    }
    let time = repository.setup.timeout_ms.as_ref();
    if let Some(time) = time.filter(|time| time.value > SETUP_TIMEOUT_MS) {
        asks.push(Ask::new("setup.timeout", quantity::show_ms(time.value)));
    }
    if let Some(Given {
        value: mode @ (Isolation::Worktree | Isolation::None),
        ..
    }) = repository.isolation
    {
        asks.push(Ask::new("task.isolation", mode.as_str()));
    }
    let path = |path: &Given<std::path::PathBuf>| path.value.display().to_string();
    asks.extend(
        repository
            .ro
            .iter()
            .map(|wish| Ask::new("sandbox.ro", path(wish))),
    );
    asks.extend(
        repository
            .rw
            .iter()
            .map(|wish| Ask::new("sandbox.rw", path(wish))),
    );
    asks.extend(
        repository
            .env
            .iter()
            .map(|entry| Ask::new("sandbox.env", shown(&entry.value))),
    );
    asks.extend(
        repository
            .allow
            .iter()
            .map(|path| Ask::new("protect.allow", path.value.clone())),
    );
    for (name, agent) in &repository.agents {
        let command =
            serde_json::to_string(&agent.value.command).expect("texts always have a JSON form");
        asks.push(Ask::new(&format!("agent.{name}.command"), command));
        for domain in &agent.value.domains {
            asks.push(Ask::new(
                &format!("agent.{name}.domains"),
                domain.value.clone(),
            ));
        }
        let env = agent.value.env.iter();
        asks.extend(env.map(|entry| Ask::new(&format!("agent.{name}.env"), shown(&entry.value))));
    }
    for (key, wish, usual, show) in limits(&repository.limits) {
        if let Some(wish) = wish.filter(|wish| wish.value > usual) {
            asks.push(Ask::new(key, show(wish.value)));
        }
    }
    asks.sort();
    asks.dedup();
    asks
}

fn shown(entry: &EnvEntry) -> String {
    match entry {
        EnvEntry::Set(name, value) => format!("{name}={value}"),
        EnvEntry::Pass(name) => format!("{name} (your value)"),
    }
}

type Limit<'w> = (&'static str, Option<&'w Given<u64>>, u64, fn(u64) -> String);

fn limits(limits: &Limits) -> [Limit<'_>; 9] {
    let plain = |number: u64| number.to_string();
    [
        (
            "sandbox.grace",
            limits.grace_ms.as_ref(),
            BOUNDS.grace_ms,
            quantity::show_ms,
        ),
        ("sandbox.pids", limits.pids.as_ref(), BOUNDS.pids, plain),
        (
            "sandbox.memory",
            limits.memory.as_ref(),
            BOUNDS.memory,
            plain,
        ),
        ("sandbox.disk", limits.disk.as_ref(), BOUNDS.disk, plain),
        ("sandbox.files", limits.files.as_ref(), BOUNDS.files, plain),
        ("sandbox.home", limits.home.as_ref(), BOUNDS.home, plain),
        ("sandbox.tmp", limits.tmp.as_ref(), BOUNDS.tmp, plain),
        (
            "sandbox.output",
            limits.output.as_ref(),
            BOUNDS.output,
            plain,
        ),
        (
            "sandbox.file_size",
            limits.file_size.as_ref(),
            BOUNDS.file_size,
            plain,
        ),
    ]
}

/// The asks that this run depends on: not those that the user's own file grants or bounds, that a
/// flag or the task file decides otherwise, or that belong to an agent that does not run.
pub(super) fn needed(
    asks: &[Ask],
    user: &Wishes,
    stronger: &[&Wishes],
    agent: Option<&str>,
) -> Vec<Ask> {
    let granted = self::asks(user);
    let said = |key: &str| {
        let mut places = stronger.iter().copied().chain([user]);
        places.any(|wishes| match key {
            "sandbox.net" => wishes.net.is_some(),
            "task.isolation" => wishes.isolation.is_some(),
            "setup.net" => wishes.setup.net.is_some() || wishes.no_setup,
            "setup.timeout" => wishes.setup.timeout_ms.is_some() || wishes.no_setup,
            key => limits(&wishes.limits)
                .iter()
                .any(|(name, wish, ..)| *name == key && wish.is_some()),
        })
    };
    let idle = |key: &str| {
        let of_agent = key
            .strip_prefix("agent.")
            .and_then(|rest| rest.rsplit_once('.'));
        of_agent.is_some_and(|(name, _)| agent != Some(name) || user.agents.contains_key(name))
    };
    let depends = |ask: &&Ask| !granted.contains(ask) && !said(&ask.key) && !idle(&ask.key);
    asks.iter().filter(depends).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::config::document::Source;
    use crate::config::file::read;
    use crate::config::origin::Origin;

    fn repository(text: &str) -> Wishes {
        read(Source::Repository, text.as_bytes(), Some(Path::new("/h"))).unwrap()
    }

    fn user(text: &str) -> Wishes {
        read(
            Source::User(PathBuf::from("/c")),
            text.as_bytes(),
            Some(Path::new("/h")),
        )
        .unwrap()
    }

    const GREEDY: &str = r#"
        [task]
        isolation = "none"
        [sandbox]
        net = "host"
        ro = ["/opt/b", "/opt/a"]
        env = ["LANGUAGE", "A=1"]
        pids = 4000
        [agent.bot]
        command = ["bot", "{prompt}"]
        [protect]
        allow = [".vscode/"]
    "#;

    #[test]
    fn what_widens_is_listed_in_a_fixed_order() {
        let lines: Vec<String> = asks(&repository(GREEDY))
            .iter()
            .map(ToString::to_string)
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        agent.bot.command = ["bot","{prompt}"]
        protect.allow = .vscode/
        sandbox.env = A=1
        sandbox.env = LANGUAGE (your value)
        sandbox.net = host
        sandbox.pids = 4000
        sandbox.ro = /opt/a
        sandbox.ro = /opt/b
        task.isolation = none
        "#);
    }

    #[test]
    fn nothing_hides_in_a_wish() {
        let sly = Ask::new("sandbox.env", "A=1\n  sandbox.net = none\u{202e}\u{1b}[2J");
        assert_eq!(
            sly.to_string(),
            r"sandbox.env = A=1\u{a}  sandbox.net = none\u{202e}\u{1b}[2J"
        );
    }

    #[test]
    fn what_narrows_is_no_ask() {
        let modest = r#"
            [task]
            isolation = "sandbox"
            timeout = "5m"
            attempts = 2
            [sandbox]
            net = "none"
            pids = 64
            [protect]
            paths = ["x"]
            [gates]
            stub = "warn"
        "#;
        assert_eq!(asks(&repository(modest)), []);
    }

    #[test]
    fn only_what_the_run_depends_on_is_needed() {
        let asks = asks(&repository(GREEDY));
        let keys = |user: &Wishes, stronger: &[&Wishes], agent| {
            let needed = needed(&asks, user, stronger, agent);
            needed.into_iter().map(|ask| ask.key).collect::<Vec<_>>()
        };
        let nobody = Wishes::default();
        assert!(!keys(&nobody, &[], None).contains(&"agent.bot.command".to_owned()));
        assert!(keys(&nobody, &[], Some("bot")).contains(&"agent.bot.command".to_owned()));
        let generous = user(
            "[sandbox]\nro = [\"/opt/a\", \"/opt/b\"]\nenv = [\"A=1\", \"LANGUAGE\"]\npids = 64\n[protect]\nallow = [\".vscode/\"]\n",
        );
        assert_eq!(
            keys(&generous, &[], None),
            ["sandbox.net", "task.isolation"]
        );
        let flags = Wishes {
            net: Some(Given::new(Net::None, Origin::Flag("--net"))),
            isolation: Some(Given::new(Isolation::Sandbox, Origin::Flag("--isolation"))),
            ..Wishes::default()
        };
        assert_eq!(keys(&generous, &[&flags], None), Vec::<String>::new());
    }
}
