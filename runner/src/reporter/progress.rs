//! What a person sees while a task runs: a spinner for the stage at hand (lines where there is no
//! terminal), and the agent's output with a bar beside it, so that it cannot pass for ours.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::agent_text::Filter;
use super::console::Console;
use super::narration::{Beat, Told, tell};
use super::paint::Tone;
use super::report;
use super::words::duration;
use crate::client::Watcher;
use crate::event::{Event, Record};
use crate::view::TaskView;

/// The agent's line is handed on in pieces when it is longer than this many bytes.
const LONGEST_LINE: usize = 4096;

/// Watches one task and reports on it.
#[derive(Debug)]
pub struct Progress {
    console: Console,
    filter: Filter,
    /// What the agent has written of its current line.
    line: String,
    stage: Option<Stage>,
}

#[derive(Debug)]
struct Stage {
    since: u64,
    spinner: ProgressBar,
}

impl Progress {
    /// A watcher that has seen nothing yet.
    pub fn new(console: &Console) -> Self {
        Self {
            console: console.clone(),
            filter: Filter::new(console.talk_paint().colours),
            line: String::new(),
            stage: None,
        }
    }

    /// The closing report, or the object when JSON is wanted. A quiet success says nothing.
    pub fn finish(&mut self, view: &TaskView) {
        self.end_output();
        self.end_stage();
        if self.console.is_json() {
            self.console.json(&view.object());
        } else if !self.console.is_quiet() || view.exit() != crate::exit::Exit::Ok {
            if self.console.is_terminal() {
                self.console.talk("");
            }
            report::print(&self.console, view, report::Depth::Closing);
        }
    }

    fn begin_stage(&mut self, record: &Record, told: &Told) {
        self.end_stage();
        let spinner = self.console.bars().add(ProgressBar::new_spinner());
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}");
        spinner.set_style(style.expect("the template is a constant that was tried"));
        spinner.set_message(told.text.clone());
        if !self.console.bars().is_hidden() {
            spinner.enable_steady_tick(Duration::from_millis(100));
        }
        self.stage = Some(Stage {
            since: record.at,
            spinner,
        });
        let matters = matches!(record.event, Event::Started { .. }) || self.console.verbosity() > 0;
        if matters && self.console.bars().is_hidden() {
            self.say("·", told, None);
        }
    }

    fn end_stage(&mut self) -> Option<u64> {
        let stage = self.stage.take()?;
        stage.spinner.finish_and_clear();
        self.console.bars().remove(&stage.spinner);
        Some(stage.since)
    }

    fn say(&self, mark: &str, told: &Told, took: Option<u64>) {
        let paint = self.console.talk_paint();
        let took = took.map_or_else(String::new, |ms| {
            paint.put(Tone::Quiet, &format!(" {}", duration(ms)))
        });
        let text = if told.tone == Tone::Quiet {
            paint.put(Tone::Quiet, &told.text)
        } else {
            told.text.clone()
        };
        self.console
            .talk(&format!("{} {text}{took}", paint.put(told.tone, mark)));
    }

    /// Writes out what is left of the agent's last line.
    fn end_output(&mut self) {
        let rest = self.filter.end();
        self.line.push_str(&rest);
        if !self.line.is_empty() {
            self.line.push('\n');
        }
        self.hand_on();
        self.console.end_agent_talk();
    }

    /// Hands on the lines that are complete.
    fn hand_on(&mut self) {
        let (lines, rest) = match self.line.rfind('\n') {
            Some(end) => self.line.split_at(end + 1),
            None if self.line.len() > LONGEST_LINE => (self.line.as_str(), ""),
            None => return,
        };
        let bar = self.console.talk_paint().put(Tone::Quiet, "│");
        let mut text = String::with_capacity(lines.len() + 64);
        for line in lines.lines() {
            text.push_str(&bar);
            text.push(' ');
            text.push_str(line);
            text.push('\n');
        }
        self.console.agent_talk(&text);
        self.line = rest.to_owned();
    }
}

impl Watcher for Progress {
    fn event(&mut self, record: &Record) {
        if matches!(record.event, Event::Ended { .. }) {
            self.end_output();
        }
        let told = tell(&record.event);
        match told.beat {
            Beat::Begins => self.begin_stage(record, &told),
            Beat::Ends => {
                // The agent's end tells its own time.
                let timed = !matches!(record.event, Event::Ended { .. });
                let since = self.end_stage().filter(|_| timed);
                let mark = mark(told.tone);
                self.say(
                    mark,
                    &told,
                    since.map(|since| record.at.saturating_sub(since)),
                );
            }
            Beat::Remark if told.tone == Tone::Quiet && self.console.verbosity() == 0 => {}
            Beat::Remark => self.say(mark(told.tone), &told, None),
        }
    }

    fn output(&mut self, _job: &str, bytes: &[u8]) {
        let shown = self.filter.push(bytes);
        self.line.push_str(&shown);
        self.hand_on();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end_output();
        self.end_stage();
    }
}

/// The sign before a line.
pub(super) fn mark(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "✓",
        Tone::Bad => "✗",
        Tone::Doubtful => "!",
        Tone::Quiet | Tone::Strong => "·",
    }
}
