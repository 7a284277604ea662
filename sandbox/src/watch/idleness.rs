//! Since when a job does nothing: no output, nobody comes or goes, no processor time, no file changed.
//!
//! Must never call a job idle before its files were looked at.

use std::time::{Duration, Instant};

use super::crowd::Glance;

/// A clock tick of `/proc`, which has had this length for as long as Linux is.
const TICK: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct Idleness {
    limit: Option<Duration>,
    /// The last sign of work, by the monotonic clock and in milliseconds since 1970.
    active: Instant,
    active_ms: u64,
    ticks: u64,
    last: Glance,
}

impl Idleness {
    pub(super) fn new(limit: Option<Duration>, now: Instant, now_ms: u64) -> Self {
        Self {
            limit,
            active: now,
            active_ms: now_ms,
            ticks: 0,
            last: Glance::default(),
        }
    }

    /// Something was seen of it now.
    pub(super) fn sign(&mut self, now: Instant, now_ms: u64) {
        self.active = now;
        self.active_ms = now_ms;
        self.ticks = self.last.ticks;
    }

    /// Takes in a glance. A program that wakes up to look at a clock is idle all the same: a thousandth of the time
    /// since the last sign is allowed, but nothing that two ticks of the clock see at once.
    pub(super) fn glance(&mut self, glance: Glance, now: Instant, now_ms: u64) {
        let at_once = glance.ticks.abs_diff(self.last.ticks) >= 2;
        let grown = glance.ticks.abs_diff(self.ticks);
        let worked = TICK * u32::try_from(grown).unwrap_or(u32::MAX);
        let often = worked > now.saturating_duration_since(self.active) / 1000;
        let moved = glance.who != self.last.who;
        self.last = glance;
        if at_once || moved || (grown > 0 && often) {
            self.sign(now, now_ms);
        }
    }

    /// When it is idle for too long if nothing more is seen of it.
    pub(super) fn due(&self) -> Option<Instant> {
        self.limit.map(|limit| self.active + limit)
    }

    /// Takes in the newest change of its files. `true` when there was none since the last sign of work.
    pub(super) fn is_still(&mut self, newest_ms: u64, now: Instant, now_ms: u64) -> bool {
        if newest_ms <= self.active_ms {
            return true;
        }
        let ago = Duration::from_millis(now_ms.saturating_sub(newest_ms));
        let then = now.checked_sub(ago).unwrap_or(now);
        // By clocks that were set meanwhile a change may lie before what was known: it is one all the same.
        self.active = self.active.max(then);
        self.active_ms = newest_ms;
        self.ticks = self.last.ticks;
        false
    }

    /// Time in which it was not allowed to work.
    pub(super) fn forgive(&mut self, time: Duration) {
        self.active += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_mins(1);

    fn at(start: Instant, seconds: u64) -> (Instant, u64) {
        (
            start + Duration::from_secs(seconds),
            1_000_000 + seconds * 1000,
        )
    }

    fn glance(ticks: u64, who: u64) -> Glance {
        Glance {
            ticks,
            who,
            ..Glance::default()
        }
    }

    fn idleness(start: Instant) -> Idleness {
        let mut idleness = Idleness::new(Some(LIMIT), start, 1_000_000);
        idleness.glance(glance(100, 1), start, 1_000_000);
        idleness
    }

    #[test]
    fn work_is_a_sign_and_looking_at_the_clock_is_none() {
        let start = Instant::now();
        let mut idle = idleness(start);
        let (now, ms) = at(start, 30);
        idle.glance(glance(101, 1), now, ms);
        assert_eq!(
            idle.due(),
            Some(start + LIMIT),
            "ten milliseconds in half a minute"
        );
        idle.glance(glance(103, 1), now, ms);
        assert_eq!(idle.due(), Some(now + LIMIT), "two ticks at once");
        let (now, ms) = at(start, 31);
        idle.glance(glance(104, 1), now, ms);
        assert_eq!(idle.due(), Some(now + LIMIT), "a tick in a second");
        let (now, ms) = at(start, 50);
        idle.glance(glance(104, 2), now, ms);
        assert_eq!(idle.due(), Some(now + LIMIT), "somebody came");
    }

    #[test]
    fn a_file_that_changed_is_a_sign() {
        let start = Instant::now();
        let mut idle = idleness(start);
        let (now, ms) = at(start, 60);
        assert!(idle.is_still(1_000_000, now, ms));
        let (changed, changed_ms) = at(start, 40);
        assert!(!idle.is_still(changed_ms, now, ms));
        assert_eq!(idle.due(), Some(changed + LIMIT));
        assert!(idle.is_still(changed_ms, now, ms));
        idle.forgive(Duration::from_secs(5));
        assert_eq!(idle.due(), Some(changed + LIMIT + Duration::from_secs(5)));
    }

    #[test]
    fn without_a_limit_nothing_is_due() {
        let now = Instant::now();
        assert_eq!(Idleness::new(None, now, 0).due(), None);
    }
}
