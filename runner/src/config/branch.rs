//! The name of a delivery's branch: a template filled in and checked by git's rules for ref names,
//! before anything is made. Pure.

/// A branch template or name that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BranchError {
    /// A placeholder that does not exist.
    #[error(
        "the branch template {template:?} has an unknown placeholder {{{placeholder}}}; known are {{run}}, {{task}}, {{agent}}"
    )]
    Placeholder {
        /// The template.
        template: String,
        /// What stands between the braces.
        placeholder: String,
    },
    /// All tasks would share one branch.
    #[error("the branch template {0:?} has no {{task}}, so two tasks would share a branch")]
    NotUnique(String),
    /// Not a ref name.
    #[error("{name:?} is not a branch name: {problem}")]
    NotAName {
        /// The name.
        name: String,
        /// The rule it breaks.
        problem: &'static str,
    },
}

/// Fills a template.
pub(super) fn fill(
    template: &str,
    run: &str,
    task: &str,
    agent: &str,
) -> Result<String, BranchError> {
    if !template.contains("{task}") {
        return Err(BranchError::NotUnique(template.to_owned()));
    }
    let mut name = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (placeholder, after) = after.split_once('}').unwrap_or((after, ""));
        name.push_str(before);
        name.push_str(match placeholder {
            "run" => run,
            "task" => task,
            "agent" => agent,
            unknown => {
                return Err(BranchError::Placeholder {
                    template: template.to_owned(),
                    placeholder: unknown.to_owned(),
                });
            }
        });
        rest = after;
    }
    name.push_str(rest);
    check(&name)?;
    Ok(name)
}

/// Checks a short branch name by the rules of `git check-ref-format --branch`.
pub(super) fn check(name: &str) -> Result<(), BranchError> {
    match broken_rule(name) {
        None => Ok(()),
        Some(problem) => Err(BranchError::NotAName {
            name: name.to_owned(),
            problem,
        }),
    }
}

fn broken_rule(name: &str) -> Option<&'static str> {
    let forbidden = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let rules: [(bool, &'static str); 9] = [
        (name.is_empty(), "it is empty"),
        (name.len() > 200, "it is longer than 200 bytes"),
        (
            name == "HEAD" || name == "@" || name.starts_with("refs/"),
            "the name is reserved",
        ),
        (name.starts_with('-'), "it starts with '-'"),
        (
            name.chars().any(forbidden),
            "it holds a space, a control character or one of ~^:?*[\\",
        ),
        (
            name.contains("..") || name.contains("@{"),
            "it holds '..' or '@{'",
        ),
        (
            name.split('/').any(str::is_empty),
            "a part between slashes is empty",
        ),
        (
            name.split('/').any(|part| part.starts_with('.')),
            "a part starts with '.'",
        ),
        (
            name.ends_with('.')
                || name
                    .split('/')
                    .any(|part| part.strip_suffix(".lock").is_some()),
            "it ends with '.', or a part ends with '.lock'",
        ),
    ];
    rules
        .into_iter()
        .find(|(broken, _)| *broken)
        .map(|(_, problem)| problem)
}

/// An agent's name in the form that fits into a ref.
pub(super) fn slug(name: &str) -> String {
    let slug: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() {
        "agent".to_owned()
    } else {
        slug.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates() {
        assert_eq!(
            fill("airlock/{run}/{task}", "r", "t", "a").unwrap(),
            "airlock/r/t"
        );
        assert_eq!(
            fill("wip/{agent}-{task}", "r", "t", "a").unwrap(),
            "wip/a-t"
        );
        insta::assert_snapshot!(fill("x/{tsk}{task}", "r", "t", "a").unwrap_err(), @r#"the branch template "x/{tsk}{task}" has an unknown placeholder {tsk}; known are {run}, {task}, {agent}"#);
        insta::assert_snapshot!(fill("feature", "r", "t", "a").unwrap_err(), @r#"the branch template "feature" has no {task}, so two tasks would share a branch"#);
        insta::assert_snapshot!(fill("a b/{task}", "r", "t", "a").unwrap_err(), @r#""a b/t" is not a branch name: it holds a space, a control character or one of ~^:?*[\"#);
    }

    #[test]
    fn names_that_git_refuses_are_refused() {
        for good in ["a", "a/b", "a.b", "ä/ö", "x@y", "a-b"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-a",
            "a..b",
            "a//b",
            "/a",
            "a/",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a.",
            "@",
            "HEAD",
            "a@{b",
            "a\u{7f}",
            "a\\b",
            "refs/heads/x",
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn slugs() {
        assert_eq!(slug("My Agent.sh"), "my-agent-sh");
        assert_eq!(slug("..."), "agent");
    }
}
