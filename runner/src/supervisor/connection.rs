//! One command line that is connected: reads its order, streams what is recorded, ends with the
//! result. A connection that breaks changes nothing for the task.

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{Sender, UnboundedReceiver};
use tokio::sync::oneshot;

use super::Recorder;
use super::registry::{Begin, Call, Ending};
use super::wire::{Order, Reply, Request, Then};
use crate::event::Record;
use crate::exit::{Exit, Failure};
use crate::itself;
use crate::task::TaskId;

/// Serves one connection to its end.
pub(super) async fn serve(stream: UnixStream, calls: Sender<Call>, recorder: Recorder) {
    let (reading, writing) = stream.into_split();
    let mut caller = Caller {
        lines: BufReader::new(reading),
        replies: writing,
        calls,
    };
    let result = caller.carry(&recorder).await;
    let last = match result {
        Ok(()) => Reply::Done,
        Err(failure) => Reply::Failed { failure },
    };
    caller.reply(&last).await;
}

struct Caller {
    lines: BufReader<OwnedReadHalf>,
    replies: OwnedWriteHalf,
    calls: Sender<Call>,
}

impl Caller {
    async fn carry(&mut self, recorder: &Recorder) -> Result<(), Failure> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).await;
        let request: Request = read
            .ok()
            .and_then(|_bytes| serde_json::from_str(&line).ok())
            .ok_or_else(|| {
                Failure::new(
                    Exit::Internal,
                    "the supervisor does not understand the order",
                )
            })?;
        if request.version != itself::VERSION {
            return Err(other_version(&request.version));
        }
        match request.order {
            Order::Stop { task, by, reason } => self.stop(task, by, reason).await,
            Order::Follow { task } => {
                let records = recorder.follow(&task);
                let ending = self
                    .ask(|answer| Call::Watch {
                        task: task.clone(),
                        answer,
                    })
                    .await?;
                self.reply(&Reply::Taken { task: task.clone() }).await;
                match ending {
                    Some(ending) => self.stream(&task, records, ending).await,
                    None => Ok(()),
                }
            }
            order @ (Order::Run { .. }
            | Order::Deliver { .. }
            | Order::Accept { .. }
            | Order::Merge { .. }
            | Order::Resume { .. }
            | Order::Remove { .. }) => {
                let (task, detach) = subject(&order);
                let records = recorder.follow(&task);
                let start = request.start;
                let begin = |answer| {
                    let task = task.clone();
                    Call::Begin(Begin {
                        task,
                        order,
                        start,
                        answer,
                    })
                };
                let ending = self.ask(begin).await??;
                self.reply(&Reply::Taken { task: task.clone() }).await;
                if detach {
                    return self.until_recorded(records).await;
                }
                self.stream(&task, records, ending).await
            }
        }
    }

    async fn stop(&mut self, task: TaskId, by: String, reason: String) -> Result<(), Failure> {
        let worked = self
            .ask(|answer| Call::Stop {
                task: task.clone(),
                by,
                reason,
                answer,
            })
            .await?;
        if worked {
            Ok(())
        } else {
            Err(Failure::new(
                Exit::Conflict,
                format!("task {task} is not running"),
            ))
        }
    }

    /// A detached start is over when the task cannot be forgotten any more.
    async fn until_recorded(
        &mut self,
        mut records: UnboundedReceiver<Record>,
    ) -> Result<(), Failure> {
        if let Some(record) = records.recv().await {
            self.reply(&Reply::Event {
                record: Box::new(record),
            })
            .await;
        }
        Ok(())
    }

    async fn stream(
        &mut self,
        task: &TaskId,
        mut records: UnboundedReceiver<Record>,
        mut ending: Ending,
    ) -> Result<(), Failure> {
        let mut line = String::new();
        let mut listening = true;
        loop {
            tokio::select! {
                biased;
                Some(record) = records.recv() => {
                    self.reply(&Reply::Event { record: Box::new(record) }).await;
                }
                ended = &mut ending => {
                    while let Ok(record) = records.try_recv() {
                        self.reply(&Reply::Event { record: Box::new(record) }).await;
                    }
                    return ended.unwrap_or_else(|_lost| {
                        Err(Failure::new(Exit::Internal, "the work on the task ended without a result"))
                    });
                }
                read = self.lines.read_line(&mut line), if listening => {
                    listening = read.is_ok_and(|bytes| bytes > 0);
                    if let Ok(Then::Stop { by, reason }) = serde_json::from_str(&line) {
                        let stop = |answer| Call::Stop { task: task.clone(), by, reason, answer };
                        self.ask(stop).await?;
                    }
                    line.clear();
                }
            }
        }
    }

    async fn ask<T>(&self, call: impl FnOnce(oneshot::Sender<T>) -> Call) -> Result<T, Failure> {
        let gone = || Failure::new(Exit::Internal, "the supervisor is going away");
        let (answer, answered) = oneshot::channel();
        self.calls
            .send(call(answer))
            .await
            .map_err(|_closed| gone())?;
        answered.await.map_err(|_closed| gone())
    }

    /// A caller that has gone away is no reason to stop.
    async fn reply(&mut self, reply: &Reply) {
        let mut text = serde_json::to_vec(reply).unwrap_or_default();
        text.push(b'\n');
        self.replies.write_all(&text).await.ok();
    }
}

fn subject(order: &Order) -> (TaskId, bool) {
    match order {
        Order::Run { spec, detach, .. } => (spec.task.clone(), *detach),
        Order::Stop { task, .. }
        | Order::Deliver { task, .. }
        | Order::Accept { task, .. }
        | Order::Merge { task, .. }
        | Order::Resume { task, .. }
        | Order::Remove { task, .. }
        | Order::Follow { task } => (task.clone(), false),
    }
}

fn other_version(version: &str) -> Failure {
    let ours = itself::VERSION;
    Failure::new(
        Exit::Conflict,
        format!("a supervisor of version {ours} is at work, and this is airlock {version}"),
    )
    .advise("wait until its tasks have ended (`airlock ls`), then try again")
}
