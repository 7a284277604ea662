//! One call of a program under test, from its arguments to its end. A program that does not end, or
//! whose descendants keep its output open, fails the test instead of hanging it.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::run::{Ended, Run};
use crate::waiting::{until, within};

/// Longer than a task on 100,000 files takes.
const PATIENCE: Duration = Duration::from_mins(4);

/// A call that is being put together.
#[derive(Debug)]
#[must_use = "nothing runs before .run() or .spawn()"]
pub struct Call {
    command: Command,
    words: Vec<OsString>,
    stdin: Vec<u8>,
}

impl Call {
    /// A call of `program` in the folder `at`, with exactly this environment.
    pub(crate) fn new(program: &OsStr, at: &Path, environment: Vec<(OsString, OsString)>) -> Self {
        let mut command = Command::new(program);
        command.current_dir(at).env_clear().envs(environment);
        Self {
            command,
            words: vec![program.to_owned()],
            stdin: Vec::new(),
        }
    }

    /// One more argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.words.push(arg.as_ref().to_owned());
        self.command.arg(arg);
        self
    }

    /// More arguments.
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(self, args: I) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// One more variable in the environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// One variable less.
    pub fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// What stands on standard input; by default it is empty.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Starts it.
    #[track_caller]
    pub fn spawn(mut self) -> Running {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let words: Vec<_> = self
            .words
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        let words = words.join(" ");
        let mut child = self
            .command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {words}: {error}"));
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        let bytes = self.stdin;
        // A program that does not read its input must not block the test.
        std::thread::spawn(move || stdin.write_all(&bytes).ok());
        let stdout = collect(child.stdout.take().expect("stdout is a pipe"));
        let stderr = collect(child.stderr.take().expect("stderr is a pipe"));
        Running {
            words,
            child,
            stdout,
            stderr,
        }
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn run(self) -> Run {
        self.spawn().wait()
    }
}

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    words: String,
    child: Child,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid fits")
    }

    /// Sends it a signal.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("the program still runs");
    }

    /// Waits for the end, of the program and of its output.
    #[track_caller]
    pub fn wait(mut self) -> Run {
        let mut status = None;
        let ended = within(PATIENCE, || {
            status = self.child.try_wait().expect("the child is ours");
            status.is_some()
        });
        if !ended {
            self.child.kill().expect("the child is ours");
            status = Some(self.child.wait().expect("the child is ours"));
        }
        let run = Run(Ended {
            code: status.and_then(|status| status.code()),
            stdout: text(&self.stdout, &self.words),
            stderr: text(&self.stderr, &self.words),
            command: self.words,
        });
        assert!(
            ended,
            "it did not end within {} s\n{run}",
            PATIENCE.as_secs()
        );
        run
    }
}

/// Reads a stream to its end, beside the test.
fn collect(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (whole, read) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok();
        whole.send(bytes).ok();
    });
    read
}

#[track_caller]
fn text(stream: &Receiver<Vec<u8>>, words: &str) -> String {
    let what = format!("the end of the output of {words}: does a descendant hold it open?");
    let bytes = until(&what, || stream.try_recv().ok());
    String::from_utf8_lossy(&bytes).into_owned()
}
