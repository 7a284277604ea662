//! The person in front of a foreground job: what is told on the line, and what is heard on it.
//!
//! Must never wait for the person.

use super::serve::{self, Order};
use super::tend::Tending;
use crate::foreground::Said;
use crate::outcome::Exit;

impl Tending<'_> {
    /// Orders of the person in front; one who goes away takes the job with him.
    pub(super) fn hear_line(&mut self) {
        while let Some(line) = &self.line {
            match serve::receive_now(line) {
                Ok(Some(Order::Stop {
                    by,
                    reason,
                    grace_ms,
                })) => {
                    // The task's grace is the most that anybody gets.
                    let grace_ms = grace_ms.min(self.job.grace_ms);
                    self.stop(Exit::Stopped { by, reason }, grace_ms);
                }
                Ok(Some(Order::Freeze | Order::Thaw)) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Ok(None) | Err(_) => {
                    self.line = None;
                    let cause = Exit::Stopped {
                        by: "exec".into(),
                        reason: "the command line in front of it went away".into(),
                    };
                    self.stop(cause, self.job.grace_ms);
                }
            }
        }
    }

    /// Somebody who went away is noticed at the next turn.
    pub(super) fn tell_line(&self, said: &Said) {
        if let Some(line) = &self.line {
            drop(serve::send(line, said));
        }
    }
}
