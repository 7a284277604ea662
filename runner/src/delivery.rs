//! Puts together what the gates judge: two trees, what the seal found, what the agent said. Reads
//! objects only; the worktree is no longer looked at.

use gates::{AgentCommit, AgentWork, Blob, Change, ChangeKind, Delivery, Problem, Profile};
use worktrees::{FileChange, Oid, Repository, ShadowSurvey, Side, TreeProblem};

use crate::exit::{Exit, Failure, OrFail as _};

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

/// Paths that a task must not touch unless it was allowed to.
#[derive(Debug, Clone, Default)]
pub struct Protected {
    /// Patterns.
    pub patterns: Vec<String>,
    /// Patterns that this task may touch all the same.
    pub allowed: Vec<String>,
}

impl Protected {
    fn covers(&self, path: &str) -> bool {
        let hit = |patterns: &[String]| {
            patterns
                .iter()
                .any(|pattern| gates::glob_matches(pattern, path))
        };
        hit(&self.patterns) && !hit(&self.allowed)
    }
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
    for change in &changes {
        let change = convert(repository, change)?;
        if let Some(protected) = input.protected {
            let touched = std::iter::once(&change.path).chain(&change.from);
            problems.extend(
                touched
                    .filter(|path| protected.covers(path))
                    .map(|path| refused(path)),
            );
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

fn refused(path: &str) -> Problem {
    Problem {
        path: path.to_owned(),
        code: "protected".to_owned(),
        message: "this path takes effect on a host or on how work is judged, and the task does not allow it".to_owned(),
    }
}

fn convert(repository: &Repository, change: &FileChange) -> Result<Change, Failure> {
    let (kind, from) = match &change.kind {
        worktrees::ChangeKind::Added => (ChangeKind::Added, None),
        worktrees::ChangeKind::Modified => (ChangeKind::Modified, None),
        worktrees::ChangeKind::Deleted => (ChangeKind::Deleted, None),
        worktrees::ChangeKind::ModeChanged => (ChangeKind::Mode, None),
        worktrees::ChangeKind::Renamed { from } => {
            (ChangeKind::Renamed, Some(worktrees::shown(from)))
        }
    };
    Ok(Change {
        path: worktrees::shown(&change.path),
        kind,
        from,
        old: side(repository, change.old.as_ref())?,
        new: side(repository, change.new.as_ref())?,
    })
}

fn side(repository: &Repository, side: Option<&Side>) -> Result<Option<Blob>, Failure> {
    let Some(side) = side else { return Ok(None) };
    let bytes = if side.mode == gates::MODE_SUBMODULE {
        0
    } else {
        repository.blob_size(side.oid).or_fail(Exit::Internal)?
    };
    Ok(Some(Blob {
        oid: side.oid.to_string(),
        mode: side.mode,
        bytes,
    }))
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
