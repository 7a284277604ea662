//! The leave to land. It can only come out of evidence whose gates are green or overridden.

use super::statement::Evidence;
use crate::Gate;

/// Why evidence approves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Gates refuse the delivery.
    #[error("refused by {}", names(.gates))]
    Rejected {
        /// Which ones, without those that a person overrides.
        gates: Vec<Gate>,
    },
    /// Gates could not do their work, or are not in the record.
    #[error("could not be checked by {}", names(.gates))]
    CouldNotCheck {
        /// Which ones, without those that a person overrides.
        gates: Vec<Gate>,
    },
    /// The agent was not confined, and nobody allowed that.
    #[error("the agent worked without confinement (`{mode}`), which this task does not allow")]
    Unconfined {
        /// The isolation mode.
        mode: String,
    },
}

fn names(gates: &[Gate]) -> String {
    gates
        .iter()
        .map(|gate| gate.name())
        .collect::<Vec<_>>()
        .join(", ")
}

/// The leave to land one commit. Only [`Evidence::approve`] makes one, so it cannot be read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    commit: String,
    tree: String,
    base: String,
    digest: String,
}

impl Approval {
    /// The approved commit.
    #[must_use]
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// Its tree.
    #[must_use]
    pub fn tree(&self) -> &str {
        &self.tree
    }

    /// The commit it was judged against.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Digest of the statement that bears it out.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

impl Evidence {
    /// Approves the commit if no gate stands in the way.
    ///
    /// # Errors
    /// When a gate refuses, could not check or is absent and is not overridden with a reason and a name, or when the
    /// agent was not confined and the record does not allow that.
    pub fn approve(&self) -> Result<Approval, Refused> {
        let record = &self.statement.predicate;
        let (red, unchecked) = record.in_the_way();
        if !red.is_empty() {
            return Err(Refused::Rejected { gates: red });
        }
        if !unchecked.is_empty() {
            return Err(Refused::CouldNotCheck { gates: unchecked });
        }
        if !record.isolation.confined && !record.isolation.unconfined_allowed {
            return Err(Refused::Unconfined {
                mode: record.isolation.mode.clone(),
            });
        }
        Ok(Approval {
            commit: record.commit.clone(),
            tree: record.tree.clone(),
            base: record.base.clone(),
            digest: self.digest(),
        })
    }
}
