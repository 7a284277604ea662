//! The one entry: a delivery and its bytes in, a judgement out.
//! Same input, same output: no file, process, clock or network, and no panic on hostile bytes.

use crate::{
    Delivery, Finding, Gate, GateRun, Judgement, Level, Mode, Reason, Source, audit, commit,
    diagram, stub, tree,
};

/// Runs every gate of the profile over a delivery.
///
/// The files are measured and the note is read even where a gate is switched off: the record needs them.
pub fn judge(delivery: &Delivery, source: &mut dyn Source) -> Judgement {
    let mut judgement = Judgement::default();
    for gate in Gate::ALL {
        let run = match delivery.profile.mode(gate) {
            Mode::Off => {
                if gate == Gate::Audit {
                    judgement.files = audit::facts(delivery, source);
                }
                switched_off(delivery, gate)
            }
            Mode::Fail => run(gate, delivery, source, &mut judgement),
            Mode::Warn => softened(run(gate, delivery, source, &mut judgement), delivery),
        };
        judgement.gates.push(run);
    }
    judgement
}

fn run(
    gate: Gate,
    delivery: &Delivery,
    source: &mut dyn Source,
    judgement: &mut Judgement,
) -> GateRun {
    match gate {
        Gate::Commit => commit::judge(delivery),
        Gate::Tree => tree::judge(delivery),
        Gate::Stub => stub::judge(delivery, source),
        Gate::Diagram => diagram::judge(delivery, source),
        Gate::Audit => {
            let audit = audit::judge(delivery, source);
            judgement.files = audit.files;
            judgement.claims = audit.claims;
            audit.run
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
    if !matches!(run.finding, Finding::Fail | Finding::CouldNotCheck) {
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
