//! The folder in which a demo takes place: a small repository, a state root, a home with a decoy
//! key, and a place that nobody may write. All of it is made here and none of it existed before.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cast::Part;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::itself;
use crate::reporter::words::shell_word;

/// What the decoy key says; nobody but the demo knows it.
pub(super) const DECOY_KEY: &str = "decoy-3c1f0a7e-this-is-not-a-real-key";
/// What stands in the file that nobody may write.
pub(super) const CANARY: &str = "untouched\n";
/// A variable that the callers of Airlock have and no agent may see.
pub(super) const TOKEN: (&str, &str) = ("DEMO_TOKEN", "decoy-9b2d44c0-this-is-not-a-real-token");

/// Where a demo takes place.
#[derive(Debug)]
pub(super) struct Scene {
    folder: PathBuf,
}

/// What the escaper is given to aim at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aims {
    /// A port on which the demo listens.
    pub(super) port: u16,
    /// A length of sleep that marks the escaper's daemons among all processes.
    pub(super) seconds: u64,
}

impl Scene {
    /// Makes the folder: the named one, which must not exist, or a fresh temporary one.
    pub(super) fn set(named: Option<PathBuf>) -> Result<Self, Failure> {
        let folder = match named {
            Some(folder) => {
                let made = fs::DirBuilder::new().mode(0o700).create(&folder);
                made.map_err(|error| unusable(&folder, &error))?;
                folder
            }
            None => nix::unistd::mkdtemp(&std::env::temp_dir().join("airlock-demo-XXXXXX"))
                .or_fail(Exit::Internal)?,
        };
        let folder = fs::canonicalize(&folder).map_err(|error| unusable(&folder, &error))?;
        let scene = Self { folder };
        for folder in [
            scene.home().join(".ssh"),
            scene.outside(),
            scene.state(),
            scene.repository().join("agents"),
        ] {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .or_fail(Exit::Internal)?;
        }
        fs::write(
            scene.home().join(".ssh/id_ed25519"),
            format!("{DECOY_KEY}\n"),
        )
        .or_fail(Exit::Internal)?;
        fs::write(scene.outside().join("canary"), CANARY).or_fail(Exit::Internal)?;
        Ok(scene)
    }

    /// The folder itself.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The repository.
    pub(super) fn repository(&self) -> PathBuf {
        self.folder.join("repository")
    }

    /// The state root.
    pub(super) fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// The home of whoever calls Airlock here.
    pub(super) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// A place that no agent may write.
    pub(super) fn outside(&self) -> PathBuf {
        self.folder.join("outside")
    }

    /// Makes the repository with the agents' scripts in its first commit, so that a reader can run
    /// them again.
    pub(super) fn commit(&self, aims: Aims) -> Result<(), Failure> {
        let repository = self.repository();
        let readme =
            "# Calculator\n\nA small repository for four agents; their scripts are in `agents/`.\n";
        fs::write(repository.join("README.md"), readme).or_fail(Exit::Internal)?;
        for part in Part::ALL {
            let file = repository.join(part.script_path());
            fs::write(file, self.aimed(part.script(), aims)).or_fail(Exit::Internal)?;
        }
        // No template: the repository begins without a single hook.
        self.git(&["init", "--quiet", "--template=", "--initial-branch=main"])?;
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message=A place to work"])
    }

    fn aimed(&self, script: &str, aims: Aims) -> String {
        script
            .replace("@OUTSIDE@", &shell_word(&self.outside()))
            .replace("@KEYS@", &shell_word(&self.home().join(".ssh")))
            .replace("@STATE@", &shell_word(&self.state()))
            .replace("@REPOSITORY@", &shell_word(&self.repository()))
            .replace("@PORT@", &aims.port.to_string())
            .replace("@SECONDS@", &aims.seconds.to_string())
    }

    /// Runs git in the repository that was made above, with nobody's settings.
    fn git(&self, args: &[&str]) -> Result<(), Failure> {
        let mut command = Command::new("git");
        command
            .args(args)
            .current_dir(self.repository())
            .stdin(Stdio::null())
            .env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let person = [("NAME", "Airlock demo"), ("EMAIL", "demo@airlock.invalid")];
        for (what, value) in person {
            command
                .env(format!("GIT_AUTHOR_{what}"), value)
                .env(format!("GIT_COMMITTER_{what}"), value);
        }
        command
            .env("HOME", self.home())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.output().map_err(|error| {
            Failure::caused(Exit::Usage, &error)
                .advise("the demo makes a repository with git: install it")
        })?;
        if output.status.success() {
            return Ok(());
        }
        let mut failure = Failure::new(Exit::Internal, "git could not make the demo's repository");
        failure
            .causes
            .push(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        Err(failure)
    }

    /// This program, as somebody calls it who lives in the scene.
    pub(super) fn airlock(&self) -> Command {
        let mut command = Command::new(itself::executable());
        command
            .arg("-C")
            .arg(self.repository())
            .arg("--json")
            .stdin(Stdio::null());
        for name in [
            "XDG_STATE_HOME",
            "XDG_CONFIG_HOME",
            "GITHUB_ACTIONS",
            "CLICOLOR_FORCE",
        ] {
            command.env_remove(name);
        }
        command
            .env("HOME", self.home())
            .env("AIRLOCK_STATE", self.state())
            .env(TOKEN.0, TOKEN.1);
        command
    }
}

fn unusable(folder: &Path, error: &io::Error) -> Failure {
    let mut failure = Failure::usage(format!("the demo cannot use {}", folder.display()));
    failure.causes.push(error.to_string());
    failure.advise("name a folder that does not exist yet, below one that does")
}
