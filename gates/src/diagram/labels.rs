//! Names of drawing tools, as fence labels, directives, classes and first lines of unlabelled blocks.
//! Tables only; a new renderer is one more word here.

use super::document::{Label, Tool};

const MERMAID: &[&str] = &["mermaid", "mmd", "mermaidjs", "mermaid-js", "mermaid2"];
const PLANTUML: &[&str] = &[
    "plantuml",
    "puml",
    "uml",
    "iuml",
    "pu",
    "plant-uml",
    "plantuml-svg",
    "plantuml-png",
    "salt",
    "c4plantuml",
];
const GRAPHVIZ: &[&str] = &[
    "dot",
    "graphviz",
    "gv",
    "digraph",
    "viz",
    "viz-dot",
    "graphviz-dot",
    "neato",
    "circo",
    "fdp",
    "twopi",
    "sfdp",
];
const OTHER: &[&str] = &[
    "d2",
    "ditaa",
    "svgbob",
    "bob",
    "nomnoml",
    "wavedrom",
    "wavejson",
    "vega",
    "vega-lite",
    "vegalite",
    "blockdiag",
    "seqdiag",
    "actdiag",
    "nwdiag",
    "packetdiag",
    "rackdiag",
    "tikz",
    "tikzpicture",
    "pikchr",
    "structurizr",
    "bytefield",
    "excalidraw",
    "umlet",
    "symbolator",
    "erd",
    "bpmn",
    "aafigure",
    "aafig",
    "goat",
    "aasvg",
    "typogram",
    "typograms",
    "flow",
    "flowchart",
    "sequence",
    "js-sequence",
    "js-sequence-diagrams",
    "sequence-diagram",
    "markmap",
    "mindmap",
    "echarts",
    "chartjs",
    "railroad",
    "railroad-diagram",
    "drawio",
    "zenuml",
    "websequencediagrams",
    "swimlanes",
    "nomnom",
    "state-machine-cat",
    "smcat",
    "mscgen",
    "msgenny",
    "shaky",
    "pgfplots",
    "kroki",
    "gantt",
];
/// Labels that say "just text".
const TEXT: &[&str] = &[
    "",
    "text",
    "txt",
    "plain",
    "plaintext",
    "plain-text",
    "none",
    "nohighlight",
    "no-highlight",
    "ascii",
    "asciiart",
    "ascii-art",
    "ascii-diagram",
    "diagram",
    "diag",
    "art",
    "figure",
    "literal",
    "raw",
    "unicode",
    "drawing",
    "text-art",
    "architecture",
    "tree-diagram",
    "nohl",
    "listing",
    "verbatim",
    "example",
];

/// The tool behind a single name.
pub(super) fn tool(name: &str) -> Option<Tool> {
    let name = name.to_ascii_lowercase();
    let name = ["language-", "lang-", "kroki-", "brush:"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(&name);
    let has = |table: &[&str]| table.contains(&name);
    if has(MERMAID) {
        Some(Tool::Mermaid)
    } else if has(PLANTUML) {
        Some(Tool::Plantuml)
    } else if has(GRAPHVIZ) {
        Some(Tool::Graphviz)
    } else if has(OTHER) {
        Some(Tool::Other)
    } else {
        None
    }
}

/// What a fence's info string, in any dialect, says: `mermaid`, `{.mermaid #id}`, `{code-block} dot`, `kroki {type=d2}`.
pub(super) fn of_info(info: &str) -> Label {
    let info = info.trim();
    let words: Vec<&str> = info
        .split(|c: char| {
            c.is_whitespace() || matches!(c, '{' | '}' | ',' | '"' | '\'' | ';' | '(' | ')')
        })
        .filter(|word| !word.is_empty())
        .collect();
    let first = words.first().copied().unwrap_or("");
    let head = first.split([':', '!', '=']).next().unwrap_or("");
    let bare = head.trim_start_matches('.');
    let nested = matches!(
        bare.to_ascii_lowercase().as_str(),
        "code-block" | "code-cell" | "code" | "sourcecode" | "raw" | "kroki" | "diagram" | "render"
    );
    let named = words.iter().skip(1).filter_map(|word| {
        let class = word.strip_prefix('.');
        let value = word.split_once('=').filter(|(key, _)| {
            matches!(
                *key,
                "type" | "class" | "lang" | "language" | "engine" | "renderer"
            )
        });
        class
            .or(value.map(|(_, value)| value.trim_start_matches('.')))
            .or(if nested { Some(*word) } else { None })
    });
    let mut candidates = std::iter::once(bare).chain(named);
    if let Some((found, name)) = candidates.find_map(|name| {
        // "kroki" alone names no tool when a second word does.
        (name != "kroki" || words.len() == 1)
            .then(|| tool(name).map(|found| (found, name)))
            .flatten()
    }) {
        return Label::Source(found, name.to_owned());
    }
    if bare.eq_ignore_ascii_case("kroki") {
        return Label::Source(Tool::Other, "kroki".to_owned());
    }
    if bare.starts_with('#') || TEXT.contains(&bare.to_ascii_lowercase().as_str()) {
        Label::Text
    } else {
        Label::Code
    }
}

/// The tool that a block's first lines betray, with the words that did.
pub(super) fn of_first_lines(text: &str) -> Option<(Tool, String)> {
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("%%"))
        .peekable();
    if lines.peek() == Some(&"---") {
        lines.next();
        lines.by_ref().take(20).find(|line| *line == "---")?;
    }
    let first = lines.next()?;
    if let Some(kind) = first.strip_prefix("@start") {
        let word: String = kind
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        let alone = kind
            .get(word.len()..)
            .is_some_and(|rest| !rest.starts_with(['(', '.', '_', '-']));
        return (!word.is_empty() && alone).then(|| (Tool::Plantuml, format!("@start{word}")));
    }
    if graphviz(first, lines.peek().copied()) {
        return Some((Tool::Graphviz, "digraph".to_owned()));
    }
    if first.starts_with("\\begin{tikzpicture}") || first.starts_with("\\begin{tikz") {
        return Some((Tool::Other, "tikz".to_owned()));
    }
    let rest: Vec<&str> = lines.take(40).collect();
    mermaid(first, &rest).map(|word| (Tool::Mermaid, word))
}

