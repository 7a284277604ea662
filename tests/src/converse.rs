//! A small coding agent: asks a model over HTTP, does what the model's tool calls say with `sh`, and
//! tells in events, one a line, what became of it. Speaks Chat Completions as plainly as can be.

#![expect(clippy::print_stdout, reason = "an agent talks on its standard output")]

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};

/// More turns than any test needs.
const MOST: usize = 20;

/// Converses until the model says its last words. `base` is `http://HOST/PATH`, without a port.
pub fn converse(base: &str, key: &str, prompt: &str) -> io::Result<()> {
    let mut messages = vec![json!({"role": "user", "content": prompt})];
    println!("{}", json!({"type": "init", "session": "fake-session-1"}));
    for _ in 0..MOST {
        let answer = ask(base, key, &messages)?;
        let message = answer["choices"][0]["message"].clone();
        messages.push(message.clone());
        let Some(call) = message["tool_calls"][0].as_object() else {
            let text = message["content"].as_str().unwrap_or_default();
            println!("{}", json!({"type": "result", "text": text, "cost": 0.25}));
            return Ok(());
        };
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let arguments: Value = serde_json::from_str(arguments)?;
        let command = arguments["command"].as_str().unwrap_or_default();
        let output = Command::new("sh").args(["-c", command]).output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        println!(
            "{}",
            json!({"type": "step", "tokens": 10, "command": command})
        );
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": said}));
    }
    Err(io::Error::other("the model never ends"))
}

fn ask(base: &str, key: &str, messages: &[Value]) -> io::Result<Value> {
    let rest = base.strip_prefix("http://").unwrap_or(base);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let parameters =
        json!({"properties": {"command": {"type": "string"}}, "required": ["command"]});
    let tool = json!({"type": "function", "function": {"name": "bash", "parameters": parameters}});
    let body = json!({"model": "fake", "messages": messages, "tools": [tool]}).to_string();
    let length = body.len();
    let mut stream = TcpStream::connect((host, 80))?;
    write!(
        stream,
        "POST /{path}/chat/completions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        answer.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        head += &line;
    }
    let mut body = String::new();
    answer.take(length).read_to_string(&mut body)?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(io::Error::other(format!("the model answers {head}")));
    }
    Ok(serde_json::from_str(&body)?)
}
