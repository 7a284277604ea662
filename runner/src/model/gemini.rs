//! Google's `generateContent` and `streamGenerateContent`. Pure.

use serde_json::{Value, json};

use super::{Asked, Move, Reply, Tool, list, text_of};

pub(super) fn read(request: &Value, path: &str) -> Asked {
    let contents = list(&request["contents"]);
    let parts = contents.iter().flat_map(|content| list(&content["parts"]));
    let results = parts.filter_map(|part| part.get("functionResponse"));
    let declared = list(&request["tools"])
        .iter()
        .flat_map(|tool| list(&tool["functionDeclarations"]));
    let tools = declared.filter_map(|function| {
        let name = function["name"].as_str()?;
        let schema = function.get("parametersJsonSchema");
        Some(Tool::new(
            name,
            schema.or_else(|| function.get("parameters")),
        ))
    });
    let said = std::iter::once(&request["systemInstruction"])
        .chain(contents)
        .map(|content| text_of(&content["parts"]));
    let model = path.rsplit('/').next().unwrap_or_default();
    Asked {
        tools: tools.collect(),
        results: results.map(|result| text_of(&result["response"])).collect(),
        stream: path.ends_with(":streamGenerateContent"),
        model: model.split(':').next().unwrap_or_default().to_owned(),
        said: said.collect::<Vec<_>>().join("\n"),
        form: ["responseJsonSchema", "responseSchema"]
            .into_iter()
            .find_map(|name| request["generationConfig"].get(name).cloned()),
    }
}

pub(super) fn reply(asked: &Asked, next: &Move) -> Reply {
    let part = match next {
        Move::Call { tool, arguments } => {
            json!({"functionCall": {"name": tool, "args": arguments}})
        }
        Move::Write { tool, input } => {
            json!({"functionCall": {"name": tool, "args": {"input": input}}})
        }
        Move::Say(text) => json!({"text": text}),
    };
    let whole = json!({
        "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": asked.model,
        "responseId": format!("scripted-{}", asked.results.len()),
    });
    if asked.stream {
        Reply::Events {
            events: vec![(None, whole)],
            end: None,
        }
    } else {
        Reply::One(whole)
    }
}
