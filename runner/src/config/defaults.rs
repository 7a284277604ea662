//! What holds when nobody says otherwise.

use crate::task::Bounds;

/// The branch of a delivery.
pub(super) const BRANCH: &str = "airlock/{run}/{task}";

/// Wall time of a setup; a repository's file may lower it.
pub(super) const SETUP_TIMEOUT_MS: u64 = 15 * 60 * 1000;

/// The limits of an attempt; a repository's file may lower them.
pub const BOUNDS: Bounds = Bounds {
    timeout_ms: None,
    idle_ms: None,
    grace_ms: 10_000,
    output: 16 << 20,
    pids: 512,
    memory: 8 << 30,
    disk: 16 << 30,
    files: 1_000_000,
    home: 1 << 30,
    tmp: 1 << 30,
    file_size: 512 << 20,
};
