//! What of the host a room must show so that the agent's program starts in it. Programs that npm,
//! pipx, uv, nvm, pyenv and the like install for one user lie below that user's home folder, which no
//! room has; they are found on the caller's PATH, as in the caller's shell, and shown read-only.
//! Shows where programs are installed or the one file, never any other folder. Looks; starts nothing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::places;

/// What every room has of the host.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// Folders below HOME that hold installed programs, each shown as a whole: what lies in them refers to the rest by
/// absolute paths. The room covers files in them that usually hold tokens.
const INSTALLED: &[&str] = &[
    ".asdf",
    ".bun",
    ".cargo/bin",
    ".claude/local",
    ".fnm",
    ".local/pipx",
    ".local/share/claude",
    ".local/share/cursor-agent",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".nodenv",
    ".nvm",
    ".opencode",
    ".pyenv",
    ".volta",
];

/// The same, for all users of a host.
const INSTALLED_FOR_ALL: &[&str] = &["/nix/store", "/home/linuxbrew/.linuxbrew"];

/// The kernel reads no more of a script's first line.
const FIRST_LINE: u64 = 256;

/// An interpreter can be a script, too; the kernel follows as many.
const DEEPEST: usize = 4;

/// The program of a command as its room will have it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Program {
    /// What to start.
    pub(super) path: PathBuf,
    /// What the room has to show for it.
    pub(super) shown: Vec<PathBuf>,
    /// Folders to search for programs before those of the system.
    pub(super) search: Vec<PathBuf>,
}

/// Where programs are on this host.
pub(super) struct Programs {
    search: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// Where the task's own worktree appears.
    checkout: PathBuf,
    /// What the room shows anyway.
    visible: Vec<PathBuf>,
}

impl Programs {
    /// The host as its caller sees it, for a room that shows `visible` and has its worktree at `checkout`.
    pub(super) fn new(
        caller: &BTreeMap<OsString, OsString>,
        checkout: PathBuf,
        visible: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let search = caller
            .get(OsStr::new("PATH"))
            .map_or_else(Vec::new, |path| {
                let folders = std::env::split_paths(path);
                folders.filter(|folder| folder.is_absolute()).collect()
            });
        let home = places::home(caller).and_then(|home| fs::canonicalize(home).ok());
        let system = SYSTEM.iter().map(PathBuf::from);
        Self {
            search,
            home,
            checkout,
            visible: system.chain(visible).collect(),
        }
    }

    /// What a room needs for `word`; none when it has the program anyway, or nobody has it.
    ///
    /// `own`: the word stands for what the caller would get. Else what every room has wins.
    pub(super) fn find(&self, word: &OsStr, own: bool) -> Option<Program> {
        let found = if word.as_bytes().contains(&b'/') {
            Some(PathBuf::from(word)).filter(|path| path.is_absolute())
        } else if own {
            self.on_path(word)
        } else {
            of_every_room(word).or_else(|| self.on_path(word))
        };
        let found = found?;
        let mut program = Program::default();
        self.add(&found, &mut program, 0)?;
        if program.shown.is_empty() && program.search.is_empty() {
            return None;
        }
        program.path = self.name_inside(&found, &program)?;
        Some(program)
    }

    /// The caller's program of that name (or at that path), and what a room needs for it, which may be nothing. A
    /// folder of the system that rooms do not search by themselves is one to search.
    pub(super) fn tool(&self, name: &OsStr) -> Option<(PathBuf, Program)> {
        let found = if name.as_bytes().contains(&b'/') {
            PathBuf::from(name)
        } else {
            self.on_path(name)?
        };
        let mut program = Program::default();
        self.add(&found, &mut program, 0)?;
        if let Some(folder) = found.parent()
            && self.sees(folder)
            && !usual_search().iter().any(|usual| usual == folder)
            && !program.search.iter().any(|known| known == folder)
        {
            program.search.push(folder.to_owned());
        }
        Some((found, program))
    }

    /// Adds what the program at `found` needs. None: there is no such program.
    fn add(&self, found: &Path, program: &mut Program, depth: usize) -> Option<()> {
        let real = fs::canonicalize(found).ok()?;
        if real.starts_with(&self.checkout) || !executable(&real) {
            return None;
        }
        if !self.shows(&real, program) {
            program.shown.push(self.installed_in(&real));
        }
        let inside = self.name_inside(found, program)?;
        if let Some(folder) = inside.parent()
            && inside.file_name() == found.file_name()
            && !SYSTEM.iter().any(|system| folder.starts_with(system))
            && !program.search.iter().any(|known| known == folder)
        {
            program.search.push(folder.to_owned());
        }
        if depth < DEEPEST
            && let Some(interpreter) = interpreter(&real)
        {
            let at = if interpreter.is_absolute() {
                Some(interpreter)
            } else {
                self.on_path(interpreter.as_os_str())
            };
            // Without it the program fails in the room as it would outside, and says so there.
            at.and_then(|at| self.add(&at, program, depth + 1));
        }
        Some(())
    }

