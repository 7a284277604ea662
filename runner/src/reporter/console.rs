//! The two streams of the program and who may say what on them. It never fails for a reader that
//! went away; other losses on standard output are kept and reported by [`Console::settle`].

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use indicatif::{MultiProgress, ProgressDrawTarget};
use serde_json::{Value, json};

use super::agent_text::{self, Filter};
use super::paint::{Paint, Tone};
use super::table;
use super::words::shell_word;
use crate::cli::Globals;
use crate::exit::{Exit, Failure};

/// Columns where nobody knows how wide the reader's window is.
const USUAL_WIDTH: u16 = 100;

/// Standard output for data, standard error for talk. Clones speak through the same streams.
#[derive(Debug, Clone)]
pub struct Console {
    json: bool,
    quiet: bool,
    verbose: u8,
    out: Stream,
    err: Stream,
    /// Within GitHub Actions: the word that ends a stretch in which commands are not obeyed.
    guard: Option<String>,
    /// Whether such a stretch is open on standard error.
    guarding: Arc<AtomicBool>,
    directory: Option<PathBuf>,
    bars: MultiProgress,
    lost: Arc<OnceLock<io::ErrorKind>>,
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    terminal: bool,
    paint: Paint,
}

impl Stream {
    fn of(terminal: bool, globals: &Globals) -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        Self {
            terminal,
            paint: Paint::decide(globals.no_color, terminal, variable),
        }
    }
}

impl Console {
    /// Finds out what the streams are.
    pub fn new(globals: &Globals) -> Self {
        let err = Stream::of(io::stderr().is_terminal(), globals);
        let spins = err.terminal && !globals.quiet;
        let target = if spins {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let in_github = std::env::var("GITHUB_ACTIONS").is_ok_and(|value| value == "true");
        Self {
            json: globals.json,
            quiet: globals.quiet,
            verbose: globals.verbose,
            out: Stream::of(io::stdout().is_terminal(), globals),
            err,
            guard: in_github.then(unguessable),
            guarding: Arc::new(AtomicBool::new(false)),
            directory: globals.directory.clone(),
            bars: MultiProgress::with_draw_target(target),
            lost: Arc::new(OnceLock::new()),
        }
    }

    /// Whether data is wanted as JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether only failures are wanted.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// How much more than usual is wanted.
    pub fn verbosity(&self) -> u8 {
        self.verbose
    }

    /// Whether standard output is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.out.terminal
    }

    /// How the reader has to start a command of ours to mean the same repository.
    pub fn command(&self) -> String {
        match &self.directory {
            Some(directory) => format!("airlock -C {}", shell_word(directory)),
            None => "airlock".to_owned(),
        }
    }

    /// Columns of standard output.
    pub fn width(&self) -> u16 {
        self.window().unwrap_or(USUAL_WIDTH)
    }

    /// How standard output is coloured.
    pub fn paint(&self) -> Paint {
        self.out.paint
    }

    /// How standard error is coloured.
    pub(super) fn talk_paint(&self) -> Paint {
        self.err.paint
    }

    /// Where spinners are drawn.
    pub(super) fn bars(&self) -> &MultiProgress {
        &self.bars
    }

    /// One line of data.
    pub fn data(&self, line: &str) {
        let line = format!("{line}\n");
        let line = if commands(&line) {
            self.guarded(&line)
        } else {
            line
        };
        self.raw(line.as_bytes());
    }

    /// One JSON value on one line.
    pub fn json(&self, value: &Value) {
        self.data(&value.to_string());
    }

    /// Bytes of data as they are; only for what is no text of an agent, or when asked for.
    pub fn raw(&self, bytes: &[u8]) {
        if self.is_gone() {
            return;
        }
        let written = self.bars.suspend(|| {
            let mut out = io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        });
        if let Err(error) = written {
            // The first loss is the one that is reported.
            self.lost.get_or_init(|| error.kind());
        }
    }

    /// Nobody reads standard output any more (or it is full): a follower should stop.
    pub fn is_gone(&self) -> bool {
        self.lost.get().is_some()
    }

    /// The exit code when all is said: data that could not be written is a failure, except that a
    /// reader may always leave.
    pub fn settle(&self, exit: Exit) -> Exit {
        match self.lost.get() {
            Some(kind) if *kind != io::ErrorKind::BrokenPipe => {
                let failure = Failure::new(Exit::Internal, "cannot write to standard output")
                    .advise(format!("the system says: {kind}"));
                self.say(&self.described(&failure));
                Exit::Internal
            }
            _ => exit,
        }
    }

    /// Talk, unless quiet.
    pub fn talk(&self, line: &str) {
        if !self.quiet {
            self.say(line);
        }
    }

    /// Something to look at, unless quiet.
    pub fn warn(&self, line: &str) {
        self.talk(&format!(
            "{} {line}",
            self.err.paint.put(Tone::Doubtful, "warning:")
        ));
    }

    /// What failed, why, and what to do; with JSON wanted also as an object of data.
    pub fn failure(&self, failure: &Failure) {
        self.say(&self.described(failure));
        if self.json {
            self.json(&json!({
                "schema": 1,
                "error": {"what": failure.what, "causes": failure.causes, "next": failure.next},
                "exit": failure.exit.code(),
            }));
        }
    }

