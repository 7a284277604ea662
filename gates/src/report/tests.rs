//! Every format with an ordinary judgement, and with a hostile one.

use super::*;
use crate::{
    ChangeKind, ClaimCheck, ClaimKind, ClaimValue, ClaimVerdict, Comparison, FileFacts, Finding,
    Gate, GateRun, Judgement, Level, Measure, Reason,
};

const EVIL: &str = "a\n::error file=x::boo\r\n<script>alert(1)</script>\u{1b}[31m\u{202e}| `x` ]]> & \"q\" 'p' @team %0A";

fn report(path: &str, message: &str) -> Report {
    let run = |gate: Gate, reasons: Vec<Reason>| GateRun::of(gate, reasons);
    let file = FileFacts {
        path: path.to_owned(),
        change: ChangeKind::Added,
        from: None,
        now: Measure {
            bytes: 1225,
            lines: 40,
            language: "python".to_owned(),
            statements: Some(0),
            ..Measure::default()
        },
        before: None,
    };
    let claim = ClaimCheck {
        text: message.to_owned(),
        line: 1,
        kind: ClaimKind::Chars,
        path: Some(path.to_owned()),
        comparison: Comparison::Eq,
        claimed: ClaimValue::Count(17141),
        measured: Some(ClaimValue::Count(1225)),
        verdict: ClaimVerdict::Differs,
    };
    let judgement = Judgement {
        gates: vec![
            run(Gate::Commit, vec![Reason::info("commit.engine", "1 file")]),
            run(Gate::Tree, vec![]),
            run(
                Gate::Stub,
                vec![
                    Reason::fail("py.no-statements", message)
                        .at(path)
                        .line(3)
                        .column(2)
                        .help("write the code"),
                ],
            ),
            run(
                Gate::Audit,
                vec![
                    Reason::warn("claim.differs", message),
                    Reason::unchecked("audit.unreadable", message).at(path),
                ],
            ),
            GateRun::not_applicable(Gate::Diagram, "no document was added or changed"),
        ],
        files: vec![file],
        claims: vec![claim],
    };
    let task = TaskFacts {
        task: "t1".to_owned(),
        summary: Some(message.to_owned()),
        ..TaskFacts::default()
    };
    Report {
        repository: "demo".to_owned(),
        base: "b".repeat(40),
        commit: "c".repeat(40),
        tree: "t".repeat(40),
        task: Some(task),
        judgement,
    }
}

#[test]
fn the_terminal_report_reads_well() {
    let text = report("src/a.py", "the file has no statements").render(Format::Text);
    for line in [
        "rejected  demo cccccccccccc on bbbbbbbbbbbb",
        "  ✗ stub     fail             1 refused",
        "  – diagram  not applicable   no document was added or changed",
        "fail src/a.py:3:2 py.no-statements",
        "  help: write the code",
        "  differs    claimed 17,141 chars, measured 1,225 chars (src/a.py)",
        "  src/a.py  added python, 1,225 bytes, 40 lines, 0 statements",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn a_style_sees_every_painted_piece() {
    struct Marks;
    impl Style for Marks {
        fn paint(&self, role: Role, text: &str) -> String {
            format!("<{role:?}>{text}</>")
        }
    }
    let text = report("a.py", "m").text(&Marks);
    assert!(
        text.contains("<Bad>rejected</>")
            && text.contains("<Place>a.py:3:2</>")
            && text.contains("<Code>py.no-statements</>")
    );
}

#[test]
fn no_format_lets_an_agents_control_characters_through() {
    let hostile = report(EVIL, EVIL);
    for format in Format::ALL {
        let text = hostile.render(format);
        let raw = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(raw), "{format}: control character");
        assert!(
            format == Format::Json || !text.contains('\u{202e}'),
            "{format}: direction"
        );
        assert!(text.ends_with('\n'), "{format}");
    }
    assert!(!hostile.summary_markdown().contains('\u{1b}'));
}

#[test]
fn github_commands_come_from_us_alone() {
    let text = report(EVIL, EVIL).render(Format::Github);
    let stop = text
        .lines()
        .position(|line| line.starts_with("::stop-commands::"))
        .unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let token = lines[stop].trim_start_matches("::stop-commands::");
    assert_eq!(token.len(), 64);
    for line in &lines[..stop] {
        let (head, message) = line.trim_start_matches("::").split_once("::").unwrap();
        assert!(
            head.starts_with("error ") || head.starts_with("warning "),
            "{line}"
        );
        assert!(head.contains("title=") && !message.contains('\r'));
    }
    let ends = lines
        .iter()
        .filter(|line| **line == format!("::{token}::"))
        .count();
    assert_eq!(
        (ends, lines.last()),
        (1, Some(&format!("::{token}::").as_str()))
    );
    assert!(
        !lines
            .iter()
            .any(|line| line.starts_with("::error file=x::"))
    );
}

#[test]
fn github_shows_ten_of_a_kind_and_counts_the_rest() {
    let mut many = report("a.py", "m");
    many.judgement.gates[2].reasons = (0..25)
        .map(|n| Reason::fail("py.x", format!("n{n}")).at("a.py").line(n))
        .collect();
    let text = many.render(Format::Github);
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("::error "))
            .count(),
        10
    );
    assert!(text.contains("and 16 more errors"), "{text}");
    assert!(many.summary_markdown().matches("**fail**").count() == 25);
}

