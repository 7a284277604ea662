//! `exec`: a command with a person in front of it, as one more job in the room of a task that runs or rests. It is
//! recorded beside the task's own way, which it never moves: what it changes in the tree counts with the next seal.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use sandbox::{Attached, ControlError, Ends, Keeper, Order, Outcome, Room, RoomError};
use worktrees::Repository;

use super::room::no_room;
use super::{Life, Said};
use crate::event::Event;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::StateFolder;
use crate::place;
use crate::proxy::Proxy;
use crate::stage::Stage;
use crate::supervisor::wire::Wish;
use crate::supervisor::{Closed, Shop, StopRequest};
use crate::task::{Secrets, TaskId};
use crate::view::TaskView;

/// A keeper is there, or has given up, by then.
const PATIENCE: Duration = Duration::from_secs(40);
/// Between two looks at one that is coming up or going down.
const LOOK: Duration = Duration::from_millis(2);
/// A room may be closed just when somebody enters it.
const TRIES: u32 = 5;

/// Runs a command to its end. `kept` hears when the walls stand around it.
pub fn exec(
    shop: &Shop,
    wish: Wish,
    ends: Ends,
    kept: impl FnOnce(&TaskId, &str),
) -> Result<(), Failure> {
    let candidates = shop.recorder.like(&wish.task)?;
    let task = place::choose(&wish.task, &candidates, "this repository")?.clone();
    let unknown = || Failure::new(Exit::NotFound, format!("no task {task}"));
    let view = shop.recorder.view(&task)?.ok_or_else(unknown)?;
    permitted(&view)?;
    let job = claim(&shop.folder, &view)?;
    let begun = shop.recorder.record(&task, vec![begun(&job, &wish)]);
    // The task may have gone on between the look and the record.
    let begun = begun.map_err(|_illegal| {
        let now = shop.recorder.view(&task).ok().flatten();
        busy(&task, now.map_or(view.stage, |now| now.stage))
    });
    if let Err(refused) = begun {
        forget(&shop.folder, &task, &job);
        return Err(refused);
    }
    let started = start(shop, view, wish, &job, &ends);
    // The streams are the job's alone from here on: their end is its end.
    drop(ends);
    let Entered {
        room,
        keeper,
        network,
    } = match started {
        Ok(started) => started,
        Err(failure) => {
            over(shop, &task, &job, Outcome::never(failure.to_string()))?;
            return Err(failure);
        }
    };
    kept(&task, &job);
    let outcome = keeper.wait();
    over(shop, &task, &job, outcome)?;
    room.leave();
    drop(network);
    Ok(())
}

/// A command in its room.
struct Entered {
    room: Room,
    keeper: Keeper,
    /// The way out of a room that was opened for this command; whoever else opened one has made its own.
    network: Option<Proxy>,
}

fn begun(job: &str, wish: &Wish) -> Event {
    let text = |word: &std::ffi::OsString| word.to_string_lossy().into_owned();
    Event::Exec {
        job: job.to_owned(),
        command: wish.argv.iter().map(text).collect(),
        by: user().to_owned(),
    }
}

/// The user, for the record. Whoever reaches our socket is the one whom we serve: asked for once.
fn user() -> &'static str {
    static USER: OnceLock<String> = OnceLock::new();
    USER.get_or_init(crate::commands::user)
}

fn over(shop: &Shop, task: &TaskId, job: &str, outcome: Outcome) -> Result<(), Failure> {
    let job = job.to_owned();
    forget(&shop.folder, task, &job);
    let ended = vec![Event::ExecEnded { job, outcome }];
    let Some(view) = shop.recorder.record(task, ended)? else {
        return Ok(());
    };
    // The tree of a task that rests is open to the host's tools, and the command may have run what the agent left.
    if view.stage.rests() && view.execs.is_empty() {
        let outbox = shop.folder.task(task.as_str()).outbox();
        let tree = view.worktree.map(|worktree| worktree.tree);
        for folder in tree.into_iter().chain([outbox]) {
            if folder.is_dir() {
                worktrees::disarm(&folder).or_fail(Exit::Internal)?;
            }
        }
    }
    Ok(())
}

