//! Reports as a person reads them.

use std::collections::BTreeMap;

use gates::{ChangeKind, FileFacts, Gate, GateRun, Measure, Reason, Syntax};

use super::*;
use crate::event::{Event, EvidenceFacts, Record, SealFacts};
use crate::task::{Bounds, Cleanup, Isolation, Net, Spec, TaskId};

pub(crate) fn spec() -> Spec {
    let bounds = Bounds {
        timeout_ms: None,
        grace_ms: 1,
        output: 1,
        idle_ms: None,
        pids: 1,
        memory: 1,
        disk: 1,
        files: 1,
        home: 1,
        tmp: 1,
        file_size: 1,
    };
    Spec {
        task: TaskId::try_from("t1".to_owned()).unwrap(),
        run: "r1".to_owned(),
        goal: Some("add a calculator".to_owned()),
        agent: "sh".to_owned(),
        argv: vec!["sh".into()],
        isolation: Isolation::Sandbox,
        base: "b".repeat(40),
        branch: "airlock/r1/t1".to_owned(),
        into: Some("main".to_owned()),
        merge: None,
        merge_allowed: true,
        allow_unconfined: false,
        cleanup: Cleanup::OnSuccess,
        attempts: 1,
        net: Net::None,
        credentials: Vec::new(),
        toolchains: Vec::new(),
        setup: None,
        ro: Vec::new(),
        installed: Vec::new(),
        rw: Vec::new(),
        env: BTreeMap::new(),
        pass_env: Vec::new(),
        bounds,
        note: None,
        note_file: None,
        allow: Vec::new(),
        protect: Vec::new(),
        profile: gates::Profile::default(),
        reading: None,
        copy: BTreeMap::new(),
        files: BTreeMap::new(),
        origins: BTreeMap::new(),
    }
}

fn outcome() -> sandbox::Outcome {
    sandbox::Outcome {
        exit: sandbox::Exit::Code(0),
        code: Some(0),
        signal: None,
        output_bytes: 0,
        output_dropped: 0,
        leaked: false,
        started_ms: Some(0),
        ended_ms: 4_200,
        elapsed_ms: 4_200,
    }
}

fn judgement(stub: GateRun) -> Judgement {
    let now = Measure {
        bytes: 1_225,
        lines: 40,
        language: "python".to_owned(),
        syntax: Syntax::Ok,
        statements: Some(7),
        blob: Some("d".repeat(40)),
        ..Measure::default()
    };
    let file = |path: &str| FileFacts {
        path: path.to_owned(),
        change: ChangeKind::Added,
        from: None,
        now: now.clone(),
        before: None,
    };
    Judgement {
        gates: vec![GateRun::of(Gate::Commit, Vec::new()), stub],
        files: vec![file("calc.py"), file("a\n\u{1b}[31mb.py")],
        ..Judgement::default()
    }
}

/// A task whose gate `stub` says this.
pub(in super::super) fn judged(stub: GateRun) -> TaskView {
    let seal = SealFacts {
        commit: Some("c".repeat(40)),
        tree: "e".repeat(40),
        files: 2,
        problems: Vec::new(),
        unconverted: Vec::new(),
        shadow: None,
        diff_stat: Some(worktrees::DiffStat {
            files: 2,
            insertions: 80,
            deletions: 1,
        }),
    };
    let evidence = EvidenceFacts {
        statement: "/state/tasks/t1/evidence/statement.json".into(),
        digest: format!("sha256:{}", "f".repeat(64)),
        signed: true,
    };
    let judgement = judgement(stub);
    let last = match judgement.verdict() {
        gates::Verdict::Accepted => Event::Accepted {
            commit: "c".repeat(40),
            branch: "airlock/r1/t1".to_owned(),
        },
        gates::Verdict::Rejected | gates::Verdict::CouldNotCheck => {
            Event::Rejected { again: false }
        }
    };
    let events = vec![
        Event::Queued {
            spec: Box::new(spec()),
            repository: "demo".to_owned(),
            start: "/repo".into(),
        },
        Event::Preparing,
        Event::Prepared {
            worktree: None,
            workspace: "/state/tasks/t1/tree".into(),
        },
        Event::Started {
            attempt: 1,
            job: "agent-1".to_owned(),
        },
        Event::Ended {
            attempt: 1,
            refused: 0,
            outcome: outcome(),
        },
        Event::Sealing,
        Event::Sealed {
            seal: Box::new(seal),
        },
        Event::Gating,
        Event::Judged {
            judgement: Box::new(judgement),
        },
        Event::Recorded { evidence },
        last,
    ];
    let task = TaskId::try_from("t1".to_owned()).unwrap();
    let records = events.into_iter().zip(1..);
    let records: Vec<Record> = records
        .map(|(event, seq)| Record {
            seq,
            at: seq * 1000,
            task: task.clone(),
            event,
        })
        .collect();
    TaskView::fold(&records).unwrap().unwrap()
}

