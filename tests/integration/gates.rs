//! What is let out and what is not, judged on sealed commits; and `gate`, which judges any commit.

use serde_json::Value;
use tests::{Ended, TestEnv};

/// The finding of one gate.
#[track_caller]
fn finding(run: &Ended, gate: &str) -> String {
    let object = run.json();
    let gates = object["gates"]
        .as_array()
        .unwrap_or_else(|| panic!("no gates\n{run}"));
    let found = gates
        .iter()
        .find(|entry| entry["gate"] == gate)
        .unwrap_or_else(|| panic!("no {gate}\n{run}"));
    found["finding"].as_str().unwrap().to_owned()
}

/// The codes of the reasons of one gate, with path and line.
fn reasons(run: &Ended, gate: &str) -> Vec<(String, Option<String>, Option<u64>)> {
    let object = run.json();
    let found = object["gates"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["gate"] == gate)
        .unwrap()
        .clone();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let reasons = found["reasons"].as_array().unwrap().iter();
    reasons
        .map(|reason| {
            (
                text(&reason["code"]).unwrap(),
                text(&reason["path"]),
                reason["line"].as_u64(),
            )
        })
        .collect()
}

#[test]
fn python_that_does_nothing_or_does_not_parse_is_refused() {
    let bad = [
        "# only a comment\n",
        "\"\"\"Only a docstring.\"\"\"\n",
        "pass\n",
        "...\n",
        "def add(a, b):\n    pass\n",
        "def add(a, b):\n    return a +\n",
        "class A:\n    \"\"\"Nothing.\"\"\"\n",
        "",
        "\t\n\n",
        "if True:\nprint(1)\n",
    ];
    for text in bad {
        let env = TestEnv::new();
        let repo = env.repository();
        std::fs::write(env.shared().join("given.py"), text).unwrap();
        let path = env.shared().join("given.py");
        let run = repo.task(
            &["--ro", path.to_str().unwrap()],
            &format!("cat {} > a.py", path.display()),
        );
        assert_eq!(run.code, Some(10), "{text:?}\n{run}");
        assert_eq!(finding(&run, "stub"), "fail", "{text:?}");
        assert!(
            reasons(&run, "stub")
                .iter()
                .any(|(_, path, _)| path.as_deref() == Some("a.py")),
            "{text:?}\n{run}"
        );
    }
}

#[test]
fn python_that_does_something_passes_also_beside_empty_package_files() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "mkdir -p pkg; : > pkg/__init__.py; echo 'x = 1' > pkg/a.py; echo '# fixtures' > pkg/conftest.py; \
                  printf 'from typing import Protocol\\n\\nclass P(Protocol):\\n    def f(self) -> int: ...\\n' > pkg/p.py; \
                  printf '\\357\\273\\277x = 1\\n' > pkg/bom.py; printf '# -*- coding: latin-1 -*-\\nx = \"\\344\"\\n' > pkg/latin.py";
    let run = repo.task(&[], script).exits(0);
    assert_eq!(finding(&run, "stub"), "pass", "{run}");
}

#[test]
fn json_has_to_parse() {
    let env = TestEnv::new();
    let repo = env.repository();
    let run = repo
        .task(&[], "printf '{\"a\": 1,\\n \"b\": }\\n' > a.json")
        .exits(10);
    assert!(
        reasons(&run, "stub")
            .iter()
            .any(|(_, path, line)| path.as_deref() == Some("a.json") && *line == Some(2)),
        "{run}"
    );
    repo.task(&[], "echo '{\"a\": [1, 2]}' > a.json").exits(0);
}

#[test]
fn a_file_that_kills_its_parser_is_refused_and_the_engine_lives() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "(printf 'x = '; i=0; while [ $i -lt 100000 ]; do printf '('; i=$((i+1)); done; echo 1) > deep.py; \
                  (printf 'y = 1'; i=0; while [ $i -lt 100000 ]; do printf ' + 1'; i=$((i+1)); done; echo) > wide.py";
    let run = repo.task(&["--task", "t1"], script);
    assert!(matches!(run.code, Some(10 | 14)), "{run}");
    assert!(
        run.stdout.contains("deep.py") || run.stdout.contains("wide.py"),
        "the file is named\n{run}"
    );
    assert_eq!(repo.show("t1")["state"], "rejected");
}

#[test]
fn a_boast_is_measured() {
    let env = TestEnv::new();
    let repo = env.repository();
    let run = repo
        .task(
            &["--note", "Wrote 17141 characters to a.py"],
            "echo 'x = 1' > a.py",
        )
        .exits(10);
    assert_eq!(finding(&run, "audit"), "fail");
    let run = repo
        .task(
            &["--note", "Wrote 6 characters to a.py"],
            "echo 'x = 1' > a.py",
        )
        .exits(0);
    assert_eq!(finding(&run, "audit"), "pass", "{run}");
}

