//! Working out what a landing would give: in memory, without a checkout. Makes objects, moves nothing.

use git2::{Index, MergeOptions, ObjectType, Oid, Tree};

use super::{LandError, LandKind, LandPlan, LandRequest, MergeStyle};
use crate::history::peel_tree;
use crate::identity::signature;
use crate::repository::{ReadError, RefError, Repository};
use crate::shown;
use crate::store::Store;

impl Repository {
    /// Plans the landing of a delivery on the target as it is now. A conflict is found here.
    pub fn plan_landing(&self, request: &LandRequest<'_>) -> Result<LandPlan, LandError> {
        let tip = self.branch_tip(request.target).map_err(refused(request))?;
        let tip = tip.ok_or_else(|| LandError::NoBranch {
            target: request.target.to_owned(),
        })?;
        let repo = self.open_for_reading().map_err(unread(request))?;
        let kind = self.kind(request, tip)?;
        let tree_of = |oid| peel_tree(&repo, oid).map_err(unread(request));
        let delivered = tree_of(request.delivery)?;
        let (result, tree) = match kind {
            LandKind::AlreadyThere => (tip, tree_of(tip)?.id()),
            LandKind::FastForward => (request.delivery, delivered.id()),
            LandKind::Squash | LandKind::Merge | LandKind::Rebase => {
                let _owner = self.act_as_owner();
                let merged = merge(
                    &repo,
                    request,
                    [tree_of(request.base)?, tree_of(tip)?, delivered.clone()],
                )?;
                let commit = self.commit(&repo, request, (kind, tip, merged))?;
                (commit, merged)
            }
        };
        Ok(LandPlan {
            target: request.target.to_owned(),
            expected: tip,
            result,
            tree,
            kind,
            judged_as_is: tree == delivered.id(),
            delivery: request.delivery,
            when: request.when,
        })
    }

    fn kind(&self, request: &LandRequest<'_>, tip: Oid) -> Result<LandKind, LandError> {
        let ancestor = |ancestor, of| self.is_ancestor(ancestor, of).map_err(unread(request));
        if ancestor(request.delivery, tip)? {
            return Ok(LandKind::AlreadyThere);
        }
        // Not "an ancestor": commits between the target and the base would come along unasked.
        let untouched = tip == request.base && ancestor(tip, request.delivery)?;
        let kind = match request.style {
            MergeStyle::Auto | MergeStyle::FastForward | MergeStyle::Rebase if untouched => {
                LandKind::FastForward
            }
            MergeStyle::FastForward => {
                return Err(LandError::NotFastForward {
                    target: request.target.to_owned(),
                    tip,
                    delivery: request.delivery,
                });
            }
            MergeStyle::Auto | MergeStyle::Merge => LandKind::Merge,
            MergeStyle::Squash => LandKind::Squash,
            MergeStyle::Rebase => LandKind::Rebase,
        };
        if kind == LandKind::Merge && !ancestor(request.base, tip)? {
            return Err(LandError::BaseNotInTarget {
                target: request.target.to_owned(),
                base: request.base,
            });
        }
        Ok(kind)
    }

    fn commit(
        &self,
        repo: &git2::Repository,
        request: &LandRequest<'_>,
        (kind, tip, tree): (LandKind, Oid, Oid),
    ) -> Result<Oid, LandError> {
        let failed = |source| LandError::Merge {
            target: request.target.to_owned(),
            delivery: request.delivery,
            source,
        };
        let target = repo.find_commit(tip).map_err(failed)?;
        let delivery = repo.find_commit(request.delivery).map_err(failed)?;
        let parents = match kind {
            LandKind::Merge => vec![&target, &delivery],
            LandKind::AlreadyThere
            | LandKind::FastForward
            | LandKind::Squash
            | LandKind::Rebase => vec![&target],
        };
        let own = String::from_utf8_lossy(delivery.message_raw_bytes());
        let message = if kind == LandKind::Rebase {
            own.trim_end()
        } else {
            request.message.trim_end()
        };
        let who = signature(request.when);
        let tree = repo.find_tree(tree).map_err(failed)?;
        let bytes = repo
            .commit_create_buffer(&who, &who, &format!("{message}\n"), &tree, &parents)
            .map_err(failed)?;
        let stored = |source| LandError::Store {
            target: request.target.to_owned(),
            source,
        };
        let mut store = Store::open(self, repo).map_err(stored)?;
        let oid = store.add(ObjectType::Commit, &bytes).map_err(stored)?;
        // libgit2 has written the merged trees: they are not among those that the store knows.
        store.sync_all().map_err(stored)?;
        Ok(oid)
    }
}

/// Joins target and delivery by what each changed since the base.
fn merge(
    repo: &git2::Repository,
    request: &LandRequest<'_>,
    [base, target, delivery]: [Tree<'_>; 3],
) -> Result<Oid, LandError> {
    if target.id() == base.id() {
        return Ok(delivery.id());
    }
    let failed = |source| LandError::Merge {
        target: request.target.to_owned(),
        delivery: request.delivery,
        source,
    };
    let mut options = MergeOptions::new();
    options.find_renames(true);
    let mut merged = repo
        .merge_trees(&base, &target, &delivery, Some(&options))
        .map_err(failed)?;
    if merged.has_conflicts() {
        let paths = conflicts(&merged).map_err(failed)?;
        return Err(LandError::Conflict { paths });
    }
    merged.write_tree_to(repo).map_err(failed)
}

fn conflicts(index: &Index) -> Result<Vec<String>, git2::Error> {
    let mut paths = Vec::new();
    for conflict in index.conflicts()? {
        let conflict = conflict?;
        let sides = [conflict.our, conflict.their, conflict.ancestor];
        paths.extend(sides.into_iter().flatten().map(|entry| shown(&entry.path)));
    }
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

fn refused(request: &LandRequest<'_>) -> impl Fn(RefError) -> LandError {
    let target = request.target.to_owned();
    move |source| LandError::Ref {
        target: target.clone(),
        source,
    }
}

fn unread(request: &LandRequest<'_>) -> impl Fn(ReadError) -> LandError {
    let target = request.target.to_owned();
    move |source| LandError::Read {
        target: target.clone(),
        source,
    }
}
