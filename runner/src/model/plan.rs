//! What a scripted model does next: the step that the conversation has come to, by the agent's own
//! tool where it offers one that fits. Agents that offer no tools say in words how they want to be
//! told. Pure.

use serde_json::{Map, Value, json};

use super::{Asked, Move, Script, Step, Tool};

/// Tools that run a shell command, the most usual first.
const SHELLS: [&str; 9] = [
    "bash",
    "shell_command",
    "exec_command",
    "shell",
    "local_shell",
    "run_shell_command",
    "developer__shell",
    "terminal",
    "execute",
];
/// Tools that write a whole file.
const WRITERS: [&str; 5] = [
    "write",
    "write_file",
    "create",
    "create_file",
    "developer__text_editor",
];
/// A tool that takes a patch of the form below.
const PATCHER: &str = "apply_patch";
/// A tool that takes a program that calls the others.
const PROGRAM: &str = "exec";
const PATHS: [&str; 4] = ["file_path", "filePath", "absolute_path", "path"];
const CONTENTS: [&str; 4] = ["content", "file_text", "contents", "text"];
/// How one agent wants to be told that the work is done.
const DONE: &str = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";

/// The next move.
pub(super) fn next(asked: &Asked, script: &Script) -> Move {
    if let Some(form) = asked.form.as_ref().filter(|_| asked.tools.is_empty()) {
        return Move::Say(filled_in(form).to_string());
    }
    if asked.tools.is_empty() {
        return Move::Say(in_words(asked, script));
    }
    match script.steps.get(asked.results.len()) {
        Some(step) => call(asked, step),
        None if asked.results.len() == script.steps.len() && asked.said.contains(DONE) => {
            let last = format!("echo {DONE}; echo {}", quoted(&script.last));
            call(asked, &Step::Shell(last))
        }
        None => Move::Say(script.last.clone()),
    }
}

fn call(asked: &Asked, step: &Step) -> Move {
    let found = match step {
        Step::Shell(command) => shell(&asked.tools, command),
        Step::Edit {
            path,
            name,
            content,
        } => write(&asked.tools, path, content)
            .or_else(|| patch(&asked.tools, name, content))
            .or_else(|| shell(&asked.tools, &here_document(name, content))),
    };
    found.unwrap_or_else(|| {
        let names: Vec<&str> = asked.tools.iter().map(|tool| tool.name.as_str()).collect();
        Move::Say(format!("no tool fits among: {}", names.join(", ")))
    })
}

/// The least value that a JSON schema takes.
fn filled_in(form: &Value) -> Value {
    if let Some(first) = super::list(&form["enum"]).first() {
        return first.clone();
    }
    match form["type"]
        .as_str()
        .map(str::to_ascii_lowercase)
        .as_deref()
    {
        Some("object") => {
            let fields = form["properties"].as_object();
            let fields = fields.into_iter().flatten();
            Value::Object(
                fields
                    .map(|(name, form)| (name.clone(), filled_in(form)))
                    .collect(),
            )
        }
        Some("array") => json!([]),
        Some("number" | "integer") => form.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(false),
        Some(_) | None => json!("scripted"),
    }
}

fn named<'t>(tools: &'t [Tool], names: &[&str]) -> Option<&'t Tool> {
    let is = |name: &str| {
        tools
            .iter()
            .find(|tool| tool.name.eq_ignore_ascii_case(name))
    };
    names.iter().find_map(|name| is(name))
}

fn shell(tools: &[Tool], command: &str) -> Option<Move> {
    let Some(tool) = named(tools, &SHELLS) else {
        let program = named(tools, &[PROGRAM]).filter(|tool| tool.schema.is_none())?;
        let input = format!(
            "const r = await tools.exec_command({{cmd: {}}});\ntext(r);\n",
            Value::from(command)
        );
        return Some(Move::Write {
            tool: program.name.clone(),
            input,
        });
    };
    let fields = fields(tool);
    let mut arguments = Map::new();
    if fields.contains_key("cmd") && !fields.contains_key("command") {
        arguments.insert("cmd".to_owned(), command.into());
    } else if fields
        .get("command")
        .is_some_and(|field| field["type"] == "array")
    {
        arguments.insert("command".to_owned(), json!(["bash", "-lc", command]));
    } else {
        arguments.insert("command".to_owned(), command.into());
    }
    fill_required(tool, &mut arguments);
    Some(Move::Call {
        tool: tool.name.clone(),
        arguments: Value::Object(arguments),
    })
}

