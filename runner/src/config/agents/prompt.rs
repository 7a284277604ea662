//! What an agent is told, put where its command has a place for it. Pure.

use std::ffi::OsString;

/// Stands for what the agent is told.
const PROMPT: &str = "{prompt}";

/// Stands for a file that holds what the agent is told. The engine writes the file when it starts
/// the agent, and only then knows its path, so this stays in [`crate::task::Spec::argv`].
pub const PROMPT_FILE: &str = "{prompt_file}";

/// The kernel takes no longer argument.
const LONGEST_ARGUMENT: usize = 128 * 1024 - 1;

/// Told to an agent that may deliver again.
const FEEDBACK_HINT: &str = "\n\nIf the environment variable AIRLOCK_FEEDBACK names a file, read that \
file first: it says why your previous delivery was refused and what to do.";

/// A prompt that cannot be given to the agent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PromptError {
    /// The command needs one and there is none.
    #[error("the command of agent {0} needs a prompt: give --prompt TEXT or --prompt-file FILE")]
    Missing(String),
    /// There is one and the command has no place for it.
    #[error(
        "the command has no place for the prompt: write {{prompt}} or {{prompt_file}} where it belongs"
    )]
    NoPlace,
    /// Longer than an argument can be.
    #[error(
        "the prompt has {0} bytes, more than one argument can hold: use {{prompt_file}} in the agent's command"
    )]
    TooLong(usize),
    /// Holds a NUL byte.
    #[error("the prompt holds a NUL byte, which no argument can")]
    Nul,
}

/// What the agent is told, with the hint for later attempts.
pub(crate) fn prompt_for(prompt: &str, attempts: u32) -> String {
    if attempts > 1 {
        format!("{prompt}{FEEDBACK_HINT}")
    } else {
        prompt.to_owned()
    }
}

/// Whether a command has a place for a prompt.
pub(crate) fn has_place(command: &[OsString]) -> bool {
    command.iter().any(|word| {
        let word = word.to_string_lossy();
        word.contains(PROMPT) || word.contains(PROMPT_FILE)
    })
}

/// Puts the prompt into a command.
pub(crate) fn fill(
    agent: &str,
    command: &[OsString],
    prompt: Option<&str>,
) -> Result<Vec<OsString>, PromptError> {
    let Some(prompt) = prompt else {
        let asked = has_place(command);
        return if asked {
            Err(PromptError::Missing(agent.to_owned()))
        } else {
            Ok(command.to_vec())
        };
    };
    if prompt.contains('\0') {
        return Err(PromptError::Nul);
    }
    if !has_place(command) {
        return Err(PromptError::NoPlace);
    }
    command
        .iter()
        .map(
            |word| match word.to_str().filter(|word| word.contains(PROMPT)) {
                None => Ok(word.clone()),
                Some(place) => {
                    let word = place.replace(PROMPT, prompt);
                    if word.len() > LONGEST_ARGUMENT {
                        return Err(PromptError::TooLong(prompt.len()));
                    }
                    Ok(OsString::from(word))
                }
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_goes_where_it_belongs() {
        let command: Vec<OsString> = ["a", "-t={prompt}", "{prompt_file}"]
            .map(OsString::from)
            .to_vec();
        let filled = fill("x", &command, Some("do {it}")).unwrap();
        assert_eq!(
            filled,
            ["a", "-t=do {it}", "{prompt_file}"].map(OsString::from)
        );
    }

    #[test]
    fn prompts_that_do_not_fit_are_refused() {
        let place = [OsString::from("{prompt}")];
        let none = [OsString::from("true")];
        assert_eq!(
            fill("x", &place, None),
            Err(PromptError::Missing("x".to_owned()))
        );
        assert_eq!(fill("x", &none, Some("p")), Err(PromptError::NoPlace));
        assert_eq!(fill("x", &place, Some("a\0b")), Err(PromptError::Nul));
        let long = "x".repeat(LONGEST_ARGUMENT + 1);
        assert_eq!(
            fill("x", &place, Some(&long)),
            Err(PromptError::TooLong(long.len()))
        );
        assert!(fill("x", &[OsString::from("{prompt_file}")], Some(&long)).is_ok());
    }
}
