//! Who works on which task: the supervisor's main loop. One owner of the table, messages to it; it
//! only starts, stops and forgets work, and decides when the supervisor may go.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::wire::Order;
use super::{Shop, connection};
use crate::exit::{Exit, Failure};
use crate::lifecycle;
use crate::stage::Stage;
use crate::task::TaskId;

/// With nothing to do, the supervisor stays this long for the next command.
const LINGER: Duration = Duration::from_millis(1500);

/// A wish to stop, set once.
#[derive(Debug, Clone, Default)]
pub struct StopRequest(Arc<OnceLock<(String, String)>>);

impl StopRequest {
    /// Asks; the first one who asks is the one who is named.
    pub fn ask(&self, by: String, reason: String) {
        self.0.set((by, reason)).ok();
    }

    /// Who asked, and why.
    pub fn asked(&self) -> Option<&(String, String)> {
        self.0.get()
    }
}

/// A message to the main loop.
#[derive(Debug)]
pub(super) enum Call {
    /// Begin work on a task, unless somebody works on it.
    Begin(Begin),
    /// Stop work on a task.
    Stop {
        /// The task.
        task: TaskId,
        /// Who asks.
        by: String,
        /// Why.
        reason: String,
        /// Whether somebody worked on it.
        answer: oneshot::Sender<bool>,
    },
    /// See the end of work that somebody else began.
    Watch {
        /// The task.
        task: TaskId,
        /// Gets the way to see it end; none when nobody works on it.
        answer: oneshot::Sender<Option<Ending>>,
    },
}

/// An order on its way to the work that it asks for.
#[derive(Debug)]
pub(super) struct Begin {
    /// The task.
    pub(super) task: TaskId,
    /// What to do.
    pub(super) order: Order,
    /// Where the user stands.
    pub(super) start: PathBuf,
    /// Gets the way to see it end, or the refusal.
    pub(super) answer: oneshot::Sender<Result<Ending, Failure>>,
}

/// Resolves when the work ends.
pub(super) type Ending = oneshot::Receiver<Result<(), Failure>>;

struct Work {
    stop: StopRequest,
    /// Left behind by an earlier supervisor and not running: over in a moment, so that whatever is
    /// ordered meanwhile waits for it.
    settling: bool,
    waiting: Vec<Begin>,
    watchers: Vec<oneshot::Sender<Result<(), Failure>>>,
}

struct Registry {
    shop: Shop,
    works: HashMap<TaskId, Work>,
    /// Work on tasks, and commands of an earlier supervisor that are seen to their end.
    running: JoinSet<(Option<TaskId>, Result<(), Failure>)>,
}

/// Serves until nothing has been left to do for a while.
pub(super) async fn serve(shop: Shop, listener: UnixListener) -> Result<(), Failure> {
    let (calls, mut inbox) = mpsc::channel(64);
    let mut connections = JoinSet::new();
    let mut registry = Registry {
        shop,
        works: HashMap::new(),
        running: JoinSet::new(),
    };
    registry.take_up()?;
    loop {
        let idle = connections.is_empty() && registry.running.is_empty();
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _address)) = accepted {
                    let shop = registry.shop.clone();
                    connections.spawn(connection::serve(stream, calls.clone(), shop));
                }
            }
            Some(call) = inbox.recv() => registry.answer(call),
            Some(ended) = registry.running.join_next(), if !registry.running.is_empty() => {
                if let Ok((Some(task), result)) = ended {
                    registry.forget(&task, &result);
                }
            }
            Some(_ended) = connections.join_next(), if !connections.is_empty() => {}
            () = sleep(LINGER), if idle => return Ok(()),
        }
    }
}

impl Registry {
    /// Goes on with what an earlier supervisor left behind.
    fn take_up(&mut self) -> Result<(), Failure> {
        for (task, job) in lifecycle::let_go_on(&self.shop)? {
            let shop = self.shop.clone();
            self.running.spawn_blocking(move || {
                let result = lifecycle::see_off(&shop, &task, &job);
                (None, result)
            });
        }
        for view in self.shop.recorder.open_tasks()? {
            let settling = !lifecycle::still_runs(&self.shop, &view);
            drop(self.begin(view.spec.task.clone(), lifecycle::Job::TakeUp, settling));
        }
        Ok(())
    }

