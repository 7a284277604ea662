//! Whether, where and how an accepted delivery lands. Moves nothing.

use super::branch;
use super::origin::Origin;
use super::scene::Scene;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::task::{Isolation, Style};

/// What becomes of an accepted delivery.
pub(super) struct Landing {
    pub(super) into: Option<String>,
    pub(super) merge: Option<Style>,
    pub(super) allowed: bool,
    pub(super) unconfined: bool,
}

impl Landing {
    /// Refuses a landing that could never happen before work is put into it.
    fn possible(&self, isolation: Isolation, asked: &Origin) -> Result<(), Failure> {
        if !self.allowed {
            return Err(Failure::usage(format!(
                "{asked} asks to land, and `allow_merge_back` forbids it"
            )));
        }
        if !isolation.has_worktree() {
            let what = format!(
                "{asked} asks to land, and isolation {} delivers no commit",
                isolation.as_str()
            );
            return Err(Failure::usage(what).advise("use --isolation sandbox"));
        }
        if !isolation.confined() && !self.unconfined {
            let what = format!(
                "{asked} asks to land work of an agent that isolation {} does not confine",
                isolation.as_str()
            );
            return Err(
                Failure::usage(what).advise("add --allow-unconfined if that is what you want")
            );
        }
        if self.into.is_none() {
            return Err(Failure::usage(format!(
                "{asked} asks to land, and no branch is checked out (detached HEAD)"
            ))
            .advise("name the branch with --into BRANCH"));
        }
        Ok(())
    }
}

impl Scene<'_> {
    /// The target and the way to it; what could never land is refused before work is put into it.
    pub(super) fn landing(&self, isolation: Isolation) -> Result<Landing, Failure> {
        let layers = &self.layers;
        let head = self.repository.head_branch().or_fail(Exit::Usage)?;
        let into = match layers.pick(|wishes| wishes.into.as_ref()) {
            None => head,
            Some(into) => {
                branch::check(&into.value).or_fail(Exit::Usage)?;
                let tip = self
                    .repository
                    .branch_tip(&into.value)
                    .or_fail(Exit::Usage)?;
                if tip.is_none() {
                    return Err(Failure::usage(format!(
                        "there is no branch {} to land on ({})",
                        into.value, into.origin
                    )));
                }
                Some(into.value.clone())
            }
        };
        let style = layers
            .pick(|wishes| wishes.style.as_ref())
            .map_or(Style::Auto, |style| style.value);
        let merge = layers.pick(|wishes| wishes.merge.as_ref());
        let landing = Landing {
            merge: merge.map(|merge| merge.value.unwrap_or(style)),
            allowed: layers
                .pick(|wishes| wishes.merge_allowed.as_ref())
                .is_none_or(|allowed| allowed.value),
            unconfined: layers
                .pick(|wishes| wishes.allow_unconfined.as_ref())
                .is_some_and(|allowed| allowed.value),
            into,
        };
        match merge {
            Some(merge) => landing.possible(isolation, &merge.origin).map(|()| landing),
            None => Ok(landing),
        }
    }
}
