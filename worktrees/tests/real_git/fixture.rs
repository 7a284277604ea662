//! A repository in a temporary folder, and a `git` that sees no configuration but the repository's own.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use worktrees::{History, Oid, Repository, Seal, SealRequest, Worktree, WorktreeRequest};

/// When everything in these tests happens.
pub const WHEN: i64 = 1_700_000_000;

pub struct Fixture {
    folder: TempDir,
    pub repo: PathBuf,
}

impl Fixture {
    /// An empty repository on the branch `main`, and a state folder beside it.
    pub fn empty() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("worktrees-")
            .tempdir()
            .unwrap();
        let repo = fs::canonicalize(folder.path()).unwrap().join("repo");
        fs::create_dir(&repo).unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        let fixture = Self { folder, repo };
        fixture.git(["init", "-q", "-b", "main"]);
        fixture
    }

    /// A repository with one commit of these files.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let fixture = Self::empty();
        for (name, text) in files {
            write(&fixture.repo.join(name), text);
        }
        fixture.commit("base");
        fixture
    }

    pub fn state(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join("state")
    }

    pub fn git<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> String {
        git_in(&self.repo, args)
    }

    /// Commits everything in the checkout.
    pub fn commit(&self, message: &str) -> Oid {
        self.git(["add", "-A"]);
        self.git(["commit", "-q", "--allow-empty", "-m", message]);
        self.rev("HEAD")
    }

    pub fn rev(&self, name: &str) -> Oid {
        Oid::from_str(&self.git(["rev-parse", "--verify", name])).unwrap()
    }

    pub fn repository(&self) -> Repository {
        Repository::discover(&self.repo).unwrap()
    }

    /// A worktree `id` of `HEAD`.
    pub fn worktree(&self, id: &str) -> Worktree {
        let base = self.rev("HEAD");
        let branch = format!("airlock/run/{id}");
        let (tree, shadow) = (
            self.state().join(id),
            self.state().join(format!("{id}.git")),
        );
        self.repository()
            .create_worktree(&request(id, &branch, base, &tree, &shadow, &self.lock()))
            .unwrap()
    }

    pub fn lock(&self) -> PathBuf {
        self.state().join("repo.lock")
    }

    pub fn seal(&self, worktree: &Worktree) -> Seal {
        self.repository()
            .seal(&SealRequest {
                worktree,
                task: "t1",
                run: "r1",
                message: "the work",
                when: WHEN,
            })
            .unwrap()
    }

    /// What `git add -A` makes of the same edit in a plain checkout.
    pub fn plain_tree(&self, edit: &dyn Fn(&Path)) -> Oid {
        let plain = self.state().join("plain");
        self.git([
            OsStr::new("worktree"),
            "add".as_ref(),
            "-q".as_ref(),
            "--detach".as_ref(),
            plain.as_os_str(),
        ]);
        // Not made in the same second as its files: git would read them all again, whether touched or not.
        let index = self.repo.join(".git/worktrees/plain/index");
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        fs::File::options()
            .write(true)
            .open(index)
            .unwrap()
            .set_modified(later)
            .unwrap();
        edit(&plain);
        git_in(&plain, ["add", "-A"]);
        Oid::from_str(&git_in(&plain, ["write-tree"])).unwrap()
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "it stands for a struct with as many fields"
)]
pub fn request<'a>(
    id: &'a str,
    branch: &'a str,
    base: Oid,
    tree: &'a Path,
    shadow: &'a Path,
    lock: &'a Path,
) -> WorktreeRequest<'a> {
    WorktreeRequest {
        id,
        branch,
        base,
        tree,
        shadow,
        lock,
        history: History::Full,
    }
}

/// `git` with an environment of its own.
pub fn git_command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap());
    for (name, value) in [
        ("HOME", "/nonexistent"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "Test"),
        ("GIT_AUTHOR_EMAIL", "test@localhost"),
        ("GIT_COMMITTER_NAME", "Test"),
        ("GIT_COMMITTER_EMAIL", "test@localhost"),
        ("GIT_AUTHOR_DATE", "1600000000 +0000"),
        ("GIT_COMMITTER_DATE", "1600000000 +0000"),
        ("GIT_EDITOR", "false"),
        ("LC_ALL", "C"),
    ] {
        command.env(name, value);
    }
    command
}

pub fn git_output<I: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = I>) -> Output {
    git_command(folder).args(args).output().unwrap()
}

/// The output of a `git` that must succeed.
#[track_caller]
pub fn git_in<I: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = I>) -> String {
    let output = git_output(folder, args);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// Writes a file and the folders above it.
#[track_caller]
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

pub fn read(path: &Path) -> String {
    String::from_utf8(fs::read(path).unwrap()).unwrap()
}
