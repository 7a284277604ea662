//! A world of its own for each test: home, configuration, state and temporary folder. When it goes,
//! nothing of it may be left alive: no process, no mount.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::call::Call;
use crate::processes::{self, Process, Role};
use crate::repository::TestRepo;
use crate::waiting::{until, within};

/// How long the last processes of a task may take to go.
const LAST: Duration = Duration::from_secs(20);

/// Programs of the host that tests may use; not the caller's PATH.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// A hermetic environment.
#[derive(Debug)]
pub struct TestEnv {
    root: TempDir,
    shared: PathBuf,
}

impl TestEnv {
    /// A fresh one, below the folder for temporary files.
    pub fn new() -> Self {
        let root = tempfile::Builder::new()
            .prefix("airlock-test-")
            .tempdir()
            .expect("a temporary folder");
        // A room is never shown anything below `/dev`, where fast temporary folders like to be.
        let shared = if root.path().starts_with("/dev") {
            let name = root
                .path()
                .file_name()
                .expect("a temporary folder has a name");
            Path::new("/var/tmp").join(name)
        } else {
            root.path().join("shared")
        };
        let env = Self { root, shared };
        for folder in ["home", "config/airlock", "tmp"] {
            fs::create_dir_all(env.path().join(folder)).expect("a folder of our own");
        }
        fs::create_dir(&env.shared).expect("a folder of our own");
        let git = "[user]\n\tname = A Person\n\temail = person@example.org\n[init]\n\tdefaultBranch = main\n\
                   [advice]\n\tdetachedHead = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";
        fs::write(env.home().join(".gitconfig"), git).expect("a file of our own");
        env
    }

    /// Everything of this environment lies below this folder.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// A folder of the host that a room may be shown with `--ro` or `--rw`.
    pub fn shared(&self) -> &Path {
        &self.shared
    }

    /// The home of the person who runs the commands.
    pub fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// The state root.
    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// Writes the user's configuration.
    pub fn configure(&self, toml: &str) {
        fs::write(self.path().join("config/airlock/config.toml"), toml).expect("a file of our own");
    }

    /// The only folder below the state root that belongs to a repository.
    #[track_caller]
    pub fn state_folder(&self) -> PathBuf {
        let entries = fs::read_dir(self.state()).expect("a state root");
        let folders = entries.map(|entry| entry.expect("an entry").path());
        let mut folders: Vec<PathBuf> =
            folders.filter(|path| path.join("tasks").is_dir()).collect();
        assert_eq!(
            folders.len(),
            1,
            "one repository, one state folder: {folders:?}"
        );
        folders.remove(0)
    }

    /// The folder of a task.
    #[track_caller]
    pub fn task_folder(&self, id: &str) -> PathBuf {
        self.state_folder().join("tasks").join(id)
    }

    /// Waits until the agent of a task has made the file `here`, and returns its path on the host.
    #[track_caller]
    pub fn at_work(&self, id: &str) -> PathBuf {
        let here = Path::new("tasks").join(id).join("tree/here");
        until("an agent at work", || {
            let folders = fs::read_dir(self.state()).ok()?.flatten();
            folders
                .map(|folder| folder.path().join(&here))
                .find(|path| path.exists())
        })
    }

    /// Makes the file `go` that an agent waits for.
    #[track_caller]
    pub fn let_go(&self, id: &str) {
        fs::write(self.task_folder(id).join("tree/go"), "").expect("the tree of a task is ours");
    }

