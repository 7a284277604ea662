//! A notebook is JSON whose code cells are Python with magics.

use serde::Deserialize;

use super::{Fault, strict};
use crate::PythonTarget;
use crate::python::read_cell;

#[derive(Deserialize)]
struct Notebook {
    #[serde(default)]
    cells: Vec<Cell>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Cell {
    #[serde(default)]
    cell_type: String,
    #[serde(default)]
    source: Source,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Source {
    Whole(String),
    Lines(Vec<String>),
}

impl Default for Source {
    fn default() -> Self {
        Self::Lines(Vec::new())
    }
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    kernelspec: Language,
    #[serde(default)]
    language_info: Language,
}

#[derive(Default, Deserialize)]
struct Language {
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

pub(super) fn faults(text: &str, target: PythonTarget) -> Vec<Fault> {
    let mut faults = strict::faults(text);
    if faults.iter().any(|fault| fault.refuses) {
        return faults;
    }
    let Ok(notebook) = serde_json::from_str::<Notebook>(text) else {
        let help = "save it with a notebook program";
        faults.push(Fault::fail(
            "json.syntax",
            "is JSON but no notebook: cells or metadata have another shape",
            help,
        ));
        return faults;
    };
    if !notebook.is_python() {
        return faults;
    }
    for (at, cell) in notebook.cells.iter().enumerate() {
        if cell.cell_type != "code" {
            continue;
        }
        if let Some(code) = cell.python()
            && let Err(refusal) = read_cell(&code, target)
        {
            let message = format!(
                "code cell {} {} (line {} of the cell)",
                at + 1,
                refusal.message,
                refusal.line
            );
            faults.push(Fault::fail("py.syntax", message, "correct the cell"));
        }
    }
    faults
}

impl Notebook {
    fn is_python(&self) -> bool {
        let named = [
            &self.metadata.kernelspec.language,
            &self.metadata.language_info.name,
        ];
        named
            .into_iter()
            .flatten()
            .next()
            .is_none_or(|name| name.eq_ignore_ascii_case("python"))
    }
}

impl Cell {
    /// The cell as Python; `None` when a cell magic gives it to another program.
    fn python(&self) -> Option<String> {
        let text = match &self.source {
            Source::Whole(text) => text.clone(),
            Source::Lines(lines) => lines.concat(),
        };
        let Some(magic) = text.trim_start().strip_prefix("%%") else {
            return Some(text);
        };
        let name: String = magic
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let python = matches!(
            name.as_str(),
            "time" | "timeit" | "capture" | "prun" | "python" | "python3"
        );
        let rest = magic.split_once('\n').map_or("", |(_, rest)| rest);
        python.then(|| rest.to_owned())
    }
}