#[test]
fn a_figure_is_an_image() {
    let env = TestEnv::new();
    let repo = env.repository();
    let mermaid = "printf '# Flow\\n\\n```mermaid\\ngraph TD\\n  A --> B\\n```\\n' > flow.md";
    let ascii = "printf '# Flow\\n\\n```\\n+------+     +------+\\n|  A   |---->|  B   |\\n+------+     +------+\\n```\\n' > flow.md";
    for script in [mermaid, ascii] {
        let run = repo.task(&[], script).exits(10);
        assert_eq!(finding(&run, "diagram"), "fail", "{run}");
        assert!(
            reasons(&run, "diagram")
                .iter()
                .any(|(_, path, line)| path.as_deref() == Some("flow.md") && line.is_some()),
            "{run}"
        );
    }
    repo.task(&["--gate", "diagram=lint"], mermaid).exits(0);
    repo.task(&["--gate", "diagram=off"], ascii).exits(0);
    let run = repo
        .task(&[], "printf '# Flow\\n\\n![flow](flow.png)\\n' > flow.md")
        .exits(10);
    assert_eq!(finding(&run, "diagram"), "fail", "{run}");
    repo.task(
        &[],
        "printf '# Flow\\n\\nA figure of the flow is missing here.\\n' > flow.md",
    )
    .exits(0);
}

#[test]
fn what_runs_on_a_host_later_is_protected() {
    for path in [
        ".envrc",
        ".vscode/tasks.json",
        ".github/workflows/ci.yml",
        "airlock.toml",
        ".cargo/config.toml",
        ".claude/settings.json",
    ] {
        let env = TestEnv::new();
        let repo = env.repository();
        let script =
            format!("mkdir -p $(dirname {path}); echo '{{}}' > {path}; echo 'x = 1' > x.py");
        let run = repo.task(&["--merge"], &script);
        assert_eq!(run.code, Some(10), "{path}\n{run}");
        assert_eq!(finding(&run, "tree"), "fail", "{path}");
        assert!(run.stdout.contains(path), "{path}\n{run}");
    }
    let env = TestEnv::new();
    let repo = env.repository();
    repo.task(
        &["--merge", "--allow", ".vscode"],
        "mkdir .vscode; echo '{}' > .vscode/settings.json",
    )
    .exits(0);
}

#[test]
fn no_detour_leads_to_a_protected_path() {
    let folder = "mkdir -p v/workflows; echo '{}' > v/tasks.json; echo 'x = 1' > x.py";
    for (path, detour) in [
        (".vscode", "ln -s v .vscode"),
        (".github", "ln -s v .github"),
        (".cargo", "ln -s v .cargo"),
        (".VSCode", "mv v .VSCode"),
        (".GitModules", "echo > .GitModules"),
        (".gitattributes", "echo '* filter=evil' > .gitattributes"),
    ] {
        let env = TestEnv::new();
        let repo = env.repository();
        let run = repo.task(&["--merge"], &format!("{folder}; {detour}"));
        assert_eq!(run.code, Some(10), "{path}\n{run}");
        assert_eq!(finding(&run, "tree"), "fail", "{path}");
        assert!(run.stdout.contains(path), "{path}\n{run}");
    }
}

#[test]
fn a_link_is_judged_by_what_it_leads_to() {
    let env = TestEnv::new();
    let repo = env.repository();
    for script in [
        "echo '# nothing' > impl.txt; ln -s impl.txt calc.py",
        "ln -s /dev/null calc.py",
    ] {
        let run = repo.task(&["--merge"], script).exits(10);
        assert_eq!(finding(&run, "stub"), "fail", "{run}");
    }
}

#[test]
fn the_agent_cannot_choose_its_judge() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "printf '[gates]\\nstub = \"off\"\\n' > airlock.toml; echo '# nothing' > a.py; mkdir -p ~/.config/airlock; \
                  cp airlock.toml ~/.config/airlock/config.toml; echo PASS; echo '{\"verdict\":\"accepted\"}' > task.json";
    let run = repo.task(&["--merge"], script).exits(10);
    assert_eq!(finding(&run, "stub"), "fail", "{run}");
    assert_eq!(
        finding(&run, "tree"),
        "fail",
        "the new airlock.toml is refused too\n{run}"
    );
}