/// What was said of the job while it ran is in its event now.
fn forget(folder: &StateFolder, task: &TaskId, job: &str) {
    // A rest of it is removed with the task.
    worktrees::remove_tree(&folder.task(task.as_str()).job(job)).ok();
}

/// Why the task cannot be entered as it stands.
fn permitted(view: &TaskView) -> Result<(), Failure> {
    let task = &view.spec.task;
    let refused = |what: String| Failure::new(Exit::Conflict, what);
    if !view.spec.isolation.confined() {
        let tree = view.workspace.as_deref().unwrap_or(&view.start);
        let mode = view.spec.isolation.as_str();
        return Err(
            refused(format!("task {task} has no room: its isolation is {mode}"))
                .advise(format!("its tree is {}", tree.display())),
        );
    }
    if view.stage != Stage::Running && !view.stage.rests() {
        return Err(busy(task, view.stage));
    }
    let there = view.worktree.is_some() || !view.spec.isolation.has_worktree();
    if view.removed || !there {
        let what = format!("task {task} is {} and has no checkout any more", view.stage);
        return Err(refused(what)
            .advise("start a new task with `airlock run`; `--cleanup never` keeps its checkout"));
    }
    Ok(())
}

fn busy(task: &TaskId, stage: Stage) -> Failure {
    let what = format!("task {task} is {stage}: no command can be run in its room now");
    Failure::new(Exit::Conflict, what)
        .advise("a tree that is being judged must stand still; try again when the verdict is there")
}

/// A name for the job that no other one has: its folder is made by nobody else.
fn claim(folder: &StateFolder, view: &TaskView) -> Result<String, Failure> {
    let jobs = folder.task(view.spec.task.as_str());
    let mut number = view.exec_count;
    loop {
        number += 1;
        let job = format!("exec-{number}");
        match fs::DirBuilder::new().mode(0o755).create(jobs.job(&job)) {
            Ok(()) => return Ok(job),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Failure::caused(Exit::Internal, &error)),
        }
    }
}

fn start(
    shop: &Shop,
    view: TaskView,
    wish: Wish,
    job: &str,
    ends: &Ends,
) -> Result<Entered, Failure> {
    let repository = Repository::discover(&view.start).or_fail(Exit::Usage)?;
    let life = Life {
        shop,
        repository,
        view,
        stop: &StopRequest::default(),
        secrets: Secrets {
            env: wish.env,
            ..Secrets::default()
        },
        said: Said::default(),
        sealed_now: false,
    };
    let mut spec = life.job_spec(job, life.view.attempts);
    spec.argv = wish.argv;
    // The task's own limit of time is the agent's.
    spec.timeout_ms = wish.timeout_ms;
    // A person in front of it may think as long as he likes.
    spec.idle_ms = None;
    // A person may think.
    spec.idle_ms = None;
    let locks = shop.folder.locks();
    for tries in 1.. {
        let open = Room::take_up(&locks, life.view.spec.task.as_str());
        let room = match open.map_err(|error| no_room(&error))? {
            Some(room) => room,
            None => Room::enter(&life.room_spec()?).map_err(|error| no_room(&error))?,
        };
        let network = if room.is_opened_here() {
            life.open_network()?
        } else {
            None
        };
        match room.start_in_front(&spec, ends) {
            Ok(keeper) => {
                return Ok(Entered {
                    room,
                    keeper,
                    network,
                });
            }
            Err(RoomError::Gone { .. }) if tries < TRIES => room.leave(),
            Err(error) => {
                room.leave();
                return Err(no_room(&error));
            }
        }
    }
    Err(Failure::new(Exit::Lost, "the room closes again and again"))
}

/// Commands that stand still, and go on when this is dropped.
#[derive(Debug)]
pub(super) struct Still {
    folder: StateFolder,
    task: TaskId,
    jobs: Vec<String>,
}

impl Drop for Still {
    fn drop(&mut self) {
        for job in &self.jobs {
            // One that has ended needs no leave to go on.
            sandbox::control(&self.folder.locks(), self.task.as_str(), job, Order::Thaw).ok();
        }
    }
}