    /// A repository with one commit on `main`.
    pub fn repository(&self) -> TestRepo<'_> {
        let repo = self.empty_repository("project");
        repo.write("README.md", "# Project\n");
        repo.commit("base");
        repo
    }

    /// A repository without a commit.
    pub fn empty_repository(&self, name: &str) -> TestRepo<'_> {
        let path = self.path().join(name);
        fs::create_dir(&path).expect("a folder of our own");
        let repo = TestRepo::at(self, path);
        repo.git(&["init", "-q", "-b", "main"]);
        repo
    }

    /// Where the binary under test is.
    pub fn airlock_program(&self) -> PathBuf {
        built("airlock-under-test")
    }

    /// A call of the binary under test.
    pub fn airlock(&self, at: &Path) -> Call {
        Call::new(
            built("airlock-under-test").as_os_str(),
            at,
            self.variables(),
        )
    }

    /// A call of the binary under test by a wrapper whose words come first, such as a mount namespace
    /// in which this host lacks something.
    pub fn airlock_under(&self, wrapper: &[&str], at: &Path) -> Call {
        let (first, rest) = wrapper.split_first().expect("a wrapper has a name");
        Call::new(first.as_ref(), at, self.variables())
            .args(rest)
            .arg(built("airlock-under-test"))
    }

    /// A call of any other program in this environment.
    pub fn program(&self, name: &str, at: &Path) -> Call {
        Call::new(name.as_ref(), at, self.variables())
    }

    /// Copies the scripted agent to a folder of its own and returns its path; a room sees it with
    /// `--ro` and the folder.
    pub fn fake_agent(&self) -> PathBuf {
        let folder = self.shared.join("agents");
        let agent = folder.join("fake-agent");
        if !agent.exists() {
            fs::create_dir_all(&folder).expect("a folder of our own");
            fs::copy(built("fake-agent"), &agent).expect("a copy of our own");
        }
        agent
    }

    /// Everything that lives and belongs to this environment.
    pub fn processes(&self) -> Vec<Process> {
        processes::marked(&self.mark())
    }

    /// The living processes with this role.
    pub fn of_role(&self, role: Role) -> Vec<Process> {
        self.processes()
            .into_iter()
            .filter(|process| process.role == role)
            .collect()
    }

    /// What of this environment is mounted where everybody sees it.
    pub fn mounts(&self) -> Vec<String> {
        let table = fs::read_to_string("/proc/self/mountinfo").expect("a mount table");
        table
            .lines()
            .filter(|line| line.contains(&self.mark()))
            .map(str::to_owned)
            .collect()
    }

    /// Nothing is left but a supervisor that waits for the next command.
    #[track_caller]
    pub fn is_quiet(&self) {
        let busy = || {
            self.processes()
                .into_iter()
                .filter(|process| process.role != Role::Supervisor)
        };
        let quiet = within(LAST, || busy().next().is_none());
        assert!(
            quiet,
            "processes are left: {:#?}",
            busy().collect::<Vec<_>>()
        );
        assert_eq!(self.mounts(), Vec::<String>::new(), "mounts are left");
    }

    fn mark(&self) -> String {
        let name = self
            .path()
            .file_name()
            .expect("a temporary folder has a name");
        name.to_string_lossy().into_owned()
    }

    fn variables(&self) -> Vec<(OsString, OsString)> {
        let own = |name: &str, value: PathBuf| (OsString::from(name), value.into_os_string());
        let set = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        vec![
            own("HOME", self.home()),
            own("XDG_CONFIG_HOME", self.path().join("config")),
            own("AIRLOCK_STATE", self.state()),
            own("TMPDIR", self.path().join("tmp")),
            set("PATH", PATH),
            set("LANG", "C.UTF-8"),
            set("GIT_CONFIG_NOSYSTEM", "1"),
            set("GIT_AUTHOR_DATE", "2024-05-06T07:08:09Z"),
            set("GIT_COMMITTER_DATE", "2024-05-06T07:08:09Z"),
            set("RUST_BACKTRACE", "1"),
        ]
    }
}

impl Default for TestEnv {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        let failing = std::thread::panicking();
        let busy = || {
            self.processes()
                .into_iter()
                .filter(|process| process.role != Role::Supervisor)
        };
        let quiet = failing || within(LAST, || busy().next().is_none());
        let left: Vec<Process> = if quiet { Vec::new() } else { busy().collect() };
        let gone = within(LAST, || {
            let alive = self.processes();
            for process in &alive {
                process.kill();
            }
            alive.is_empty()
        });
        let mounts = self.mounts();
        open_up(self.path());
        fs::remove_dir_all(&self.shared).ok();
        if !failing {
            assert!(left.is_empty(), "processes are left: {left:#?}");
            assert!(gone, "processes cannot be ended: {:#?}", self.processes());
            assert!(mounts.is_empty(), "mounts are left: {mounts:#?}");
        }
    }
}

/// A binary that Cargo built: named at run time, else beside the test's own.
fn built(name: &str) -> PathBuf {
    let beside = || {
        let this = std::env::current_exe().expect("a test has a file");
        let folders = this.ancestors().skip(1).take(2);
        folders
            .map(|folder| folder.join(name))
            .find(|path| path.exists())
    };
    std::env::var_os(format!("CARGO_BIN_EXE_{name}"))
        .map(PathBuf::from)
        .or_else(beside)
        .unwrap_or_else(|| panic!("no {name}: build it with `cargo build -p tests --bins`"))
}

/// Makes folders removable again that a test or an agent closed.
fn open_up(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o700)).ok();
            open_up(&entry.path());
        }
    }
}
