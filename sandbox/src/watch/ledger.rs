//! When the watched folders have to be counted again: seldom, and at once when the disk says that much has come.
//!
//! Must never call a limit passed: that is for a count.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::survey::TreeFindings;
use super::walk::Enough;

/// Between two counts while the job works and the disk shows nothing.
const SELDOM: Duration = Duration::from_secs(2);
/// Limits up to these are counted once more when a job is over, whatever the disk shows.
const SMALL: Enough = Enough {
    bytes: 4 << 30,
    files: 1 << 16,
};

/// Space and files that the disks of the watched folders still take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Free {
    pub(super) bytes: u64,
    pub(super) files: u64,
    /// Whether the disk tells both.
    pub(super) told: bool,
}

impl Free {
    pub(super) fn of(folders: &[OwnedFd]) -> Self {
        let mut free = Self {
            told: !folders.is_empty(),
            ..Self::default()
        };
        let mut seen = BTreeSet::new();
        for folder in folders {
            let (Ok(facts), Ok(disk)) = (rustix::fs::fstat(folder), rustix::fs::fstatfs(folder))
            else {
                free.told = false;
                continue;
            };
            if !seen.insert(facts.st_dev) {
                continue;
            }
            let block = u64::try_from(disk.f_bsize).unwrap_or(4096);
            free.bytes = free
                .bytes
                .saturating_add(disk.f_bfree.saturating_mul(block));
            free.files = free.files.saturating_add(disk.f_ffree);
            free.told &= disk.f_files > 0;
        }
        free
    }
}

/// What is known about the watched folders.
#[derive(Debug)]
pub(super) struct Ledger {
    bytes: Option<u64>,
    files: Option<u64>,
    /// Bytes and files at the last count.
    counted: Option<(u64, u64)>,
    /// What was free then, or at the beginning.
    free: Free,
    not_before: Instant,
    seldom_at: Instant,
}

impl Ledger {
    pub(super) fn new(bytes: Option<u64>, files: Option<u64>, free: Free, now: Instant) -> Self {
        Self {
            bytes,
            files,
            counted: None,
            free,
            not_before: now,
            seldom_at: now + SELDOM,
        }
    }

    pub(super) fn is_limited(&self) -> bool {
        self.bytes.is_some() || self.files.is_some()
    }

    /// Counting may stop beyond these.
    pub(super) fn enough(&self) -> Enough {
        Enough {
            bytes: self.bytes.unwrap_or(u64::MAX),
            files: self.files.unwrap_or(u64::MAX),
        }
    }

    /// Whether it is time for a count; `worked`: the job has used the processor since the last one.
    pub(super) fn wants(&self, now: Instant, free: Free, worked: bool) -> bool {
        if !self.is_limited() || now < self.not_before {
            return false;
        }
        self.may_have_passed(free) || (worked && now >= self.seldom_at)
    }

    fn may_have_passed(&self, free: Free) -> bool {
        let come = |before: u64, now: u64| before.saturating_sub(now);
        let bytes = come(self.free.bytes, free.bytes);
        let files = come(self.free.files, free.files);
        let over = |limit: Option<u64>, counted: Option<u64>, come: u64| {
            limit.is_some_and(|limit| match counted {
                Some(counted) => counted.saturating_add(come) > limit,
                // How much there was is not known yet.
                None => come > limit / 16,
            })
        };
        over(self.bytes, self.counted.map(|(bytes, _)| bytes), bytes)
            || over(self.files, self.counted.map(|(_, files)| files), files)
    }

    /// Whether a last count is due when the job is over.
    pub(super) fn wants_last(&self, free: Free) -> bool {
        let small = self.bytes.is_some_and(|bytes| bytes <= SMALL.bytes)
            || self.files.is_some_and(|files| files <= SMALL.files);
        self.is_limited() && (small || !free.told || self.may_have_passed(free))
    }

