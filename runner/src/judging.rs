//! Gates judge in a child of their own: parsers meet hostile bytes, and a parser that is killed must
//! not take the engine with it. Both ends of the pipe are here. The child has no file, no network
//! and no key; it asks for blobs by object id and gets only those of the two judged trees. A child
//! that dies or hangs is a refusal ("unjudgeable"), never a pass.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use gates::{Delivery, Gate, GateRun, Judgement, Reason, Source, TreeEntry};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use worktrees::{Objects, Oid, Repository};

use crate::exit::{Exit, Failure, OrFail as _};
use crate::itself;

/// The hidden subcommand of the child.
pub const SUBCOMMAND: &str = "__judge";

/// One judgement may take this long.
const PATIENCE: Duration = Duration::from_mins(2);

/// A question or answer line longer than this is not from our child.
const LONGEST_LINE: u64 = 256 << 20;

/// A child that waits for a delivery; started early, its start-up costs nobody time.
#[derive(Debug)]
pub struct Judge {
    child: Child,
    questions: BufReader<ChildStdout>,
    answers: ChildStdin,
}

impl Drop for Judge {
    /// Also of one that was started and never asked, for a tree in which nothing had changed.
    fn drop(&mut self) {
        // The child has nothing to lose; what it was asked for is here, or it never will be.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Judge {
    /// Starts the child.
    pub fn start() -> Result<Self, Failure> {
        let mut child = Command::new(itself::executable())
            .arg(SUBCOMMAND)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .current_dir("/")
            .spawn()
            .or_fail(Exit::Internal)?;
        let answers = child.stdin.take().expect("stdin was asked to be a pipe");
        let questions = child.stdout.take().expect("stdout was asked to be a pipe");
        Ok(Self {
            child,
            questions: BufReader::with_capacity(1 << 16, questions),
            answers,
        })
    }

    /// Judges one delivery and ends the child.
    pub fn judge(
        mut self,
        repository: &Repository,
        delivery: &Delivery,
    ) -> Result<Judgement, Failure> {
        let mut objects = Offer::of(repository, delivery)?;
        let deadline = Instant::now() + PATIENCE;
        let judged = self.converse(delivery, &mut objects, deadline);
        match judged {
            Ok(judgement) => Ok(judgement),
            Err(reason) => Ok(unjudgeable(&reason, objects.last.as_deref())),
        }
    }

    fn converse(
        &mut self,
        delivery: &Delivery,
        objects: &mut Offer<'_>,
        deadline: Instant,
    ) -> Result<Judgement, String> {
        let io = |error: io::Error| format!("the judge could not be spoken to: {error}");
        let mut header = serde_json::to_vec(delivery).map_err(|error| error.to_string())?;
        header.push(b'\n');
        self.answers.write_all(&header).map_err(io)?;
        loop {
            let line = self.line(deadline)?;
            match line.split_at_checked(2) {
                Some(("B ", oid)) => {
                    let bytes = objects.blob(oid);
                    self.answer(bytes.as_deref()).map_err(io)?;
                }
                Some(("E ", _)) => {
                    let entries = objects.entries();
                    let bytes = entries.and_then(|entries| serde_json::to_vec(entries).ok());
                    self.answer(bytes.as_deref()).map_err(io)?;
                }
                Some(("J ", judgement)) => {
                    return serde_json::from_str(judgement)
                        .map_err(|error| format!("the judge answered nonsense: {error}"));
                }
                Some(_) | None => return Err("the judge died while it judged".to_owned()),
            }
        }
    }

    fn answer(&mut self, bytes: Option<&[u8]>) -> io::Result<()> {
        match bytes {
            Some(bytes) => {
                writeln!(self.answers, "{}", bytes.len())?;
                self.answers.write_all(bytes)
            }
            None => writeln!(self.answers, "-"),
        }
    }

    fn line(&mut self, deadline: Instant) -> Result<String, String> {
        let mut line = Vec::new();
        loop {
            if self.questions.buffer().is_empty() {
                self.ready(deadline)?;
            }
            let available = self
                .questions
                .fill_buf()
                .map_err(|error| error.to_string())?;
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            line.extend_from_slice(available.get(..taken).unwrap_or_default());
            self.questions.consume(taken);
            if end.is_some() || taken == 0 {
                line.truncate(line.len().saturating_sub(usize::from(end.is_some())));
                return String::from_utf8(line).map_err(|error| error.to_string());
            }
            if line.len() as u64 > LONGEST_LINE {
                return Err("the judge said too much".to_owned());
            }
        }
    }

    fn ready(&self, deadline: Instant) -> Result<(), String> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(
            self.questions.get_ref().as_fd(),
            PollFlags::POLLIN,
        )];
        match poll(&mut fds, timeout) {
            Ok(0) => Err(format!(
                "the judge took longer than {} s",
                PATIENCE.as_secs()
            )),
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.to_string()),
        }
    }
}

