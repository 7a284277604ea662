//! Acceptance: the branch of the task moves to the judged commit, with an approval in hand and in no
//! other way.

use gates::Gate;
use worktrees::Oid;

use super::Life;
use super::proof::{self, Proof};
use crate::event::Event;
use crate::exit::{Exit, Failure, OrFail as _};
use crate::stage::Stage;

impl Life<'_> {
    /// Moves the branch to an approved delivery.
    pub(super) fn accept_delivery(&mut self, proof: &Proof) -> Result<(), Failure> {
        proof.holds()?;
        let commit = self
            .view
            .seal
            .as_ref()
            .and_then(|seal| seal.commit.as_deref());
        let commit =
            Oid::from_str(commit.unwrap_or(&self.view.spec.base)).or_fail(Exit::Internal)?;
        let branch = self.view.spec.branch.clone();
        let repository = &self.repository;
        let tip = repository.branch_tip(&branch).or_fail(Exit::Internal)?;
        let expected = self
            .view
            .accepted
            .as_deref()
            .unwrap_or(&self.view.spec.base);
        let expected = Oid::from_str(expected).or_fail(Exit::Internal)?;
        if tip.is_some_and(|tip| tip != expected && tip != commit) {
            let what = format!("branch {branch} was moved by somebody else");
            return Err(Failure::new(Exit::Conflict, what).advise(format!(
                "the delivery is commit {commit}; put the branch back to {expected} and run `airlock deliver {}`",
                self.view.spec.task
            )));
        }
        if tip != Some(commit) {
            repository
                .set_branch(&branch, commit, tip)
                .or_fail(Exit::Conflict)?;
        }
        self.record(vec![Event::Accepted {
            commit: commit.to_string(),
            branch,
        }])
    }

    /// `accept --override`: a person lets red gates pass, with a reason that the evidence keeps.
    pub(super) fn accept(&mut self, gates: &[Gate], reason: &str, by: &str) -> Result<(), Failure> {
        if self.view.stage != Stage::Rejected {
            let what = format!(
                "task {} is {}, not rejected",
                self.view.spec.task, self.view.stage
            );
            return Err(Failure::new(Exit::Conflict, what)
                .advise("only a delivery that a gate refused can be let pass"));
        }
        if self.view.touched && self.tree_differs()? {
            let task = &self.view.spec.task;
            let what = format!("the tree of task {task} is not the one that was judged");
            return Err(Failure::new(Exit::Conflict, what).advise(format!(
                "a command was run in it since; `airlock deliver {task}` seals and judges it again"
            )));
        }
        let overridden = gates.iter().map(|gate| Event::Overridden {
            gate: gate.name().to_owned(),
            reason: reason.to_owned(),
            by: by.to_owned(),
        });
        let delivery = self.delivery()?;
        let before = self.view.overrides.clone();
        self.view.overrides.extend(
            gates
                .iter()
                .map(|gate| (gate.name().to_owned(), reason.to_owned(), by.to_owned())),
        );
        let proof = proof::of_recorded(self, &delivery)?;
        if let Err(failure) = proof.holds() {
            self.view.overrides = before;
            let task = &self.view.spec.task;
            let advice = format!(
                "each gate that refused needs an --override of its own; `airlock show {task}` lists them"
            );
            return Err(match failure.next {
                Some(_) => failure,
                None => failure.advise(advice),
            });
        }
        let mut events: Vec<Event> = overridden.collect();
        events.push(Event::Recorded {
            evidence: proof.facts.clone(),
        });
        self.record(events)?;
        self.accept_delivery(&proof)
    }
}
