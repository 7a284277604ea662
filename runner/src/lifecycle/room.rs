//! From a task to the room around it: paths, reach, environment. Decides nothing that the
//! specification has not decided.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use sandbox::{GitView, JobSpec, Layer, Limits, Net, Room, RoomError, RoomSpec};

use super::Life;
use super::outbox::NOTE;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::TaskFolder;
use crate::task::Spec;
use crate::{config, task};

/// Where the room shows the feedback folder.
const FEEDBACK: &str = "/run/airlock/feedback";

/// The prompt, in the feedback folder.
pub(super) const PROMPT: &str = "prompt.txt";

/// Where the room shows the outbox.
const OUTBOX: &str = "/run/airlock/outbox";

impl Life<'_> {
    /// The room of this task; none for modes without one.
    pub(super) fn open_room(&self) -> Result<Option<Room>, Failure> {
        if !self.view.spec.isolation.confined() {
            return Ok(None);
        }
        // A person may have opened it for a command of his own.
        Room::enter(&self.room_spec()?)
            .map(Some)
            .map_err(|error| no_room(&error))
    }

    pub(super) fn room_spec(&self) -> Result<RoomSpec, Failure> {
        let spec = &self.view.spec;
        let folder = self.folder();
        let repository = &self.repository;
        let worktree = spec.isolation.has_worktree();
        let tree = self.view.workspace.clone().unwrap_or_else(|| folder.tree());
        let objects = repository.object_dirs().or_fail(Exit::Internal)?;
        Ok(RoomSpec {
            task: spec.task.as_str().to_owned(),
            locks: self.shop.folder.locks(),
            tree,
            writable: worktree,
            mount_at: repository.room_path(),
            git: worktree.then(|| GitView {
                shadow: folder.shadow(),
                objects,
            }),
            bg: folder.jobs(),
            sub: folder.subagents(),
            feedback: folder.feedback(),
            outbox: folder.outbox(),
            ro: spec.ro.clone(),
            rw: spec.rw.clone(),
            tools: spec.installed.clone(),
            layers: layers(spec),
            forbidden: config::own_folder()
                .into_iter()
                .chain([
                    self.shop.root.path().to_owned(),
                    repository.common_dir().to_owned(),
                ])
                .collect(),
            net: reach(&spec.net, &folder),
            home_bytes: spec.bounds.home,
            home_files: self.home_files(),
            tmp_bytes: spec.bounds.tmp,
            repo_owner: repository.owner(),
        })
    }

    /// What HOME begins with. What is no longer fit to be shown is left out, as if it were not there.
    fn home_files(&self) -> BTreeMap<String, String> {
        let files = self.view.spec.copy.iter();
        let read = |(name, path): (&String, &PathBuf)| {
            let text = config::fit_to_copy(path).ok().flatten()?;
            Some((name.clone(), text))
        };
        let written = self.view.spec.files.clone();
        written.into_iter().chain(files.filter_map(read)).collect()
    }

    /// The agent as a job of its room.
    pub(super) fn job_spec(&self, job: &str, attempt: u32) -> JobSpec {
        let spec = &self.view.spec;
        let cwd = if spec.isolation.confined() {
            self.repository.room_path()
        } else {
            self.view
                .workspace
                .clone()
                .unwrap_or_else(|| PathBuf::from("/"))
        };
        // In other modes the tree is the user's own.
        let folder = self.folder();
        let watched = if spec.isolation.has_worktree() {
            vec![folder.tree(), folder.shadow(), folder.outbox()]
        } else {
            vec![folder.outbox()]
        };
        JobSpec {
            job: job.to_owned(),
            dir: self.folder().job(job),
            argv: self.command_line(),
            env: self.environment(attempt),
            cwd,
            timeout_ms: spec.bounds.timeout_ms,
            idle_ms: spec.bounds.idle_ms,
            grace_ms: spec.bounds.grace_ms,
            output_cap: spec.bounds.output,
            limits: Limits {
                pids: spec.bounds.pids,
                fsize: spec.bounds.file_size,
                memory: Some(spec.bounds.memory),
                disk: Some(spec.bounds.disk),
                files: Some(spec.bounds.files),
                ..Limits::default()
            },
            watched,
            denials: self.folder().denials(),
            stdin: Vec::new(),
        }
    }

    /// The command with the place of the prompt filled in.
    fn command_line(&self) -> Vec<OsString> {
        let spec = &self.view.spec;
        let host = self.folder().feedback().join(PROMPT);
        let file = if spec.isolation.confined() {
            format!("{FEEDBACK}/{PROMPT}")
        } else {
            host.to_string_lossy().into_owned()
        };
        let fill = |word: &OsString| match word.to_str() {
            Some(text) => OsString::from(text.replace(config::PROMPT_FILE, &file)),
            None => word.clone(),
        };
        spec.argv.iter().map(fill).collect()
    }

    fn environment(&self, attempt: u32) -> BTreeMap<String, String> {
        let spec = &self.view.spec;
        let folder = self.folder();
        let confined = spec.isolation.confined();
        let mut env = if confined {
            sandbox::room_environment()
        } else {
            unconfined_environment()
        };
        let inside = |host: PathBuf, room: &str| {
            if confined {
                room.to_owned()
            } else {
                host.to_string_lossy().into_owned()
            }
        };
        env.insert("AIRLOCK_TASK".to_owned(), spec.task.to_string());
        env.insert("AIRLOCK_ATTEMPT".to_owned(), attempt.to_string());
        let outbox = inside(folder.outbox(), OUTBOX);
        env.insert("AIRLOCK_NOTE".to_owned(), format!("{outbox}/{NOTE}"));
        env.insert("AIRLOCK_OUTBOX".to_owned(), outbox);
        if let Some(previous) = attempt.checked_sub(1).filter(|previous| *previous > 0) {
            let name = feedback_name(previous);
            if folder.feedback().join(&name).exists() {
                let file = inside(folder.feedback().join(&name), &format!("{FEEDBACK}/{name}"));
                env.insert("AIRLOCK_FEEDBACK".to_owned(), file);
            }
        }
        if confined && spec.net.policy().is_some() {
            env.extend(sandbox::egress::environment());
        }
        env.extend(spec.env.clone());
        env.extend(self.secrets.env.clone());
        env
    }

    /// Whether values that the task needs are missing, as after a crash.
    pub(super) fn missing_secrets(&self) -> Vec<String> {
        let names = self.view.spec.pass_env.iter();
        names
            .filter(|name| !self.secrets.env.contains_key(*name))
            .cloned()
            .collect()
    }
}

