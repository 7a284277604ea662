//! Paths that a task must not touch unless it was allowed to: those that take effect on a host, in
//! CI, or on how work is judged. Says what a delivery does to them; never decides what follows.

use std::collections::BTreeSet;

use gates::{Change, MODE_LINK, MODE_SUBMODULE, Problem};
use worktrees::{Oid, ReadError, Repository};

/// Attributes whose value names something that git on a host runs, or that decides what a review shows.
const DRIVERS: [&str; 3] = ["filter=", "merge=", "diff="];

/// So many lines of a file of attributes say enough.
const SHOWN_LINES: usize = 8;

/// Patterns in the form of [`gates::glob_matches`].
#[derive(Debug, Clone, Default)]
pub struct Protected {
    /// What must not be touched. Compared without regard to case: some systems have none.
    pub patterns: Vec<String>,
    /// What this task may touch all the same, to the letter.
    pub allowed: Vec<String>,
    /// Paths (not patterns) that were judged, or let pass by a person, before.
    pub settled: BTreeSet<String>,
}

impl Protected {
    /// What one change does to protected paths.
    pub fn refusals(
        &self,
        repository: &Repository,
        change: &Change,
    ) -> Result<Vec<Problem>, ReadError> {
        let mut refusals: Vec<Problem> = std::iter::once(&change.path)
            .chain(&change.from)
            .filter(|path| self.covers(path))
            .map(|path| refusal(path, "this path takes effect on a host or on how work is judged, and the task does not allow it".to_owned()))
            .collect();
        if !refusals.is_empty() {
            return Ok(refusals);
        }
        let stands_in = change
            .new
            .as_ref()
            .is_some_and(|blob| matches!(blob.mode, MODE_LINK | MODE_SUBMODULE));
        if stands_in && self.leads_into(&change.path) {
            refusals.push(refusal(&change.path, "stands in for a folder whose files take effect on a host or on how work is judged, and the task does not allow it".to_owned()));
        }
        if is_attributes(&change.path) && !self.allows(&change.path) {
            let drivers = new_drivers(repository, change)?;
            if !drivers.is_empty() {
                let list = drivers.join("; ");
                refusals.push(refusal(&change.path, format!("asks for what only the configuration of a host can define, and the task does not allow it: {list}")));
            }
        }
        Ok(refusals)
    }

    /// The pattern that protects a path; none when nothing does or the task may touch it.
    pub fn pattern(&self, path: &str) -> Option<&str> {
        let folded = path.to_lowercase();
        let hit = |pattern: &&String| gates::glob_matches(&pattern.to_lowercase(), &folded);
        let found = self.patterns.iter().find(hit)?;
        (!self.allows(path)).then_some(found)
    }

    fn covers(&self, path: &str) -> bool {
        self.pattern(path).is_some()
    }

    fn allows(&self, path: &str) -> bool {
        let hit = |pattern: &String| gates::glob_matches(pattern, path);
        self.settled.contains(path) || self.allowed.iter().any(hit)
    }

    /// Whether a protected path could lie below this one by the name that it has.
    fn leads_into(&self, path: &str) -> bool {
        let folded = path.to_lowercase();
        let above = |pattern: &String| {
            let pattern = pattern.to_lowercase();
            let mut slashes = pattern.match_indices('/').map(|(at, _)| at);
            slashes.any(|at| {
                let prefix = pattern.get(..at).unwrap_or_default();
                // Any folder at all: what lies below has a name of its own that says more.
                let anywhere = prefix.rsplit('/').next().is_none_or(|last| last == "**");
                !anywhere && gates::glob_matches(prefix, &folded)
            })
        };
        self.patterns.iter().any(above) && !self.allows(path)
    }
}

fn refusal(path: &str, message: String) -> Problem {
    Problem {
        path: path.to_owned(),
        code: "protected".to_owned(),
        message,
    }
}

fn is_attributes(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.eq_ignore_ascii_case(".gitattributes")
}

/// The lines of the new file that ask for a driver and were not in the old one.
fn new_drivers(repository: &Repository, change: &Change) -> Result<Vec<String>, ReadError> {
    let read = |side: &Option<gates::Blob>| {
        let oid = side.as_ref().filter(|blob| blob.is_file());
        let oid = oid.and_then(|blob| Oid::from_str(&blob.oid).ok());
        let bytes = oid.map(|oid| repository.blob(oid)).transpose()?;
        Ok(bytes.map(|bytes| drivers(&bytes)).unwrap_or_default())
    };
    let before = read(&change.old)?;
    let mut now = read(&change.new)?;
    now.retain(|line| !before.contains(line));
    now.truncate(SHOWN_LINES);
    Ok(now)
}

/// The rules that ask for a driver, without what surrounds them.
fn drivers(rules: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(rules);
    let asks = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        !line.starts_with('#')
            && words.any(|word| DRIVERS.iter().any(|driver| word.starts_with(driver)))
    };
    let lines = text.lines().map(str::trim).filter(asks);
    lines.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protected() -> Protected {
        let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Protected {
            patterns: own(&[
                "**/.vscode/",
                "**/.cargo/config.toml",
                ".github/workflows/",
                "**/*.code-workspace",
                "airlock.toml",
            ]),
            allowed: own(&["docs/.vscode", "docs/.vscode/"]),
            settled: BTreeSet::from([".vscode/[*].json".to_owned()]),
        }
    }

    #[test]
    fn case_does_not_help() {
        for path in [".VSCode/tasks.json", "a/.Cargo/Config.toml", "AIRLOCK.toml"] {
            assert!(protected().covers(path), "{path}");
        }
        assert!(!protected().covers("docs/.vscode/tasks.json"));
        assert!(!protected().covers(".vscode/[*].json"), "settled before");
        assert!(
            protected().covers("docs/.VSCODE/tasks.json"),
            "allowed to the letter"
        );
    }

    #[test]
    fn a_link_must_not_take_the_place_of_a_protected_folder() {
        for path in [
            ".vscode",
            "a/.VSCODE",
            ".cargo",
            ".github",
            ".github/workflows",
        ] {
            assert!(protected().leads_into(path), "{path}");
        }
        for path in [
            "src",
            "vscode",
            "docs/.vscode",
            "a/.github",
            "x.code-workspace",
        ] {
            assert!(!protected().leads_into(path), "{path}");
        }
    }

    #[test]
    fn drivers_are_found_wherever_a_rule_hides_them() {
        let rules = b"# *.a filter=no\n  *.b text filter=lfs -text\n\"a b\" merge=x c=\"\n*.c -diff\n[attr]m diff=y\n";
        assert_eq!(
            drivers(rules),
            [
                "*.b text filter=lfs -text",
                "\"a b\" merge=x c=\"",
                "[attr]m diff=y"
            ]
        );
        assert!(drivers(b"*.txt text\n\"\n\nfilter=x\n").is_empty());
    }
}
