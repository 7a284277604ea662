//! The way of a task: worktree, room, attempts, seal, gates, evidence, landing, clean-up. Each step
//! records what it did before the next one begins, so that whoever comes after a crash knows where
//! to go on. Runs on a blocking thread of the supervisor; never prints.

mod accept;
mod attempt;
mod ending;
mod exec;
mod judge;
mod land;
mod network;
mod outbox;
mod prepare;
mod proof;
mod remove;
mod room;
mod set_up;
mod settle;
mod takeup;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use worktrees::Repository;

use crate::event::Event;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::TaskFolder;
use crate::keyring;
use crate::stage::Stage;
use crate::supervisor::wire::Order;
use crate::supervisor::{Shop, StopRequest};
use crate::task::{Secrets, Spec, TaskId};
use crate::view::TaskView;

pub use exec::{exec, let_go_on, see_off, stop_all};

/// What is to be done with a task.
#[derive(Debug)]
pub enum Job {
    /// Somebody ordered it.
    Order {
        /// What.
        order: Order,
        /// The folder of the repository in which the user stands.
        start: PathBuf,
    },
    /// An earlier supervisor left it behind.
    TakeUp,
}

/// What the order at hand says beyond what was recorded with the task.
#[derive(Debug, Default)]
struct Said {
    note: Option<String>,
    into: Option<String>,
    allow_unconfined: bool,
}

/// One task under work.
#[derive(Debug)]
struct Life<'a> {
    shop: &'a Shop,
    repository: Repository,
    view: TaskView,
    stop: &'a StopRequest,
    secrets: Secrets,
    said: Said,
    /// The tree was sealed by this job, and none of the task's jobs has run since.
    sealed_now: bool,
}

/// Does one job on one task, to the end. A panic is a failure of this task and of no other: whoever waits for it
/// is told, and it is not tried again for ever.
pub fn carry(shop: &Shop, task: &TaskId, job: Job, stop: &StopRequest) -> Result<(), Failure> {
    let carried = catch_unwind(AssertUnwindSafe(|| carry_on(shop, task, job, stop)));
    let carried = carried.unwrap_or_else(|_panic| {
        let what = format!("the engine broke down at task {task}");
        let failure = Failure::new(Exit::Internal, what).advise(
            "supervisor.log in the state folder says where; the tree and what was sealed are as they were",
        );
        let view = shop.recorder.view(task)?;
        // A landing that was cut off is completed or taken back first.
        if view.is_some_and(|view| !view.stage.rests() && view.stage != Stage::Landing) {
            let failure = failure.clone();
            shop.recorder.record(task, vec![Event::Failed { failure }])?;
        }
        Err(failure)
    });
    let settled = shop.recorder.settle(task);
    carried.and(settled)
}

fn carry_on(shop: &Shop, task: &TaskId, job: Job, stop: &StopRequest) -> Result<(), Failure> {
    let (order, start) = match job {
        Job::Order {
            order: Order::Run { spec, secrets, .. },
            start,
        } => {
            return run(shop, *spec, secrets, start, stop);
        }
        Job::Order { order, start } => (Some(order), Some(start)),
        Job::TakeUp => (None, None),
    };
    let view = shop.recorder.view(task)?.ok_or_else(|| {
        Failure::new(Exit::NotFound, format!("no task {task}"))
            .advise("`airlock ls --all` lists the tasks")
    })?;
    // The checkout that the user stands in now is the one that a landing may touch.
    let start = start.unwrap_or_else(|| view.start.clone());
    let repository = Repository::discover(&start).or_fail(Exit::Usage)?;
    let mut life = Life {
        shop,
        repository,
        view,
        stop,
        secrets: Secrets::default(),
        said: Said::default(),
        sealed_now: false,
    };
    let carried = match order {
        None => life.take_up(),
        Some(Order::Resume { secrets, .. }) => {
            life.secrets = secrets;
            life.resume()
        }
        Some(Order::Deliver { note, .. }) => life.deliver(note),
        Some(Order::Accept {
            gates, reason, by, ..
        }) => life.accept(&gates, &reason, &by),
        Some(Order::Merge {
            into,
            style,
            allow_unconfined,
            ..
        }) => life.merge(into.as_deref(), style, allow_unconfined),
        Some(Order::Remove { discard, .. }) => life.remove(discard),
        Some(Order::Run { .. } | Order::Stop { .. } | Order::Exec(_) | Order::Follow { .. }) => {
            Ok(())
        }
    };
    life.close(carried)
}

/// Passes a wish to stop on to the job that runs now, if one does.
pub fn interrupt(shop: &Shop, task: &TaskId, stop: &StopRequest) {
    let view = shop.recorder.view(task).ok().flatten();
    if let (Some(view), Some(asked)) = (view, stop.asked())
        && let Some(job) = running(&view)
    {
        attempt::stop_job(&shop.folder, &view.spec, job, asked);
    }
}

