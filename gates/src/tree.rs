//! The tree gate: what the seal met in the worktree and a commit cannot hold or should not carry.
//! Nothing is dropped in silence: each finding of the seal becomes a reason by name.

use crate::{Delivery, Gate, GateRun, Reason};

pub(crate) fn judge(delivery: &Delivery) -> GateRun {
    let mut reasons = Vec::new();
    for problem in &delivery.problems {
        let code = format!("tree.{}", problem.code.replace('_', "-"));
        reasons.push(
            Reason::fail(&code, problem.message.clone())
                .at(&problem.path)
                .help(help(&problem.code)),
        );
    }
    for path in &delivery.unconverted {
        reasons.push(
            Reason::warn(
                "tree.unconverted",
                "belongs to an external filter, which the engine never runs: sealed as it was found",
            )
            .at(path)
            .help("check that the file holds what the filter would have written, such as an LFS pointer"),
        );
    }
    if reasons.is_empty() && !delivery.engine_made {
        return GateRun::not_applicable(Gate::Tree, "no worktree was sealed for this commit");
    }
    GateRun::of(Gate::Tree, reasons)
}

/// What to do, by the seal's code.
fn help(code: &str) -> &'static str {
    match code {
        "nested_git" => "remove the inner repository's .git, or add the folder to .gitignore",
        "gitlink" => "commit the files themselves; a new submodule must be added by a person",
        "submodule_edit" => "undo the edit; change the submodule in its own repository",
        "fifo" | "socket" | "device" => "remove the special file; create it when the program runs",
        "set_id" => "clear the set-id bits with `chmod ug-s`",
        "escaping" => "make the link point inside the repository, or remove it",
        "unreadable" => "give the owner read permission with `chmod u+r`",
        "too_large" => "remove the file or keep it outside the repository",
        _ => "remove it from the worktree, or add it to .gitignore",
    }
}
