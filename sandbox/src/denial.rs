//! `deny.ndjson` of a task: what its room refused, by which rule, and what would allow it. One object a line, appended.
//!
//! Must never be written by anything that a room can steer but its number of refusals: the supervisor and the keepers
//! append, and equal refusals are counted, so that neither the file nor the engine follows the pace of a hostile job.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::meta::now_ms;

/// Name of the file in the task's folder.
pub const DENIALS: &str = "deny.ndjson";
/// Largest size of the file, in bytes; a line that says so comes last.
const CAP: u64 = 256 << 10;
/// Different refusals that one writer tells apart.
const KINDS: usize = 1024;
/// Longest text of a field, in bytes.
const LONGEST: usize = 256;

/// What kind of thing was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DenialKind {
    /// A host name or address: `what` is `example.org`.
    Host,
    /// A port of a host that is allowed: `what` is `example.org:22`.
    Port,
    /// A limit that was reached: `what` is its name, such as `memory`.
    Limit,
    /// A tool of the engine that the job may not use.
    Tool,
    /// A system call: `what` is its name.
    Syscall,
    /// Nothing was refused: the file is full, and what follows is not written.
    Full,
}

impl DenialKind {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Port => "port",
            Self::Limit => "limit",
            Self::Tool => "tool",
            Self::Syscall => "syscall",
            Self::Full => "full",
        }
    }
}

/// What would allow it next time. Plain words: quoting is for whoever shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allow {
    /// Words of a flag of `run`, such as `--net` and `allow:example.org`; empty when no flag does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flag: Vec<String>,
    /// Section and line of the user's configuration, such as `sandbox` and `net = "allow:example.org"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<(String, String)>,
}

/// One refusal, or several equal ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// 1.
    pub schema: u32,
    /// When, in milliseconds since 1970; of several, the last.
    pub time: u64,
    /// The job; none when it cannot be told which.
    pub job: Option<String>,
    /// What kind of thing.
    pub kind: DenialKind,
    /// Which thing.
    pub what: String,
    /// The rule that refused it, such as `--net none` or `pids = 512`.
    pub rule: String,
    /// What would allow it; none when nothing does.
    pub allow: Option<Allow>,
    /// How often, since the line before that says the same.
    pub count: u64,
}

impl Denial {
    /// A refusal that happens now, once. Long texts are cut.
    pub fn now(job: Option<&str>, kind: DenialKind, what: &str, rule: &str) -> Self {
        Self {
            schema: 1,
            time: now_ms(),
            job: job.map(cut),
            kind,
            what: cut(what),
            rule: cut(rule),
            allow: None,
            count: 1,
        }
    }

    /// The same with what would allow it.
    #[must_use]
    pub fn allowed_by(mut self, flag: &[&str], config: Option<(&str, &str)>) -> Self {
        self.allow = Some(Allow {
            flag: flag.iter().map(|word| cut(word)).collect(),
            config: config.map(|(section, line)| (cut(section), cut(line))),
        });
        self
    }

    fn key(&self) -> Key {
        (self.job.clone(), self.kind, self.what.clone())
    }
}

type Key = (Option<String>, DenialKind, String);

fn cut(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let (start, _) = text.split_at(text.floor_char_boundary(LONGEST));
    format!("{start}…")
}

/// One writer of the file; a task may have several.
#[derive(Debug)]
pub struct DenialLog {
    path: PathBuf,
    file: Option<File>,
    known: BTreeMap<Key, Tally>,
    full: bool,
}

#[derive(Debug)]
struct Tally {
    denial: Denial,
    total: u64,
    written: u64,
}

impl DenialLog {
    /// Will append to `path`, which is made at the first refusal.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            known: BTreeMap::new(),
            full: false,
        }
    }

    /// Counts a refusal. The first of its kind is written at once, the following ones when their number has doubled.
    /// A disk that cannot be written is no reason to fail: what a room is refused, it is refused.
    pub fn note(&mut self, mut denial: Denial) {
        if !self.known.contains_key(&denial.key()) && self.known.len() >= KINDS {
            // Still told that there were more, no longer which.
            "(others)".clone_into(&mut denial.what);
            denial.job = None;
        }
        let time = denial.time;
        let tally = self.known.entry(denial.key()).or_insert_with(|| Tally {
            denial,
            total: 0,
            written: 0,
        });
        tally.total = tally.total.saturating_add(1);
        tally.denial.time = time;
        if tally.total >= tally.written.saturating_mul(2) {
            let line = tally.line();
            self.append(&line);
        }
    }

    /// Writes what was counted and not written yet.
    pub fn flush(&mut self) {
        let behind = self
            .known
            .values_mut()
            .filter(|tally| tally.total > tally.written);
        let lines: Vec<Denial> = behind.map(Tally::line).collect();
        for line in lines {
            self.append(&line);
        }
    }

    fn append(&mut self, denial: &Denial) {
        if self.full {
            return;
        }
        // Nothing to be done about it here: the refusal stands without its record.
        if self.try_append(denial).is_err() {
            self.full = true;
        }
    }

    fn try_append(&mut self, denial: &Denial) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(open(&self.path)?),
        };
        let length = file.metadata()?.len();
        let mut text = serde_json::to_vec(denial)?;
        text.push(b'\n');
        let size = u64::try_from(text.len()).unwrap_or(u64::MAX);
        if length.saturating_add(size) > CAP {
            self.full = true;
            if length > CAP {
                return Ok(());
            }
            let rule = format!("the file holds {CAP} bytes at most");
            text = serde_json::to_vec(&Denial::now(None, DenialKind::Full, "", &rule))?;
            text.push(b'\n');
        }
        // One call: several writers append whole lines.
        file.write_all(&text)
    }
}

