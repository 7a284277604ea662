//! Signing, reading back, tampering, and what approves.

use std::collections::BTreeMap;

use super::*;
use crate::{Delivery, Finding, Gate, GateRun, Judgement, Profile, Reason};

fn record(finding: Finding) -> Record {
    let text = r#"{"repository":"demo","base":"b0","base_tree":"bt","commit":"c0","tree":"t0","changes":[],"engine_made":true}"#;
    let delivery: Delivery = serde_json::from_str(text).unwrap();
    let run = |gate: Gate| GateRun {
        gate,
        finding: if gate == Gate::Stub {
            finding
        } else {
            Finding::Pass
        },
        reasons: vec![
            Reason::warn("a.b", "hé \u{202e} <script>")
                .at("x\ny.py")
                .line(3),
        ],
    };
    let judgement = Judgement {
        gates: Gate::ALL.into_iter().map(run).collect(),
        ..Judgement::default()
    };
    let engine = Engine {
        name: "airlock".to_owned(),
        version: "0.1.0".to_owned(),
        sha256: None,
    };
    let isolation = Isolation {
        mode: "sandbox".to_owned(),
        confined: true,
        unconfined_allowed: false,
    };
    let mut record = Record::of(
        &delivery,
        &judgement,
        engine,
        Policy::of(Profile::default(), None).unwrap(),
        isolation,
    );
    record.started = "2026-01-01T00:00:00Z".to_owned();
    record.finished = "2026-01-01T00:00:01Z".to_owned();
    record
}

fn evidence(record: Record) -> Evidence {
    Evidence::new(record, &BTreeMap::new()).unwrap()
}

fn key(byte: u8) -> SecretKey {
    SecretKey::from_seed([byte; 32])
}

#[test]
fn what_was_signed_reads_back() {
    let made = evidence(record(Finding::Pass));
    let envelope = made.sign(&key(7));
    let line = envelope.to_line();
    assert!(!line.contains('\n'));
    let verified = verify(line.as_bytes(), &[key(1).public(), key(7).public()]).unwrap();
    assert_eq!(verified.evidence, made);
    assert_eq!(verified.digest, made.digest());
    assert_eq!(verified.keyid, key(7).public().id());
    verified.is_about("c0", "t0").unwrap();
    let wrong = verified.is_about("c1", "t0").unwrap_err();
    assert!(
        matches!(wrong, EvidenceError::SubjectMismatch { ref subject, .. } if subject == "gitCommit")
    );
}

