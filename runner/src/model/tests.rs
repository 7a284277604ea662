//! Each dialect as its agents speak it, and the server by real connections.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::*;

fn script() -> Script {
    Script {
        steps: vec![
            Step::Shell("git status".to_owned()),
            Step::Edit {
                path: "/repo/a.sh".to_owned(),
                name: "a.sh".to_owned(),
                content: "echo hi\n".to_owned(),
            },
        ],
        last: "All done.".to_owned(),
    }
}

fn asked(tools: Vec<Tool>, results: usize) -> Asked {
    Asked {
        tools,
        results: vec![String::new(); results],
        ..Asked::default()
    }
}

fn tool(name: &str, fields: &[&str], required: &[&str]) -> Tool {
    let fields = fields
        .iter()
        .map(|field| ((*field).to_owned(), json!({"type": "string"})));
    let schema = json!({
        "properties": fields.collect::<serde_json::Map<String, Value>>(), "required": required,
    });
    Tool::new(name, Some(&schema))
}

fn call(next: Move) -> (String, Value) {
    match next {
        Move::Call { tool, arguments } => (tool, arguments),
        Move::Write { tool, input } => (tool, input.into()),
        Move::Say(text) => (String::new(), text.into()),
    }
}

#[test]
fn each_agent_is_asked_by_its_own_tools() {
    let claude = vec![
        tool(
            "Bash",
            &["command", "description"],
            &["command", "description"],
        ),
        tool(
            "Write",
            &["file_path", "content"],
            &["file_path", "content"],
        ),
    ];
    let next = |tools: &[Tool], done| call(plan::next(&asked(tools.to_vec(), done), &script()));
    let shell = json!({"command": "git status", "description": "a step of the script"});
    assert_eq!(next(&claude, 0), ("Bash".to_owned(), shell));
    let write = json!({"file_path": "/repo/a.sh", "content": "echo hi\n"});
    assert_eq!(next(&claude, 1), ("Write".to_owned(), write));
    assert_eq!(next(&claude, 2), (String::new(), json!("All done.")));

    let codex = vec![tool("exec_command", &["cmd"], &["cmd"])];
    assert_eq!(next(&codex, 0).1, json!({"cmd": "git status"}));
    let by_shell = next(&codex, 1).1;
    assert!(
        by_shell["cmd"]
            .as_str()
            .unwrap()
            .starts_with("cat > 'a.sh' <<"),
        "{by_shell}"
    );

    let free = |name: &str| Tool {
        name: name.to_owned(),
        schema: None,
    };
    let program = vec![free("exec")];
    assert!(
        next(&program, 0)
            .1
            .as_str()
            .unwrap()
            .contains("tools.exec_command({cmd: \"git status\"})")
    );
    assert!(
        next(&program, 1)
            .1
            .as_str()
            .unwrap()
            .contains("tools.apply_patch(")
    );
    let patch = vec![tool("shell", &["command"], &[]), free("apply_patch")];
    assert!(
        next(&patch, 1)
            .1
            .as_str()
            .unwrap()
            .contains("*** Add File: a.sh\n+echo hi\n")
    );
    let nothing = vec![tool("weather", &["city"], &[])];
    assert_eq!(next(&nothing, 0).1, json!("no tool fits among: weather"));
}

#[test]
fn a_form_is_filled_in() {
    let mut request = asked(Vec::new(), 0);
    request.form = Some(json!({"type": "object", "properties": {
        "why": {"type": "string"}, "which": {"type": "string", "enum": ["flash", "pro"]}, "score": {"type": "integer", "minimum": 3},
        "list": {"type": "ARRAY"}, "sure": {"type": "boolean"}}}));
    let filled = r#"{"list":[],"score":3,"sure":false,"which":"flash","why":"scripted"}"#;
    assert_eq!(
        plan::next(&request, &script()),
        Move::Say(filled.to_owned())
    );
}

