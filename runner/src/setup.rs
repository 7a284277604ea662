//! Results of setups, one folder each in the state folder of a repository, named by the digest of what went into
//! them. A folder with that name is whole: it was renamed there after everything in it was on the disk.
//!
//! Nothing of it is ever shown in a room: tasks get copies. Must never use what an unfinished setup left.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sandbox::HeldLock;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use worktrees::{KeptLimit, KeptSize};

use crate::durable;
use crate::event::SetUpFacts;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::StateFolder;
use crate::task::Setup;

/// The most that is kept of one setup.
pub const LIMIT: KeptLimit = KeptLimit {
    files: 2_000_000,
    bytes: 32 << 30,
};

/// Between a digest and the task that still makes its result.
const UNFINISHED: &str = ".new-";

/// What is known about a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Version of this form.
    pub schema: u32,
    /// The digest.
    pub key: String,
    /// The commands that made it.
    pub commands: Vec<String>,
    /// The folders that they left, of those that were to be kept.
    pub kept: Vec<String>,
    /// How much it is.
    pub size: KeptSize,
    /// The task that made it.
    pub made_by: String,
}

/// A setup as it was asked for and what came of it, for people and scripts; null without one.
pub fn object(setup: Option<&Setup>, facts: Option<&SetUpFacts>) -> Value {
    let Some(setup) = setup else {
        return Value::Null;
    };
    json!({
        "key": setup.key,
        "commands": setup.commands,
        "inputs": setup.inputs,
        "net": setup.net,
        "origin": setup.origin,
        "result": facts.map(|facts| if facts.reused { "reused" } else { "made" }),
        "kept": facts.map(|facts| &facts.kept),
        "size": facts.map(|facts| facts.size),
        "elapsed_ms": facts.map(|facts| facts.elapsed_ms),
    })
}

/// All results of a repository.
#[derive(Debug, Clone)]
pub struct Setups {
    folder: PathBuf,
    locks: PathBuf,
}

impl Setups {
    /// Those of a state folder.
    pub fn of(state: &StateFolder) -> Self {
        Self {
            folder: state.path().join("setup"),
            locks: state.locks(),
        }
    }

    /// Takes the right to make, use or remove a result; `None` while somebody else has it.
    pub fn claim(&self, key: &str) -> Result<Option<HeldLock>, Failure> {
        fs::create_dir_all(&self.locks).or_fail(Exit::Internal)?;
        let path = self.locks.join(format!("setup-{key}.lock"));
        HeldLock::try_acquire(&path).or_fail(Exit::Internal)
    }

