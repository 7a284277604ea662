//! The output of a command that was run for a person, on its way through: byte for byte to a program, without what a
//! terminal would act on to a terminal, as objects when JSON is wanted.

use serde_json::json;

use super::agent_text::Filter;
use super::console::Console;

/// Where the output of one command goes.
#[derive(Debug)]
pub struct Passing<'a> {
    console: &'a Console,
    raw: bool,
    filters: [Option<Filter>; 2],
}

/// Which of the two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

impl<'a> Passing<'a> {
    /// `raw`: also a terminal, and the runner of GitHub, gets the bytes as they are.
    pub fn new(console: &'a Console, raw: bool) -> Self {
        let filters = if raw { [None, None] } else { console.filters() };
        Self {
            console,
            raw,
            filters,
        }
    }

    /// Nobody reads the output any more.
    pub fn is_gone(&self) -> bool {
        self.console.is_gone()
    }

    /// Takes the next piece.
    pub fn take(&mut self, channel: Channel, bytes: &[u8]) {
        let [output, error] = &mut self.filters;
        let filter = match channel {
            Channel::Output => output,
            Channel::Error => error,
        };
        if self.console.is_json() {
            let stream = match channel {
                Channel::Output => "stdout",
                Channel::Error => "stderr",
            };
            let text = String::from_utf8_lossy(bytes);
            self.console
                .json(&json!({"schema": 1, "stream": stream, "text": text}));
        } else if let Some(filter) = filter {
            let shown = filter.push(bytes);
            self.put(channel, shown.as_bytes());
        } else {
            self.put(channel, bytes);
        }
    }

    /// Lets go of what a filter still held back.
    pub fn end(&mut self) {
        if self.console.is_json() {
            return;
        }
        for (at, channel) in [Channel::Output, Channel::Error].into_iter().enumerate() {
            let rest = self.filters.get_mut(at).and_then(Option::as_mut);
            if let Some(rest) = rest.map(Filter::end) {
                self.put(channel, rest.as_bytes());
            }
        }
    }

    fn put(&self, channel: Channel, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        match channel {
            Channel::Output if self.raw => self.console.raw(bytes),
            Channel::Output => self.console.agent_bytes(bytes),
            Channel::Error => self.console.agent_error(bytes),
        }
    }
}
