//! Colours of our own words, by meaning. Knows whether a stream takes them; writes nothing.

use gates::report::Role;

/// What a word means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// It went as it should.
    Good,
    /// Look at it.
    Doubtful,
    /// It did not.
    Bad,
    /// Less important than its neighbours.
    Quiet,
    /// More important.
    Strong,
}

/// Whether and how a stream is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    /// Colours are wanted there.
    pub colours: bool,
}

impl Paint {
    /// Plain text.
    pub const PLAIN: Self = Self { colours: false };

    /// Decides from what the user said (`--no-color`, then the environment) and from the stream.
    pub fn decide(
        refused: bool,
        terminal: bool,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let dumb = set("TERM").is_some_and(|value| value == "dumb");
        let colours = !refused && set("NO_COLOR").is_none() && (forced || (terminal && !dumb));
        Self { colours }
    }

    /// The text in the colour of its meaning.
    pub fn put(self, tone: Tone, text: &str) -> String {
        if !self.colours {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Doubtful => "33",
            Tone::Bad => "1;31",
            Tone::Quiet => "2",
            Tone::Strong => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

impl gates::report::Style for Paint {
    fn paint(&self, role: Role, text: &str) -> String {
        let tone = match role {
            Role::Title | Role::Place => Tone::Strong,
            Role::Good => Tone::Good,
            Role::Warning => Tone::Doubtful,
            Role::Bad => Tone::Bad,
            Role::Faint | Role::Code => Tone::Quiet,
            Role::Help => return text.to_owned(),
        };
        self.put(tone, text)
    }
}

/// The meaning of a status word of ours; none for other words.
pub(super) fn tone_of(word: &str) -> Option<Tone> {
    match word {
        "accepted" | "landed" | "merged" | "pass" | "held" | "ok" | "on" | "verified"
        | "agrees" => Some(Tone::Good),
        "rejected" | "failed" | "fail" | "lost" | "timeout" | "over_limit" | "ESCAPED" | "off"
        | "differs" => Some(Tone::Bad),
        "warn" | "stopped" | "could_not_check" | "could not check" | "empty" | "missing" => {
            Some(Tone::Doubtful)
        }
        "discarded" | "not_applicable" | "not applicable" => Some(Tone::Quiet),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(refused: bool, terminal: bool, variables: &[(&str, &str)]) -> bool {
        Paint::decide(refused, terminal, |name| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        })
        .colours
    }

    #[test]
    fn colours_need_a_terminal_or_force() {
        assert!(decided(false, true, &[]));
        assert!(!decided(false, false, &[]));
        assert!(decided(false, false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!decided(false, false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!decided(false, true, &[("TERM", "dumb")]));
    }

    #[test]
    fn a_refusal_wins() {
        assert!(!decided(true, true, &[("CLICOLOR_FORCE", "1")]));
        assert!(!decided(
            false,
            true,
            &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]
        ));
        assert!(decided(false, true, &[("NO_COLOR", "")]));
    }
}