    /// A whole result.
    pub fn find(&self, key: &str) -> Option<Facts> {
        let text = fs::read(self.folder.join(key).join("facts.json")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// What was kept of it.
    pub fn kept(&self, key: &str) -> PathBuf {
        self.folder.join(key).join("kept")
    }

    /// An empty place in which `task` makes a result.
    pub fn begin(&self, key: &str, task: &str) -> Result<Making, Failure> {
        let making = Making {
            folder: self.folder.join(format!("{key}{UNFINISHED}{task}")),
        };
        // What a task of this id left when it was killed.
        worktrees::remove_tree(&making.folder).or_fail(Exit::Internal)?;
        for name in ["kept", "feedback", "outbox"] {
            fs::create_dir_all(making.folder.join(name)).or_fail(Exit::Internal)?;
        }
        Ok(making)
    }

    /// Makes a finished result one that is found from now on. Only with its claim.
    pub fn publish(&self, making: &Making, facts: &Facts) -> Result<(), Failure> {
        let bytes = serde_json::to_vec_pretty(facts).or_fail(Exit::Internal)?;
        durable::write(&making.folder.join("facts.json"), &bytes, 0o600).or_fail(Exit::Internal)?;
        let top = fs::File::open(&making.folder).or_fail(Exit::Internal)?;
        nix::unistd::syncfs(&top).or_fail(Exit::Internal)?;
        let place = self.folder.join(&facts.key);
        // Whole ones are found before anything is made; what is there is damaged.
        worktrees::remove_tree(&place).or_fail(Exit::Internal)?;
        fs::rename(&making.folder, &place).or_fail(Exit::Internal)?;
        let above = fs::File::open(&self.folder).or_fail(Exit::Internal)?;
        above.sync_all().or_fail(Exit::Internal)
    }

    /// Notes that a result is of use.
    pub fn used(&self, key: &str) {
        if let Ok(facts) = fs::File::open(self.folder.join(key).join("facts.json")) {
            // One that looks older than it is goes sooner, and is made again.
            facts.set_modified(SystemTime::now()).ok();
        }
    }

    /// Removes what a task that was killed had begun.
    pub fn clear(&self, task: &str) -> Result<(), Failure> {
        let end = format!("{UNFINISHED}{task}");
        for name in self.names().iter().filter(|name| name.ends_with(&end)) {
            worktrees::remove_tree(&self.folder.join(name)).or_fail(Exit::Internal)?;
        }
        Ok(())
    }

    /// Results that nobody has used for `age`, and what was begun that long ago.
    pub fn unused(&self, age: Duration) -> Vec<String> {
        let old = |name: &String| {
            let folder = self.folder.join(name);
            let facts = folder.join("facts.json");
            let at = [facts, folder];
            let used = at
                .iter()
                .find_map(|path| path.metadata().ok()?.modified().ok());
            used.is_none_or(|used| used.elapsed().unwrap_or_default() >= age)
        };
        self.names().into_iter().filter(old).collect()
    }

    /// Removes one of them; `false` while it is in use.
    pub fn remove(&self, name: &str) -> Result<bool, Failure> {
        let key = name.split(UNFINISHED).next().unwrap_or(name);
        let Some(claim) = self.claim(key)? else {
            return Ok(false);
        };
        worktrees::remove_tree(&self.folder.join(name)).or_fail(Exit::Internal)?;
        claim.remove().or_fail(Exit::Internal)?;
        Ok(true)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }
}

/// A result that is being made. Dropped before it is published, it goes.
#[derive(Debug)]
pub struct Making {
    folder: PathBuf,
}

impl Making {
    /// The checkout in which the commands run.
    pub fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Its git directory.
    pub fn git(&self) -> PathBuf {
        self.folder.join("git")
    }

    /// An empty folder, for a room that is told nothing.
    pub fn feedback(&self) -> PathBuf {
        self.folder.join("feedback")
    }

    /// Where a job could leave what nobody takes.
    pub fn outbox(&self) -> PathBuf {
        self.folder.join("outbox")
    }

    /// Where what is kept goes.
    pub fn kept(&self) -> PathBuf {
        self.folder.join("kept")
    }

    /// Removes everything but what is kept.
    pub fn strip(&self) -> Result<(), Failure> {
        for path in [self.tree(), self.git(), self.feedback(), self.outbox()] {
            worktrees::remove_tree(&path).or_fail(Exit::Internal)?;
        }
        Ok(())
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        // Published, it has another name. What cannot be removed now is found by `prune`.
        worktrees::remove_tree(&self.folder).ok();
    }
}

/// The end of a job's log as lines, for whoever has to mend what went wrong.
pub fn last_lines(log: &Path, lines: usize) -> io::Result<Vec<String>> {
    let bytes = fs::read(log)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut last: Vec<String> = text
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(lines)
        .map(str::to_owned)
        .collect();
    last.reverse();
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(key: &str) -> Facts {
        Facts {
            schema: 1,
            key: key.to_owned(),
            commands: Vec::new(),
            kept: Vec::new(),
            size: KeptSize::default(),
            made_by: "t1".to_owned(),
        }
    }

    #[test]
    fn only_what_was_published_is_found_and_one_has_the_claim() {
        let folder = tempfile::tempdir().unwrap();
        let setups = Setups::of(&StateFolder::at(folder.path().to_owned()));
        let claim = setups.claim("k").unwrap().unwrap();
        assert!(setups.claim("k").unwrap().is_none());
        let making = setups.begin("k", "t1").unwrap();
        fs::write(making.kept().join("x"), "x").unwrap();
        drop(making);
        assert!(setups.find("k").is_none() && setups.names().is_empty());
        let making = setups.begin("k", "t1").unwrap();
        fs::write(making.kept().join("x"), "x").unwrap();
        setups.publish(&making, &facts("k")).unwrap();
        assert_eq!(setups.find("k"), Some(facts("k")));
        assert!(setups.kept("k").join("x").exists());
        assert!(!setups.remove("k").unwrap(), "it is claimed");
        drop(claim);
        assert!(setups.unused(Duration::from_hours(1)).is_empty());
        assert_eq!(setups.unused(Duration::ZERO), ["k"]);
        assert!(setups.remove("k").unwrap() && setups.find("k").is_none());
    }
}
