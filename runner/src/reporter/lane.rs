//! One line for each of several things that go on side by side: a spinner with the latest word on
//! a terminal, a prefixed line for every word elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::agent_text::one_line;
use super::console::Console;
use super::paint::Tone;
use super::progress::mark;

/// Columns that names are filled up to.
const NAME: usize = 8;

/// The line of one of them.
#[derive(Debug)]
pub struct Lane {
    console: Console,
    name: String,
    spinner: ProgressBar,
}

impl Lane {
    /// Opens a line.
    pub fn begin(console: &Console, name: &str) -> Self {
        let spinner = console.bars().add(ProgressBar::new_spinner());
        let style = ProgressStyle::with_template("{spinner} {prefix} {wide_msg}");
        spinner.set_style(style.expect("the template is a constant that was tried"));
        let name = format!("{name:<NAME$}");
        spinner.set_prefix(name.clone());
        if !console.bars().is_hidden() {
            spinner.enable_steady_tick(Duration::from_millis(100));
        }
        Self {
            console: console.clone(),
            name,
            spinner,
        }
    }

    /// Its latest word.
    pub fn say(&self, word: &str) {
        let word = one_line(word);
        if self.console.bars().is_hidden() {
            self.console.talk(&format!("{} {word}", self.name));
        } else {
            self.spinner.set_message(word);
        }
    }

    /// Its last word, which stays.
    pub fn end(self, tone: Tone, word: &str) {
        self.spinner.finish_and_clear();
        self.console.bars().remove(&self.spinner);
        let mark = self.console.talk_paint().put(tone, mark(tone));
        self.console
            .talk(&format!("{mark} {} {}", self.name, one_line(word)));
    }
}
