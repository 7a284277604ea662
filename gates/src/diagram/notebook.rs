//! Reads the Markdown cells of a Jupyter notebook. Outputs are results of code and not judged here.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::document::{Document, Form};

/// Reads a notebook. Lines count through the text of all Markdown cells: the file's own lines are JSON.
pub(super) fn read(text: &str, document: &mut Document) {
    let Ok(notebook) = serde_json::from_str::<Value>(text) else {
        // Not a notebook: the stub gate says so.
        return;
    };
    let cells = notebook.get("cells").and_then(Value::as_array);
    let mut shift = 0;
    for cell in cells.into_iter().flatten() {
        if cell.get("cell_type").and_then(Value::as_str) == Some("markdown") {
            let mut part = Document::default();
            let text = source(cell);
            super::markdown::read(&text, &mut part);
            attach(cell, &mut part);
            take_over(part, shift, document);
            shift += super::document::number(text.lines().count() + 1);
        }
    }
}

fn source(cell: &Value) -> String {
    match cell.get("source") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// `attachment:name` points into the cell.
fn attach(cell: &Value, part: &mut Document) {
    for picture in &mut part.pictures {
        let Form::Shown(target) = &picture.form else {
            continue;
        };
        let name = target.strip_prefix("attachment:").map(str::to_owned);
        if let Some(name) = name {
            let bundle = cell.get("attachments").and_then(|all| all.get(&name));
            let data = bundle
                .and_then(Value::as_object)
                .and_then(|types| types.values().next());
            let bytes = data.and_then(Value::as_str).and_then(|text| {
                let joined: String = text.split_whitespace().collect();
                BASE64_STANDARD.decode(joined).ok()
            });
            picture.form = Form::Attached(bytes, name);
        }
    }
}

/// Cells follow one another; lines count through all Markdown cells, and each cell is a section.
fn take_over(mut part: Document, shift: u32, document: &mut Document) {
    document.sections.push(shift + 1);
    document
        .sections
        .extend(part.sections.iter().map(|line| line + shift));
    for block in &mut part.blocks {
        block.line += shift;
    }
    for picture in &mut part.pictures {
        picture.line += shift;
    }
    for prose in &mut part.prose {
        prose.line += shift;
    }
    document.blocks.append(&mut part.blocks);
    document.pictures.append(&mut part.pictures);
    document.prose.append(&mut part.prose);
}
