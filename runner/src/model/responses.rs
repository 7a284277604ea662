//! Responses as `OpenAI` speaks them. Pure.

use serde_json::{Value, json};

use super::{Asked, Move, Reply, Tool, list, text_of};

pub(super) fn read(request: &Value) -> Asked {
    let items = list(&request["input"]);
    let of = |item: &Value, end: &str| {
        item["type"]
            .as_str()
            .is_some_and(|kind| kind.ends_with(end))
    };
    let results = items.iter().filter(|item| of(item, "call_output"));
    let mut tools = Vec::new();
    collect(&request["tools"], &mut tools);
    for item in items
        .iter()
        .filter(|item| item["type"] == "additional_tools")
    {
        collect(&item["tools"], &mut tools);
    }
    let said = items.iter().map(|item| text_of(&item["content"]));
    let instructions = text_of(&request["instructions"]);
    Asked {
        tools,
        results: results.map(|item| text_of(&item["output"])).collect(),
        stream: request["stream"] == true,
        model: request["model"].as_str().unwrap_or("scripted").to_owned(),
        said: std::iter::once(instructions)
            .chain(said)
            .collect::<Vec<_>>()
            .join("\n"),
        form: None,
    }
}

/// Tools, also those that stand in groups.
fn collect(value: &Value, tools: &mut Vec<Tool>) {
    for tool in list(value) {
        let name = tool["name"].as_str();
        match (tool["type"].as_str(), name) {
            (Some("namespace"), _) => collect(&tool["tools"], tools),
            (Some("custom"), Some(name)) => tools.push(Tool {
                name: name.to_owned(),
                schema: None,
            }),
            (Some("local_shell"), _) => tools.push(Tool::new("local_shell", None)),
            (_, Some(name)) => tools.push(Tool::new(name, tool.get("parameters"))),
            (_, None) => {}
        }
    }
}

pub(super) fn reply(asked: &Asked, next: &Move) -> Reply {
    let step = asked.results.len();
    let call = format!("call_{step:012}");
    let item = match next {
        Move::Call { tool, arguments } => json!({
            "type": "function_call", "id": format!("fc_{step:012}"), "status": "completed",
            "call_id": call, "name": tool, "arguments": arguments.to_string(),
        }),
        Move::Write { tool, input } => json!({
            "type": "custom_tool_call", "id": format!("ctc_{step:012}"), "status": "completed",
            "call_id": call, "name": tool, "input": input,
        }),
        Move::Say(text) => json!({
            "type": "message", "id": format!("msg_{step:012}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
    };
    let response = |status: &str, output: Value, usage: Value| {
        json!({
            "id": format!("resp_{step:012}"), "object": "response", "created_at": 1_700_000_000,
            "status": status, "model": asked.model, "output": output, "usage": usage,
        })
    };
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15,
    });
    let whole = response("completed", json!([item]), usage);
    if !asked.stream {
        return Reply::One(whole);
    }
    let begun = response("in_progress", json!([]), Value::Null);
    let mut events = vec![json!({"type": "response.created", "response": begun})];
    events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": item}));
    events.extend(deltas(&item));
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    events.push(json!({"type": "response.completed", "response": whole}));
    let named = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = number.into();
        (name_of(&event), event)
    });
    Reply::Events {
        events: named.collect(),
        end: None,
    }
}

/// What clients need that put an answer together from its pieces.
fn deltas(item: &Value) -> Vec<Value> {
    let at = json!({"item_id": item["id"], "output_index": 0});
    let event = |kind: &str, field: &str, value: &Value| {
        let mut event = at.clone();
        event["type"] = kind.into();
        event[field] = value.clone();
        event
    };
    match item["type"].as_str() {
        Some("function_call") => vec![
            event(
                "response.function_call_arguments.delta",
                "delta",
                &item["arguments"],
            ),
            event(
                "response.function_call_arguments.done",
                "arguments",
                &item["arguments"],
            ),
        ],
        Some("message") => {
            let text = &item["content"][0]["text"];
            let mut delta = event("response.output_text.delta", "delta", text);
            let mut done = event("response.output_text.done", "text", text);
            for event in [&mut delta, &mut done] {
                event["content_index"] = 0.into();
            }
            vec![delta, done]
        }
        Some(_) | None => Vec::new(),
    }
}

fn name_of(event: &Value) -> Option<&'static str> {
    [
        "response.created",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_text.delta",
        "response.output_text.done",
        "response.output_item.done",
        "response.completed",
    ]
    .into_iter()
    .find(|name| event["type"] == *name)
}