#[test]
fn an_agent_that_ends_by_a_command_is_told_so() {
    let mut request = asked(vec![tool("bash", &["command"], &["command"])], 2);
    request.said = "issue: echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT".to_owned();
    let end = call(plan::next(&request, &script())).1;
    assert_eq!(
        end["command"],
        "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo 'All done.'"
    );
    request.results.push(String::new());
    assert_eq!(
        plan::next(&request, &script()),
        Move::Say("All done.".to_owned())
    );
}

#[test]
fn an_agent_without_tools_is_told_in_its_own_words() {
    let mut request = asked(Vec::new(), 0);
    assert_eq!(
        plan::next(&request, &script()),
        Move::Say("All done.".to_owned())
    );
    request.said = "Use *SEARCH/REPLACE blocks*".to_owned();
    let Move::Say(edit) = plan::next(&request, &script()) else {
        panic!("words")
    };
    assert!(
        edit.contains("a.sh\n```\n<<<<<<< SEARCH\n=======\necho hi\n>>>>>>> REPLACE"),
        "{edit}"
    );
    request.said += &edit;
    assert_eq!(
        plan::next(&request, &script()),
        Move::Say("All done.".to_owned())
    );
}

#[test]
fn conversations_are_read_in_every_dialect() {
    let requests = [
        (
            Dialect::AnthropicMessages,
            json!({"messages": [
            {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "one"}]}]}],
            "tools": [{"name": "Bash", "input_schema": {}}], "stream": true}),
        ),
        (
            Dialect::OpenAiChat,
            json!({"messages": [{"role": "tool", "content": "one"}],
            "tools": [{"type": "function", "function": {"name": "Bash"}}], "stream": true}),
        ),
        (
            Dialect::OpenAiResponses,
            json!({"input": [{"type": "function_call_output", "output": "one"},
            {"type": "additional_tools", "tools": [{"type": "namespace", "name": "x", "tools": [{"type": "function", "name": "Bash"}]}]}],
            "stream": true}),
        ),
        (
            Dialect::Gemini,
            json!({"contents": [{"parts": [{"functionResponse": {"response": "one"}}]}],
            "tools": [{"functionDeclarations": [{"name": "Bash"}]}]}),
        ),
    ];
    for (dialect, request) in requests {
        let path = "/v1beta/models/x:streamGenerateContent";
        let (reply, asked) = answer(dialect, path, &request, &script());
        assert_eq!(asked.results, ["one"], "{dialect}");
        assert_eq!(asked.tools[0].name, "Bash", "{dialect}");
        assert!(matches!(reply, Reply::Events { .. }), "{dialect}");
    }
}

fn exchange(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_server_answers_and_tells_what_it_heard() {
    let served = serve(script()).unwrap();
    let body = json!({"messages": [], "tools": [{"name": "bash", "input_schema": {}}]}).to_string();
    let head = "HTTP/1.1\r\nhost: x\r\nX-Api-Key: k\r\nUser-Agent: me";
    let post = format!(
        "POST /v1/messages?beta=1 {head}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let chunked = format!(
        "POST /v1/messages {head}\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    for request in [post.clone(), chunked, format!("{post}{post}")] {
        let answer = exchange(served.port(), &request);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains(r#""name":"bash""#), "{answer}");
    }
    let heard = served.heard();
    assert_eq!(heard.len(), 4);
    assert_eq!(heard[0].credential.as_deref(), Some("k"));
    assert_eq!(
        (heard[0].asked.as_str(), heard[0].client.as_str()),
        ("POST /v1/messages", "me")
    );
    let upgrade = exchange(
        served.port(),
        "GET /v1/responses HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
    );
    assert!(upgrade.starts_with("HTTP/1.1 426 "), "{upgrade}");
}

#[test]
fn what_is_no_request_ends_the_connection() {
    let served = serve(script()).unwrap();
    for bad in [
        "",
        "\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "POST /v1/messages HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        "POST /v1/messages HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n",
        "POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    ] {
        assert_eq!(exchange(served.port(), bad), "", "{bad:?}");
    }
    let broken = exchange(
        served.port(),
        "POST /v1/messages HTTP/1.1\r\ncontent-length: 1\r\n\r\n{",
    );
    assert!(broken.starts_with("HTTP/1.1 400 "), "{broken}");
}
