//! What a path says about a file: its kind, whether it is a test, a package marker, a template.

/// What the stub gate reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Python source.
    Python,
    /// JSON, its line form, its commented form, notebooks.
    Json,
}

pub(super) fn kind_of(path: &str) -> Option<Kind> {
    match extension(path)?.as_str() {
        "py" | "pyi" | "pyw" => Some(Kind::Python),
        "json" | "jsonc" | "jsonl" | "ndjson" | "ipynb" | "code-workspace" => Some(Kind::Json),
        _ => None,
    }
}

/// Last path part.
pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Lower-case extension of the last part; a leading dot starts no extension.
pub(super) fn extension(path: &str) -> Option<String> {
    let (stem, extension) = base_name(path).rsplit_once('.')?;
    (!stem.is_empty()).then(|| extension.to_ascii_lowercase())
}

/// Python text until somebody renders it: `{{cookiecutter.name}}/app.py`.
pub(super) fn is_template(path: &str) -> bool {
    path.contains("{{")
}

/// Files that are right when they are empty.
pub(super) fn is_marker(path: &str) -> bool {
    matches!(base_name(path), "__init__.py" | "conftest.py")
        || extension(path).as_deref() == Some("pyi")
}

/// A test file by its name.
pub(super) fn is_test(path: &str) -> bool {
    let name = base_name(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_tests")
        || matches!(stem, "test" | "tests")
}
