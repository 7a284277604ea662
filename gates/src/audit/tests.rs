//! Claims as people and agents write them, what is read of them, and how they compare.

use std::collections::HashMap;

use proptest::prelude::*;

use super::claims;
use crate::{
    AgentCommit, AgentWork, Blob, Change, ChangeKind, ClaimVerdict, Delivery, Finding, Gate,
    Judgement, Profile, Source, TreeEntry, judge,
};

struct Store(HashMap<String, Vec<u8>>);

impl Source for Store {
    fn blob(&mut self, oid: &str) -> Option<Vec<u8>> {
        self.0.get(oid).cloned()
    }

    fn entries(&mut self) -> Vec<TreeEntry> {
        let path = "kept/old.txt".to_owned();
        let oid = "kept".to_owned();
        vec![TreeEntry {
            path,
            oid,
            mode: 0o100_644,
        }]
    }
}

fn delivered(files: &[(&str, &[u8])], note: &str) -> (Delivery, Store) {
    let mut store = Store(HashMap::from([("kept".to_owned(), b"a\nb\nc\n".to_vec())]));
    let changes = files.iter().enumerate().map(|(at, (path, bytes))| {
        let oid = format!("{at:040x}");
        store.0.insert(oid.clone(), bytes.to_vec());
        Change {
            path: (*path).to_owned(),
            kind: ChangeKind::Added,
            from: None,
            old: None,
            new: Some(Blob {
                oid,
                mode: 0o100_644,
                bytes: bytes.len() as u64,
            }),
        }
    });
    let changes = changes.collect();
    let delivery = Delivery {
        repository: "sample".to_owned(),
        task: None,
        run: None,
        base: "b".repeat(40),
        base_tree: "e".repeat(40),
        commit: "c0ffee".repeat(7).chars().take(40).collect(),
        tree: "d".repeat(40),
        changes,
        problems: Vec::new(),
        unconverted: Vec::new(),
        agent: AgentWork {
            commits: vec![AgentCommit {
                oid: "a11ce5".repeat(7),
                subject: "wip".to_owned(),
                reference: None,
            }],
            ..AgentWork::default()
        },
        note: Some(note.to_owned()),
        profile: Profile::default(),
        engine_made: true,
    };
    (delivery, store)
}

fn audit(files: &[(&str, &[u8])], note: &str) -> (Finding, Judgement) {
    let (delivery, mut store) = delivered(files, note);
    let judgement = judge(&delivery, &mut store);
    let run = judgement
        .gates
        .iter()
        .find(|run| run.gate == Gate::Audit)
        .unwrap();
    (run.finding, judgement)
}