    /// The name that a program has in the room: its own where that is shown, else that of the file
    /// that its links lead to.
    fn name_inside(&self, found: &Path, program: &Program) -> Option<PathBuf> {
        let folder = fs::canonicalize(found.parent()?).ok()?;
        let named = folder.join(found.file_name()?);
        let whole = program
            .shown
            .iter()
            .any(|shown| *shown != named && folder.starts_with(shown));
        if whole || self.sees(&folder) {
            Some(named)
        } else {
            fs::canonicalize(found).ok()
        }
    }

    fn shows(&self, real: &Path, program: &Program) -> bool {
        self.sees(real) || program.shown.iter().any(|shown| real.starts_with(shown))
    }

    fn sees(&self, path: &Path) -> bool {
        self.visible.iter().any(|shown| path.starts_with(shown))
    }

    /// The caller's program of that name.
    fn on_path(&self, name: &OsStr) -> Option<PathBuf> {
        first_in(&self.search, name)
    }

    /// The least that holds all parts of an installed program.
    fn installed_in(&self, real: &Path) -> PathBuf {
        let for_all = INSTALLED_FOR_ALL.iter().map(PathBuf::from);
        let of_home = self
            .home
            .iter()
            .flat_map(|home| INSTALLED.iter().map(|name| home.join(name)));
        if let Some(folder) = for_all
            .chain(of_home)
            .find(|folder| real.starts_with(folder))
        {
            return folder;
        }
        if let Ok(inner) = real.strip_prefix("/opt")
            && let (Some(first), true) = (inner.iter().next(), inner.iter().count() > 1)
        {
            return Path::new("/opt").join(first);
        }
        // The outermost: packages refer to each other.
        let modules = real
            .ancestors()
            .filter(|folder| folder.ends_with("node_modules"))
            .last();
        if let Some(folder) = modules {
            return folder.to_owned();
        }
        let prefix = real
            .parent()
            .filter(|folder| folder.ends_with("bin"))
            .and_then(Path::parent);
        if let Some(prefix) = prefix
            && ((prefix.join("pyvenv.cfg").is_file() && !self.is_around_home(prefix))
                || (prefix.join("lib").is_dir() && !self.holds_other_things(prefix)))
        {
            return prefix.to_owned();
        }
        real.to_owned()
    }

    /// Whether a folder shows all of the caller's home.
    fn is_around_home(&self, folder: &Path) -> bool {
        let home = self.home.as_deref();
        home.is_some_and(|home| home.starts_with(folder))
    }

    /// Whether a folder is one in which more than one program, or a person, keeps things.
    fn holds_other_things(&self, folder: &Path) -> bool {
        let home = self.home.as_deref();
        let near = [Some(folder), folder.parent()];
        folder
            .parent()
            .is_none_or(|parent| parent == Path::new("/"))
            || home.is_some_and(|home| near.contains(&Some(home)) || home.starts_with(folder))
    }
}

/// The interpreter that a script names: a path, or a name for the search path.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    File::open(script)
        .ok()?
        .take(FIRST_LINE)
        .read_to_end(&mut head)
        .ok()?;
    let line = head
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .map(OsStr::from_bytes);
    let first = Path::new(words.next()?);
    if first.file_name() != Some(OsStr::new("env")) {
        return Some(first.to_owned());
    }
    let named =
        |word: &&OsStr| !word.as_bytes().starts_with(b"-") && !word.as_bytes().contains(&b'=');
    words.find(named).map(PathBuf::from)
}

fn first_in(folders: &[PathBuf], name: &OsStr) -> Option<PathBuf> {
    folders
        .iter()
        .find_map(|folder| Some(folder.join(name)).filter(|path| executable(path)))
}

/// Whether somebody has the program of a command: the caller, or every room. A path counts as there.
pub(super) fn is_there(word: &OsStr, caller: &BTreeMap<OsString, OsString>) -> bool {
    word.as_bytes().contains(&b'/') || find(word, caller).is_some()
}

/// The program that a name stands for: the caller's, else the one of every room.
pub fn find(name: &OsStr, caller: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let search = caller.get(OsStr::new("PATH"));
    let search: Vec<PathBuf> =
        search.map_or_else(Vec::new, |path| std::env::split_paths(path).collect());
    first_in(&search, name).or_else(|| of_every_room(name))
}

/// What a name means in a room that shows nothing more.
fn of_every_room(name: &OsStr) -> Option<PathBuf> {
    first_in(&usual_search(), name)
}

/// The folders that every room searches.
fn usual_search() -> Vec<PathBuf> {
    let environment = sandbox::room_environment();
    environment
        .get("PATH")
        .map_or_else(Vec::new, |path| std::env::split_paths(path).collect())
}