#[test]
fn a_refusal_is_explained() {
    let reason = Reason::fail("py.no-statements", "only comments")
        .at("calc.py")
        .line(1)
        .help("write the code");
    let view = judged(GateRun::of(Gate::Stub, vec![reason]));
    let text = lines(&view, Depth::Closing, "airlock", Paint::PLAIN).join("\n");
    insta::assert_snapshot!(text, @r"
    ✗ task t1 was rejected by stub
      sh · 1 attempt · 4.2 s · sandbox, no network · 2 files +80 -1

    rejected  demo cccccccccccc on bbbbbbbbbbbb

      ✓ commit   pass
      ✗ stub     fail             1 refused

    fail calc.py:1 py.no-statements
      only comments
      help: write the code

    files
      calc.py  added python, 1,225 bytes, 40 lines, 7 statements
      a\n\u{1b}[31mb.py  added python, 1,225 bytes, 40 lines, 7 statements

    where it is
      evidence  /state/tasks/t1/evidence/statement.json (signed)
                sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
      worktree  /state/tasks/t1/tree

    what next
      airlock diff t1           what was refused
      airlock resume t1         let the agent try again in the same tree
      airlock rm t1 --discard   throw it away
    ");
}

#[test]
fn an_acceptance_says_how_to_land_it() {
    let view = judged(GateRun::of(Gate::Stub, Vec::new()));
    let text = lines(&view, Depth::Full, "airlock -C /repo", Paint::PLAIN).join("\n");
    insta::assert_snapshot!(text, @r"
    ✓ task t1 is accepted on branch airlock/r1/t1
      sh · 1 attempt · 4.2 s · sandbox, no network · 2 files +80 -1

    goal
      add a calculator

    accepted  demo cccccccccccc on bbbbbbbbbbbb

      ✓ commit   pass
      ✓ stub     pass

    files
      calc.py  added python, 1,225 bytes, 40 lines, 7 statements
      a\n\u{1b}[31mb.py  added python, 1,225 bytes, 40 lines, 7 statements

    where it is
      evidence  /state/tasks/t1/evidence/statement.json (signed)
                sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
      branch    airlock/r1/t1 (cccccccccc)
      worktree  /state/tasks/t1/tree

    what next
      airlock -C /repo diff t1    what was accepted
      airlock -C /repo merge t1   land it
    ");
}

#[test]
fn a_branch_that_went_with_the_checkout_is_not_named() {
    let mut view = judged(GateRun::of(Gate::Stub, Vec::new()));
    let oid = |digit| worktrees::Oid::from_str(&String::from(digit).repeat(40)).unwrap();
    view.landing = Some(crate::view::LandingView {
        plan: worktrees::LandPlan {
            target: "main".to_owned(),
            expected: oid('b'),
            result: oid('c'),
            tree: oid('d'),
            kind: worktrees::LandKind::FastForward,
            judged_as_is: true,
            delivery: oid('c'),
            when: 0,
        },
        landed: Some("c".repeat(40)),
    });
    let says_branch = |view: &TaskView| places(view).iter().any(|line| line.starts_with("branch"));
    assert!(says_branch(&view), "the checkout is kept");
    view.checkout = Some(Checkout::Removed);
    assert!(!says_branch(&view));
}

#[test]
fn a_closing_report_stays_short() {
    let reasons = (0..40).map(|_| Reason::fail("a", "b")).collect();
    let view = judged(GateRun::of(Gate::Stub, reasons));
    let closing = lines(&view, Depth::Closing, "airlock", Paint::PLAIN).join("\n");
    assert!(
        closing.contains("… and 25 more; `airlock show t1` has them all"),
        "{closing}"
    );
    let full = lines(&view, Depth::Full, "airlock", Paint::PLAIN).join("\n");
    assert_eq!(full.matches("fail stub a").count(), 40, "{full}");
}