    /// What failed in something that was done for a person, in one line.
    pub fn problem(&self, line: &str) {
        let line = agent_text::plain(line);
        self.say(&format!(
            "{} {}",
            self.err.paint.put(Tone::Bad, "error:"),
            line.trim_end()
        ));
    }

    fn described(&self, failure: &Failure) -> String {
        let paint = self.err.paint;
        let clean = |text: &str| agent_text::plain(text).trim_end().replace('\n', "\n    ");
        let mut text = format!(
            "{} {}",
            paint.put(Tone::Bad, "error:"),
            clean(&failure.what)
        );
        for cause in &failure.causes {
            text.push_str("\n  cause: ");
            text.push_str(&clean(cause));
        }
        if let Some(next) = &failure.next {
            text.push_str("\n  ");
            text.push_str(&paint.put(Tone::Strong, "next:"));
            text.push(' ');
            text.push_str(&clean(next));
        }
        text
    }

    /// Rows below headers; status words are coloured.
    pub fn table(&self, headers: &[&str], rows: &[Vec<String>]) {
        for line in table::lines(headers, rows, self.window(), self.out.paint) {
            self.data(&line);
        }
    }

    /// A whole text of an agent as data: made safe, colours kept where there are colours.
    pub fn agent_text(&self, bytes: &[u8]) {
        let mut filter = Filter::new(self.out.paint.colours);
        let mut text = filter.push(bytes);
        text.push_str(&filter.end());
        self.agent_lines(&text);
    }

    /// Text of an agent that already went through a filter.
    pub fn agent_lines(&self, text: &str) {
        if !text.is_empty() {
            self.raw(self.guarded(text).as_bytes());
        }
    }

    /// Bytes of an agent as they are, for a program that reads them or a person who asked.
    pub fn agent_bytes(&self, bytes: &[u8]) {
        match &self.guard {
            Some(_) => self.agent_lines(&String::from_utf8_lossy(bytes)),
            None => self.raw(bytes),
        }
    }

    /// The same on standard error.
    pub(super) fn agent_error(&self, bytes: &[u8]) {
        let guarded;
        let bytes = if self.guard.is_some() {
            guarded = self.guarded(&String::from_utf8_lossy(bytes));
            guarded.as_bytes()
        } else {
            bytes
        };
        // Without standard error there is nobody left to complain to.
        self.bars
            .suspend(|| io::stderr().lock().write_all(bytes))
            .ok();
    }

    /// Filters for text of agents on standard output and standard error; none where a program reads.
    pub(super) fn filters(&self) -> [Option<Filter>; 2] {
        [self.out, self.err]
            .map(|stream| stream.terminal.then(|| Filter::new(stream.paint.colours)))
    }

    /// A filter for text of agents on standard output.
    pub fn filter(&self) -> Filter {
        Filter::new(self.out.paint.colours)
    }

    /// Text of an agent among the talk; it already went through a filter.
    pub(super) fn agent_talk(&self, text: &str) {
        if self.quiet || text.is_empty() {
            return;
        }
        if let Some(word) = &self.guard
            && !self.guarding.swap(true, Ordering::Relaxed)
        {
            self.to_stderr(&format!("::stop-commands::{word}\n"));
        }
        self.to_stderr(text);
    }

    /// The agent has said what it had to say for now.
    pub(super) fn end_agent_talk(&self) {
        if let Some(word) = &self.guard
            && self.guarding.swap(false, Ordering::Relaxed)
        {
            self.to_stderr(&format!("::{word}::\n"));
        }
    }

    /// Within GitHub Actions a line can be a command to the runner: there the text goes between
    /// two marks that nobody could guess.
    fn guarded(&self, text: &str) -> String {
        let Some(word) = &self.guard else {
            return text.to_owned();
        };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        format!("::stop-commands::{word}\n{text}{end}::{word}::\n")
    }

    /// Asks a person; none when there is nobody to ask.
    pub fn confirm(&self, question: &str) -> Option<bool> {
        if !io::stdin().is_terminal() || !self.err.terminal {
            return None;
        }
        self.to_stderr(&format!("{question} [y/N] "));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    fn say(&self, line: &str) {
        self.end_agent_talk();
        let text = format!("{line}\n");
        let text = if commands(&text) {
            self.guarded(&text)
        } else {
            text
        };
        self.to_stderr(&text);
    }

    fn to_stderr(&self, text: &str) {
        // Without standard error there is nobody left to complain to.
        self.bars
            .suspend(|| io::stderr().lock().write_all(text.as_bytes()))
            .ok();
    }

    fn window(&self) -> Option<u16> {
        let size = self
            .out
            .terminal
            .then(|| rustix::termios::tcgetwinsize(io::stdout()).ok());
        size.flatten()
            .map(|size| size.ws_col)
            .filter(|columns| *columns > 0)
    }
}

/// Whether GitHub's runner may obey a line of it: it skips blanks before the new form, and obeys the old one
/// anywhere in a line.
fn commands(text: &str) -> bool {
    text.contains("##[") || text.lines().any(|line| line.trim_start().starts_with("::"))
}

/// A word that an agent cannot know.
fn unguessable() -> String {
    let mut bytes = [0; 16];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    filled.expect("getrandom of 16 bytes fails on no kernel that has user namespaces");
    format!("{:032x}", u128::from_ne_bytes(bytes))
}
