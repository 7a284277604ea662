//! What the agent did with git for itself: the refs, commits and stashes in its shadow git directory. Everything
//! there is hostile: this is a reader of its own, which follows no link, opens only small regular files, bounds
//! what it unpacks and checks every hash. It never fails; what it could not read, it says.

mod object;
mod refs;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use git2::Oid;
use serde::{Deserialize, Serialize};

use crate::repository::Repository;
use crate::tree::{Chain, Folder};

/// So many commits are listed; an agent that made more has made its point.
const COMMIT_LIMIT: usize = 1000;

/// So many refs are listed; the same holds.
const REFERENCE_LIMIT: usize = 1000;

/// What is in a shadow git directory beside what the engine put there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ShadowSurvey {
    /// Refs that are new or moved, sorted by name.
    pub references: Vec<ShadowRef>,
    /// Commits that the repository does not have, newest first for each ref.
    pub commits: Vec<ShadowCommit>,
    /// How many stashes there are.
    pub stashes: usize,
    /// What could not be read, in one sentence; `None`: everything was.
    pub unreadable: Option<String>,
}

/// A ref of the agent's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowRef {
    /// Full name, or `HEAD` when it is detached; shown form.
    pub name: String,
    /// Where it is.
    #[serde(with = "crate::oid_text")]
    pub oid: Oid,
}

/// A commit of the agent's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowCommit {
    /// Its id.
    #[serde(with = "crate::oid_text")]
    pub oid: Oid,
    /// First line of its message, shown form, cut at 200 letters.
    pub subject: String,
    /// The ref (or `stash@{n}`) that it was found from.
    pub reference: String,
}

/// What went wrong on the way: the first thing, and how many more.
#[derive(Debug, Default)]
struct Trouble {
    first: Option<String>,
    more: usize,
}

impl Trouble {
    fn add(&mut self, text: String) {
        if self.first.is_none() {
            self.first = Some(text);
        } else {
            self.more += 1;
        }
    }

    fn sentence(self) -> Option<String> {
        let first = self.first?;
        Some(match self.more {
            0 => first,
            more => format!("{first}; and {more} more"),
        })
    }
}

impl Repository {
    /// Lists what the agent made in its shadow git directory.
    pub fn survey_shadow(&self, shadow: &Path, base: Oid) -> ShadowSurvey {
        let mut survey = ShadowSurvey::default();
        let mut trouble = Trouble::default();
        match Folder::open(shadow) {
            Ok(folder) => {
                self.look_around(&mut Chain::new(folder), base, (&mut survey, &mut trouble));
            }
            Err(error) => trouble.add(format!(
                "the shadow git directory cannot be opened: {error}"
            )),
        }
        survey.unreadable = trouble.sentence();
        survey
    }

    fn look_around(
        &self,
        shadow: &mut Chain,
        base: Oid,
        (survey, trouble): (&mut ShadowSurvey, &mut Trouble),
    ) {
        let repo = match self.open() {
            Ok(repo) => repo,
            Err(error) => return trouble.add(format!("the repository cannot be opened: {error}")),
        };
        let known = |oid: Oid| repo.odb().is_ok_and(|odb| odb.exists(oid));
        let found = refs::read(shadow, trouble);
        let stashes = refs::stashes(shadow, trouble);
        survey.stashes = stashes.len();
        let mut tips: BTreeMap<String, Oid> = BTreeMap::new();
        let given = own_references(&repo);
        let mut unlisted = 0_usize;
        for (name, oid) in found {
            // The engine gave it the branch at the base, and the repository's tags.
            let given = given.get(&name) == Some(&oid);
            let untouched = oid == base && name == "HEAD";
            if given || untouched {
                continue;
            }
            if tips.len() < REFERENCE_LIMIT {
                tips.insert(name, oid);
            } else {
                unlisted += 1;
            }
        }
        if unlisted > 0 {
            trouble.add(format!("there are {unlisted} more refs than are listed"));
        }
        let mut seen = BTreeSet::new();
        let labelled = tips.iter().map(|(name, oid)| (name.clone(), *oid));
        for (reference, tip) in labelled.chain(stashes) {
            let mut walk = object::History {
                shadow,
                seen: &mut seen,
                trouble,
                left: COMMIT_LIMIT.saturating_sub(survey.commits.len()),
            };
            let commits = walk.commits(tip, &known);
            survey
                .commits
                .extend(commits.into_iter().map(|(oid, subject)| ShadowCommit {
                    oid,
                    subject,
                    reference: reference.clone(),
                }));
        }
        survey.references = tips
            .into_iter()
            .map(|(name, oid)| ShadowRef { name, oid })
            .collect();
    }
}

/// The refs of the repository itself by full name, read once: a hostile list of names is not looked up one by one.
fn own_references(repo: &git2::Repository) -> HashMap<String, Oid> {
    let Ok(references) = repo.references() else {
        return HashMap::new();
    };
    let named = references.flatten().filter_map(|reference| {
        let name = std::str::from_utf8(reference.name_bytes()).ok()?;
        Some((name.to_owned(), reference.target()?))
    });
    named.collect()
}
