//! Settings that are one of a few words, read with an error that names the words. Pure.

use std::str::FromStr;

use gates::{DiagramMode, Gate, Mode};
use sandbox::egress::{Policy, PolicyError};

use super::nearest::nearest;
use super::toolchains::ToolWord;
use crate::task::{Cleanup, Isolation, Net, Style};
use crate::toolchain::Language;

/// A word that is not one of the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    /// Not known.
    #[error("{word:?} is not one of {known}{}", hint.as_ref().map_or_else(String::new, |near| format!(", did you mean {near:?}?")))]
    Unknown {
        /// What was written.
        word: String,
        /// What could be.
        known: String,
        /// What was probably meant.
        hint: Option<String>,
    },
    /// No network.
    #[error("{0:?} is no network: write none, host, or allow:DOMAIN,DOMAIN…")]
    Net(String),
    /// A list of hosts that cannot be used.
    #[error(transparent)]
    List(#[from] PolicyError),
    /// Not `NAME=MODE`.
    #[error("{0:?} is not NAME=MODE, such as stub=warn")]
    NotAPair(String),
}

fn one_of<T: Copy>(word: &str, known: &[(&str, T)]) -> Result<T, WordError> {
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let found = known.iter().find(|(name, _)| *name == word);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| WordError::Unknown {
            word: word.to_owned(),
            hint: nearest(word, &names).map(str::to_owned),
            known: names.join(", "),
        })
}

/// An isolation mode.
pub fn isolation(word: &str) -> Result<Isolation, WordError> {
    one_of(
        word,
        &[
            ("sandbox", Isolation::Sandbox),
            ("worktree", Isolation::Worktree),
            ("session", Isolation::Session),
            ("none", Isolation::None),
        ],
    )
}

/// A network.
pub fn net(word: &str) -> Result<Net, WordError> {
    match word.strip_prefix("allow:") {
        Some(list) => Ok(Net::Allow(list.parse()?)),
        None if word == "none" => Ok(Net::None),
        None if word == "host" => Ok(Net::Host),
        None => Err(WordError::Net(word.to_owned())),
    }
}

/// A list of hosts, as a file may write it instead of `allow:…`.
pub fn net_list<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Result<Net, WordError> {
    Ok(Net::Allow(Policy::of(entries)?))
}

/// One word of a choice of toolchains.
pub fn toolchain(word: &str) -> Result<ToolWord, WordError> {
    let named = Language::ALL.map(|language| (language.as_str(), ToolWord::Named(language)));
    let known: Vec<(&str, ToolWord)> = [("auto", ToolWord::Auto), ("none", ToolWord::None)]
        .into_iter()
        .chain(named)
        .collect();
    one_of(word, &known)
}

/// When the checkout goes; the underscore of JSON counts as the hyphen.
pub fn cleanup(word: &str) -> Result<Cleanup, WordError> {
    one_of(
        &word.replace('_', "-"),
        &[
            ("always", Cleanup::Always),
            ("on-success", Cleanup::OnSuccess),
            ("never", Cleanup::Never),
        ],
    )
}

/// How a delivery joins its target.
pub fn style(word: &str) -> Result<Style, WordError> {
    one_of(
        word,
        &[
            ("auto", Style::Auto),
            ("ff", Style::Ff),
            ("squash", Style::Squash),
            ("rebase", Style::Rebase),
            ("merge", Style::Merge),
        ],
    )
}

/// What one gate is set to: its mode, or what the diagram gate asks of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateWord {
    /// What a refusal does.
    Mode(Mode),
    /// What is asked of figures.
    Figures(DiagramMode),
}

/// The setting of one gate.
pub fn gate_word(gate: Gate, word: &str) -> Result<GateWord, WordError> {
    let modes = [
        ("fail", GateWord::Mode(Mode::Fail)),
        ("warn", GateWord::Mode(Mode::Warn)),
        ("off", GateWord::Mode(Mode::Off)),
        ("images", GateWord::Figures(DiagramMode::Images)),
        ("lint", GateWord::Figures(DiagramMode::Lint)),
    ];
    let count = if gate == Gate::Diagram {
        modes.len()
    } else {
        3
    };
    one_of(word, &modes[..count])
}

/// `NAME=MODE` of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateChoice {
    /// The gate.
    pub gate: Gate,
    /// What it is set to.
    pub word: GateWord,
}

impl FromStr for GateChoice {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let (name, word) = text
            .split_once('=')
            .ok_or_else(|| WordError::NotAPair(text.to_owned()))?;
        let gate = gate(name)?;
        Ok(Self {
            gate,
            word: gate_word(gate, word)?,
        })
    }
}

/// A gate by name.
pub fn gate(name: &str) -> Result<Gate, WordError> {
    one_of(name, &Gate::ALL.map(|gate| (gate.name(), gate)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_words_name_the_right_ones() {
        insta::assert_snapshot!(isolation("sandbx").unwrap_err(), @r#""sandbx" is not one of sandbox, worktree, session, none, did you mean "sandbox"?"#);
        insta::assert_snapshot!(net("allow").unwrap_err(), @r#""allow" is no network: write none, host, or allow:DOMAIN,DOMAIN…"#);
        insta::assert_snapshot!(net("allow:").unwrap_err(), @"the list is empty: name a domain, or use --net none");
        insta::assert_snapshot!(net("allow:npm,127.0.0.1").unwrap_err(), @r#""127.0.0.1" is an address, and addresses are never let through: name the host"#);
        insta::assert_snapshot!("stub".parse::<GateChoice>().unwrap_err(), @r#""stub" is not NAME=MODE, such as stub=warn"#);
        insta::assert_snapshot!("stub=lint".parse::<GateChoice>().unwrap_err(), @r#""lint" is not one of fail, warn, off"#);
    }

    #[test]
    fn gates_are_set_by_name_and_word() {
        let choice: GateChoice = "diagram=lint".parse().unwrap();
        assert_eq!(choice.word, GateWord::Figures(DiagramMode::Lint));
        let choice: GateChoice = "audit=warn".parse().unwrap();
        assert_eq!(
            choice,
            GateChoice {
                gate: Gate::Audit,
                word: GateWord::Mode(Mode::Warn)
            }
        );
        assert_eq!(cleanup("on_success"), Ok(Cleanup::OnSuccess));
    }
}
