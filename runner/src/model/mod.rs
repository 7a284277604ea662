//! A model that follows a script: agents speak to it as to a real one, without a key or a network.
//! It speaks `anthropic-messages`, `openai-chat`, `openai-responses` and `gemini`, streamed or
//! not, and asks the agent to do one step after the other with whatever tool of the agent's own fits.
//!
//! It keeps no state about a conversation: the step is the number of tool results in the request.
//! Listens on loopback only, and only for as long as its [`Served`] lives. Never sends what it was
//! sent anywhere but to whoever started it.

mod anthropic;
mod chat;
mod gemini;
mod http;
mod plan;
mod responses;
mod server;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

pub use server::{Heard, Served, serve};

/// What is spoken between an agent and its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Anthropic Messages.
    AnthropicMessages,
    /// Chat Completions of `OpenAI`.
    OpenAiChat,
    /// Responses of `OpenAI`.
    OpenAiResponses,
    /// Google's `generateContent`.
    Gemini,
}

impl Dialect {
    const ALL: [Self; 4] = [
        Self::AnthropicMessages,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Gemini,
    ];

    /// The name in a profile.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }

    /// What is spoken at a path.
    fn at(path: &str) -> Option<Self> {
        let gemini = [":streamGenerateContent", ":generateContent"];
        if path.ends_with("/messages") {
            Some(Self::AnthropicMessages)
        } else if path.ends_with("/chat/completions") {
            Some(Self::OpenAiChat)
        } else if path.ends_with("/responses") {
            Some(Self::OpenAiResponses)
        } else {
            let there = gemini.iter().any(|verb| path.ends_with(verb));
            there.then_some(Self::Gemini)
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not one of anthropic-messages, openai-chat, openai-responses, gemini")]
pub struct NoDialect(String);

impl FromStr for Dialect {
    type Err = NoDialect;

    fn from_str(word: &str) -> Result<Self, NoDialect> {
        let found = Self::ALL
            .into_iter()
            .find(|dialect| dialect.as_str() == word);
        found.ok_or_else(|| NoDialect(word.to_owned()))
    }
}

/// One thing that the agent is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A shell command.
    Shell(String),
    /// A new file, by the agent's own way to edit files.
    Edit {
        /// Its absolute path.
        path: String,
        /// The same within the worktree.
        name: String,
        /// All of it.
        content: String,
    },
}

/// What the model has the agent do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// One after the other.
    pub steps: Vec<Step>,
    /// The last message.
    pub last: String,
}

/// A tool that the agent offers.
#[derive(Debug, Clone, PartialEq)]
struct Tool {
    name: String,
    /// The JSON schema of its arguments; none for one that takes plain text.
    schema: Option<Value>,
}

impl Tool {
    /// From a name and where a schema may be.
    fn new(name: &str, schema: Option<&Value>) -> Self {
        Self {
            name: name.to_owned(),
            schema: Some(schema.cloned().unwrap_or_default()),
        }
    }
}

/// A request as all dialects have it.
#[derive(Debug, Clone, Default, PartialEq)]
struct Asked {
    tools: Vec<Tool>,
    /// What the tools answered so far.
    results: Vec<String>,
    stream: bool,
    model: String,
    /// Everything that was said to the model, for agents that explain their ways in words.
    said: String,
    /// The JSON schema that the answer must have, where one is asked for.
    form: Option<Value>,
}

/// What the model does next.
#[derive(Debug, Clone, PartialEq)]
enum Move {
    /// Calls a tool with arguments.
    Call { tool: String, arguments: Value },
    /// Calls a tool that takes plain text.
    Write { tool: String, input: String },
    /// Says something, which ends the agent's turn.
    Say(String),
}

/// An answer: one JSON value, or events.
#[derive(Debug, Clone, PartialEq)]
enum Reply {
    One(Value),
    Events {
        events: Vec<(Option<&'static str>, Value)>,
        /// What ends the stream, where the dialect has such a thing.
        end: Option<&'static str>,
    },
}

/// Reads a request of a dialect and answers it.
fn answer(dialect: Dialect, path: &str, request: &Value, script: &Script) -> (Reply, Asked) {
    let asked = match dialect {
        Dialect::AnthropicMessages => anthropic::read(request),
        Dialect::OpenAiChat => chat::read(request),
        Dialect::OpenAiResponses => responses::read(request),
        Dialect::Gemini => gemini::read(request, path),
    };
    let next = plan::next(&asked, script);
    let reply = match dialect {
        Dialect::AnthropicMessages => anthropic::reply(&asked, &next),
        Dialect::OpenAiChat => chat::reply(&asked, &next),
        Dialect::OpenAiResponses => responses::reply(&asked, &next),
        Dialect::Gemini => gemini::reply(&asked, &next),
    };
    (reply, asked)
}

/// The text in a value that is a text, or a list of parts with texts.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// A list, empty where there is none.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;
