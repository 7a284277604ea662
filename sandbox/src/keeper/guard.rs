//! Limits as the keeper acts on them: it asks the watch, ends the job, and notes which limit it was.
//!
//! Must never give a job that passed a limit time to take more.

use std::time::Instant;

use super::output::Log;
use super::tend::{Phase, Tending};
use crate::limit::Limit;
use crate::outcome::Exit;
use crate::watch::Verdict;

impl Tending<'_> {
    /// Asks the watch, and ends the job when it says so.
    pub(super) fn guard(&mut self) {
        if !matches!(self.phase, Phase::Running | Phase::Stopping { .. }) {
            return;
        }
        let now = Instant::now();
        match self.watch.turn(now, self.frozen.is_some()) {
            Some(Verdict::Over(limit, value)) => {
                self.note(limit, value);
                let limit = limit.name().to_owned();
                // Every moment of grace would be one of taking more.
                self.stop(Exit::OverLimit { limit }, 0);
                self.kill(now);
            }
            Some(Verdict::Idle) if matches!(self.phase, Phase::Running) => {
                self.note(Limit::Idle, self.job.idle_ms.unwrap_or(0));
                self.stop(Exit::IdleTimedOut, self.job.grace_ms);
            }
            Some(Verdict::Idle) | None => {}
        }
    }

    /// Notes in the task's record that a limit was reached.
    pub(super) fn note(&mut self, limit: Limit, value: u64) {
        self.denials.note(limit.denial(&self.job.job, value));
    }

    /// What nobody saw while it ran: the kernel may have ended it, or it may have left too much behind.
    pub(super) fn look_back(&mut self) {
        let ended = self.started.is_some() && self.cause.is_none();
        if let Some(Verdict::Over(limit, value)) = self.watch.last_look().filter(|_| ended) {
            self.note(limit, value);
            let limit = limit.name().to_owned();
            self.cause = Some(Exit::OverLimit { limit });
        }
        if self.meta.output.dropped > 0 || self.log.as_ref().is_some_and(Log::has_dropped) {
            self.note(Limit::Output, self.job.output_cap);
        }
    }

    /// The end of a job by a limit that the kernel kept.
    pub(super) fn over(&mut self, limit: Limit, value: u64) -> Exit {
        self.note(limit, value);
        Exit::OverLimit {
            limit: limit.name().to_owned(),
        }
    }
}
