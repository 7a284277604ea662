//! JSON as its readers take it: strict grammar, UTF-8, no duplicate keys; comments only where the name allows them.

mod commented;
mod notebook;
mod scan;
mod strict;
#[cfg(test)]
mod tests;

use super::names::{base_name, extension};
use crate::python::is_lfs_pointer;
use crate::{PythonTarget, Reason};

/// Nesting that common readers still take.
const DEPTH: usize = 1000;

/// What is wrong with a text, before a path is put on it.
pub(super) struct Fault {
    pub(super) code: &'static str,
    pub(super) refuses: bool,
    pub(super) line: u32,
    pub(super) column: Option<u32>,
    pub(super) message: String,
    pub(super) help: &'static str,
}

impl Fault {
    pub(super) fn fail(code: &'static str, message: impl Into<String>, help: &'static str) -> Self {
        Self {
            code,
            refuses: true,
            line: 1,
            column: None,
            message: message.into(),
            help,
        }
    }

    pub(super) fn warn(code: &'static str, message: impl Into<String>, help: &'static str) -> Self {
        Self {
            refuses: false,
            ..Self::fail(code, message, help)
        }
    }

    pub(super) fn on(mut self, line: u32) -> Self {
        self.line = line;
        self
    }

    pub(super) fn column(mut self, column: u32) -> Self {
        self.column = Some(column);
        self
    }

    fn into_reason(self, path: &str) -> Reason {
        let reason = if self.refuses {
            Reason::fail(self.code, self.message)
        } else {
            Reason::warn(self.code, self.message)
        };
        let reason = reason.at(path).line(self.line).help(self.help);
        match self.column {
            Some(column) => reason.column(column),
            None => reason,
        }
    }
}

/// How a name asks to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Strict,
    Commented,
    Lines,
    Notebook,
}

/// All faults of a JSON file.
pub(crate) fn judge(path: &str, bytes: &[u8], target: PythonTarget) -> Vec<Reason> {
    let dialect = dialect_of(path);
    let faults = match text_of(bytes, dialect) {
        Err(fault) => vec![fault],
        Ok(text) => match dialect {
            Dialect::Strict => strict::faults(text),
            Dialect::Commented => commented::faults(text),
            Dialect::Lines => by_line(text),
            Dialect::Notebook => notebook::faults(text, target),
        },
    };
    faults
        .into_iter()
        .map(|fault| fault.into_reason(path))
        .collect()
}

fn dialect_of(path: &str) -> Dialect {
    let name = base_name(path).to_ascii_lowercase();
    let extension = extension(path).unwrap_or_default();
    match extension.as_str() {
        "jsonl" | "ndjson" => return Dialect::Lines,
        "ipynb" => return Dialect::Notebook,
        "jsonc" | "code-workspace" => return Dialect::Commented,
        _ => {}
    }
    let starts = |prefix: &str| name.starts_with(prefix) && extension == "json";
    let folder = format!("/{path}").to_ascii_lowercase();
    let commented = starts("tsconfig")
        || starts("jsconfig")
        || folder.contains("/.vscode/")
        || matches!(
            name.as_str(),
            "devcontainer.json"
                | ".devcontainer.json"
                | ".eslintrc.json"
                | ".swcrc"
                | "api-extractor.json"
                | "tslint.json"
                | "deno.json"
                | "turbo.json"
                | "biome.json"
        );
    if commented {
        Dialect::Commented
    } else {
        Dialect::Strict
    }
}

/// The text, or the fault that keeps it from being read at all.
fn text_of(bytes: &[u8], dialect: Dialect) -> Result<&str, Fault> {
    if is_lfs_pointer(bytes) {
        let help = "commit the file itself, or fetch it with `git lfs pull` before delivering";
        return Err(Fault::fail(
            "lfs-pointer",
            "is a Git LFS pointer, not the file",
            help,
        ));
    }
    let utf8 = "save the file as UTF-8 without a byte-order mark";
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err(Fault::fail(
            "json.encoding",
            "is UTF-16; JSON is UTF-8",
            utf8,
        ));
    }
    // Editors of commented JSON write the mark, and its readers skip it.
    let bytes = match bytes.strip_prefix(&[0xEF, 0xBB, 0xBF]) {
        Some(rest) if dialect == Dialect::Commented => rest,
        Some(_) => {
            return Err(Fault::fail(
                "json.bom",
                "starts with a byte-order mark, which RFC 8259 forbids",
                utf8,
            ));
        }
        None => bytes,
    };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = good.split(|&byte| byte == b'\n').count();
        Fault::fail("json.encoding", "is not UTF-8", utf8).on(number(line))
    })?;
    if text.trim().is_empty() && dialect != Dialect::Lines {
        let help = "write the value: an empty object is {}";
        return Err(Fault::fail(
            "json.empty",
            "holds nothing but white space",
            help,
        ));
    }
    if let Some((line, _)) = text.lines().enumerate().find(|(_, line)| is_conflict(line)) {
        let help = "resolve the merge and remove the conflict markers";
        return Err(
            Fault::fail("json.conflict", "holds merge conflict markers", help).on(number(line + 1)),
        );
    }
    match scan::too_deep(text, DEPTH) {
        Some(line) => {
            let help = "flatten the data";
            Err(Fault::fail(
                "json.too-deep",
                format!("nests more than {DEPTH} levels"),
                help,
            )
            .on(line))
        }
        None => Ok(text),
    }
}

fn is_conflict(line: &str) -> bool {
    line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ")
}

fn by_line(text: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        for fault in strict::faults(line.trim()) {
            if fault.refuses {
                faults.push(Fault {
                    line: number(at + 1),
                    ..fault
                });
            }
        }
        // One broken line says enough; the rest is usually of the same kind.
        if !faults.is_empty() {
            break;
        }
    }
    faults
}

pub(super) fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