/// The job that may run now.
fn running(view: &TaskView) -> Option<&str> {
    if view.stage == Stage::Preparing {
        return view.spec.setup.as_ref().map(|_| set_up::JOB);
    }
    view.job.as_deref().filter(|_| view.stage == Stage::Running)
}

/// Whether the agent of a task goes on without us.
pub fn still_runs(shop: &Shop, view: &TaskView) -> bool {
    let (Stage::Running, Some(job)) = (view.stage, &view.job) else {
        return false;
    };
    let task = view.spec.task.as_str();
    let folder = shop.folder.task(task).job(job);
    matches!(
        sandbox::attach(&shop.folder.locks(), task, job, &folder),
        sandbox::Attached::Running(_)
    )
}

/// A new task.
fn run(
    shop: &Shop,
    spec: Spec,
    secrets: Secrets,
    start: PathBuf,
    stop: &StopRequest,
) -> Result<(), Failure> {
    let task = spec.task.clone();
    let repository = Repository::discover(&start).or_fail(Exit::Usage)?;
    // A key that cannot sign is better found now than after hours of an agent's work.
    keyring::open(&shop.root)?;
    prepare::claim_folder(&shop.folder.task(task.as_str()), &task)?;
    let name = repository.name().to_owned();
    let queued = Event::Queued {
        spec: Box::new(spec),
        repository: name,
        start,
    };
    let view = shop
        .recorder
        .record(&task, vec![queued, Event::Preparing])?
        .ok_or_else(|| Failure::new(Exit::Internal, "the task was not recorded"))?;
    let mut life = Life {
        shop,
        repository,
        view,
        stop,
        secrets,
        said: Said::default(),
        sealed_now: false,
    };
    let ran = life.prepare().and_then(|()| life.begin());
    match ran {
        Err(failure) if failure.exit == Exit::SandboxUnavailable => life.take_back(failure),
        ran => life.close(ran),
    }
}

impl Life<'_> {
    fn record(&mut self, events: Vec<Event>) -> Result<(), Failure> {
        let task = self.view.spec.task.clone();
        if let Some(view) = self.shop.recorder.record(&task, events)? {
            self.view = view;
            self.heed();
        }
        Ok(())
    }

    /// Puts what was said just now over what was recorded.
    fn heed(&mut self) {
        let spec = &mut self.view.spec;
        if let Some(note) = &self.said.note {
            spec.note = Some(note.clone());
        }
        if let Some(into) = &self.said.into {
            spec.into = Some(into.clone());
        }
        spec.allow_unconfined |= self.said.allow_unconfined;
    }

    fn folder(&self) -> TaskFolder {
        self.shop.folder.task(self.view.spec.task.as_str())
    }

    /// An engine failure leaves the task in a resting state that says so.
    fn close(&mut self, carried: Result<(), Failure>) -> Result<(), Failure> {
        let Err(failure) = carried else { return Ok(()) };
        if !self.view.stage.rests() {
            self.record(vec![Event::Failed {
                failure: failure.clone(),
            }])?;
        }
        Err(failure)
    }

    /// The work on a tree that was just prepared, unless somebody stopped that.
    fn begin(&mut self) -> Result<(), Failure> {
        if self.view.stage == Stage::Stopped {
            return Ok(());
        }
        self.work()
    }

    /// Attempts until one is accepted or none is left, then landing and clean-up.
    fn work(&mut self) -> Result<(), Failure> {
        let allowed = self.view.spec.attempts.max(1);
        let network = self.open_network()?;
        let room = self.open_room()?;
        for used in 1..=allowed {
            if self.stopped()? {
                break;
            }
            self.attempt(room.as_ref())?;
            if !self.delivers() {
                break;
            }
            self.judge_tree(used < allowed)?;
            if self.view.stage != Stage::Rejected {
                break;
            }
        }
        if let Some(room) = room {
            room.close();
        }
        drop(network);
        self.finish()
    }

    /// Landing, when it was asked for, and clean-up.
    fn finish(&mut self) -> Result<(), Failure> {
        let landed = match (self.view.stage, self.view.spec.merge) {
            (Stage::Accepted, Some(style)) => self.land_on_recorded_target(style),
            _ => Ok(()),
        };
        self.settle()?;
        landed
    }

    /// Whether somebody asked to stop; recorded when so.
    fn stopped(&mut self) -> Result<bool, Failure> {
        let Some((by, reason)) = self.stop.asked().cloned() else {
            return Ok(false);
        };
        if !self.view.stage.rests() {
            self.record(vec![Event::Stopped { by, reason }])?;
        }
        Ok(true)
    }
}
