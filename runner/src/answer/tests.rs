//! Outputs of agents as they come, and outputs as nobody would want them.

use proptest::prelude::*;

use super::*;

fn rules(list: &[&str]) -> Vec<Selector> {
    list.iter()
        .map(|text| Selector::try_from((*text).to_owned()).unwrap())
        .collect()
}

fn reading() -> Reading {
    Reading {
        result: rules(&["last type=result -> result", "rest"]),
        cost_usd: rules(&["last type=result -> total_cost_usd", "line ${} session"]),
        session: rules(&["first -> session_id"]),
        input_tokens: rules(&["sum type=step -> tokens.input"]),
        output_tokens: rules(&["sum type=step -> tokens.output"]),
    }
}

const STREAM: &str = r#"warning: something{"type":"init","session_id":"s-1"}
{"type":"step","tokens":{"input":10,"output":"5"}}
not json at all
{"type":"step","tokens":{"input":"1.2k","output":6}}
{"type":"result","result":"All done.","total_cost_usd":0.0012,"session_id":"s-2"}
"#;

#[test]
fn a_stream_of_events_is_read() {
    let answer = Answer::of(STREAM.as_bytes(), &reading());
    assert_eq!(
        answer,
        Answer {
            result: Some("All done.".to_owned()),
            result_cut: false,
            cost_usd: Some(0.0012),
            session: Some("s-1".to_owned()),
            input_tokens: Some(1210),
            output_tokens: Some(11),
        }
    );
}

#[test]
fn text_is_read_from_its_end() {
    let answer = Answer::of(
        b"\x1b[1mwork\x1b[0m\nTotal: $0.25 session\nBye\x07\n",
        &reading(),
    );
    assert_eq!(
        answer.result.as_deref(),
        Some("work\nTotal: $0.25 session\nBye")
    );
    assert_eq!(answer.cost_usd, Some(0.25));
}

#[test]
fn figures_that_make_no_sense_are_not_there() {
    let event = |body: &str| {
        let line = format!("{{\"type\":\"result\",{body}}}");
        Answer::of(line.as_bytes(), &reading())
    };
    for cost in ["-1", "\"nan\"", "1e300", "\"inf\"", "null", "[]"] {
        assert_eq!(
            event(&format!("\"total_cost_usd\":{cost}")).cost_usd,
            None,
            "{cost}"
        );
    }
    for session in ["\"a b\"", "\"\\u001b[2J\"", "\"\"", "{}"] {
        assert_eq!(
            event(&format!("\"session_id\":{session}")).session,
            None,
            "{session}"
        );
    }
    let long = format!("\"session_id\":\"{}\"", "x".repeat(300));
    assert_eq!(event(&long).session, None);
}

#[test]
fn a_huge_result_is_cut_and_a_huge_line_is_passed_over() {
    let long = "ä".repeat(LONGEST_RESULT);
    let line = format!("{{\"type\":\"result\",\"result\":\"{long}\"}}\n");
    let answer = Answer::of(line.as_bytes(), &reading());
    assert!(answer.result_cut);
    assert_eq!(answer.result.unwrap().len(), LONGEST_RESULT);
    let longer = format!(
        "{{\"type\":\"result\",\"result\":\"{}\"}}\n",
        "x".repeat(LONGEST_LINE)
    );
    let answer = Answer::of((longer + STREAM).as_bytes(), &reading());
    assert_eq!(answer.result.as_deref(), Some("All done."));
}

#[test]
fn deep_json_is_no_danger() {
    let deep = "[".repeat(200_000);
    let line = format!("{{\"type\":\"result\",\"result\":{deep}\n{STREAM}");
    assert_eq!(
        Answer::of(line.as_bytes(), &reading()).session.as_deref(),
        Some("s-1")
    );
}

#[test]
fn of_a_long_log_beginning_and_end_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output.log");
    let filler = "x".repeat(99) + "\n";
    let many = usize::try_from(HEAD + TAIL).unwrap() / filler.len() + 50_000;
    let first = "{\"session_id\":\"early\"}\n";
    let last = "{\"type\":\"result\",\"result\":\"late\"}\n";
    std::fs::write(&path, [first, &filler.repeat(many), last].concat()).unwrap();
    let answer = Answer::of_log(&path, &reading()).unwrap();
    assert_eq!(answer.session.as_deref(), Some("early"));
    assert_eq!(answer.result.as_deref(), Some("late"));
    let absent = Answer::of_log(&folder.path().join("absent"), &reading()).unwrap();
    assert!(absent.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_output_breaks_it(output in prop::collection::vec(any::<u8>(), 0..400)) {
        let answer = Answer::of(&output, &reading());
        prop_assert!(answer.cost_usd.is_none_or(|cost| cost >= 0.0));
    }

    #[test]
    fn torn_events_are_passed_over(at in 0..STREAM.len()) {
        let torn = STREAM.as_bytes().get(at..).unwrap_or_default();
        let answer = Answer::of(torn, &reading());
        let whole = STREAM.rfind("{\"type\":\"result\"").unwrap() >= at;
        prop_assert_eq!(whole, answer.result.as_deref() == Some("All done."));
    }
}
