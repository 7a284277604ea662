//! The one entry: a delivery and its bytes in, a judgement out.
//! Same input, same output: no file, process, clock or network, and no panic on hostile bytes.

use crate::verdict::Level;
use crate::{Delivery, Finding, Gate, GateRun, Judgement, Mode, Reason, Source};

/// Runs every gate of the profile over a delivery.
pub fn judge(delivery: &Delivery, source: &mut dyn Source) -> Judgement {
    let mut judgement = Judgement::default();
    for gate in Gate::ALL {
        let mode = delivery.profile.mode(gate);
        let run = match mode {
            Mode::Off => switched_off(delivery, gate),
            Mode::Fail | Mode::Warn => run(gate, delivery, source),
        };
        judgement.gates.push(match mode {
            Mode::Warn => softened(run, delivery),
            Mode::Fail | Mode::Off => run,
        });
    }
    judgement
}

fn run(gate: Gate, delivery: &Delivery, source: &mut dyn Source) -> GateRun {
    match gate {
        Gate::Diagram => crate::diagram::judge(delivery, source),
        Gate::Commit | Gate::Tree | Gate::Stub | Gate::Audit => {
            GateRun::could_not_check(gate, "this gate is not built into this binary")
        }
    }
}

fn set_by(delivery: &Delivery, gate: Gate) -> &str {
    delivery
        .profile
        .gates
        .get(&gate)
        .map_or("the configuration", |setting| setting.set_by.as_str())
}

fn switched_off(delivery: &Delivery, gate: Gate) -> GateRun {
    GateRun::not_applicable(gate, format!("switched off by {}", set_by(delivery, gate)))
}

/// A gate in warn mode refuses nothing; what it would have refused stays in the record as a warning.
fn softened(mut run: GateRun, delivery: &Delivery) -> GateRun {
    let refused = matches!(run.finding, Finding::Fail | Finding::CouldNotCheck);
    if !refused {
        return run;
    }
    for reason in &mut run.reasons {
        if reason.level > Level::Warn {
            reason.level = Level::Warn;
        }
    }
    run.reasons.push(Reason::info(
        "mode.warn",
        format!("set to warn by {}", set_by(delivery, run.gate)),
    ));
    GateRun::of(run.gate, run.reasons)
}
