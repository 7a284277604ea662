//! What is recorded, and what the agent is told, when its process tree is gone. Counts the room's refusals and names
//! the limit that ended an attempt; judges nothing.

use sandbox::{Denials, Exit as JobExit, Outcome};

use super::Life;
use super::room::feedback_name;
use crate::answer::Answer;
use crate::config::quantity;
use crate::durable;
use crate::event::Event;
use crate::exit::{Exit, Failure, OrFail as _};

impl Life<'_> {
    /// Records the end of an attempt, and with it that its tree is read, when it is. When a limit was the cause, the next attempt is told so.
    pub(super) fn ended(&mut self, attempt: u32, outcome: Outcome) -> Result<(), Failure> {
        // A record that cannot be read is looked into by `why`; the end is recorded all the same.
        let refused = Denials::read(&self.folder().denials()).map_or(0, |denials| denials.total());
        let cause = self.limit_that_ended(&outcome.exit);
        let delivers = outcome.exit == JobExit::Code(0) && self.view.worktree.is_some();
        let ended = Event::Ended {
            attempt,
            outcome,
            refused,
        };
        let answered = self.answered(attempt);
        let sealing = delivers.then_some(Event::Sealing);
        self.record([ended].into_iter().chain(answered).chain(sealing).collect())?;
        let Some(cause) = cause else { return Ok(()) };
        let text = format!(
            "Your last attempt was ended before you were done: {cause}.\n\
             What you had written is still in the tree. Go on from there, and stay within the limit.\n"
        );
        let file = self.folder().feedback().join(feedback_name(attempt));
        durable::replace(&file, text.as_bytes(), 0o644).or_fail(Exit::Internal)
    }

    /// What the agent says of its run. A log that cannot be read says nothing; the work is worth no less for it.
    fn answered(&self, attempt: u32) -> Option<Event> {
        let reading = self.view.spec.reading.as_ref()?;
        let log = self.folder().log(self.view.job.as_deref()?);
        let answer = Answer::of_log(&log, reading).unwrap_or_default();
        let answer = Box::new(answer);
        (!answer.is_empty()).then_some(Event::Answered { attempt, answer })
    }

    fn limit_that_ended(&self, exit: &JobExit) -> Option<String> {
        let bounds = &self.view.spec.bounds;
        let time = |limit: Option<u64>| limit.map(quantity::show_ms).unwrap_or_default();
        match exit {
            JobExit::TimedOut => Some(format!("it took longer than {}", time(bounds.timeout_ms))),
            JobExit::IdleTimedOut => Some(format!(
                "for {} it printed nothing, changed no file and used no processor time",
                time(bounds.idle_ms)
            )),
            JobExit::OverLimit { limit } => {
                let limit = bounds.describe(limit);
                Some(format!("it passed its limit of {limit}"))
            }
            JobExit::Code(_)
            | JobExit::Signal(_)
            | JobExit::Stopped { .. }
            | JobExit::NotStarted { .. }
            | JobExit::Lost => None,
        }
    }
}
