//! The one owner of the event store: a thread that records, folds, answers, projects to `task.json` and
//! tells followers, in that order, so that nobody ever hears of what is not recorded. The projection
//! can be made again from the events; it is flushed to disk once, when work on a task ends.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::durable;
use crate::event::{Event, Record};
use crate::exit::{Exit, Failure, OrFail as _};
use crate::home::StateFolder;
use crate::store::Store;
use crate::task::TaskId;
use crate::view::TaskView;

type Answer<T> = mpsc::SyncSender<Result<T, Failure>>;

enum Message {
    Record {
        task: TaskId,
        events: Vec<Event>,
        answer: Answer<Option<TaskView>>,
    },
    Settle {
        task: TaskId,
        answer: Answer<()>,
    },
    Close {
        task: TaskId,
        closed: bool,
        answer: Answer<()>,
    },
    View {
        task: TaskId,
        answer: Answer<Option<TaskView>>,
    },
    Like {
        prefix: String,
        answer: Answer<Vec<TaskId>>,
    },
    Execs {
        answer: Answer<Vec<TaskView>>,
    },
    Open {
        answer: Answer<Vec<TaskView>>,
    },
    Follow {
        task: TaskId,
        follower: UnboundedSender<Record>,
    },
}

/// A handle to the thread; clones talk to the same one.
#[derive(Debug, Clone)]
pub struct Recorder {
    messages: mpsc::Sender<Message>,
}

/// Nobody begins a command in the room of this task until it is dropped.
#[derive(Debug)]
pub struct Closed {
    recorder: Recorder,
    task: TaskId,
}

impl Drop for Closed {
    fn drop(&mut self) {
        // A recorder that is gone lets nobody in either.
        self.recorder.set_closed(&self.task, false).ok();
    }
}

impl Recorder {
    /// Opens the store and starts the thread.
    pub fn start(folder: StateFolder) -> Result<Self, Failure> {
        let store = Store::open(&folder.database())?;
        let mut ledger = Ledger {
            store,
            folder,
            views: HashMap::new(),
            followers: HashMap::new(),
            closed: HashSet::new(),
        };
        for record in ledger.store.all(0)? {
            ledger.take_in(&record)?;
        }
        let (messages, inbox) = mpsc::channel();
        thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || {
                for message in inbox {
                    ledger.serve(message);
                }
            })
            .or_fail(Exit::Internal)?;
        Ok(Self { messages })
    }

    /// Records facts; those that must last are on disk when this returns. Answers how the task stands with them.
    pub fn record(&self, task: &TaskId, events: Vec<Event>) -> Result<Option<TaskView>, Failure> {
        self.ask(|answer| Message::Record {
            task: task.clone(),
            events,
            answer,
        })
    }

    /// Work on a task has ended: its events and its `task.json` are on disk when this returns.
    pub fn settle(&self, task: &TaskId) -> Result<(), Failure> {
        self.ask(|answer| Message::Settle {
            task: task.clone(),
            answer,
        })
    }

    /// Lets nobody begin a command in the room of a task: what is looked at from here on stays as it is.
    pub fn close_room(&self, task: &TaskId) -> Result<Closed, Failure> {
        self.set_closed(task, true)?;
        Ok(Closed {
            recorder: self.clone(),
            task: task.clone(),
        })
    }

    fn set_closed(&self, task: &TaskId, closed: bool) -> Result<(), Failure> {
        self.ask(|answer| Message::Close {
            task: task.clone(),
            closed,
            answer,
        })
    }

    /// A task as it stands.
    pub fn view(&self, task: &TaskId) -> Result<Option<TaskView>, Failure> {
        self.ask(|answer| Message::View {
            task: task.clone(),
            answer,
        })
    }

    /// The tasks whose id begins with `prefix`.
    pub fn like(&self, prefix: &str) -> Result<Vec<TaskId>, Failure> {
        let prefix = prefix.to_owned();
        self.ask(|answer| Message::Like { prefix, answer })
    }

    /// Every task in whose room somebody runs a command.
    pub fn with_execs(&self) -> Result<Vec<TaskView>, Failure> {
        self.ask(|answer| Message::Execs { answer })
    }

    /// Every task with work left that nobody needs to ask for.
    pub fn open_tasks(&self) -> Result<Vec<TaskView>, Failure> {
        self.ask(|answer| Message::Open { answer })
    }

    /// Everything that is recorded of a task from now on.
    pub fn follow(&self, task: &TaskId) -> UnboundedReceiver<Record> {
        let (follower, records) = unbounded_channel();
        // A recorder that is gone closes the channel at once, which the reader sees.
        self.messages
            .send(Message::Follow {
                task: task.clone(),
                follower,
            })
            .ok();
        records
    }

    fn ask<T>(&self, message: impl FnOnce(Answer<T>) -> Message) -> Result<T, Failure> {
        let gone = || Failure::new(Exit::Internal, "the event store is closed");
        let (answer, answered) = mpsc::sync_channel(1);
        self.messages
            .send(message(answer))
            .map_err(|_closed| gone())?;
        answered.recv().map_err(|_closed| gone())?
    }
}