    /// Takes in a count that began when `free` was free and took `cost`.
    pub(super) fn learn(&mut self, found: &TreeFindings, free: Free, cost: Duration, now: Instant) {
        self.counted = Some((found.bytes, found.files));
        self.free = free;
        self.not_before = now + cost * 4;
        self.seldom_at = now + SELDOM.max(cost * 40);
    }

    /// The limit that the last count has passed, with its value.
    pub(super) fn passed(&self, too_deep: bool) -> Option<(crate::limit::Limit, u64)> {
        use crate::limit::Limit::{Disk, Files};
        let (bytes, files) = self.counted?;
        if let Some(limit) = self.bytes.filter(|limit| bytes > *limit) {
            return Some((Disk, limit));
        }
        let limit = self.files.filter(|limit| files > *limit || too_deep)?;
        Some((Files, limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Limit;

    const GIB: u64 = 1 << 30;

    fn free(bytes: u64, files: u64) -> Free {
        Free {
            bytes,
            files,
            told: true,
        }
    }

    #[test]
    fn a_count_is_asked_for_when_it_could_matter() {
        let now = Instant::now();
        let mut ledger = Ledger::new(Some(GIB), Some(1600), free(9 * GIB, 9000), now);
        assert!(!ledger.wants(now, free(9 * GIB, 8950), true));
        assert!(ledger.wants(now, free(9 * GIB, 8850), true), "files");
        assert!(ledger.wants(now, free(8 * GIB, 9000), true), "bytes");
        let found = TreeFindings {
            bytes: GIB / 2,
            files: 1000,
            ..TreeFindings::default()
        };
        let cost = Duration::from_millis(10);
        ledger.learn(&found, free(8 * GIB, 8000), cost, now);
        assert_eq!(ledger.passed(false), None);
        let later = now + Duration::from_millis(50);
        assert!(!ledger.wants(now, free(0, 0), true), "not again at once");
        assert!(!ledger.wants(later, free(8 * GIB, 7500), true));
        assert!(ledger.wants(later, free(8 * GIB, 7399), true));
        let idle = now + Duration::from_mins(1);
        assert!(
            !ledger.wants(idle, free(8 * GIB, 8000), false),
            "nobody worked"
        );
        assert!(ledger.wants(idle, free(8 * GIB, 8000), true));
    }

    #[test]
    fn a_count_says_which_limit_is_passed() {
        let now = Instant::now();
        let mut ledger = Ledger::new(Some(GIB), Some(100), free(0, 0), now);
        let mut found = TreeFindings {
            bytes: GIB,
            files: 100,
            ..TreeFindings::default()
        };
        ledger.learn(&found, free(0, 0), Duration::ZERO, now);
        assert_eq!(ledger.passed(false), None, "up to the limit is allowed");
        assert_eq!(ledger.passed(true), Some((Limit::Files, 100)));
        found.files = 101;
        ledger.learn(&found, free(0, 0), Duration::ZERO, now);
        assert_eq!(ledger.passed(false), Some((Limit::Files, 100)));
        found.bytes = GIB + 1;
        ledger.learn(&found, free(0, 0), Duration::ZERO, now);
        assert_eq!(ledger.passed(false), Some((Limit::Disk, GIB)));
    }

    #[test]
    fn small_limits_are_checked_at_the_end() {
        let now = Instant::now();
        let small = Ledger::new(None, Some(100), free(GIB, 100), now);
        assert!(small.wants_last(free(GIB, 100)));
        let large = Ledger::new(Some(16 * GIB), Some(1 << 20), free(GIB, 100), now);
        assert!(!large.wants_last(free(GIB, 100)));
        let silent = Free {
            told: false,
            ..free(GIB, 100)
        };
        assert!(
            large.wants_last(silent),
            "a disk that does not count its files"
        );
        assert!(!Ledger::new(None, None, silent, now).wants_last(silent));
    }
}
