//! One command line that is connected: reads its order, streams what is recorded, ends with the
//! result. A connection that breaks changes nothing for the task.

use std::io::Cursor;
use std::os::fd::OwnedFd;

use sandbox::Ends;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Chain};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{Sender, UnboundedReceiver};
use tokio::sync::oneshot;

use super::Shop;
use super::opening::{self, Opening};
use super::registry::{Begin, Call, Ending};
use super::wire::{Order, Reply, Request, Then, Wish};
use crate::event::Record;
use crate::exit::{Exit, Failure};
use crate::task::TaskId;
use crate::{itself, lifecycle};

/// Serves one connection to its end.
pub(super) async fn serve(stream: UnixStream, calls: Sender<Call>, shop: Shop) {
    let mut opening = opening::read(&stream).await;
    let (reading, writing) = stream.into_split();
    let rest = opening
        .as_mut()
        .map(|opening| std::mem::take(&mut opening.rest));
    let rest = Cursor::new(rest.unwrap_or_default());
    let mut caller = Caller {
        lines: BufReader::new(rest.chain(reading)),
        replies: writing,
        calls,
    };
    let result = caller.carry(opening, &shop).await;
    let last = match result {
        Ok(()) => Reply::Done,
        Err(failure) => Reply::Failed { failure },
    };
    caller.reply(&last).await;
}

struct Caller {
    lines: BufReader<Chain<Cursor<Vec<u8>>, OwnedReadHalf>>,
    replies: OwnedWriteHalf,
    calls: Sender<Call>,
}

impl Caller {
    async fn carry(&mut self, opening: Option<Opening>, shop: &Shop) -> Result<(), Failure> {
        let recorder = &shop.recorder;
        let misunderstood = || {
            Failure::new(
                Exit::Internal,
                "the supervisor does not understand the order",
            )
        };
        let Opening {
            line, descriptors, ..
        } = opening.ok_or_else(misunderstood)?;
        let request: Request =
            serde_json::from_slice(&line).map_err(|_nonsense| misunderstood())?;
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
            Order::Exec(wish) => {
                let ends = ends(&wish, descriptors).ok_or_else(misunderstood)?;
                self.exec(shop, wish, ends).await
            }
            order @ (Order::Run { .. }
            | Order::Deliver { .. }
            | Order::Accept { .. }
            | Order::Merge { .. }
            | Order::Resume { .. }
            | Order::Remove { .. }) => {
                let (task, detach) = subject(&order).ok_or_else(misunderstood)?;
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

    /// A command of a person's own. It is seen to its end whether or not somebody still listens here.
    async fn exec(&mut self, shop: &Shop, wish: Wish, ends: Ends) -> Result<(), Failure> {
        let shop = shop.clone();
        let (kept, told) = oneshot::channel();
        let work = tokio::task::spawn_blocking(move || {
            lifecycle::exec(&shop, wish, ends, |task, job| {
                kept.send((task.clone(), job.to_owned())).ok();
            })
        });
        if let Ok((task, job)) = told.await {
            self.reply(&Reply::Taken { task }).await;
            self.reply(&Reply::Kept { job }).await;
        }
        work.await.unwrap_or_else(|_panic| {
            let what = "the engine broke down at this command";
            Err(Failure::new(Exit::Internal, what))
        })
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

/// The streams of a command, in the order in which they are sent.
fn ends(wish: &Wish, descriptors: Vec<OwnedFd>) -> Option<Ends> {
    let mut descriptors = descriptors.into_iter();
    Some(Ends {
        output: descriptors.next()?,
        error: descriptors.next()?,
        line: descriptors.next()?,
        input: descriptors.next(),
        terminal: wish.terminal,
    })
}

fn subject(order: &Order) -> Option<(TaskId, bool)> {
    Some(match order {
        Order::Run { spec, detach, .. } => (spec.task.clone(), *detach),
        Order::Stop { task, .. }
        | Order::Deliver { task, .. }
        | Order::Accept { task, .. }
        | Order::Merge { task, .. }
        | Order::Resume { task, .. }
        | Order::Remove { task, .. }
        | Order::Follow { task } => (task.clone(), false),
        // Carried out beside the task's own way.
        Order::Exec(_) => return None,
    })
}

fn other_version(version: &str) -> Failure {
    let ours = itself::VERSION;
    Failure::new(
        Exit::Conflict,
        format!("a supervisor of version {ours} is at work, and this is airlock {version}"),
    )
    .advise("wait until its tasks have ended (`airlock ls`), then try again")
}
