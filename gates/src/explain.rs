//! One page a gate for `airlock gate explain NAME`. Texts only; each sits in a file beside its gate.

use crate::Gate;

/// What a gate checks and why, what passes and fails, how to set it, and what it cannot see.
#[must_use]
pub fn explain(gate: Gate) -> &'static str {
    match gate {
        Gate::Commit => include_str!("explain/commit.txt"),
        Gate::Tree => include_str!("explain/tree.txt"),
        Gate::Stub => include_str!("explain/stub.txt"),
        Gate::Audit => include_str!("explain/audit.txt"),
        Gate::Diagram => include_str!("explain/diagram.txt"),
    }
}