/// Judges one delivery in a fresh child.
pub fn judge(repository: &Repository, delivery: &Delivery) -> Result<Judgement, Failure> {
    Judge::start()?.judge(repository, delivery)
}

/// The objects that the child may ask for.
struct Offer<'a> {
    repository: &'a Repository,
    objects: Objects,
    tree: Oid,
    allowed: HashSet<String>,
    paths: HashMap<String, String>,
    entries: Option<Vec<TreeEntry>>,
    last: Option<String>,
}

impl<'a> Offer<'a> {
    fn of(repository: &'a Repository, delivery: &Delivery) -> Result<Self, Failure> {
        let mut allowed = HashSet::new();
        let mut paths = HashMap::new();
        for change in &delivery.changes {
            for blob in change.old.iter().chain(&change.new) {
                allowed.insert(blob.oid.clone());
                paths.insert(blob.oid.clone(), change.path.clone());
            }
        }
        let tree = Oid::from_str(&delivery.tree).or_fail(Exit::Internal)?;
        Ok(Self {
            repository,
            objects: repository.objects().or_fail(Exit::Internal)?,
            tree,
            allowed,
            paths,
            entries: None,
            last: None,
        })
    }

    fn blob(&mut self, oid: &str) -> Option<Vec<u8>> {
        self.last = self.paths.get(oid).cloned();
        let known = self.allowed.contains(oid);
        let oid = Oid::from_str(oid).ok().filter(|_| known)?;
        self.objects.blob(oid).ok()
    }

    fn entries(&mut self) -> Option<&Vec<TreeEntry>> {
        if self.entries.is_none() {
            let listed = self.repository.tree_entries(self.tree).ok()?;
            let entries: Vec<TreeEntry> = listed
                .into_iter()
                .map(|entry| TreeEntry {
                    path: worktrees::shown(&entry.path),
                    oid: entry.oid.to_string(),
                    mode: entry.mode,
                })
                .collect();
            for entry in &entries {
                self.allowed.insert(entry.oid.clone());
                self.paths.insert(entry.oid.clone(), entry.path.clone());
            }
            self.entries = Some(entries);
        }
        self.entries.as_ref()
    }
}

/// The judgement over a delivery whose judge did not survive it.
fn unjudgeable(reason: &str, path: Option<&str>) -> Judgement {
    let gates = Gate::ALL
        .into_iter()
        .map(|gate| {
            if gate == Gate::Stub {
                let mut why = Reason::fail(
                    "unjudgeable",
                    format!("no judgement could be made: {reason}"),
                )
                .help("a file that kills its parser is refused; simplify or remove it");
                why.path = path.map(str::to_owned);
                GateRun::of(gate, vec![why])
            } else {
                GateRun::could_not_check(gate, reason)
            }
        })
        .collect();
    Judgement {
        gates,
        ..Judgement::default()
    }
}

/// The child: reads a delivery, judges, answers, ends.
pub fn child() -> ExitCode {
    if sandbox::confine_judge(&sandbox::JudgeLimits::default()).is_err() {
        // Hostile bytes are not read without walls; the parent sees an end without a judgement.
        return ExitCode::FAILURE;
    }
    let worker = std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(child_on_large_stack);
    match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        Ok(Ok(Err(_)) | Err(_)) | Err(_) => ExitCode::FAILURE,
    }
}

fn child_on_large_stack() -> io::Result<()> {
    let mut parent = Parent {
        answers: io::stdin().lock(),
        questions: io::stdout().lock(),
    };
    let mut header = String::new();
    parent.answers.read_line(&mut header)?;
    let delivery: Delivery = serde_json::from_str(&header)?;
    let judgement = gates::judge(&delivery, &mut parent);
    let text = serde_json::to_string(&judgement)?;
    writeln!(parent.questions, "J {text}")?;
    parent.questions.flush()
}

struct Parent {
    answers: io::StdinLock<'static>,
    questions: io::StdoutLock<'static>,
}

impl Parent {
    fn ask(&mut self, question: &str) -> io::Result<Option<Vec<u8>>> {
        writeln!(self.questions, "{question}")?;
        self.questions.flush()?;
        let mut length = String::new();
        self.answers.read_line(&mut length)?;
        let Ok(length) = length.trim_end().parse::<usize>() else {
            return Ok(None);
        };
        let mut bytes = vec![0; length];
        self.answers.read_exact(&mut bytes)?;
        Ok(Some(bytes))
    }
}

impl Source for Parent {
    fn blob(&mut self, oid: &str) -> Option<Vec<u8>> {
        self.ask(&format!("B {oid}")).ok().flatten()
    }

    fn entries(&mut self) -> Vec<TreeEntry> {
        let bytes = self.ask("E ").ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}