impl Life<'_> {
    /// Makes every command that people run in the room stand still.
    pub(super) fn hold_still(&mut self) -> Result<Still, Failure> {
        let mut still = Still {
            folder: self.shop.folder.clone(),
            task: self.view.spec.task.clone(),
            jobs: Vec::new(),
        };
        for job in self.view.execs.clone() {
            if self.freeze(&job)? {
                still.jobs.push(job);
            }
        }
        Ok(still)
    }

    /// `false` when the command is over.
    fn freeze(&mut self, job: &str) -> Result<bool, Failure> {
        let until = Instant::now() + PATIENCE;
        let task = self.view.spec.task.clone();
        let locks = self.shop.folder.locks();
        loop {
            match sandbox::control(&locks, task.as_str(), job, Order::Freeze) {
                Ok(()) => return Ok(true),
                // Not yet there, or there no more: what is recorded says which.
                Err(ControlError::NotRunning { .. }) if Instant::now() < until => {
                    if !self.execs_now()?.contains(job) {
                        return Ok(false);
                    }
                    sleep(LOOK);
                }
                Err(error) => {
                    let advice = format!("`airlock stop {task}` ends what runs in its room");
                    return Err(Failure::caused(Exit::Conflict, &error).advise(advice));
                }
            }
        }
    }

    fn execs_now(&mut self) -> Result<std::collections::BTreeSet<String>, Failure> {
        if let Some(now) = self.shop.recorder.view(&self.view.spec.task)? {
            self.view.execs = now.execs;
            self.view.touched |= now.touched;
        }
        Ok(self.view.execs.clone())
    }

    /// Lets nobody begin a command in the room, as long as what is returned is held.
    pub(super) fn close_room(&self) -> Result<Closed, Failure> {
        self.shop.recorder.close_room(&self.view.spec.task)
    }

    /// Whether somebody runs a command in the room.
    pub(super) fn in_use(&mut self) -> Result<bool, Failure> {
        Ok(!self.execs_now()?.is_empty())
    }

    /// Ends every command that people run in the room, and waits until they are gone.
    pub(super) fn clear_room(&mut self, why: &str) -> Result<(), Failure> {
        if !self.in_use()? {
            return Ok(());
        }
        stop_all(self.shop, &self.view, "airlock", why);
        let grace = Duration::from_millis(self.view.spec.bounds.grace_ms);
        let until = Instant::now() + grace + PATIENCE;
        while self.in_use()? {
            if Instant::now() > until {
                let what = "a command in the room does not end";
                return Err(Failure::new(Exit::Conflict, what));
            }
            sleep(LOOK);
        }
        Ok(())
    }

    /// Whether the tree is another one than that which was judged.
    pub(super) fn tree_differs(&mut self) -> Result<bool, Failure> {
        let Some(worktree) = self.view.worktree.clone() else {
            return Ok(false);
        };
        let _still = self.hold_still()?;
        self.edited_since_judged(&worktree)
    }
}

/// Asks every command that people run in a task's room to end; says how many there are.
pub fn stop_all(shop: &Shop, view: &TaskView, by: &str, why: &str) -> usize {
    for job in &view.execs {
        let asked = (by.to_owned(), why.to_owned());
        super::attempt::stop_job(&shop.folder, &view.spec, job, &asked);
    }
    view.execs.len()
}

/// Lets commands go on that an earlier supervisor held when it died. Before anything else is done to a task.
pub fn let_go_on(shop: &Shop) -> Result<Vec<(TaskId, String)>, Failure> {
    let mut left = Vec::new();
    for view in shop.recorder.with_execs()? {
        let task = view.spec.task;
        for job in view.execs {
            // It may have ended, which `see_off` finds.
            sandbox::control(&shop.folder.locks(), task.as_str(), &job, Order::Thaw).ok();
            left.push((task.clone(), job));
        }
    }
    Ok(left)
}

/// Sees a command to its end that an earlier supervisor started.
pub fn see_off(shop: &Shop, task: &TaskId, job: &str) -> Result<(), Failure> {
    let locks = shop.folder.locks();
    let folder = shop.folder.task(task.as_str()).job(job);
    let outcome = match sandbox::attach(&locks, task.as_str(), job, &folder) {
        Attached::Running(keeper) => keeper.wait(),
        Attached::Ended(outcome) => outcome,
        Attached::NeverStarted => {
            Outcome::never("the supervisor died before it was started".into())
        }
        Attached::Lost | Attached::Unreadable { .. } => Outcome::lost(),
    };
    over(shop, task, job, outcome)
}
