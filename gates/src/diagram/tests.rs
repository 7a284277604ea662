//! Must-flag and must-pass documents, judged through the gate's one entry.

use std::collections::HashMap;

use super::judge;
use crate::{
    Blob, Change, ChangeKind, Delivery, DiagramMode, Finding, Level, Reason, Source, TreeEntry,
};

#[derive(Default)]
pub(super) struct Repository {
    blobs: HashMap<String, Vec<u8>>,
    tree: Vec<TreeEntry>,
    changes: Vec<Change>,
    mode: DiagramMode,
}

impl Source for Repository {
    fn blob(&mut self, oid: &str) -> Option<Vec<u8>> {
        self.blobs.get(oid).cloned()
    }
    fn entries(&mut self) -> Vec<TreeEntry> {
        self.tree.clone()
    }
}

impl Repository {
    fn put(&mut self, side: &str, path: &str, content: &[u8]) -> Blob {
        let oid = format!("{side}:{path}");
        self.blobs.insert(oid.clone(), content.to_vec());
        Blob {
            oid,
            mode: 0o100_644,
            bytes: content.len() as u64,
        }
    }

    /// A file of the delivered tree that the delivery did not change.
    pub(super) fn file(mut self, path: &str, content: &[u8]) -> Self {
        let blob = self.put("new", path, content);
        self.tree.push(TreeEntry {
            path: path.to_owned(),
            oid: blob.oid,
            mode: blob.mode,
        });
        self
    }

    pub(super) fn change(mut self, path: &str, old: Option<&str>, new: &str) -> Self {
        let old = old.map(|text| self.put("old", path, text.as_bytes()));
        let new = self.put("new", path, new.as_bytes());
        self.tree.push(TreeEntry {
            path: path.to_owned(),
            oid: new.oid.clone(),
            mode: new.mode,
        });
        let kind = if old.is_some() {
            ChangeKind::Modified
        } else {
            ChangeKind::Added
        };
        self.changes.push(Change {
            path: path.to_owned(),
            kind,
            from: None,
            old,
            new: Some(new),
        });
        self
    }

    pub(super) fn reasons(mut self) -> Vec<Reason> {
        let text = r#"{"repository":"r","base":"b","base_tree":"b","commit":"c","tree":"t","changes":[],"engine_made":true}"#;
        let mut delivery: Delivery = serde_json::from_str(text).unwrap();
        delivery.changes = std::mem::take(&mut self.changes);
        delivery.profile.diagram = self.mode;
        judge(&delivery, &mut self).reasons
    }
}

pub(super) fn codes(path: &str, text: &str) -> Vec<String> {
    let repository = Repository::default()
        .file("img/real.png", &png(8, 8, true))
        .change(path, None, text);
    let reasons = repository.reasons();
    reasons
        .into_iter()
        .map(|reason| {
            format!(
                "{}{}",
                if reason.level == Level::Fail { "" } else { "~" },
                reason.code
            )
        })
        .collect()
}

