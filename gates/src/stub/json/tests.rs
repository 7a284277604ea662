//! Truth table of JSON and its relatives.

use crate::Finding;
use crate::stub::tests::{first_code, judged};

const TABLE: [(&str, &str, Finding, &[u8]); 26] = [
    ("a.json", "", Finding::Pass, b"{}"),
    (
        "a.json",
        "",
        Finding::Pass,
        b"[1e999, 12345678901234567890123456789012345678901234567890]",
    ),
    ("a.json", "json.empty", Finding::Fail, b" \n"),
    (
        "a.json",
        "json.syntax",
        Finding::Fail,
        b"{\"a\": 1} // no\n",
    ),
    ("a.json", "json.syntax", Finding::Fail, b"{'a': 1}"),
    ("a.json", "json.syntax", Finding::Fail, b"{\"a\": True}"),
    ("a.json", "json.syntax", Finding::Fail, b"{\"a\": [1,"),
    (
        "a.json",
        "json.syntax",
        Finding::Fail,
        b"```json\n{}\n```\n",
    ),
    ("a.json", "json.syntax", Finding::Fail, b"[01]"),
    ("a.json", "json.nan", Finding::Fail, b"{\"a\": NaN}"),
    ("a.json", "json.nan", Finding::Fail, b"[-Infinity]"),
    (
        "a.json",
        "json.lines",
        Finding::Fail,
        b"{\"a\": 1}\n{\"a\": 2}\n",
    ),
    ("a.json", "json.bom", Finding::Fail, b"\xEF\xBB\xBF{}"),
    (
        "a.json",
        "json.encoding",
        Finding::Fail,
        b"{\"a\": \"\xE9\"}",
    ),
    ("a.json", "json.encoding", Finding::Fail, b"\xFF\xFE{\0}\0"),
    (
        "a.json",
        "json.conflict",
        Finding::Fail,
        b"{\n<<<<<<< HEAD\n\"a\": 1\n=======\n>>>>>>> b\n}",
    ),
    (
        "a.json",
        "json.dupkey",
        Finding::Fail,
        b"{\"a\": 1, \"b\": {\"a\": 2}, \"\\u0061\": 3}",
    ),
    ("a.json", "", Finding::Pass, b"[{\"a\": 1}, {\"a\": 2}]"),
    ("a.json", "json.surrogate", Finding::Warn, b"[\"\\ud800\"]"),
    (
        "a.json",
        "",
        Finding::Pass,
        b"[\"\\ud83d\\ude00\", \"\\\\ud800\"]",
    ),
    (
        "a.json",
        "json.placeholder",
        Finding::Warn,
        b"{\"a\": \"TODO\", \"b\": [\"...\"]}",
    ),
    ("tsconfig.json", "", Finding::Pass, b"{ // c\n \"a\": 1, }"),
    (".vscode/x.json", "", Finding::Pass, b"{ /* c */ }"),
    ("package.json", "json.syntax", Finding::Fail, b"{ // c\n}"),
    ("a.jsonl", "", Finding::Pass, b"{\"a\": 1}\n\n{\"a\": 2}\n"),
    (
        "a.jsonl",
        "json.syntax",
        Finding::Fail,
        b"{\"a\": 1}\n{\"a\": \n",
    ),
];

#[test]
fn json_truth_table() {
    for (path, code, finding, bytes) in TABLE {
        let run = judged(path, bytes);
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(
            (run.finding, first_code(&run)),
            (finding, code),
            "{path}: {text}\n{run:?}"
        );
    }
    let deep = format!("{}{}", "[".repeat(1001), "]".repeat(1001));
    assert_eq!(
        first_code(&judged("a.json", deep.as_bytes())),
        "json.too-deep"
    );
}

#[test]
fn notebooks() {
    let cell = |code: &str| {
        let source = serde_json::to_string(code).unwrap();
        format!(
            "{{\"cells\":[{{\"cell_type\":\"code\",\"metadata\":{{}},\"source\":{source}}}],\"metadata\":{{}},\"nbformat\":4}}"
        )
    };
    for code in [
        "%matplotlib inline\nx = 1\n",
        "!ls\nawait go()\n",
        "%%bash\nls -l | wc\n",
        "x?\n",
    ] {
        assert_eq!(
            judged("a.ipynb", cell(code).as_bytes()).finding,
            Finding::Pass,
            "{code}"
        );
    }
    for code in ["x = (\n", "def f(:\n", "%%time\nx = = 1\n"] {
        assert_eq!(
            judged("a.ipynb", cell(code).as_bytes()).finding,
            Finding::Fail,
            "{code}"
        );
    }
}
