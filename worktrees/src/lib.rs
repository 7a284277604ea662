//! Airlock: repositories, task worktrees, sealing and landing.