pub(super) fn png(width: u32, height: u32, drawn: bool) -> Vec<u8> {
    let mut picture = image::RgbImage::new(width, height);
    if drawn {
        picture.put_pixel(1, 1, image::Rgb([9, 99, 199]));
    }
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture
        .write_to(&mut bytes, image::ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}

pub(super) fn fence(text: &str) -> String {
    format!("# T\n\n```\n{text}\n```\n")
}

#[test]
fn sources_of_drawing_tools() {
    let cases = [
        ("a.md", "~~~ Mermaid\ngraph TD\n~~~\n", "dia.mermaid"),
        (
            "a.md",
            "- x\n  1. y\n\n     ```{mermaid}\n     graph TD\n     ```\n",
            "dia.mermaid",
        ),
        ("a.md", ":::{mermaid}\ngraph TD\n:::\n", "dia.mermaid"),
        (
            "a.md",
            "{{< mermaid >}}\ngraph TD\n{{< /mermaid >}}\n",
            "dia.mermaid",
        ),
        (
            "a.md",
            "{% plantuml %}\na -> b\n{% endplantuml %}\n",
            "dia.plantuml",
        ),
        ("a.md", "@startuml\na -> b\n@enduml\n", "dia.plantuml"),
        (
            "a.md",
            "```\n%% note\nstateDiagram-v2\n  [*] --> A\n```\n",
            "dia.mermaid",
        ),
        ("a.md", "```\ngraph G {\n a -- b\n}\n```\n", "dia.graphviz"),
        ("a.md", "```d2\na -> b\n```\n", "dia.source"),
        (
            "a.md",
            "<pre><code class=\"language-mermaid\">graph TD</code></pre>\n",
            "dia.mermaid",
        ),
        ("a.rst", ".. uml::\n\n   a -> b\n", "dia.plantuml"),
        (
            "a.rst",
            ".. graphviz::\n\n   digraph { a -> b }\n",
            "dia.graphviz",
        ),
        (
            "a.rst",
            "Like this::\n\n   sequenceDiagram\n     A->>B: x\n",
            "dia.mermaid",
        ),
        (
            "a.adoc",
            "[source,mermaid]\n----\ngraph TD\n----\n",
            "dia.mermaid",
        ),
        ("a.adoc", "[ditaa]\n....\n+-+\n....\n", "dia.source"),
        ("a.adoc", "plantuml::flow.puml[]\n", "dia.plantuml"),
        (
            "a.html",
            "<code class='language-mermaid'>graph TD</code>",
            "dia.mermaid",
        ),
        ("a.html", "<mermaid>graph TD</mermaid>", "dia.mermaid"),
    ];
    for (path, text, code) in cases {
        assert_eq!(codes(path, text), [code], "{text}");
    }
}

#[test]
fn drawings_made_of_characters() {
    let boxes = [
        "┌───┐   ┌───┐\n│ a │   │ b │\n└───┘   └───┘",
        "+-------+\n| outer |\n| +---+ |\n| | b | |\n| +---+ |\n+-------+",
        ".------.     .------.\n| web  |---->| core |\n'------'     '------'",
        "╔════╗\n║ db ║◀── reads\n╚════╝",
        " _____\n|     |     _____\n| one |--->|     |\n|_____|    | two |\n           |_____|",
        "┌────────┐\n│ 用户端 │\n└───┬────┘\n    │\n    ▼\n┌────────┐\n│ 服务端 │\n└────────┘",
        "+-----+\n| one |\n+-----+\n   |\n   v\n+------+\n| two   |\n+------+",
        "A ─┬─▶ B\n   └─▶ C",
    ];
    for text in boxes {
        assert_eq!(codes("a.md", &fence(text)), ["dia.ascii-box"], "{text}");
    }
    let flows = [
        "start\n  ↓\nread\n  ↓\nend",
        "Client\n  |\n  | sends\n  v\nServer",
        "a  b\n |  |\n v  v\n  c",
        "Alice            Bob\n  ------ hello ----->\n  <----- hi ---------",
        "用户请求\n   │\n   ▼\n网关",
    ];
    for text in flows {
        let found = codes("a.md", &fence(text));
        assert!(
            found == ["dia.ascii-flow"] || found == ["dia.ascii-box"],
            "{text}: {found:?}"
        );
    }
    let graphs = [
        "      D---E  topic\n     /\nA---B---C  main",
        "    root\n   /    \\\n  a      b\n / \\    / \\\nc   d  e   f",
    ];
    for text in graphs {
        assert_eq!(codes("a.md", &fence(text)), ["dia.ascii-graph"], "{text}");
    }
    let noted = [
        ("reader → parser → writer", "~dia.ascii-chain"),
        (
            "+-----------+\n| only one  |\n+-----------+",
            "~dia.ascii-maybe",
        ),
        (
            "0                   1\n+-+-+-+-+-+-+-+-+-+-+\n|  type |   length  |\n+-+-+-+-+-+-+-+-+-+-+",
            "~dia.ascii-maybe",
        ),
        (
            "--------\n|List  |\n+------+\n||ab  ||\n|+----+|\n||cd  ||\n|+----+|\n||ef  ||",
            "~dia.ascii-maybe",
        ),
        ("rust   ■■■■■■■ 7\ngo     ■■■ 3", "~dia.ascii-chart"),
    ];
    for (text, code) in noted {
        assert_eq!(codes("a.md", &fence(text)), [code], "{text}");
    }
}

#[test]
fn drawings_without_a_fence_or_under_a_language() {
    let boxes = "+----+    +----+\n| a  |--->| b  |\n+----+    +----+";
    assert_eq!(
        codes("a.md", &format!("Text.\n\n{boxes}\n")),
        ["dia.ascii-box"]
    );
    assert_eq!(
        codes("a.md", &format!("> {}\n", boxes.replace('\n', "\n> "))),
        ["dia.ascii-box"]
    );
    assert_eq!(
        codes("a.md", &format!("```bash\n{boxes}\n```\n")),
        ["dia.ascii-box"]
    );
    assert_eq!(
        codes(
            "a.rst",
            &format!("Text::\n\n  {}\n", boxes.replace('\n', "\n  "))
        ),
        ["dia.ascii-box"]
    );
    assert_eq!(
        codes("a.adoc", &format!("....\n{boxes}\n....\n")),
        ["dia.ascii-box"]
    );
    assert_eq!(
        codes(
            "a.html",
            &format!("<pre>{}</pre>", boxes.replace('>', "&gt;"))
        ),
        ["dia.ascii-box"]
    );
    let cell = serde_json::json!({"cells": [{"cell_type": "markdown", "source": [format!("```\n{boxes}\n```\n")]}, {"cell_type": "code", "source": boxes}]});
    assert_eq!(codes("a.ipynb", &cell.to_string()), ["dia.ascii-box"]);
}

#[test]
fn look_alikes_pass() {
    let texts = [
        "src\n├── a.rs\n│   └── b → c\n└── d",
        "C:.\n+---src\n|   +---lib\n|   \\---bin\n\\---doc",
        "main()\n└─> run()\n    └─> stop()",
        "+----+------+\n| id | name |\n+----+------+\n|  1 | ann  |\n|  2 | bob  |\n+----+------+",
        "┌───┬───┐\n│ a │ b │\n╞═══╪═══╡\n│ 1 │ 2 │\n├───┼───┤\n│ 3 │ 4 │\n└───┴───┘",
        "warning: unused\n  --> src/a.rs:3:5\n   |\n 3 |     let x = 1;\n   |         ^ help: v\n   |         |\n   |         here",
        "* 3f2a1c0 merge\n|\\\n| * 9d41402 work\n|/\n* 1111111 start",
        "diff --git a b\n--- a\n+++ b\n@@ -1 +1 @@\n-x -> y\n+x -> z",
        "100%|██████████| 10/10\n 50%|█████     | 5/10",
        "fn f(a: A) -> B\nfn g(b: B) -> C",
        "let x = foo(bar,\n            |\n            v\n            baz);",
        "$ ls -l a -> b -> c",
        "for (i = 0; i < n; i--) a->b->c();",
        "   /\\_/\\\n  ( o.o )\n   > ^ <",
        "cat <<EOF | sort\n|| true\nEOF",
        "1 -> 2 -> 3",
        "-----\nTitle\n-----",
        " bit | lock | what\n  0  |  0   | free\n-----+------+-----\n  0  |  1   | held\n-----+------+-----\n  1  |  1   | queue",
    ];
    for text in texts {
        assert_eq!(codes("a.md", &fence(text)), [""; 0], "{text}");
    }
    let documents = [
        "| a | b |\n|---|---|\n| c → d | `x` |\n",
        "Read <pre> and <svg> as words; `<div class=\"mermaid\">` too.\n",
        "<!-- \n```mermaid\ngraph TD\n```\n-->\n",
        "````md\n```plantuml\n@startuml\n```\n````\n",
        "---\ntitle: mermaid\n---\n\n# A\n\ngraph the results, then flowchart them\n",
        "vec![a][0] and x![y][z]\n",
        "[![badge](https://img.shields.io/x.svg)](https://example.com)\n",
        "![x](#anchor) and [mail](mailto:a@b.c)\n",
    ];
    for text in documents {
        assert_eq!(codes("a.md", text), [""; 0], "{text}");
    }
    assert_eq!(
        codes(
            "a.rst",
            "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+\n"
        ),
        [""; 0]
    );
    assert_eq!(
        codes("a.rst", ".. code-block:: rust\n\n   fn f() -> u8 { 1 }\n"),
        [""; 0]
    );
    assert_eq!(codes("a.adoc", "|===\n|a |b\n|===\n"), [""; 0]);
    assert_eq!(
        codes(
            "a.html",
            "<script>const g = 'graph TD'; // <div class=mermaid></script><p>x</p>"
        ),
        [""; 0]
    );
}

#[test]
fn an_honest_statement_before_it_excuses() {
    let figure = "```mermaid\ngraph TD\n```\n";
    assert_eq!(
        codes(
            "a.md",
            &format!("Figure missing: no renderer here.\n\n{figure}")
        ),
        ["~dia.honest"]
    );
    assert_eq!(
        codes("a.md", &format!("配图缺失：无法绘图。\n\n{figure}")),
        ["~dia.honest"]
    );
    assert_eq!(
        codes(
            "a.md",
            &format!("<!-- figure-missing: no tool -->\n{figure}")
        ),
        ["~dia.honest"]
    );
    assert_eq!(
        codes(
            "a.rst",
            ".. figure-missing: no tool\n\n.. mermaid::\n\n   graph TD\n"
        ),
        ["~dia.honest"]
    );
    assert_eq!(
        codes(
            "a.md",
            &format!("The architecture diagram could not\nbe rendered here.\n\n{figure}")
        ),
        ["~dia.honest"]
    );
    assert_eq!(
        codes("a.md", &format!("The figure is not missing.\n\n{figure}")),
        ["dia.mermaid"]
    );
    assert_eq!(
        codes(
            "a.md",
            &format!("Figure missing: x.\n\n## Next\n\n{figure}")
        ),
        ["dia.mermaid"]
    );
    assert_eq!(
        codes("a.md", &format!("{figure}\nFigure missing: x.\n")),
        ["dia.mermaid"]
    );
    assert_eq!(
        codes(
            "a.md",
            &format!("`figure missing`\n\n```\nFigure missing: x\n```\n\n{figure}")
        ),
        ["dia.mermaid"]
    );
}

#[test]
fn only_what_is_new_counts() {
    let old = "# A\n\n```mermaid\ngraph TD\n```\n\n![x](none.png)\n";
    let judged = |new: &str| -> Vec<String> {
        let repository = Repository::default().change("a.md", Some(old), new);
        repository
            .reasons()
            .into_iter()
            .map(|reason| reason.code)
            .collect()
    };
    assert_eq!(judged(&format!("Intro.\n\n{old}")), [""; 0]);
    assert_eq!(
        judged("# B\n\n- x\n\n  ```mermaid\n  graph TD\n  ```\n"),
        [""; 0]
    );
    assert_eq!(
        judged(&format!("{old}\n```mermaid\ngraph TD\n```\n")),
        ["dia.mermaid"]
    );
    assert_eq!(judged(&old.replace("TD", "LR")), ["dia.mermaid"]);
    assert_eq!(judged(&old.replace("none", "other")), ["img.missing"]);
}

#[test]
fn an_old_reference_to_a_picture_that_the_delivery_spoils_counts() {
    let mut repository = Repository::default()
        .change("a.md", Some("![x](p.png)\n"), "![x](p.png)\n\nMore.\n")
        .file("p.png", b"");
    let new = Blob {
        oid: "new:p.png".to_owned(),
        mode: 0o100_644,
        bytes: 0,
    };
    repository.changes.push(Change {
        path: "p.png".to_owned(),
        kind: ChangeKind::Modified,
        from: None,
        old: None,
        new: Some(new),
    });
    assert_eq!(repository.reasons()[0].code, "img.empty");
}

#[test]
fn lint_allows_mermaid_and_says_that_it_was_not_checked() {
    let text = "```mermaid\ngraph TD\n```\n\n```plantuml\n@startuml\n```\n";
    let mut repository = Repository::default().change("a.md", None, text);
    repository.mode = DiagramMode::Lint;
    let found: Vec<(Level, String)> = repository
        .reasons()
        .into_iter()
        .map(|reason| (reason.level, reason.code))
        .collect();
    assert_eq!(
        found,
        [
            (Level::Info, "dia.not-checked".to_owned()),
            (Level::Fail, "dia.plantuml".to_owned())
        ]
    );
}

#[test]
fn the_message_tells_how_to_allow_mermaid() {
    let reasons = Repository::default()
        .change("docs/a.md", None, "x\n\n```mermaid\ngraph TD\n```\n")
        .reasons();
    assert_eq!(
        (reasons[0].path.as_deref(), reasons[0].line),
        (Some("docs/a.md"), Some(3))
    );
    for words in [
        "[gates.diagram]",
        "mode = \"lint\"",
        "airlock.toml",
        "figure-missing:",
    ] {
        assert!(reasons[0].help.contains(words), "{}", reasons[0].help);
    }
}

#[test]
fn nothing_to_judge_and_nothing_to_read() {
    let text = r#"{"repository":"r","base":"b","base_tree":"b","commit":"c","tree":"t","changes":[],"engine_made":true}"#;
    let mut delivery: Delivery = serde_json::from_str(text).unwrap();
    assert_eq!(
        judge(&delivery, &mut Repository::default()).finding,
        Finding::NotApplicable
    );
    let new = Blob {
        oid: "gone".to_owned(),
        mode: 0o100_644,
        bytes: 3,
    };
    delivery.changes = vec![Change {
        path: "a.md".to_owned(),
        kind: ChangeKind::Added,
        from: None,
        old: None,
        new: Some(new),
    }];
    assert_eq!(
        judge(&delivery, &mut Repository::default()).finding,
        Finding::CouldNotCheck
    );
    delivery.profile.diagram = DiagramMode::Off;
    assert_eq!(
        judge(&delivery, &mut Repository::default()).finding,
        Finding::NotApplicable
    );
}