fn write(tools: &[Tool], path: &str, content: &str) -> Option<Move> {
    let tool = named(tools, &WRITERS)?;
    let fields = fields(tool);
    let place = PATHS.iter().find(|name| fields.contains_key(**name))?;
    let text = CONTENTS.iter().find(|name| fields.contains_key(**name))?;
    let mut arguments = Map::new();
    arguments.insert((*place).to_owned(), path.into());
    arguments.insert((*text).to_owned(), content.into());
    if tool.name.contains("text_editor") {
        arguments.insert("command".to_owned(), "write".into());
    }
    fill_required(tool, &mut arguments);
    Some(Move::Call {
        tool: tool.name.clone(),
        arguments: Value::Object(arguments),
    })
}

fn patch(tools: &[Tool], name: &str, content: &str) -> Option<Move> {
    let lines: Vec<String> = content.lines().map(|line| format!("+{line}\n")).collect();
    let lines = lines.concat();
    let patch = format!("*** Begin Patch\n*** Add File: {name}\n{lines}*** End Patch");
    if let Some(tool) = named(tools, &[PATCHER]) {
        let field = fields(tool).keys().next().cloned();
        return Some(match (&tool.schema, field) {
            (Some(_), Some(field)) => Move::Call {
                tool: tool.name.clone(),
                arguments: json!({field: patch}),
            },
            (Some(_) | None, _) => Move::Write {
                tool: tool.name.clone(),
                input: patch,
            },
        });
    }
    let program = named(tools, &[PROGRAM]).filter(|tool| tool.schema.is_none())?;
    Some(Move::Write {
        tool: program.name.clone(),
        input: format!("text(await tools.apply_patch({}));\n", Value::from(patch)),
    })
}

fn fields(tool: &Tool) -> Map<String, Value> {
    let schema = tool.schema.as_ref();
    let fields = schema.and_then(|schema| schema["properties"].as_object());
    fields.cloned().unwrap_or_default()
}

/// Gives what a tool demands besides something that says what it is for.
fn fill_required(tool: &Tool, arguments: &mut Map<String, Value>) {
    let schema = tool.schema.as_ref();
    let required = schema.map_or(&[][..], |schema| super::list(&schema["required"]));
    let fields = fields(tool);
    for name in required.iter().filter_map(Value::as_str) {
        if arguments.contains_key(name) {
            continue;
        }
        let value = match fields.get(name).and_then(|field| field["type"].as_str()) {
            Some("boolean") => json!(false),
            Some("number" | "integer") => json!(30_000),
            Some(_) | None => json!("a step of the script"),
        };
        arguments.insert(name.to_owned(), value);
    }
}

fn here_document(name: &str, content: &str) -> String {
    format!(
        "cat > {} <<'AIRLOCK_END'\n{content}AIRLOCK_END\n",
        quoted(name)
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// For an agent that edits files from the model's words: the edits in the form that it asked for, as
/// long as none of them has been said before.
fn in_words(asked: &Asked, script: &Script) -> String {
    let edits = script.steps.iter().filter_map(|step| match step {
        Step::Edit { name, content, .. } => Some((name, content)),
        Step::Shell(_) => None,
    });
    let blocks = asked.said.contains("SEARCH/REPLACE");
    let listings = asked.said.contains("*file listing*");
    let said = edits
        .clone()
        .any(|(_, content)| asked.said.contains(content.as_str()));
    if said || !(blocks || listings) {
        return script.last.clone();
    }
    let told = edits.map(|(name, content)| {
        if blocks {
            format!("{name}\n```\n<<<<<<< SEARCH\n=======\n{content}>>>>>>> REPLACE\n```\n")
        } else {
            format!("{name}\n```\n{content}```\n")
        }
    });
    told.collect::<Vec<_>>().join("\n") + "\n" + &script.last
}
