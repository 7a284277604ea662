//! The language of a file by its name; nothing is guessed from its content.

/// Lower-case name of the language, `text` when the name says nothing.
pub(super) fn of(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name {
        "Dockerfile" | "Containerfile" => return "dockerfile",
        "Makefile" | "GNUmakefile" | "makefile" => return "make",
        "CMakeLists.txt" => return "cmake",
        "Cargo.lock" | "Pipfile" | "poetry.lock" | "uv.lock" => return "toml",
        _ => {}
    }
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return "text";
    };
    if stem.is_empty() {
        return "text";
    }
    let extension = extension.to_ascii_lowercase();
    TABLE
        .iter()
        .find(|(_, extensions)| extensions.contains(&extension.as_str()))
        .map_or("text", |(language, _)| language)
}

/// Whether the name is that of a picture.
pub(super) fn is_image(path: &str) -> bool {
    matches!(of(path), "image" | "svg")
}

const TABLE: [(&str, &[&str]); 40] = [
    ("python", &["py", "pyi", "pyw"]),
    ("json", &["json", "jsonc", "jsonl", "ndjson"]),
    ("notebook", &["ipynb"]),
    ("rust", &["rs"]),
    ("javascript", &["js", "mjs", "cjs", "jsx"]),
    ("typescript", &["ts", "mts", "cts", "tsx"]),
    ("go", &["go"]),
    ("java", &["java"]),
    ("kotlin", &["kt", "kts"]),
    ("c", &["c", "h"]),
    ("cpp", &["cc", "cpp", "cxx", "hh", "hpp", "hxx"]),
    ("csharp", &["cs"]),
    ("ruby", &["rb"]),
    ("php", &["php"]),
    ("swift", &["swift"]),
    ("scala", &["scala"]),
    ("shell", &["sh", "bash", "zsh", "ksh", "fish"]),
    ("powershell", &["ps1", "psm1"]),
    ("perl", &["pl", "pm"]),
    ("lua", &["lua"]),
    ("r", &["r"]),
    ("sql", &["sql"]),
    ("html", &["html", "htm", "xhtml"]),
    ("css", &["css", "scss", "sass", "less"]),
    ("xml", &["xml", "xsd", "xsl"]),
    ("svg", &["svg"]),
    ("toml", &["toml"]),
    ("yaml", &["yaml", "yml"]),
    ("ini", &["ini", "cfg", "conf", "properties"]),
    ("markdown", &["md", "markdown", "mdx"]),
    ("restructuredtext", &["rst"]),
    ("asciidoc", &["adoc", "asciidoc"]),
    ("tex", &["tex", "bib"]),
    ("csv", &["csv", "tsv"]),
    ("protobuf", &["proto"]),
    ("make", &["mk"]),
    ("nix", &["nix"]),
    ("haskell", &["hs"]),
    ("elixir", &["ex", "exs"]),
    (
        "image",
        &[
            "png", "jpg", "jpeg", "gif", "webp", "bmp", "ico", "tif", "tiff", "avif",
        ],
    ),
];
