//! Airlock: deterministic gates, evidence and report formats.