fn executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A home folder with programs in it, below a folder that is no temporary one to the rules.
    struct Host {
        folder: tempfile::TempDir,
    }

    impl Host {
        fn new() -> Self {
            Self {
                folder: tempfile::tempdir().unwrap(),
            }
        }

        fn home(&self) -> PathBuf {
            fs::canonicalize(self.folder.path()).unwrap().join("home")
        }

        /// An executable file below HOME.
        fn program(&self, path: &str, text: &str) -> PathBuf {
            let path = self.home().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        }

        fn link(&self, path: &str, target: &str) {
            let path = self.home().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        }

        fn find(&self, word: &str, search: &[&str]) -> Option<Program> {
            let home = self.home();
            let search = search.iter().map(|folder| home.join(folder));
            let path = std::env::join_paths(search.chain(["/usr/bin".into(), "/bin".into()]));
            let caller = BTreeMap::from([
                ("HOME".into(), home.clone().into_os_string()),
                ("PATH".into(), path.unwrap()),
            ]);
            let programs = Programs::new(&caller, home.join("repo"), [home.join("shown")]);
            programs.find(OsStr::new(word), false)
        }
    }

    fn shown(host: &Host, program: &Program) -> Vec<String> {
        let inner = |path: &PathBuf| {
            path.strip_prefix(host.home())
                .unwrap()
                .display()
                .to_string()
        };
        program.shown.iter().map(inner).collect()
    }

    #[test]
    fn what_a_room_has_anyway_needs_nothing() {
        let host = Host::new();
        host.program("bin/sh", "");
        host.program("repo/tool", "");
        assert_eq!(
            host.find("sh", &["bin"]),
            None,
            "the room's own comes first"
        );
        assert_eq!(host.find("/bin/sh", &[]), None);
        assert_eq!(host.find("no-such-program", &["bin"]), None);
        assert_eq!(host.find("./tool", &["repo"]), None);
        assert_eq!(
            host.find("tool", &["repo"]),
            None,
            "the worktree has its own"
        );
    }

    #[test]
    fn a_node_program_comes_with_its_packages_and_its_node() {
        let host = Host::new();
        host.program(
            ".npm/lib/node_modules/@org/agent/cli.js",
            "#!/usr/bin/env -S some-node x\n",
        );
        host.link(".npm/bin/agent", "../lib/node_modules/@org/agent/cli.js");
        host.program(".nvm/versions/node/v22/bin/some-node", "");
        let found = host
            .find("agent", &[".npm/bin", ".nvm/versions/node/v22/bin"])
            .unwrap();
        assert_eq!(shown(&host, &found), [".npm/lib/node_modules", ".nvm"]);
        let home = host.home();
        assert_eq!(
            found.path,
            home.join(".npm/lib/node_modules/@org/agent/cli.js")
        );
        assert_eq!(found.search, [home.join(".nvm/versions/node/v22/bin")]);
    }

    #[test]
    fn a_python_program_comes_with_its_environment_and_its_python() {
        let host = Host::new();
        let home = host.home();
        host.program(".local/share/uv/python/3.12/bin/python3.12", "");
        host.program(
            "envs/agent/bin/agent",
            &format!("#!{}/envs/agent/bin/python\n", home.display()),
        );
        fs::write(home.join("envs/agent/pyvenv.cfg"), "").unwrap();
        host.link(
            "envs/agent/bin/python",
            "../../../.local/share/uv/python/3.12/bin/python3.12",
        );
        host.link(".local/bin/agent", "../../envs/agent/bin/agent");
        let found = host.find("agent", &[".local/bin"]).unwrap();
        assert_eq!(
            shown(&host, &found),
            ["envs/agent", ".local/share/uv/python"]
        );
        assert_eq!(found.path, home.join("envs/agent/bin/agent"));
        assert_eq!(found.search, [home.join("envs/agent/bin")]);
    }

    #[test]
    fn nothing_beside_a_single_file_is_shown() {
        let host = Host::new();
        fs::create_dir_all(host.home().join(".local/lib")).unwrap();
        host.program(".local/bin/agent", "");
        host.program("projects/tools/agent.sh", "#!/bin/sh\n");
        let found = host.find("agent", &[".local/bin"]).unwrap();
        assert_eq!(shown(&host, &found), [".local/bin/agent"]);
        let path = host.home().join("projects/tools/agent.sh");
        let found = host.find(path.to_str().unwrap(), &[]).unwrap();
        assert_eq!(shown(&host, &found), ["projects/tools/agent.sh"]);
    }

    #[test]
    fn what_the_user_shows_is_not_shown_twice() {
        let host = Host::new();
        let path = host.program("shown/bin/agent", "");
        let found = host.find("agent", &["shown/bin"]).unwrap();
        assert_eq!((found.shown.len(), found.path), (0, path));
        assert_eq!(found.search, [host.home().join("shown/bin")]);
    }
}
