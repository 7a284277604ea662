//! Paths that take effect on a host, in CI, or on how work is judged, long after an agent wrote
//! them. A delivery that touches one is refused unless its task allows the path. Data only.

/// Patterns in the form of [`gates::glob_matches`].
pub(super) const DEFAULT: &[&str] = &[
    // How work is judged and what a task may do.
    "airlock.toml",
    "**/.gitmodules",
    // Shells and editors that run what a folder holds when it is opened.
    "**/.envrc",
    "**/.vscode/",
    "**/.idea/",
    "**/.devcontainer/",
    "**/.devcontainer.json",
    "**/*.code-workspace",
    // Hooks.
    "**/.husky/",
    "**/.githooks/",
    "**/.pre-commit-config.yaml",
    "**/lefthook.yml",
    "**/.lefthook.yml",
    // Build tools that run what they find on the way up.
    "**/.cargo/config",
    "**/.cargo/config.toml",
    // Continuous integration.
    ".github/workflows/",
    ".github/actions/",
    ".gitlab-ci.yml",
    ".gitlab/ci/",
    ".circleci/",
    ".buildkite/",
    ".travis.yml",
    ".drone.yml",
    ".woodpecker.yml",
    ".woodpecker/",
    ".forgejo/workflows/",
    ".gitea/workflows/",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile",
    // Agents of the next person.
    "**/.claude/",
    "**/.mcp.json",
    "**/.cursor/",
    "**/.codex/",
    "**/.gemini/",
];

/// A path that a person allows, in the forms that mean "this, and everything below it".
pub(super) fn allowed(path: &str) -> Vec<String> {
    let path = path.trim_start_matches("./");
    if path.ends_with('/') || path.contains(['*', '?']) {
        vec![path.to_owned()]
    } else {
        vec![path.to_owned(), format!("{path}/")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(path: &str) -> bool {
        DEFAULT
            .iter()
            .any(|pattern| gates::glob_matches(pattern, path))
    }

    #[test]
    fn what_runs_later_is_covered_and_source_is_not() {
        for path in [
            "airlock.toml",
            ".envrc",
            "sub/.envrc",
            ".vscode/tasks.json",
            ".husky/pre-commit",
            "crate/.cargo/config.toml",
            ".github/workflows/ci.yml",
            ".claude/settings.json",
            ".mcp.json",
            ".gitmodules",
        ] {
            assert!(covered(path), "{path}");
        }
        for path in [
            "src/main.rs",
            "docs/airlock.toml.md",
            "envrc",
            ".github/CODEOWNERS",
            "Cargo.toml",
        ] {
            assert!(!covered(path), "{path}");
        }
    }

    #[test]
    fn an_allowed_folder_means_what_is_below_it() {
        let patterns = allowed("./.vscode");
        assert!(
            patterns
                .iter()
                .any(|pattern| gates::glob_matches(pattern, ".vscode/a/b"))
        );
        assert_eq!(allowed("*.yml"), ["*.yml"]);
    }
}
