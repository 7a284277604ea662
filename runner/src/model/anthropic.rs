//! Anthropic Messages. Pure.

use serde_json::{Value, json};

use super::{Asked, Move, Reply, Tool, list, text_of};

pub(super) fn read(request: &Value) -> Asked {
    let messages = list(&request["messages"]);
    let blocks = messages
        .iter()
        .flat_map(|message| list(&message["content"]));
    let results = blocks.filter(|block| block["type"] == "tool_result");
    let tools = list(&request["tools"]).iter();
    let tools = tools.filter_map(|tool| {
        let name = tool["name"].as_str()?;
        Some(Tool::new(name, tool.get("input_schema")))
    });
    let said = std::iter::once(&request["system"])
        .chain(messages.iter().map(|message| &message["content"]));
    Asked {
        tools: tools.collect(),
        results: results.map(|block| text_of(&block["content"])).collect(),
        stream: request["stream"] == true,
        model: request["model"].as_str().unwrap_or("scripted").to_owned(),
        said: said.map(text_of).collect::<Vec<_>>().join("\n"),
        form: None,
    }
}

pub(super) fn reply(asked: &Asked, next: &Move) -> Reply {
    let step = asked.results.len();
    let (block, stop) = match next {
        Move::Call { tool, arguments } => (
            json!({"type": "tool_use", "id": format!("toolu_{step:016}"), "name": tool, "input": arguments}),
            "tool_use",
        ),
        Move::Write { tool, input } => (
            json!({"type": "tool_use", "id": format!("toolu_{step:016}"), "name": tool, "input": {"input": input}}),
            "tool_use",
        ),
        Move::Say(text) => (json!({"type": "text", "text": text}), "end_turn"),
    };
    let message = |content: Value, stop: Value| {
        json!({
            "id": format!("msg_{step:016}"), "type": "message", "role": "assistant", "model": asked.model,
            "content": content, "stop_reason": stop, "stop_sequence": null,
            "usage": {"input_tokens": 10, "output_tokens": 1},
        })
    };
    if !asked.stream {
        return Reply::One(message(json!([block]), stop.into()));
    }
    let (start, delta) = if block["type"] == "text" {
        (
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": block["text"]}),
        )
    } else {
        let mut start = block.clone();
        start["input"] = json!({});
        let partial = block["input"].to_string();
        (
            start,
            json!({"type": "input_json_delta", "partial_json": partial}),
        )
    };
    let events = [
        json!({"type": "message_start", "message": message(json!([]), Value::Null)}),
        json!({"type": "content_block_start", "index": 0, "content_block": start}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 10}}),
        json!({"type": "message_stop"}),
    ];
    let names = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    Reply::Events {
        events: names.map(Some).into_iter().zip(events).collect(),
        end: None,
    }
}
