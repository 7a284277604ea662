//! A repository made by the real git, and the questions that tests ask it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::call::Call;
use crate::environment::TestEnv;
use crate::run::Run;

/// A repository below a test's environment.
#[derive(Debug, Clone)]
pub struct TestRepo<'e> {
    env: &'e TestEnv,
    path: PathBuf,
}

impl<'e> TestRepo<'e> {
    /// One that is at `path`, or will be.
    pub fn at(env: &'e TestEnv, path: PathBuf) -> Self {
        Self { env, path }
    }

    /// Its top folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs git here; it has to succeed.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.env
            .program("git", &self.path)
            .args(args)
            .run()
            .exits(0)
            .stdout
            .trim_end()
            .to_owned()
    }

    /// Runs git here and says whether it succeeded.
    pub fn git_agrees(&self, args: &[&str]) -> bool {
        self.env.program("git", &self.path).args(args).run().code == Some(0)
    }

    /// Writes a file, with the folders above it.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).expect("a folder of our own");
        }
        fs::write(path, text).expect("a file of our own");
    }

    /// Writes a file that can be executed.
    pub fn write_program(&self, name: &str, text: &str) {
        self.write(name, text);
        let path = self.path.join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a file of our own");
    }

    /// The text of a file.
    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        let path = self.path.join(name);
        fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
    }

    /// Commits everything.
    #[track_caller]
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self.head()
    }

    /// The commit that is checked out.
    #[track_caller]
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// The commit of a reference, if there is such a reference.
    #[track_caller]
    pub fn tip(&self, reference: &str) -> Option<String> {
        let named = self.git(&["for-each-ref", "--format=%(objectname)", reference]);
        Some(named).filter(|oid| !oid.is_empty())
    }

    /// All references, with their objects.
    #[track_caller]
    pub fn references(&self) -> Vec<String> {
        let listed = self.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        listed.lines().map(str::to_owned).collect()
    }

    /// What git says about files that differ.
    #[track_caller]
    pub fn status(&self) -> String {
        self.git(&["status", "--porcelain", "--untracked-files=all"])
    }

    /// The text of a file in a commit.
    #[track_caller]
    pub fn file_in(&self, commit: &str, name: &str) -> String {
        self.env
            .program("git", &self.path)
            .args(["show", &format!("{commit}:{name}")])
            .run()
            .exits(0)
            .stdout
    }

    /// A call of the binary under test from this repository.
    pub fn airlock(&self, args: &[&str]) -> Call {
        self.env.airlock(&self.path).args(args)
    }

    /// Runs a task whose agent is a shell script; `flags` stand before it.
    #[track_caller]
    pub fn task(&self, flags: &[&str], script: &str) -> Run {
        self.airlock(&["run", "--json"])
            .args(flags)
            .args(["--", "sh", "-c", script])
            .run()
    }

    /// The object of `show --json`.
    #[track_caller]
    pub fn show(&self, id: &str) -> Value {
        self.airlock(&["show", "--json", id]).run().exits(0).json()
    }

    /// What the agent of a task wrote.
    #[track_caller]
    pub fn log_of(&self, id: &str) -> String {
        self.airlock(&["logs", id]).run().exits(0).stdout
    }

    /// The names of the recorded events of a task.
    #[track_caller]
    pub fn events(&self, id: &str) -> Vec<String> {
        let lines = self
            .airlock(&["events", "--json", id])
            .run()
            .exits(0)
            .json_lines();
        lines
            .iter()
            .map(|line| line["event"].as_str().unwrap_or("?").to_owned())
            .collect()
    }

    /// The repository is sound, and as a person would leave it: nothing of a task is registered,
    /// locked or half made.
    #[track_caller]
    pub fn is_sound(&self) {
        self.git(&["fsck", "--strict", "--no-dangling"]);
        let git_dir =
            PathBuf::from(self.git(&["rev-parse", "--path-format=absolute", "--git-common-dir"]));
        let locks: Vec<PathBuf> = files(&git_dir)
            .into_iter()
            .filter(|path| is_lock(path))
            .collect();
        assert_eq!(locks, Vec::<PathBuf>::new(), "lock files are left");
    }

    /// Sound, and without any trace of a task but notes and what has landed.
    #[track_caller]
    pub fn is_clean(&self) {
        self.is_clean_but_for(&[]);
    }

    /// Clean, but for these references, which have to be there.
    #[track_caller]
    pub fn is_clean_but_for(&self, kept: &[&str]) {
        self.is_sound();
        let worktrees = self.git(&["worktree", "list", "--porcelain"]);
        let count = worktrees
            .lines()
            .filter(|line| line.starts_with("worktree "))
            .count();
        assert_eq!(count, 1, "worktrees are left:\n{worktrees}");
        let references = self.references();
        let names = references.iter().filter_map(|line| line.split(' ').next());
        let ours: Vec<&str> = names
            .filter(|name| {
                name.starts_with("refs/heads/airlock/") || name.starts_with("refs/airlock/")
            })
            .collect();
        assert_eq!(ours, kept, "references are left");
    }
}

fn is_lock(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "lock")
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) => found.push(entry.path()),
                Err(_gone) => {}
            }
        }
    }
    found
}
