//! Chat Completions as `OpenAI` speaks them. Pure.

use serde_json::{Value, json};

use super::{Asked, Move, Reply, Tool, list, text_of};

pub(super) fn read(request: &Value) -> Asked {
    let messages = list(&request["messages"]);
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let tools = list(&request["tools"]).iter();
    let tools = tools.filter_map(|tool| {
        let function = tool.get("function").unwrap_or(tool);
        let name = function["name"].as_str()?;
        Some(Tool::new(name, function.get("parameters")))
    });
    let said = messages.iter().map(|message| text_of(&message["content"]));
    Asked {
        tools: tools.collect(),
        results: results
            .map(|message| text_of(&message["content"]))
            .collect(),
        stream: request["stream"] == true,
        model: request["model"].as_str().unwrap_or("scripted").to_owned(),
        said: said.collect::<Vec<_>>().join("\n"),
        form: None,
    }
}

pub(super) fn reply(asked: &Asked, next: &Move) -> Reply {
    let step = asked.results.len();
    let call = |tool: &str, arguments: String| {
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": format!("call_{step:012}"), "type": "function", "function": {"name": tool, "arguments": arguments}},
        ]})
    };
    let (message, reason) = match next {
        Move::Call { tool, arguments } => (call(tool, arguments.to_string()), "tool_calls"),
        Move::Write { tool, input } => (
            call(tool, json!({"input": input}).to_string()),
            "tool_calls",
        ),
        Move::Say(text) => (json!({"role": "assistant", "content": text}), "stop"),
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let whole = |object: &str, choice: Value, usage: &Value| {
        json!({
            "id": format!("chatcmpl-{step:012}"), "created": 1_700_000_000, "model": asked.model,
            "object": object, "choices": [choice], "usage": usage,
        })
    };
    if !asked.stream {
        let choice = json!({"index": 0, "message": message, "finish_reason": reason});
        return Reply::One(whole("chat.completion", choice, &usage));
    }
    let mut delta = message;
    if let Some(calls) = delta["tool_calls"].as_array_mut() {
        for (index, call) in calls.iter_mut().enumerate() {
            call["index"] = index.into();
        }
    }
    let chunk = |delta: Value, reason: Value, usage: &Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        (None, whole("chat.completion.chunk", choice, usage))
    };
    Reply::Events {
        events: vec![
            chunk(delta, Value::Null, &Value::Null),
            chunk(json!({}), reason.into(), &usage),
        ],
        end: Some("[DONE]"),
    }
}
