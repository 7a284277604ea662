//! How many connections all proxies of this process may hold together, so that rooms cannot take the descriptors that
//! the engine needs for its own files, processes and clients.

use std::sync::{Arc, LazyLock};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// More descriptors than this are of no use here, and every program that is started inherits the limit.
const MOST_DESCRIPTORS: u64 = 1 << 16;
/// Descriptors of the engine itself, where the limit leaves so many.
const RESERVE: u64 = 2048;
/// The most that one connection holds: both ends, and what looks up a name.
const OF_ONE_CONNECTION: u64 = 3;
/// Connections of one task at one time; further ones wait.
const OF_ONE_TASK: usize = 128;
/// So many tasks have room at least.
const TASKS: usize = 4;

/// Places for connections.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    places: Arc<Semaphore>,
    /// The most that one task may hold.
    pub(super) of_one_task: usize,
}

impl Budget {
    /// The one of this process, by its limit when the first proxy starts.
    pub(super) fn of_this_process() -> Self {
        static BUDGET: LazyLock<Budget> = LazyLock::new(|| {
            // A system that does not tell has the least that is usual.
            let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft);
            Budget::within(limit)
        });
        BUDGET.clone()
    }

    /// With so many descriptors: at least half of them, or the reserve, stay with the engine.
    fn within(descriptors: u64) -> Self {
        let descriptors = descriptors.min(MOST_DESCRIPTORS);
        let left = descriptors - RESERVE.min(descriptors / 2);
        let places = usize::try_from(left / OF_ONE_CONNECTION)
            .unwrap_or(0)
            .max(1);
        Self {
            places: Arc::new(Semaphore::new(places)),
            of_one_task: OF_ONE_TASK.min((places / TASKS).max(1)),
        }
    }

    /// Waits for a place; it is free again when that is dropped. `None` never comes: nobody closes the budget.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }
}

/// Takes as many descriptors for this process as it may have.
pub fn more_descriptors() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let wanted = hard.min(MOST_DESCRIPTORS);
        if soft < wanted {
            // With fewer there is a smaller budget.
            setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_keeps_its_part_and_no_task_takes_all() {
        for (limit, places, of_one_task) in [
            (64, 10, 2),
            (1024, 170, 42),
            (4096, 682, 128),
            (65_536, 21_162, 128),
            (u64::MAX, 21_162, 128),
            (0, 1, 1),
        ] {
            let budget = Budget::within(limit);
            let found = (budget.places.available_permits(), budget.of_one_task);
            assert_eq!(found, (places, of_one_task), "{limit}");
            if limit > 8 {
                let taken = places as u64 * OF_ONE_CONNECTION;
                assert!(taken <= limit.min(MOST_DESCRIPTORS) - RESERVE.min(limit / 2));
            }
        }
    }

    #[test]
    fn a_place_is_free_again_when_its_connection_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let budget = Budget::within(12);
            let (one, two) = (budget.place().await, budget.place().await);
            assert!(one.is_some() && two.is_some());
            assert_eq!(budget.places.available_permits(), 0);
            drop(one);
            assert!(budget.place().await.is_some());
        });
    }
}