/// A way to write a file, with or without waiting for the disk.
type Write = fn(&Path, &[u8], u32) -> Result<(), durable::WriteError>;

struct Ledger {
    store: Store,
    folder: StateFolder,
    views: HashMap<TaskId, TaskView>,
    followers: HashMap<TaskId, Vec<UnboundedSender<Record>>>,
    /// Tasks whose checkout is about to go.
    closed: HashSet<TaskId>,
}

impl Ledger {
    fn serve(&mut self, message: Message) {
        // Whoever asked may be gone; then nobody needs the answer.
        match message {
            Message::Record {
                task,
                events,
                answer,
            } => {
                let recorded = self.record(&task, events);
                let view = self.views.get(&task).cloned();
                match recorded {
                    Ok(records) => {
                        answer.send(Ok(view)).ok();
                        self.tell(&task, &records);
                    }
                    Err(failure) => {
                        answer.send(Err(failure)).ok();
                    }
                }
            }
            Message::Settle { task, answer } => {
                let settled = self
                    .store
                    .flush()
                    .map_err(Failure::from)
                    .and_then(|()| self.project(&task, durable::write));
                answer.send(settled).ok();
            }
            Message::Close {
                task,
                closed,
                answer,
            } => {
                if closed {
                    self.closed.insert(task);
                } else {
                    self.closed.remove(&task);
                }
                answer.send(Ok(())).ok();
            }
            Message::View { task, answer } => {
                answer.send(Ok(self.views.get(&task).cloned())).ok();
            }
            Message::Like { prefix, answer } => {
                let like = self
                    .views
                    .keys()
                    .filter(|id| id.as_str().starts_with(&prefix));
                answer.send(Ok(like.cloned().collect())).ok();
            }
            Message::Execs { answer } => {
                let busy = self.views.values().filter(|view| !view.execs.is_empty());
                answer.send(Ok(busy.cloned().collect())).ok();
            }
            Message::Open { answer } => {
                let open = self
                    .views
                    .values()
                    .filter(|view| view.unfinished())
                    .cloned()
                    .collect();
                answer.send(Ok(open)).ok();
            }
            Message::Follow { task, follower } => {
                self.followers.entry(task).or_default().push(follower);
            }
        }
    }

    fn record(&mut self, task: &TaskId, events: Vec<Event>) -> Result<Vec<Record>, Failure> {
        self.refuse_illegal(task, &events)?;
        let records = self.store.append(now_ms(), task, events)?;
        for record in &records {
            self.take_in(record)?;
        }
        Ok(records)
    }

    fn tell(&mut self, task: &TaskId, records: &[Record]) {
        // What could not be projected is told when the work on the task settles, and is in the events all the same.
        if !records.iter().all(|record| record.event.is_aside()) {
            self.project(task, durable::replace).ok();
        }
        if let Some(followers) = self.followers.get_mut(task) {
            for record in records {
                followers.retain(|follower| follower.send(record.clone()).is_ok());
            }
        }
    }

    /// Nothing is written that could not be folded again.
    fn refuse_illegal(&self, task: &TaskId, events: &[Event]) -> Result<(), Failure> {
        let mut stage = self.views.get(task).map(|view| view.stage);
        for event in events {
            if matches!(event, Event::Exec { .. }) && self.closed.contains(task) {
                let what = format!("the checkout of task {task} is about to be removed");
                return Err(Failure::new(Exit::Conflict, what));
            }
            stage = Some(crate::stage::Stage::apply(stage, event).or_fail(Exit::Internal)?);
        }
        Ok(())
    }

    fn take_in(&mut self, record: &Record) -> Result<(), Failure> {
        let mut view = self.views.remove(&record.task);
        let advanced = TaskView::advance(&mut view, record).or_fail(Exit::Internal);
        if let Some(view) = view {
            self.views.insert(record.task.clone(), view);
        }
        advanced
    }

    fn project(&self, task: &TaskId, write: Write) -> Result<(), Failure> {
        let Some(view) = self.views.get(task) else {
            return Ok(());
        };
        let folder = self.folder.task(task.as_str());
        if view.removed || !folder.path().is_dir() {
            return Ok(());
        }
        let mut text = view.object().to_string();
        text.push('\n');
        write(&folder.summary(), text.as_bytes(), 0o600).or_fail(Exit::Internal)
    }
}

/// Wall clock in milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
}
