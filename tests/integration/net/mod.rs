//! What a room reaches through its proxy, and what it does not: real sockets, real clients.

mod credentials;
mod reach;
mod refusals;

use std::fs;

use serde_json::Value;
use tests::TestEnv;

/// The refusals on record of a task.
pub(crate) fn denials(env: &TestEnv, id: &str) -> Vec<Value> {
    let text = fs::read_to_string(env.task_folder(id).join("deny.ndjson")).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Whether a refusal of this is on record, by kind and name.
pub(crate) fn denied<'d>(denials: &'d [Value], kind: &str, what: &str) -> Option<&'d Value> {
    denials
        .iter()
        .find(|denial| denial["kind"] == kind && denial["what"] == what)
}
