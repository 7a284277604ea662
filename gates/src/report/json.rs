//! The report as JSON, with the field names of the command line's own object.
//! Text is kept as it is: JSON's escapes make it inert.

use serde_json::{Value, json};

use super::list::Report;

pub(super) fn value(report: &Report) -> Value {
    let mut object = json!({
        "schema": 1,
        "repository": report.repository,
        "base": report.base,
        "commit": report.commit,
        "tree": report.tree,
        "verdict": report.verdict(),
        "files": report.judgement.files,
        "claims": report.judgement.claims,
        "gates": report.judgement.gates,
    });
    if let (Some(fields), Some(task)) = (object.as_object_mut(), &report.task) {
        fields.insert("task".to_owned(), json!(task.task));
        fields.insert("run".to_owned(), json!(task.run));
        fields.insert("summary".to_owned(), json!(task.summary));
    }
    object
}

pub(super) fn write(report: &Report) -> String {
    format!("{}\n", value(report))
}
