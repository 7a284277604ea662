//! The folder in which an agent is tested: a small repository with a test that fails, a state root, a
//! configuration that holds the agent's profile and nothing else. All of it is made here.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::script;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::itself;

/// Where an agent is tested. Dropped, it is gone.
#[derive(Debug)]
pub(super) struct Scene {
    folder: PathBuf,
}

impl Scene {
    /// Makes it; `profile` is the text of config.toml.
    pub(super) fn set(profile: &str) -> Result<Self, Failure> {
        let folder = nix::unistd::mkdtemp(&std::env::temp_dir().join("airlock-agent-XXXXXX"))
            .or_fail(Exit::Internal)?;
        let scene = Self {
            folder: fs::canonicalize(folder).or_fail(Exit::Internal)?,
        };
        let config = scene.config().join("airlock");
        for folder in [&config, &scene.repository()] {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .or_fail(Exit::Internal)?;
        }
        fs::write(config.join("config.toml"), profile).or_fail(Exit::Internal)?;
        for (name, text) in script::BASE {
            fs::write(scene.repository().join(name), text).or_fail(Exit::Internal)?;
        }
        // No template: the repository begins without a single hook.
        scene.git(&["init", "--quiet", "--template=", "--initial-branch=main"])?;
        scene.git(&["add", "--all"])?;
        scene.git(&["commit", "--quiet", "--message=A place to work"])?;
        Ok(scene)
    }

    /// The repository.
    pub(super) fn repository(&self) -> PathBuf {
        self.folder.join("repository")
    }

    fn config(&self) -> PathBuf {
        self.folder.join("config")
    }

    /// This program in the scene. `without`: variables of the caller's that it does not get.
    pub(super) fn airlock(&self, without: &[String]) -> Command {
        let mut command = Command::new(itself::executable());
        command
            .arg("-C")
            .arg(self.repository())
            .stdin(Stdio::null())
            .env("XDG_CONFIG_HOME", self.config())
            .env("AIRLOCK_STATE", self.folder.join("state"));
        for name in ["GITHUB_ACTIONS", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        for name in without {
            command.env_remove(name);
        }
        command
    }

    fn git(&self, args: &[&str]) -> Result<(), Failure> {
        let mut command = Command::new("git");
        command
            .args(args)
            .current_dir(self.repository())
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let set: [(&str, OsString); 7] = [
            ("HOME", self.folder.clone().into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_AUTHOR_NAME", "Airlock test".into()),
            ("GIT_AUTHOR_EMAIL", "test@airlock.invalid".into()),
            ("GIT_COMMITTER_NAME", "Airlock test".into()),
            ("GIT_COMMITTER_EMAIL", "test@airlock.invalid".into()),
        ];
        let output = command.envs(set).output().map_err(|error| {
            Failure::caused(Exit::Usage, &error)
                .advise("the test makes a repository with git: install it")
        })?;
        if output.status.success() {
            return Ok(());
        }
        let mut failure = Failure::new(Exit::Internal, "git could not make the repository");
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        failure.causes.push(said);
        Err(failure)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // What cannot be removed lies below the folder for temporary files, and says nothing of anybody.
        worktrees::remove_tree(&self.folder).ok();
    }
}