/// What a note is read as, one word a claim: `lines=312@src/a.py`, `~bytes=12500`.
fn said(note: &str) -> String {
    let word = |claim: claims::Claim| {
        let json = |value: &dyn erased::Show| value.json();
        let sign = match claim.comparison {
            crate::Comparison::Eq => "",
            crate::Comparison::Approx => "~",
            crate::Comparison::Ge => ">",
            crate::Comparison::Le => "<",
        };
        let path = claim
            .path
            .map_or_else(String::new, |path| format!("@{path}"));
        format!("{sign}{}={}{path}", json(&claim.kind), json(&claim.value))
    };
    claims::read(note)
        .into_iter()
        .map(word)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Values shown as their JSON without quotes.
mod erased {
    pub(super) trait Show {
        fn json(&self) -> String;
    }

    impl<T: serde::Serialize> Show for T {
        fn json(&self) -> String {
            serde_json::to_string(self).unwrap().replace('"', "")
        }
    }
}

#[test]
fn notes_are_read_in_two_languages() {
    let table = [
        (
            "Wrote 17,141 characters to `docs/design.md`.",
            "chars=17141@docs/design.md",
        ),
        (
            "`src/a.py` has 312 lines and 9,870 bytes",
            "lines=312@src/a.py bytes=9870@src/a.py",
        ),
        ("roughly 2.5 KB in out.txt", "~bytes=2500@out.txt"),
        (
            "The essay has between 1,000 and 1,200 words.",
            ">words=1000 <words=1200",
        ),
        ("Kept it under 80 lines.", "<lines=80"),
        ("Created four new files.", "files=4"),
        ("at least 20 functions", ">functions=20"),
        ("You asked for 900 words; I delivered 840.", "words=840"),
        ("See line 42 of a.py, version 3.12.1, port 8080, #77.", ""),
        ("The limit was 300 lines.", ""),
        ("All 9 tests pass.", "tests_passed=9 tests_failed=0"),
        ("7 of 9 tests pass", "tests_passed=7 tests_total=9"),
        (
            "== 5 passed, 1 failed, 2 skipped in 0.1s ==",
            "tests_passed=5 tests_failed=1 tests_skipped=2",
        ),
        (
            "test result: ok. 3 passed; 0 failed; 4 ignored; 0 measured",
            "tests_passed=3 tests_failed=0 tests_skipped=4",
        ),
        (
            "Tests: 1 failed, 8 passed, 9 total",
            "tests_failed=1 tests_passed=8 tests_total=9",
        ),
        ("The tests will pass when it is deployed.", ""),
        (
            "I could not run the tests: tests were not run.",
            "tests_run=false",
        ),
        ("Coverage: 81.5%", "coverage_pct=81.5"),
        ("Committed as 3f2a1c0.", "commit=3f2a1c0"),
        ("[main 1234567] add it", "commit=1234567"),
        ("deadbeef is a nice word", ""),
        ("共 840 字，写入 docs/设计.md", "cjk_words=840@docs/设计.md"),
        ("约1.2万字", "~cjk_words=12000"),
        ("新增两个文件，共二百三十行", "files=2 lines=230"),
        ("要求不少于800字，实际840字", "cjk_words=840"),
        ("9 个测试全部通过", "tests_passed=9 tests_failed=0"),
        ("还没有运行测试", "tests_run=false"),
        ("第 12 行有一个字段", ""),
        (
            "| file | bytes |\n|---|---|\n| a.py | 1,200 |\n| b.py | 90 |",
            "bytes=1200@a.py bytes=90@b.py",
        ),
    ];
    for (note, want) in table {
        assert_eq!(said(note), want, "{note}");
    }
}

#[test]
fn claims_meet_measures() {
    let text: Vec<u8> = b"x = 1\n".repeat(200);
    let files: [(&str, &[u8]); 1] = [("src/a.py", &text)];
    let table = [
        (
            "src/a.py has 200 lines",
            ClaimVerdict::Agrees,
            Finding::Pass,
        ),
        (
            "wrote 1,200 characters",
            ClaimVerdict::Agrees,
            Finding::Pass,
        ),
        ("about 1.2 KB", ClaimVerdict::Agrees, Finding::Pass),
        (
            "src/a.py has 230 lines",
            ClaimVerdict::Differs,
            Finding::Warn,
        ),
        (
            "wrote 17141 characters",
            ClaimVerdict::Differs,
            Finding::Fail,
        ),
        (
            "src/a.py has 30 lines",
            ClaimVerdict::Differs,
            Finding::Fail,
        ),
        ("Under 100 lines", ClaimVerdict::Differs, Finding::Warn),
        (
            "src/b.py has 30 lines",
            ClaimVerdict::Differs,
            Finding::Warn,
        ),
        (
            "kept/old.txt has 3 lines",
            ClaimVerdict::Agrees,
            Finding::Pass,
        ),
        ("created 3 files", ClaimVerdict::Differs, Finding::Fail),
        ("created 1 file", ClaimVerdict::Agrees, Finding::Pass),
        ("it reads 14 files", ClaimVerdict::Unverified, Finding::Pass),
        ("committed as c0ffeec0", ClaimVerdict::Agrees, Finding::Pass),
        ("committed as a11ce5a1", ClaimVerdict::Agrees, Finding::Pass),
        (
            "committed as 1234abcd",
            ClaimVerdict::Differs,
            Finding::Fail,
        ),
        (
            "reverts commit 1234abcd",
            ClaimVerdict::Unverified,
            Finding::Pass,
        ),
        ("all 12 tests pass", ClaimVerdict::Unverified, Finding::Pass),
    ];
    for (note, verdict, finding) in table {
        let (found, judgement) = audit(&files, note);
        assert_eq!(
            judgement.claims.first().map(|claim| claim.verdict),
            Some(verdict),
            "{note}"
        );
        assert_eq!(found, finding, "{note}");
    }
}

#[test]
fn a_size_without_a_file_may_be_any_part_but_not_more_than_all() {
    let files: [(&str, &[u8]); 2] = [("a.txt", b"12345"), ("b.txt", b"1234567890")];
    for (note, verdict) in [
        ("10 bytes", ClaimVerdict::Agrees),
        ("15 bytes", ClaimVerdict::Agrees),
        ("7 bytes", ClaimVerdict::Unverified),
        ("5,000 bytes", ClaimVerdict::Differs),
    ] {
        assert_eq!(audit(&files, note).1.claims[0].verdict, verdict, "{note}");
    }
}

#[test]
fn the_json_shape_of_files_and_claims() {
    let (_, judgement) = audit(&[("a.py", b"x = 1\n")], "wrote 17141 characters to a.py");
    let json = serde_json::to_value(&judgement).unwrap();
    insta::assert_snapshot!(json["files"][0].to_string(), @r#"{"blob":"0000000000000000000000000000000000000000","bytes":6,"change":"added","chars":6,"cjk":0,"functions":0,"language":"python","lines":1,"mode":"100644","path":"a.py","statements":1,"syntax":"ok","words":3}"#);
    insta::assert_snapshot!(json["claims"][0].to_string(), @r#"{"claimed":17141,"comparison":"eq","kind":"chars","line":1,"measured":6,"path":"a.py","text":"wrote 17141 characters to a.py","verdict":"differs"}"#);
    let back: Judgement = serde_json::from_value(json).unwrap();
    assert_eq!(back, judgement);
}

proptest! {
    #[test]
    fn any_note_is_read(note in "\\PC*") {
        claims::read(&note);
    }

    #[test]
    fn any_mix_of_words_is_read(parts in proptest::collection::vec(0_usize..WORDS.len(), 0..60)) {
        let note: String = parts.into_iter().map(|at| WORDS[at]).collect();
        let (_, judgement) = audit(&[("a.py", b"x = 1\n")], &note);
        prop_assert_eq!(judgement.files.len(), 1);
    }
}

const WORDS: [&str; 40] = [
    "12",
    "1,204",
    "3.5",
    "k",
    "万",
    "三千",
    "余",
    "行",
    "字",
    " lines",
    " files",
    " chars",
    "KB",
    " ",
    "\n",
    "|",
    "/",
    ",",
    "，",
    "。",
    ".",
    "a.py",
    "docs/设计",
    "commit ",
    "9d8e7f6a",
    "[main ",
    "]",
    "tests",
    " passed",
    "全部通过",
    "第",
    "between ",
    " and ",
    "%",
    "coverage",
    "~",
    "`",
    "é",
    "\u{202e}",
    "created ",
];

#[test]
fn a_huge_line_is_read_in_linear_time() {
    let note = "12 lines, 3 files of 4 tests / a.py ".repeat(100_000);
    claims::read(&note);
}