#[test]
fn signatures_are_deterministic_and_canonical() {
    let one = evidence(record(Finding::Pass)).sign(&key(7));
    let two = evidence(record(Finding::Pass)).sign(&key(7));
    assert_eq!(one, two);
    let text = String::from_utf8(evidence(record(Finding::Pass)).bytes().to_vec()).unwrap();
    assert!(
        text.starts_with(
            r#"{"_type":"https://in-toto.io/Statement/v1","predicate":{"agent":null,"#
        )
    );
    assert!(text.contains(r#""subject":[{"digest":{"gitCommit":"c0"},"name":"commit"},{"digest":{"gitTree":"t0"},"name":"tree"}]"#));
}

#[test]
fn each_kind_of_wrong_has_its_name() {
    let made = evidence(record(Finding::Pass));
    let envelope = made.sign(&key(7));
    let trusted = [key(7).public()];
    let check = |envelope: &Envelope| verify(envelope.to_line().as_bytes(), &trusted).unwrap_err();
    assert!(matches!(
        verify(b"{}", &trusted),
        Err(EvidenceError::Malformed {
            what: "envelope",
            ..
        })
    ));
    assert!(matches!(
        verify(envelope.to_line().as_bytes(), &[key(9).public()]),
        Err(EvidenceError::UnknownKey { .. })
    ));
    let other = Envelope {
        payload_type: "text/plain".to_owned(),
        ..envelope.clone()
    };
    assert!(matches!(check(&other), EvidenceError::BadSignature { .. }));
    let signed_other = envelope::sealed("text/plain", made.bytes(), &key(7));
    assert!(matches!(
        check(&signed_other),
        EvidenceError::WrongPayloadType { .. }
    ));
    let later = String::from_utf8(made.bytes().to_vec())
        .unwrap()
        .replace("delivery/v1", "delivery/v2");
    assert!(matches!(
        check(&envelope::sealed(PAYLOAD_TYPE, later.as_bytes(), &key(7))),
        EvidenceError::UnknownPredicate { .. }
    ));
    let split = String::from_utf8(made.bytes().to_vec())
        .unwrap()
        .replace(r#""gitCommit":"c0""#, r#""gitCommit":"c1""#);
    assert!(matches!(
        check(&envelope::sealed(PAYLOAD_TYPE, split.as_bytes(), &key(7))),
        EvidenceError::SubjectMismatch { .. }
    ));
    assert!(matches!(
        check(&envelope::sealed(PAYLOAD_TYPE, b"[]", &key(7))),
        EvidenceError::Malformed {
            what: "statement",
            ..
        }
    ));
    let mut unsigned = envelope.clone();
    unsigned.signatures.clear();
    assert!(matches!(check(&unsigned), EvidenceError::Malformed { .. }));
    let mut short = envelope;
    "AAAA".clone_into(&mut short.signatures[0].sig);
    assert!(matches!(
        check(&short),
        EvidenceError::Malformed {
            what: "signature",
            ..
        }
    ));
}

#[test]
fn one_flipped_byte_anywhere_is_found() {
    let line = evidence(record(Finding::Pass))
        .sign(&key(7))
        .to_line()
        .into_bytes();
    let trusted = [key(7).public()];
    let whole = verify(&line, &trusted).unwrap();
    for at in (0..line.len()).step_by(7) {
        let mut bytes = line.clone();
        bytes[at] ^= 1;
        // A flip may only turn white space or an unknown key's name; what is verified stays what was signed.
        if let Ok(verified) = verify(&bytes, &trusted) {
            assert_eq!(verified.evidence, whole.evidence, "byte {at}");
        }
    }
}

#[test]
fn keys_go_through_pem() {
    let key = key(3);
    let again = SecretKey::from_pem(&key.to_pem().unwrap()).unwrap();
    assert_eq!(again.public(), key.public());
    assert_eq!(
        PublicKey::from_pem(&key.public().to_pem()).unwrap(),
        key.public()
    );
    assert!(
        SecretKey::from_pem("-----BEGIN PRIVATE KEY-----\nAA\n-----END PRIVATE KEY-----\n")
            .is_err()
    );
    assert!(PublicKey::from_pem("nonsense").is_err());
    assert!(!format!("{key:?}").contains("03030303"));
    assert_eq!(key.public().id().len(), 64);
}

#[test]
fn only_green_or_overridden_evidence_approves() {
    let approval = evidence(record(Finding::Warn)).approve().unwrap();
    assert_eq!(
        (approval.commit(), approval.tree(), approval.base()),
        ("c0", "t0", "b0")
    );
    assert_eq!(approval.digest(), evidence(record(Finding::Warn)).digest());

    let red = record(Finding::Fail);
    assert_eq!(
        evidence(red.clone()).approve(),
        Err(Refused::Rejected {
            gates: vec![Gate::Stub]
        })
    );
    let word = |reason: &str, gate| Override {
        gate,
        reason: reason.to_owned(),
        by: "ann".to_owned(),
    };
    let with = |record: &Record, word: Override| {
        evidence(Record {
            overrides: vec![word],
            ..record.clone()
        })
        .approve()
    };
    assert!(with(&red, word("a generated file", Gate::Stub)).is_ok());
    assert!(with(&red, word(" ", Gate::Stub)).is_err());
    assert!(with(&red, word("why", Gate::Audit)).is_err());

    let unchecked = record(Finding::CouldNotCheck);
    assert_eq!(
        evidence(unchecked.clone()).approve(),
        Err(Refused::CouldNotCheck {
            gates: vec![Gate::Stub]
        })
    );
    assert!(with(&unchecked, word("looked at it", Gate::Stub)).is_ok());

    let mut partial = record(Finding::Pass);
    partial.gates.truncate(4);
    assert_eq!(
        evidence(partial).approve(),
        Err(Refused::CouldNotCheck {
            gates: vec![Gate::Diagram]
        })
    );
}

#[test]
fn an_unconfined_agent_needs_leave() {
    let mut open = record(Finding::Pass);
    open.isolation = Isolation {
        mode: "worktree".to_owned(),
        confined: false,
        unconfined_allowed: false,
    };
    assert_eq!(
        evidence(open.clone()).approve(),
        Err(Refused::Unconfined {
            mode: "worktree".to_owned()
        })
    );
    open.isolation.unconfined_allowed = true;
    assert!(evidence(open).approve().is_ok());
}

#[test]
fn the_policy_digest_covers_profile_and_configuration() {
    let plain = Policy::of(Profile::default(), None).unwrap();
    let configured = Policy::of(
        Profile::default(),
        Some(serde_json::json!({"b": 1, "a": 2.0})),
    )
    .unwrap();
    let changed = Policy::of(
        Profile {
            max_file_bytes: 1,
            ..Profile::default()
        },
        None,
    )
    .unwrap();
    assert_ne!(plain.digest, configured.digest);
    assert_ne!(plain.digest, changed.digest);
    assert_eq!(
        plain.digest,
        Policy::of(Profile::default(), None).unwrap().digest
    );
}
