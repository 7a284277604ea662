//! Puts together what the gates judge: two trees, what the seal found, what the agent said. Reads
//! objects only; the worktree is no longer looked at.

use gates::{AgentCommit, AgentWork, Blob, Change, ChangeKind, Delivery, Problem, Profile};
use worktrees::{FileChange, Objects, Oid, Repository, ShadowSurvey, Side, TreeProblem};

use crate::exit::{Exit, Failure, OrFail as _};
use crate::protected::Protected;

/// What is to be judged.
#[derive(Debug)]
pub struct Input<'a> {
    /// The task, when there is one.
    pub task: Option<&'a str>,
    /// Its run.
    pub run: Option<&'a str>,
    /// The base commit.
    pub base: Oid,
    /// The judged commit, or a tree that is about to become one.
    pub commit: Oid,
    /// What the seal refused.
    pub problems: &'a [TreeProblem],
    /// Paths whose external filter was not run.
    pub unconverted: &'a [String],
    /// What the agent did in its shadow git dir.
    pub shadow: Option<&'a ShadowSurvey>,
    /// The agent's note.
    pub note: Option<String>,
    /// How the gates are set.
    pub profile: Profile,
    /// Patterns of protected paths, and those that are allowed.
    pub protected: Option<&'a Protected>,
}

/// Assembles the delivery.
pub fn assemble(repository: &Repository, input: &Input<'_>) -> Result<Delivery, Failure> {
    let changes = repository
        .changes(input.base, input.commit)
        .or_fail(Exit::Internal)?;
    let base = repository
        .commit_facts(input.base)
        .or_fail(Exit::Internal)?;
    let judged = repository
        .commit_facts(input.commit)
        .or_fail(Exit::Internal)?;
    let mut problems: Vec<Problem> = input.problems.iter().map(problem).collect();
    let mut judged_changes = Vec::with_capacity(changes.len());
    let objects = repository.objects().or_fail(Exit::Internal)?;
    for change in &changes {
        let change = convert(&objects, change);
        if let Some(protected) = input.protected {
            let refusals = protected.refusals(repository, &change);
            problems.extend(refusals.or_fail(Exit::Internal)?);
        }
        judged_changes.push(change);
    }
    Ok(Delivery {
        repository: repository.name().to_owned(),
        task: input.task.map(str::to_owned),
        run: input.run.map(str::to_owned),
        base: input.base.to_string(),
        base_tree: base.tree.to_string(),
        commit: input.commit.to_string(),
        tree: judged.tree.to_string(),
        changes: judged_changes,
        problems,
        unconverted: input.unconverted.to_vec(),
        agent: input.shadow.map(agent_work).unwrap_or_default(),
        note: input.note.clone(),
        profile: input.profile.clone(),
        engine_made: input.task.is_some(),
    })
}

fn problem(found: &TreeProblem) -> Problem {
    Problem {
        path: found.path.clone(),
        code: found.code.as_str().to_owned(),
        message: found.message.clone(),
    }
}

fn convert(objects: &Objects, change: &FileChange) -> Change {
    let (kind, from) = match &change.kind {
        worktrees::ChangeKind::Added => (ChangeKind::Added, None),
        worktrees::ChangeKind::Modified => (ChangeKind::Modified, None),
        worktrees::ChangeKind::Deleted => (ChangeKind::Deleted, None),
        worktrees::ChangeKind::ModeChanged => (ChangeKind::Mode, None),
        worktrees::ChangeKind::Renamed { from } => {
            (ChangeKind::Renamed, Some(worktrees::shown(from)))
        }
    };
    Change {
        path: worktrees::shown(&change.path),
        kind,
        from,
        old: change.old.as_ref().map(|old| side(objects, old)),
        new: change.new.as_ref().map(|new| side(objects, new)),
    }
}

fn side(objects: &Objects, side: &Side) -> Blob {
    let submodule = side.mode == gates::MODE_SUBMODULE;
    // A blob that cannot be read is for the gates to find: they answer "could not check".
    let size = if submodule {
        Ok(0)
    } else {
        objects.size(side.oid)
    };
    Blob {
        oid: side.oid.to_string(),
        mode: side.mode,
        bytes: size.unwrap_or(0),
    }
}

fn agent_work(survey: &ShadowSurvey) -> AgentWork {
    AgentWork {
        commits: survey
            .commits
            .iter()
            .map(|commit| AgentCommit {
                oid: commit.oid.to_string(),
                subject: commit.subject.clone(),
                reference: Some(commit.reference.clone()),
            })
            .collect(),
        references: survey
            .references
            .iter()
            .map(|found| format!("{} at {}", found.name, found.oid))
            .collect(),
        unreadable: survey.unreadable.clone(),
    }
}