#[test]
fn modes_come_from_flags_and_the_base() {
    let env = TestEnv::new();
    let repo = env.repository();
    let run = repo
        .task(&["--gate", "stub=warn"], "echo '# nothing' > a.py")
        .exits(0);
    assert_eq!(finding(&run, "stub"), "warn");
    repo.write("airlock.toml", "[gates]\nstub = \"off\"\n");
    repo.commit("gates of the repository");
    let run = repo.task(&[], "echo '# nothing' > a.py").exits(0);
    assert_eq!(finding(&run, "stub"), "not_applicable");
    repo.airlock(&["run", "--gate", "stubs=off", "--", "true"])
        .run()
        .exits(2)
        .says("stub");
    repo.airlock(&["run", "--gate", "stub=maybe", "--", "true"])
        .run()
        .exits(2)
        .says("maybe");
}

#[test]
fn any_commit_can_be_judged_without_a_task() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("good.py", "x = 1\n");
    repo.commit("good");
    let run = repo
        .airlock(&["gate", "--base", "HEAD~1", "--format", "json"])
        .run()
        .exits(0);
    assert_eq!(finding(&run, "stub"), "pass");
    repo.write("bad.py", "# nothing\n");
    repo.commit("bad");
    let run = repo
        .airlock(&["gate", "--base", "HEAD~1", "--format", "json"])
        .run()
        .exits(10);
    assert_eq!(
        reasons(&run, "stub")
            .first()
            .and_then(|(_, path, _)| path.clone())
            .as_deref(),
        Some("bad.py")
    );
    repo.airlock(&["gate", "--base", "HEAD~2", "--head", "HEAD~1"])
        .run()
        .exits(0);
    repo.airlock(&["gate", "--base", "nowhere"]).run().exits(3);
    assert!(
        repo.tip("refs/notes/airlock").is_none() && repo.tip("refs/airlock").is_none(),
        "judging leaves no trace"
    );
    repo.is_clean();
}

#[test]
fn findings_come_in_the_form_that_a_reader_wants() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("bad.py", "# nothing\n");
    repo.commit("bad");
    let format = |name: &str| {
        repo.airlock(&["gate", "--base", "HEAD~1", "--format", name])
            .run()
            .exits(10)
            .stdout
    };
    assert!(format("text").contains("bad.py"));
    let sarif: Value = serde_json::from_str(&format("sarif")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(
        sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "bad.py"
    );
    let junit = format("junit");
    assert!(
        junit.starts_with("<?xml") && junit.contains("<testsuite") && junit.contains("<failure"),
        "{junit}"
    );
    assert!(format("github").contains("::error"));
    let gitlab: Value = serde_json::from_str(&format("gitlab")).unwrap();
    assert_eq!(gitlab[0]["location"]["path"], "bad.py");
    let html = format("html");
    assert!(
        html.contains("Content-Security-Policy") && html.contains("bad.py"),
        "{html}"
    );
}

#[test]
fn hostile_text_is_shown_and_not_obeyed() {
    let env = TestEnv::new();
    let repo = env.repository();
    repo.write("::error::x.py", "# <script>alert(1)</script>\n");
    repo.commit("a name that is a command, a comment that is a script");
    let github = repo
        .airlock(&["gate", "--base", "HEAD~1", "--format", "github"])
        .run()
        .exits(10)
        .stdout;
    assert!(
        github.lines().all(|line| !line.starts_with("::error::")),
        "{github}"
    );
    let html = repo
        .airlock(&["gate", "--base", "HEAD~1", "--format", "html"])
        .run()
        .exits(10)
        .stdout;
    assert!(!html.contains("<script>alert"), "{html}");
    let script = "printf '\\033]0;title\\007\\033[2J\\033[31mred\\033[0m\\033]8;;http://x\\007link\\n'; echo 'x = 1' > x.py";
    let run = repo
        .airlock(&["run", "--task", "t1", "--", "sh", "-c", script])
        .run()
        .exits(0);
    let shown = format!("{}{}", run.stdout, run.stderr);
    assert!(
        shown.contains("red") && !shown.contains("\u{1b}]") && !shown.contains("\u{1b}[2J"),
        "{shown:?}"
    );
    assert!(
        !repo.log_of("t1").contains("\u{1b}]"),
        "logs are filtered unless raw is asked for"
    );
}

#[test]
fn every_gate_explains_itself() {
    let env = TestEnv::new();
    for gate in ["commit", "tree", "stub", "audit", "diagram"] {
        let text = env
            .airlock(env.path())
            .args(["gate", "explain", gate])
            .run()
            .exits(0)
            .stdout;
        assert!(
            text.lines().count() > 10 && text.contains(gate),
            "{gate}: {text}"
        );
    }
    env.airlock(env.path())
        .args(["gate", "explain", "nothing"])
        .run()
        .exits(2);
}