/// What a room reaches, and how.
pub(super) fn reach(net: &task::Net, folder: &TaskFolder) -> Net {
    match net {
        task::Net::None => Net::None,
        task::Net::Allow(policy) => Net::Proxied {
            folder: folder.proxy(),
            policy: policy.clone(),
        },
        task::Net::Host => Net::Host,
    }
}

/// Caches and toolchains, as the room shows them.
fn layers(spec: &Spec) -> Vec<Layer> {
    let shown = spec.toolchains.iter().flat_map(|tools| &tools.layers);
    shown
        .map(|shown| Layer {
            from: shown.from.clone(),
            at: shown.at.clone(),
            writable: shown.private_layer,
        })
        .collect()
}

/// Without a room there is no private home to point at: the user's own folders and search path.
fn unconfined_environment() -> BTreeMap<String, String> {
    let own = |name: &str, otherwise: &str| {
        std::env::var(name).unwrap_or_else(|_unset| otherwise.to_owned())
    };
    let mut env = sandbox::chosen_environment(&own("HOME", "/"), &own("TMPDIR", "/tmp"));
    for name in ["PATH", "USER", "LOGNAME"] {
        if let Ok(value) = std::env::var(name) {
            env.insert(name.to_owned(), value);
        }
    }
    env
}

/// The file that tells the agent why an attempt was refused.
pub(super) fn feedback_name(attempt: u32) -> String {
    format!("attempt-{attempt}.txt")
}

/// Why there is no room, with its exit code.
pub(super) fn no_room(error: &RoomError) -> Failure {
    let exit = match error {
        RoomError::Unavailable(unavailable) => {
            let what = format!("sandbox unavailable: {}", unavailable.problem);
            return Failure::new(Exit::SandboxUnavailable, what).advise(format!(
                "{}; {}. Nothing was run",
                unavailable.cause, unavailable.fix
            ));
        }
        RoomError::Refused { .. } | RoomError::Planted { .. } | RoomError::Name { .. } => {
            Exit::Usage
        }
        RoomError::Busy { .. } => Exit::Conflict,
        RoomError::Gone { .. } | RoomError::Silent { .. } => Exit::Lost,
        RoomError::Build { .. } => Exit::Internal,
    };
    Failure::caused(exit, error)
}