#[test]
fn sarif_has_rules_results_and_stable_fingerprints() {
    let log: serde_json::Value =
        serde_json::from_str(&report("dir/ä b.py", "17 statements").render(Format::Sarif)).unwrap();
    let run = &log["runs"][0];
    let first = &run["results"][0];
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(first["level"], "error");
    assert_eq!(
        first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "dir/%C3%A4%20b.py"
    );
    assert_eq!(
        first["locations"][0]["physicalLocation"]["region"]["startLine"],
        3
    );
    let index = usize::try_from(first["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(run["tool"]["driver"]["rules"][index]["id"], first["ruleId"]);
    let mut moved = report("dir/ä b.py", "18 statements");
    moved.judgement.gates[2].reasons[0].line = Some(99);
    let again: serde_json::Value = serde_json::from_str(&moved.render(Format::Sarif)).unwrap();
    assert_eq!(
        first["partialFingerprints"],
        again["runs"][0]["results"][0]["partialFingerprints"]
    );
}

#[test]
fn gitlab_is_an_array_with_unique_fingerprints() {
    let mut twice = report("a.py", "same");
    let reason = twice.judgement.gates[2].reasons[0].clone();
    twice.judgement.gates[2].reasons.push(reason);
    let issues: Vec<serde_json::Value> =
        serde_json::from_str(&twice.render(Format::Gitlab)).unwrap();
    let mut prints: Vec<String> = issues
        .iter()
        .map(|issue| issue["fingerprint"].to_string())
        .collect();
    prints.sort();
    prints.dedup();
    assert_eq!((issues.len(), prints.len()), (4, 4));
    assert_eq!(issues[0]["severity"], "major");
    assert_eq!(issues[0]["location"]["lines"]["begin"], 3);
}

#[test]
fn junit_is_well_formed_and_counts() {
    use quick_xml::events::Event;
    for text in [
        report("a.py", "m").render(Format::Junit),
        report(EVIL, EVIL).render(Format::Junit),
    ] {
        let mut reader = quick_xml::Reader::from_str(&text);
        let mut failures = 0;
        loop {
            let event = reader.read_event().unwrap();
            if event == Event::Eof {
                break;
            }
            let failed = matches!(&event, Event::Start(tag) if tag.name().0 == "failure");
            failures += usize::from(failed);
        }
        assert_eq!(failures, 1, "{text}");
        assert!(!text.contains("<script"));
    }
}

#[test]
fn the_page_runs_nothing_and_loads_nothing() {
    let page = report(EVIL, EVIL).render(Format::Html);
    assert!(page.contains("default-src 'none'"));
    for unwanted in [
        "<script",
        "http://",
        "https://",
        "src=",
        "href=",
        "onload",
        "javascript:",
    ] {
        assert!(!page.contains(unwanted), "{unwanted}");
    }
    assert!(page.contains("&lt;script&gt;") && page.contains("\\u{202e}"));
}

#[test]
fn markdown_is_inert() {
    let summary = report(EVIL, EVIL).summary_markdown();
    assert!(!summary.contains("<script") && !summary.contains("@team") && !summary.contains("`x`"));
    assert!(
        summary.contains("| stub | ✗ fail | 1 refused |"),
        "{summary}"
    );
    assert!(summary.len() < 1 << 20);
}

#[test]
fn the_json_object_has_the_command_lines_names() {
    let value = report("a.py", "m").json();
    assert_eq!(value["verdict"], "rejected");
    assert_eq!(value["gates"][2]["reasons"][0]["code"], "py.no-statements");
    assert_eq!(value["files"][0]["bytes"], 1225);
    assert_eq!(value["claims"][0]["verdict"], "differs");
    assert_eq!(
        value["gates"][2]["finding"],
        serde_json::to_value(Finding::Fail).unwrap()
    );
    assert!(
        report("a", "b")
            .items()
            .any(|item| item.level == Level::Fail)
    );
}
