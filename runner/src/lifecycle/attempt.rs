//! One run of the agent, from its start to the end of its whole process tree.

use sandbox::{Keeper, Order, Room};

use super::Life;
use super::room::no_room;
use crate::event::Event;
use crate::exit::Failure;
use crate::home::StateFolder;
use crate::stage::Stage;
use crate::task::Spec;

/// The job of an attempt: the name under `.bg/`.
fn job_name(attempt: u32) -> String {
    if attempt == 1 {
        "agent".to_owned()
    } else {
        format!("agent-{attempt}")
    }
}

impl Life<'_> {
    /// Runs the agent once; how it ended is recorded, not returned.
    pub(super) fn attempt(&mut self, room: Option<&Room>) -> Result<(), Failure> {
        let attempt = self.view.attempts + 1;
        let job = job_name(attempt);
        let spec = self.job_spec(&job, attempt);
        self.record(vec![Event::Started {
            attempt,
            job: job.clone(),
        }])?;
        let started = match room {
            Some(room) => room.start(&spec),
            None => sandbox::start_unconfined(
                &self.shop.folder.locks(),
                self.view.spec.task.as_str(),
                &spec,
            ),
        };
        let keeper = started.map_err(|error| no_room(&error))?;
        self.see_out(keeper, attempt, &job)
    }

    /// Waits for a job that runs, whoever started it.
    pub(super) fn see_out(
        &mut self,
        keeper: Keeper,
        attempt: u32,
        job: &str,
    ) -> Result<(), Failure> {
        if let Some(asked) = self.stop.asked() {
            // The wish came before there was anything to stop.
            stop_job(&self.shop.folder, &self.view.spec, job, asked);
        }
        let outcome = keeper.wait();
        self.ended(attempt, outcome)
    }

    /// Whether the last attempt left something to seal, or to take in.
    pub(super) fn delivers(&self) -> bool {
        matches!(self.view.stage, Stage::Waiting | Stage::Sealing)
    }
}

/// Ends a job; it may have ended by itself meanwhile, which is just as well.
pub(super) fn stop_job(folder: &StateFolder, spec: &Spec, job: &str, asked: &(String, String)) {
    let (by, reason) = asked.clone();
    let order = Order::Stop {
        by,
        reason,
        grace_ms: spec.bounds.grace_ms,
    };
    sandbox::control(&folder.locks(), spec.task.as_str(), job, &order).ok();
}
