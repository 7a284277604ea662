//! The agent of a task as scripts see it: a part of the object of [`crate::view`]. `result`, `cost_usd`,
//! `session` and the tokens are the agent's own words, by which nothing is decided. Computes only.

use serde_json::{Value, json};

use crate::view::{TaskView, cause};

/// The `agent` of the object: how its last attempt ended, and what it says of it.
pub(crate) fn object(view: &TaskView) -> Value {
    let outcome = view.outcome.as_ref();
    let answer = view.answer.as_ref();
    json!({
        "name": view.spec.agent,
        "outcome": outcome.map(|outcome| cause(&outcome.exit)),
        "code": outcome.and_then(|outcome| outcome.code),
        "signal": outcome.and_then(|outcome| outcome.signal),
        "reason": outcome.and_then(|outcome| match &outcome.exit {
            sandbox::Exit::NotStarted { reason } | sandbox::Exit::Stopped { reason, .. } => Some(reason.clone()),
            sandbox::Exit::OverLimit { limit } => Some(limit.clone()),
            sandbox::Exit::Code(_)
            | sandbox::Exit::Signal(_)
            | sandbox::Exit::TimedOut
            | sandbox::Exit::IdleTimedOut
            | sandbox::Exit::Lost => None,
        }),
        "attempts": view.attempts,
        "result": answer.and_then(|answer| answer.result.as_ref()),
        "result_cut": answer.is_some_and(|answer| answer.result_cut),
        "cost_usd": answer.and_then(|answer| answer.cost_usd),
        "session": answer.and_then(|answer| answer.session.as_ref()),
        "input_tokens": answer.and_then(|answer| answer.input_tokens),
        "output_tokens": answer.and_then(|answer| answer.output_tokens),
    })
}