    fn answer(&mut self, call: Call) {
        // Whoever asked may be gone; the work goes on all the same.
        match call {
            Call::Begin(begin) => self.order(begin),
            Call::Stop {
                task,
                by,
                reason,
                answer,
            } => {
                let view = self.shop.recorder.view(&task).ok().flatten();
                let execs = view.map_or(0, |view| {
                    lifecycle::stop_all(&self.shop, &view, &by, &reason)
                });
                let work = self.works.get(&task);
                if let Some(work) = work {
                    work.stop.ask(by, reason);
                    lifecycle::interrupt(&self.shop, &task, &work.stop);
                }
                answer.send(work.is_some() || execs > 0).ok();
            }
            Call::Watch { task, answer } => {
                answer.send(self.watch(&task)).ok();
            }
        }
    }

    /// Begins what was ordered, or says why not now.
    fn order(&mut self, begin: Begin) {
        if let Order::Run { secrets, .. } | Order::Resume { secrets, .. } = &begin.order {
            // A proxy that is at work already takes them from there.
            self.shop.keys.give(&begin.task, secrets.keys.clone());
        }
        if let Some(work) = self.works.get_mut(&begin.task) {
            if work.settling {
                work.waiting.push(begin);
                return;
            }
            let resumed = matches!(begin.order, Order::Resume { .. });
            // A task that runs was taken up when this supervisor started: that is all that is asked for.
            let ending = if resumed {
                self.watch(&begin.task)
            } else {
                None
            };
            begin
                .answer
                .send(ending.ok_or_else(|| busy(&begin.task)))
                .ok();
            return;
        }
        let Begin {
            task,
            order,
            start,
            answer,
        } = begin;
        let ending = self.begin(task, lifecycle::Job::Order { order, start }, false);
        answer.send(Ok(ending)).ok();
    }

    fn watch(&mut self, task: &TaskId) -> Option<Ending> {
        let work = self.works.get_mut(task)?;
        let (watcher, ending) = oneshot::channel();
        work.watchers.push(watcher);
        Some(ending)
    }

    fn begin(&mut self, task: TaskId, job: lifecycle::Job, settling: bool) -> Ending {
        let (watcher, ending) = oneshot::channel();
        let stop = StopRequest::default();
        self.works.insert(
            task.clone(),
            Work {
                stop: stop.clone(),
                settling,
                waiting: Vec::new(),
                watchers: vec![watcher],
            },
        );
        let shop = self.shop.clone();
        self.running.spawn_blocking(move || {
            let result = lifecycle::carry(&shop, &task, job, &stop);
            (Some(task), result)
        });
        ending
    }

    fn forget(&mut self, task: &TaskId, result: &Result<(), Failure>) {
        let Some(work) = self.works.remove(task) else {
            return;
        };
        self.shop.keys.forget(task);
        for watcher in work.watchers {
            watcher.send(result.clone()).ok();
        }
        let stage = self
            .shop
            .recorder
            .view(task)
            .ok()
            .flatten()
            .map(|view| view.stage);
        for begin in work.waiting {
            let resumed = matches!(begin.order, Order::Resume { .. });
            if resumed && stage.is_some_and(Stage::is_verdict) {
                // It went on by itself to where a resumption would have led.
                let (watcher, ending) = oneshot::channel();
                watcher.send(result.clone()).ok();
                begin.answer.send(Ok(ending)).ok();
            } else {
                self.order(begin);
            }
        }
    }
}

fn busy(task: &TaskId) -> Failure {
    Failure::new(Exit::Conflict, format!("task {task} is being worked on")).advise(format!(
        "`airlock logs -f {task}` shows what it does, `airlock stop {task}` ends it"
    ))
}
