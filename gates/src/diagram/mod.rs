//! The diagram gate: a figure that a delivery adds is a real image in its tree.

use crate::{Delivery, Gate, GateRun, Source};

pub(crate) fn judge(_delivery: &Delivery, _source: &mut dyn Source) -> GateRun {
    GateRun::could_not_check(
        Gate::Diagram,
        "the diagram gate is not built into this binary",
    )
}
