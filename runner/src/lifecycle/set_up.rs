//! The setup of a task: commands of the configuration, run once in a room of their own on a fresh checkout of the
//! base, and what they leave behind, copied into the task's tree before anybody enters it.
//!
//! The room of a setup has no more than that of an agent, and less: no variable of the user's, no credential, no
//! writable path, no network but the setup's own. So a repository may ask for commands without being trusted: an
//! agent of the same task could run them, too. What they leave is ignored by git, so it is never sealed, and is never
//! taken from a tree that an agent has touched.
//!
//! Tasks get copies and not overlays: `npm ci` removes the folder it is about to fill, which a mount point forbids,
//! and two tasks cannot share a write by any path. Where the file system can (btrfs, xfs), a copy shares blocks. The
//! copy is part of the tree and counts against its limits on disk and files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use sandbox::{Exit as JobExit, HeldLock, JobSpec, Outcome, Room, RoomSpec};
use worktrees::{History, KeptError, Oid, WorktreeRequest};

use super::Life;
use super::attempt::stop_job;
use super::room::{no_room, reach};
use crate::event::{Event, SetUpFacts};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::proxy::{Order, Proxy};
use crate::setup::{Facts, LIMIT, Making, Setups, last_lines};
use crate::task::{Net, Setup};
use crate::view::ended;

/// The job's name, under which `logs` shows what it printed.
pub(super) const JOB: &str = "setup";

/// Between two looks whether another task has finished the same setup.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs each command that it is given, says which, and ends with the first that fails.
const SCRIPT: &str =
    r#"for command in "$@"; do printf '$ %s\n' "$command"; sh -c "$command" || exit; done"#;

/// So many lines of a failed setup's log are told at once.
const TOLD: usize = 8;

/// A result that is there for as long as this is held.
#[derive(Debug)]
pub(super) struct Ready {
    _claim: HeldLock,
    facts: Facts,
    reused: bool,
    since: Instant,
}

