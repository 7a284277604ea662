//! The end of a job: why it is over, its log put together, its final state written.
//!
//! Must never call the end of a job its own when we caused it, nor ours when it came by itself.

use std::time::Instant;

use nix::sys::signal::Signal;

use super::tend::Tending;
use super::{KeeperAnswer, Reply};
use crate::error::Fault;
use crate::foreground::Said;
use crate::limit::Limit;
use crate::meta::{JobState, now_ms};
use crate::outcome::Exit;

/// What a shell adds to the number of a signal.
const SHELLS_SIGNAL: i32 = 128;

impl Tending<'_> {
    /// Writes the end down. An error means that nothing was run.
    pub(super) fn finish(mut self) -> Result<(), Fault> {
        let fault = (!self.up && self.cause.is_none()).then(|| self.charge.fault());
        if fault.is_none() {
            // Also for a job that was stopped while its walls were built.
            self.teller.tell(&KeeperAnswer::Kept);
        }
        self.look_back();
        let exit = self.exit(fault.as_ref());
        if let Some(log) = self.log.take() {
            (self.meta.output.bytes, self.meta.output.dropped) = log.finish();
        }
        self.meta.ended_ms = Some(now_ms());
        let end = self.ended.unwrap_or_else(Instant::now);
        self.meta.elapsed_ms = self.started.map(|start| {
            u64::try_from(end.saturating_duration_since(start).as_millis()).unwrap_or(u64::MAX)
        });
        self.meta.exit = Some(exit.clone());
        self.meta.state = JobState::of(&exit);
        // First of all: nobody of the job is left, and somebody waits to hear it.
        if let (None, Some(outcome)) = (&fault, self.meta.outcome()) {
            self.tell_line(&Said::Ended {
                outcome,
                errno: self.errno,
            });
        }
        self.record(JobState::of(&exit));
        self.server.reply_all_waiting(&Reply::Over);
        self.watch.end();
        fault.map_or(Ok(()), Err)
    }

    fn exit(&mut self, fault: Option<&Fault>) -> Exit {
        if let Some(fault) = fault {
            let reason = fault.clone().into_error(&self.meta.task).to_string();
            return Exit::NotStarted { reason };
        }
        if let Some(reason) = self.not_started.take() {
            return Exit::NotStarted { reason };
        }
        if let Some(cause) = self.cause.take() {
            let killed = self.meta.code.is_none() && self.meta.signal.is_none();
            if killed && self.started.is_some() {
                self.meta.signal = Some(Signal::SIGKILL as i32);
            }
            return cause;
        }
        match (self.meta.code, self.meta.signal) {
            // A shell tells so that the signal ended its last command.
            (Some(code), _) if code == SHELLS_SIGNAL + Signal::SIGXFSZ as i32 => {
                self.over(Limit::FileSize, self.job.limits.fsize)
            }
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) if signal == Signal::SIGXFSZ as i32 => {
                self.over(Limit::FileSize, self.job.limits.fsize)
            }
            (None, Some(signal)) if signal == Signal::SIGXCPU as i32 => self.over(Limit::Cpu, 0),
            (None, Some(signal)) => Exit::Signal(signal),
            // Neither was told: bubblewrap or the warden was killed under it.
            (None, None) => Exit::Lost,
        }
    }
}