impl Tally {
    fn line(&mut self) -> Denial {
        let count = self.total - self.written;
        self.written = self.total;
        Denial {
            count,
            ..self.denial.clone()
        }
    }
}

impl Drop for DenialLog {
    fn drop(&mut self) {
        self.flush();
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path)?;
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    if last != [b'\n'] {
        // A writer was killed in the middle: its half line must not swallow ours.
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// Everything that was refused in a task.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Denials {
    /// One for each job, kind and thing, in the order of the first; counts are added up.
    pub records: Vec<Denial>,
    /// The file was full: there were more.
    pub full: bool,
    /// Lines that are not whole, such as the last one of a writer that was killed.
    pub broken: usize,
}

impl Denials {
    /// Reads the file; one that is absent says that nothing was refused.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut text = Vec::new();
        match File::open(path) {
            Ok(file) => file.take(CAP * 2).read_to_end(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        let mut denials = Self::default();
        for line in text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            match serde_json::from_slice::<Denial>(line) {
                Ok(denial) if denial.kind == DenialKind::Full => denials.full = true,
                Ok(denial) => denials.add(denial),
                Err(_half) => denials.broken += 1,
            }
        }
        Ok(denials)
    }

    /// How many refusals there were.
    pub fn total(&self) -> u64 {
        let counts = self.records.iter().map(|denial| denial.count);
        counts.fold(0, u64::saturating_add)
    }

    fn add(&mut self, denial: Denial) {
        let same = |known: &&mut Denial| known.key() == denial.key() && known.rule == denial.rule;
        match self.records.iter_mut().find(same) {
            Some(known) => {
                known.count = known.count.saturating_add(denial.count);
                known.time = known.time.max(denial.time);
            }
            None => self.records.push(denial),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> Denial {
        Denial::now(Some("agent"), DenialKind::Host, name, "--net none")
            .allowed_by(&["--net", &format!("allow:{name}")], None)
    }

    fn lines(path: &Path) -> usize {
        std::fs::read_to_string(path).unwrap().lines().count()
    }

    #[test]
    fn equal_refusals_are_counted_and_the_first_is_there_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(DENIALS);
        assert_eq!(Denials::read(&path).unwrap(), Denials::default());
        let mut log = DenialLog::new(&path);
        log.note(host("a.test"));
        assert_eq!(Denials::read(&path).unwrap().total(), 1);
        for _ in 0..100_000 {
            log.note(host("a.test"));
        }
        log.note(host("b.test"));
        drop(log);
        let read = Denials::read(&path).unwrap();
        let seen: Vec<_> = read
            .records
            .iter()
            .map(|d| (d.what.as_str(), d.count))
            .collect();
        assert_eq!(seen, [("a.test", 100_001), ("b.test", 1)]);
        assert!(lines(&path) < 25, "{}", lines(&path));
        assert_eq!(
            read.records[0].allow.as_ref().unwrap().flag,
            ["--net", "allow:a.test"]
        );
    }

    #[test]
    fn a_flood_of_different_refusals_ends_in_a_marker() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(DENIALS);
        for writer in 0..4 {
            let mut log = DenialLog::new(&path);
            for number in 0..3000 {
                log.note(host(&format!("{}{writer}-{number}.test", "x".repeat(200))));
            }
        }
        let read = Denials::read(&path).unwrap();
        let size = std::fs::metadata(&path).unwrap().len();
        assert!(read.full && size < CAP + 1024, "{size}");
        assert_eq!(read.broken, 0);
    }

    #[test]
    fn one_writer_tells_a_bounded_number_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(DENIALS);
        let mut log = DenialLog::new(&path);
        for number in 0..5000 {
            log.note(Denial::now(
                None,
                DenialKind::Port,
                &number.to_string(),
                "r",
            ));
        }
        assert!(log.known.len() <= KINDS + 1);
        drop(log);
        let read = Denials::read(&path).unwrap();
        assert_eq!((read.total(), read.full), (5000, false));
    }

    #[test]
    fn a_half_line_is_reported_and_spoils_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(DENIALS);
        DenialLog::new(&path).note(host("a.test"));
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], &whole[..20]].concat()).unwrap();
        let read = Denials::read(&path).unwrap();
        assert_eq!((read.total(), read.broken), (1, 1));
        DenialLog::new(&path).note(host("b.test"));
        let read = Denials::read(&path).unwrap();
        assert_eq!((read.total(), read.broken), (2, 1));
    }

    #[test]
    fn a_link_in_its_place_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(DENIALS);
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &path).unwrap();
        DenialLog::new(&path).note(host("a.test"));
        assert!(!folder.path().join("elsewhere").exists());
    }
}