fn graphviz(first: &str, second: Option<&str>) -> bool {
    let rest = first.strip_prefix("strict ").unwrap_or(first).trim_start();
    let Some(rest) = rest
        .strip_prefix("digraph")
        .or_else(|| rest.strip_prefix("graph"))
    else {
        return false;
    };
    let rest = rest.trim();
    let (name, opened) = match rest.split_once('{') {
        Some((name, _)) => (name.trim(), true),
        None => (rest, second.is_some_and(|line| line.starts_with('{'))),
    };
    let quoted = name.len() > 1 && name.starts_with('"') && name.ends_with('"');
    opened && (quoted || name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

/// Keywords that are no English words: enough by themselves.
const SURE: &[&str] = &[
    "sequenceDiagram",
    "classDiagram",
    "classDiagram-v2",
    "stateDiagram",
    "stateDiagram-v2",
    "erDiagram",
    "gitGraph",
    "gitGraph:",
    "quadrantChart",
    "requirementDiagram",
    "C4Context",
    "C4Container",
    "C4Component",
    "C4Dynamic",
    "C4Deployment",
    "sankey-beta",
    "xychart-beta",
    "block-beta",
    "packet-beta",
    "architecture-beta",
    "radar-beta",
    "treemap-beta",
    "zenuml",
    "xychart",
    "flowchart-elk",
];

fn mermaid(first: &str, rest: &[&str]) -> Option<String> {
    let first = first.trim_end_matches(';');
    let mut words = first.split_whitespace();
    let word = words.next()?;
    let argument = words.next();
    let further = |test: &dyn Fn(&str) -> bool| rest.iter().any(|line| test(line));
    let found = match word {
        "graph" | "flowchart" => {
            let directed = argument.is_some_and(|word| {
                let word = word.split(';').next().unwrap_or(word);
                matches!(word, "TD" | "TB" | "BT" | "RL" | "LR")
            });
            directed
                || (argument.is_none()
                    && further(&|line| line.contains("-->") || line.contains("---")))
        }
        "gantt" => further(&|line| line.starts_with("dateFormat") || line.starts_with("section")),
        "pie" => further(&|line| line.starts_with('"') && line.contains(':')),
        "journey" => further(&|line| line.starts_with("section") || line.starts_with("title")),
        "mindmap" => {
            argument.is_none() && further(&|line| line.contains("((") || line.starts_with("root"))
        }
        "timeline" => {
            argument.is_none() && further(&|line| line.contains(" : ") || line.starts_with("title"))
        }
        "kanban" => argument.is_none() && further(&|line| line.contains('[')),
        _ => (argument.is_none() || word.contains("Diagram")) && SURE.contains(&word),
    };
    found.then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(info: &str) -> Option<Tool> {
        match of_info(info) {
            Label::Source(tool, _) => Some(tool),
            Label::Code | Label::Text | Label::Plain => None,
        }
    }

    #[test]
    fn fence_labels_of_all_dialects() {
        for info in [
            "mermaid",
            "MERMAID",
            "{mermaid}",
            "{.mermaid}",
            "{.mermaid #fig}",
            "mermaid {a=1}",
            "{#x .mermaid}",
        ] {
            assert_eq!(source(info), Some(Tool::Mermaid), "{info}");
        }
        for info in [
            "{mermaid, echo=false}",
            "{code-block} mermaid",
            "kroki-mermaid",
            "mermaid:flow.svg",
            "kroki {type=mermaid}",
        ] {
            assert_eq!(source(info), Some(Tool::Mermaid), "{info}");
        }
        assert_eq!(source("PlantUML"), Some(Tool::Plantuml));
        assert_eq!(source("{graphviz}"), Some(Tool::Graphviz));
        assert_eq!(source("wavedrom"), Some(Tool::Other));
        for info in [
            "rust",
            "rust,ignore",
            "text",
            "",
            "markdown",
            "json title=\"mermaid\"",
            "console",
        ] {
            assert_eq!(source(info), None, "{info}");
        }
        assert_eq!(of_info("Text"), Label::Text);
        assert_eq!(of_info("rust,no_run"), Label::Code);
    }

    #[test]
    fn first_lines_that_betray_a_tool() {
        let tool = |text: &str| of_first_lines(text).map(|(tool, _)| tool);
        assert_eq!(
            tool("%%{init: {}}%%\ngraph TB\n a-->b"),
            Some(Tool::Mermaid)
        );
        assert_eq!(
            tool("---\ntitle: x\n---\nerDiagram\n A ||--o{ B : has"),
            Some(Tool::Mermaid)
        );
        assert_eq!(tool("pie title Pets\n \"Dogs\" : 3"), Some(Tool::Mermaid));
        assert_eq!(tool("@startuml\n@enduml"), Some(Tool::Plantuml));
        assert_eq!(tool("strict digraph {\n}"), Some(Tool::Graphviz));
        assert_eq!(tool("graph G\n{ a -- b }"), Some(Tool::Graphviz));
        for text in [
            "graph the results",
            "pie is good",
            "journey",
            "timeline of events",
            "digraph",
            "@start_server()",
            "gantt chart",
        ] {
            assert_eq!(tool(text), None, "{text}");
        }
    }
}
