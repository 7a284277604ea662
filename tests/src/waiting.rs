//! The only place where a test lets time pass: it looks for a condition again and again, up to a
//! bound that a healthy system never comes near.

use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine with two cores.
const PATIENCE: Duration = Duration::from_secs(90);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(4);

/// Looks until there is something, and fails the test when there never is.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let mut seen = None;
    let found = within(PATIENCE, || {
        seen = look();
        seen.is_some()
    });
    assert!(found, "waited {} s in vain for {what}", PATIENCE.as_secs());
    seen.expect("it was just found")
}

/// Whether the condition comes true within the bound.
pub fn within(bound: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + bound;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}