impl Life<'_> {
    /// Makes sure that the result of this task's setup is there; none when it has no setup.
    pub(super) fn set_up(&mut self) -> Result<Option<Ready>, Failure> {
        let Some(setup) = self.view.spec.setup.clone() else {
            return Ok(None);
        };
        let since = Instant::now();
        let setups = Setups::of(&self.shop.folder);
        let claim = self.wait_for(&setups, &setup.key)?;
        let found = setups.find(&setup.key);
        let reused = found.is_some();
        let facts = match found {
            Some(facts) => facts,
            None => self.make(&setups, &setup)?,
        };
        setups.used(&setup.key);
        Ok(Some(Ready {
            _claim: claim,
            facts,
            reused,
            since,
        }))
    }

    /// Copies a result into the tree, which is fresh.
    pub(super) fn furnish(&self, ready: &Ready) -> Result<Event, Failure> {
        let from = Setups::of(&self.shop.folder).kept(&ready.facts.key);
        let copied = self
            .repository
            .put_kept(&from, &self.folder().tree(), LIMIT)
            .map_err(|error| not_kept(&error))?;
        Ok(Event::SetUp {
            facts: SetUpFacts {
                key: ready.facts.key.clone(),
                reused: ready.reused,
                kept: ready.facts.kept.clone(),
                size: copied,
                elapsed_ms: u64::try_from(ready.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            },
        })
    }

    /// The right to a result, when no other task makes, copies or removes it.
    fn wait_for(&mut self, setups: &Setups, key: &str) -> Result<HeldLock, Failure> {
        loop {
            if let Some(claim) = setups.claim(key)? {
                return Ok(claim);
            }
            self.heed_stop()?;
            std::thread::sleep(PAUSE);
        }
    }

    /// Ends here if somebody asked to stop.
    fn heed_stop(&mut self) -> Result<(), Failure> {
        if self.stopped()? {
            let what = format!("task {} was stopped during its setup", self.view.spec.task);
            return Err(Failure::new(Exit::Interrupted, what));
        }
        Ok(())
    }

    fn make(&mut self, setups: &Setups, setup: &Setup) -> Result<Facts, Failure> {
        let task = self.view.spec.task.clone();
        self.record(vec![Event::SettingUp {
            key: setup.key.clone(),
            commands: setup.commands.clone(),
        }])?;
        let making = setups.begin(&setup.key, task.as_str())?;
        let base = Oid::from_str(&self.view.spec.base).or_fail(Exit::Internal)?;
        self.repository
            .create_unregistered(&WorktreeRequest {
                id: task.as_str(),
                branch: &self.view.spec.branch,
                base,
                tree: &making.tree(),
                shadow: &making.git(),
                lock: &self.shop.folder.repository_lock(),
                history: History::Full,
            })
            .or_fail(Exit::Internal)?;
        let outcome = self.run_setup(setup, &making)?;
        self.heed_stop()?;
        if !matches!(outcome.exit, JobExit::Code(0)) {
            return Err(self.failed_setup(&outcome));
        }
        let size = worktrees::take_kept(&making.tree(), &setup.keep, &making.kept(), LIMIT)
            .map_err(|error| not_kept(&error))?;
        making.strip()?;
        let kept = setup.keep.iter();
        let facts = Facts {
            schema: 1,
            key: setup.key.clone(),
            commands: setup.commands.clone(),
            kept: kept
                .filter(|path| making.kept().join(path).is_dir())
                .cloned()
                .collect(),
            size,
            made_by: task.to_string(),
        };
        setups.publish(&making, &facts)?;
        Ok(facts)
    }

    /// One job in a room that is opened for it alone.
    fn run_setup(&mut self, setup: &Setup, making: &Making) -> Result<Outcome, Failure> {
        let network = self.setup_network(setup)?;
        let room = Room::open(&self.setup_room(setup, making)?).map_err(|error| no_room(&error))?;
        let script = ["sh", "-c", SCRIPT, JOB].map(OsString::from).into_iter();
        let commands = setup.commands.iter().map(OsString::from);
        let job = JobSpec {
            argv: script.chain(commands).collect(),
            env: self.setup_environment(setup),
            timeout_ms: Some(setup.timeout_ms),
            idle_ms: None,
            watched: vec![making.tree(), making.git()],
            ..self.job_spec(JOB, 1)
        };
        let keeper = room.start(&job).map_err(|error| no_room(&error))?;
        if let Some(asked) = self.stop.asked() {
            // The wish came before there was anything to stop.
            stop_job(&self.shop.folder, &self.view.spec, JOB, asked);
        }
        let outcome = keeper.wait();
        room.close();
        drop(network);
        Ok(outcome)
    }

    fn setup_room(&self, setup: &Setup, making: &Making) -> Result<RoomSpec, Failure> {
        let mut room = self.room_spec()?;
        room.tree = making.tree();
        if let Some(git) = &mut room.git {
            git.shadow = making.git();
        }
        room.feedback = making.feedback();
        room.outbox = making.outbox();
        let tools = self.view.spec.toolchains.iter();
        room.ro = tools.flat_map(|tools| tools.programs.clone()).collect();
        room.rw.clear();
        room.net = reach(&setup.net, &self.folder());
        Ok(room)
    }

    fn setup_network(&self, setup: &Setup) -> Result<Option<Proxy>, Failure> {
        let Net::Allow(policy) = &setup.net else {
            return Ok(None);
        };
        let order = Order {
            task: self.view.spec.task.clone(),
            policy: policy.clone(),
            credentials: Vec::new(),
            keys: self.shop.keys.clone(),
        };
        Proxy::start(&self.folder(), order)
            .map(Some)
            .map_err(|error| super::network::no_network(&error))
    }

    /// The fixed part, and what the toolchains need; nothing of the user's.
    fn setup_environment(&self, setup: &Setup) -> BTreeMap<String, String> {
        let mut env = sandbox::room_environment();
        if matches!(setup.net, Net::Allow(_)) {
            env.extend(sandbox::egress::environment());
        }
        let mut search: Vec<String> = Vec::new();
        for tools in &self.view.spec.toolchains {
            env.extend(tools.env.clone());
            if matches!(setup.net, Net::None) {
                env.extend(tools.offline.clone());
            }
            let folders = tools.search.iter().filter_map(|folder| folder.to_str());
            search.extend(folders.map(str::to_owned));
        }
        search.extend(env.get("PATH").cloned());
        env.insert("PATH".to_owned(), search.join(":"));
        env
    }

    fn failed_setup(&self, outcome: &Outcome) -> Failure {
        let task = &self.view.spec.task;
        let what = format!("the setup of task {task} {}", ended(outcome));
        let log = last_lines(&self.folder().log(JOB), TOLD).unwrap_or_default();
        let mut failure = Failure::new(Exit::SetupFailed, what).advise(format!(
            "`airlock logs {task} {JOB}` has all that it printed; nothing of the agent was run. Mend [setup], or go \
             without with --no-setup"
        ));
        failure.causes = log;
        failure
    }
}

fn not_kept(error: &KeptError) -> Failure {
    Failure::caused(Exit::SetupFailed, error).advise(
        "[setup] keep says which folders every task gets a copy of; nothing of the agent was run",
    )
}
