//! Truth tables of the stub gate: what must be refused, what must only be listed, what must pass.

use std::collections::HashMap;

use proptest::prelude::*;

use crate::{
    AgentWork, Blob, Change, ChangeKind, Delivery, Finding, Gate, GateRun, Profile, Skip, Source,
    TreeEntry, judge,
};

#[derive(Default)]
struct Store(HashMap<String, Vec<u8>>, Vec<TreeEntry>);

impl Source for Store {
    fn blob(&mut self, oid: &str) -> Option<Vec<u8>> {
        self.0.get(oid).cloned()
    }

    fn entries(&mut self) -> Vec<TreeEntry> {
        self.1.clone()
    }
}

impl Store {
    fn put(&mut self, bytes: &[u8]) -> Blob {
        let oid = format!("{:040x}", self.0.len() + 1);
        self.0.insert(oid.clone(), bytes.to_vec());
        Blob {
            oid,
            mode: 0o100_644,
            bytes: bytes.len() as u64,
        }
    }
}

fn delivery(changes: Vec<Change>) -> Delivery {
    Delivery {
        repository: "sample".to_owned(),
        task: None,
        run: None,
        base: "b".repeat(40),
        base_tree: "e".repeat(40),
        commit: "c".repeat(40),
        tree: "d".repeat(40),
        changes,
        problems: Vec::new(),
        unconverted: Vec::new(),
        agent: AgentWork::default(),
        note: None,
        profile: Profile::default(),
        engine_made: true,
    }
}

fn change(path: &str, old: Option<Blob>, new: Option<Blob>) -> Change {
    let kind = match (&old, &new) {
        (None, _) => ChangeKind::Added,
        (Some(_), None) => ChangeKind::Deleted,
        (Some(_), Some(_)) => ChangeKind::Modified,
    };
    Change {
        path: path.to_owned(),
        kind,
        from: None,
        old,
        new,
    }
}

fn run(delivery: &Delivery, store: &mut Store) -> GateRun {
    let judgement = judge(delivery, store);
    let found = judgement
        .gates
        .into_iter()
        .find(|run| run.gate == Gate::Stub);
    found.expect("every gate is in a judgement")
}

pub(super) fn judged(path: &str, bytes: &[u8]) -> GateRun {
    let mut store = Store::default();
    let new = store.put(bytes);
    run(&delivery(vec![change(path, None, Some(new))]), &mut store)
}

fn judged_over(path: &str, base: &str, text: &str) -> GateRun {
    let mut store = Store::default();
    let old = store.put(base.as_bytes());
    let new = store.put(text.as_bytes());
    run(
        &delivery(vec![change(path, Some(old), Some(new))]),
        &mut store,
    )
}

pub(super) fn first_code(run: &GateRun) -> &str {
    run.reasons.first().map_or("", |reason| &reason.code)
}

const REFUSED: [(&str, &str); 36] = [
    ("py.empty", " \n\n"),
    ("py.no-statements", "# plan\n# 1. read\n"),
    ("py.no-statements", "\"\"\"Reads.\"\"\"\n...\n"),
    ("py.no-statements", "if False:\n    run()\n"),
    ("py.no-statements", "'''\ndef f():\n    return g()\n'''\n"),
    (
        "py.no-statements",
        "try:\n    pass\nexcept ValueError:\n    pass\n",
    ),
    ("py.imports-only", "import os\nimport sys\n"),
    ("py.imports-only", "__author__ = 'x'\nfrom os import path\n"),
    ("py.meta-only", "__author__ = 'x'\n__license__ = 'MIT'\n"),
    (
        "py.noise-only",
        "import time\nprint('Working')\ntime.sleep(1)\n",
    ),
    (
        "py.noise-only",
        "if __name__ == '__main__':\n    print('done')\n",
    ),
    ("py.all-stub", "class Parser:\n    pass\n"),
    (
        "py.all-stub",
        "import logging\nlog = logging.getLogger(__name__)\ndef parse(x): ...\n",
    ),
    (
        "py.all-stub",
        "import sys\ndef main():\n    pass\nsys.exit(main())\n",
    ),
    (
        "py.all-stub",
        "class Error(Exception):\n    pass\ndef go():\n    raise NotImplementedError\n",
    ),
    (
        "py.all-stub",
        "class A:\n    def run(self):\n        raise Exception('not implemented yet')\nA().run()\n",
    ),
    ("py.all-stub", "def f(x):\n    return\n    x += 1\n"),
    ("py.all-stub", "def f():\n    assert False, 'TODO'\n"),
    (
        "py.all-stub",
        "def f():\n    msg = 'later'\n    raise NotImplementedError(msg)\n",
    ),
    (
        "py.hollow",
        "import abc_\nclass T(abc_.Base):\n    x = 1\n    def a(self): pass\n    def b(self): pass\n    def c(self): return 1\n",
    ),
    (
        "py.hollow",
        "def a(x):\n    print('a')\n    return True\ndef b(x):\n    print('b')\n    return True\ndef c(x):\n    print('c')\n    return 1\n",
    ),
    (
        "py.hollow",
        "@app.route('/')\ndef a(): pass\n@app.route('/b')\ndef b(): pass\n@app.route('/c')\ndef c(): pass\n",
    ),
    (
        "py.marked-stub",
        "import q\nq.go()\ndef check(t):\n    # TODO: ask the server\n    return True\n",
    ),
    (
        "py.marked-stub",
        "import q\nq.go()\ndef send(m):\n    for step in range(3):\n        print(f'Simulating {step}')\n    return True\n",
    ),
    (
        "py.marked-stub",
        "import q\nq.go()\ndef users():\n    # placeholder\n    return ['a', 'b']\n",
    ),
    (
        "py.marked-stub",
        "import q\nq.go()\ndef clean(text):\n    # 占位实现\n    return text\n",
    ),
    (
        "py.elision",
        "import q\nq.go()\n# ... rest of the code remains the same ...\n",
    ),
    (
        "py.elision",
        "class A:\n    def f(self):\n        return self.x + 1\n    # ... other methods ...\n",
    ),
    ("py.syntax", "def f(:\n    pass\n"),
    ("py.syntax", "return 1\n"),
    ("py.syntax", "def f():\n    nonlocal x\n    x = 1\n"),
    ("py.syntax", "if x:\n\ty = 1\n        z = 2\n"),
    ("py.syntax.fenced", "Here it is:\n```python\nx = 1\n```\n"),
    (
        "py.syntax.conflict",
        "<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> b\n",
    ),
    ("py.syntax.py2", "print 'hello'\n"),
    (
        "py.too-deep",
        "x = ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1)\n",
    ),
];

#[test]
fn what_does_nothing_is_refused() {
    for (code, text) in REFUSED {
        let run = judged("pkg/module.py", text.as_bytes());
        assert_eq!(run.finding, Finding::Fail, "{code}: {text}\n{run:?}");
        assert_eq!(first_code(&run), code, "{text}\n{run:?}");
        let reason = &run.reasons[0];
        assert!(
            reason.line.is_some() && !reason.help.is_empty(),
            "{reason:?}"
        );
    }
}

const LISTED: [(&str, &str); 10] = [
    ("py.const", "def rate(model, data):\n    return 0.97\n"),
    (
        "py.const",
        "def kind(image):\n    name = 'cat'\n    return name\n",
    ),
    (
        "py.noise",
        "def upload(path):\n    print('Uploading')\n    return True\n",
    ),
    (
        "py.echo",
        "def fold(text):\n    '''Fold case.'''\n    return text\n",
    ),
    (
        "py.trivial",
        "def drain(items):\n    for item in items:\n        pass\n",
    ),
    (
        "py.hollow-const",
        "def a(x): return 1\ndef b(x): return {}\ndef c(x): return 'x'\n",
    ),
    (
        "py.partial-stub",
        "def a(x):\n    return x + 1\ndef b(x): pass\ndef c(x): raise NotImplementedError\n",
    ),
    (
        "py.marked-real",
        "def up(text):\n    # In a real implementation this would ask the service.\n    return text.upper()\n",
    ),
    (
        "py.except-comma",
        "try:\n    go()\nexcept ValueError, e:\n    stop()\n",
    ),
    ("py.bidi", "x = go('a\u{202e}b')\n"),
];

#[test]
fn what_looks_odd_is_listed_and_not_refused() {
    for (code, text) in LISTED {
        let run = judged("pkg/module.py", text.as_bytes());
        assert_eq!(run.finding, Finding::Warn, "{code}: {text}\n{run:?}");
        assert_eq!(first_code(&run), code, "{text}\n{run:?}");
    }
}

const PASSED: [&str; 34] = [
    "PORT = 80\n",
    "from .core import run\n",
    "from core import *\n",
    "from os import path as path\n",
    "from os import path  # noqa: F401\n",
    "from os import path\n__all__ = ['path']\n",
    "__version__ = '1.0'\n",
    "class E(Exception):\n    pass\n",
    "class A(TypedDict):\n    x: int\n",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int = 0\n",
    "import enum\nclass C(enum.Enum):\n    A = 1\n",
    "type X = list[int]\n",
    "try:\n    import a\nexcept ImportError:\n    a = None\n",
    "setup(name='x')\n",
    "class R(Protocol):\n    def a(self): ...\n    def b(self): ...\n    def c(self): ...\n",
    "class IReader:\n    def a(self):\n        raise NotImplementedError\n    def b(self):\n        raise NotImplementedError\n",
    "class Shape(metaclass=abc.ABCMeta):\n    def a(self): pass\n    def b(self): pass\n    def c(self): pass\n",
    "class NullLog:\n    def a(self): pass\n    def b(self): pass\n    def c(self): pass\n",
    "class BaseThing:\n    def a(self):\n        raise NotImplementedError\n    def b(self):\n        raise NotImplementedError\n",
    "@overload\ndef f(x: int) -> int: ...\n@overload\ndef f(x: str) -> str: ...\ndef f(x):\n    return x * 2\n",
    "@click.group()\ndef cli():\n    '''Tools.'''\n",
    "def handler(*_):\n    pass\nsignal.signal(2, handler)\n",
    "revision = 'a'\ndown_revision = 'b'\ndef upgrade(): pass\ndef downgrade(): pass\n",
    "def gen():\n    return\n    yield\n",
    "class M:\n    def __eq__(self, o):\n        return NotImplemented\n    def go(self):\n        return self.x + 1\n",
    "def f():\n    def g(x):\n        return x + 1\n    return g\n",
    "def f(x):\n    global y\n    y = 1\n    return go(x)\n",
    "def f(a):\n    try:\n        import fast\n        ok = True\n    except ImportError:\n        ok = False\n    return ok\n",
    "def mock(n):\n    '''Mock n calls.'''\n    # mock them all\n    return [go() for _ in range(n)]\n",
    "def usage():\n    print('usage: x')\n",
    "def f(x):\n    match x:\n        case [a, *rest]:\n            return rest\n",
    "async def f(xs):\n    return [x async for x in xs]\n",
    "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n        return n\n    return g\n",
    "x = t'{y}'\nz = f'{a!r:>{w}}'\n",
];

#[test]
fn what_works_passes() {
    for text in PASSED {
        let run = judged("pkg/module.py", text.as_bytes());
        assert_eq!(run.finding, Finding::Pass, "{text}\n{run:?}");
    }
}

#[test]
fn tests_that_cannot_fail() {
    let table = [
        (
            "py.hollow-test",
            Finding::Fail,
            "def test_a():\n    assert True\ndef test_b():\n    pass\n",
        ),
        (
            "py.hollow-test",
            Finding::Fail,
            "class TestX:\n    def test_a(self):\n        print('ok')\n",
        ),
        (
            "py.no-assert",
            Finding::Warn,
            "def test_a():\n    total([1])\n",
        ),
        (
            "py.skip-all",
            Finding::Warn,
            "import pytest\npytestmark = pytest.mark.skip\ndef test_a():\n    assert go() == 1\n",
        ),
        (
            "py.exit-zero",
            Finding::Warn,
            "import sys\ndef test_a():\n    assert go()\n    sys.exit(0)\n",
        ),
        (
            "py.swallow",
            Finding::Warn,
            "def test_a():\n    try:\n        assert go() == 1\n    except Exception:\n        pass\n",
        ),
        ("", Finding::Pass, "def test_a():\n    import pkg.module\n"),
        (
            "",
            Finding::Pass,
            "def check(x):\n    assert x\ndef test_a():\n    check(go())\n",
        ),
        (
            "",
            Finding::Pass,
            "import pytest\ndef test_a():\n    with pytest.raises(KeyError):\n        go()\n",
        ),
    ];
    for (code, finding, text) in table {
        let run = judged("tests/test_module.py", text.as_bytes());
        assert_eq!(
            (run.finding, first_code(&run)),
            (finding, code),
            "{text}\n{run:?}"
        );
    }
}

#[test]
fn names_that_exempt() {
    let stub = b"def f(): pass\n";
    for path in ["a/__init__.py", "conftest.py", "a/b.pyi"] {
        assert_eq!(judged(path, stub).finding, Finding::Pass, "{path}");
    }
    assert_eq!(judged("a/__main__.py", b"# go\n").finding, Finding::Fail);
    assert_eq!(judged("a/__init__.py", b"def f(:\n").finding, Finding::Fail);
    assert_eq!(first_code(&judged("{{name}}/a.py", b"{{x}}\n")), "template");
    assert_eq!(
        judged("README.md", b"# x\n").finding,
        Finding::NotApplicable
    );
}

#[test]
fn a_working_body_that_became_a_stub() {
    let base = "class A:\n    def run(self, x):\n        y = x * 2\n        return y + 1\n\n    def keep(self):\n        return go()\n";
    let gutted = "class A:\n    def run(self, x):\n        return 7\n\n    def keep(self):\n        return go()\n";
    let run = judged_over("a.py", base, gutted);
    assert_eq!(
        (run.finding, first_code(&run)),
        (Finding::Fail, "py.gutted"),
        "{run:?}"
    );
    let rewritten = "class A:\n    def run(self, x):\n        return x * 2 + 1\n\n    def keep(self):\n        return go()\n";
    assert_eq!(judged_over("a.py", base, rewritten).finding, Finding::Pass);
    let deleted = "class A:\n    def keep(self):\n        return go()\n";
    assert_eq!(judged_over("a.py", base, deleted).finding, Finding::Pass);
    let made_abstract = "class A(ABC):\n    @abstractmethod\n    def run(self, x): ...\n\n    def keep(self):\n        return go()\n";
    assert_eq!(
        judged_over("a.py", base, made_abstract).finding,
        Finding::Pass
    );
}

#[test]
fn an_old_marked_stub_is_not_the_deliverys() {
    let base = "go()\ndef f(x):\n    return 1  # TODO\n";
    let run = judged_over("a.py", base, &format!("{base}go(2)\n"));
    assert_eq!(
        (run.finding, first_code(&run)),
        (Finding::Warn, "py.marked-stub"),
        "{run:?}"
    );
}

#[test]
fn what_could_not_be_read_is_no_pass() {
    let mut store = Store::default();
    let lost = Blob {
        oid: "f".repeat(40),
        mode: 0o100_644,
        bytes: 3,
    };
    let run = run(
        &delivery(vec![change("a.py", None, Some(lost))]),
        &mut store,
    );
    assert_eq!(run.finding, Finding::CouldNotCheck);
}

#[test]
fn limits_skips_and_deletions() {
    let mut store = Store::default();
    let new = store.put(b"def f(): pass\n");
    let mut one = delivery(vec![change("data/a.py", None, Some(new.clone()))]);
    one.profile.max_file_bytes = 4;
    assert_eq!(first_code(&run(&one, &mut store)), "py.unjudgeable");
    one.profile = Profile {
        skip: vec![Skip {
            glob: "data/".to_owned(),
            set_by: "airlock.toml".to_owned(),
        }],
        ..Profile::default()
    };
    let skipped = run(&one, &mut store);
    assert_eq!(
        (skipped.finding, first_code(&skipped)),
        (Finding::Pass, "skipped")
    );
    let ignored = delivery(vec![change("gone.py", Some(new), None)]);
    assert_eq!(run(&ignored, &mut store).finding, Finding::NotApplicable);
}

#[test]
fn a_link_is_no_way_around() {
    let mut store = Store::default();
    let link = |to: Blob| Blob {
        mode: crate::MODE_LINK,
        ..to
    };
    let mut stub = |path: &str, content: &[u8], to: &str| {
        let target = store.put(content);
        store.1.push(TreeEntry {
            path: path.to_owned(),
            oid: target.oid,
            mode: target.mode,
        });
        let named = link(store.put(to.as_bytes()));
        let one = delivery(vec![change("l.py", None, Some(named))]);
        let run = run(&one, &mut store);
        (run.finding, first_code(&run).to_owned())
    };
    let refused = |code: &str| (Finding::Fail, code.to_owned());
    assert_eq!(
        stub("impl.txt", b"# nothing\n", "impl.txt"),
        refused("py.no-statements")
    );
    assert_eq!(stub("other.txt", b"", "/dev/null"), refused("link.nowhere"));
    let works = b"def double(a):\n    return a * 2\n";
    assert_eq!(stub("works.txt", works, "works.txt").0, Finding::Pass);
    // What has a name of the kind is judged under that name, when the delivery wrote it.
    assert_eq!(stub("old.py", b"# nothing\n", "old.py").0, Finding::Pass);
}

#[test]
fn deep_but_allowed_code_does_not_exhaust_a_small_stack() {
    let n = 5900;
    let texts = [
        format!("x = a{}\n", "+a".repeat(n)),
        format!("x = {}a\n", "-".repeat(n)),
        format!("x = a{}\n", ".b".repeat(n)),
        format!("x = a{}\n", "()".repeat(n)),
        format!("x = {}1\n", "lambda: ".repeat(n)),
        format!("x = {}1\n", "1 if a else ".repeat(n / 2)),
        format!("x = a{}\n", "**a".repeat(n)),
    ];
    // The size of a main thread's stack, which is what the judge runs on.
    let worker = std::thread::Builder::new()
        .stack_size(8 << 20)
        .spawn(move || {
            for text in texts {
                judged("deep.py", text.as_bytes());
            }
        });
    worker.unwrap().join().unwrap();
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        for path in ["a.py", "a.json", "a.jsonl", "a.ipynb", "tsconfig.json", "test_a.py"] {
            judged(path, &bytes);
        }
    }

    #[test]
    fn random_programs_never_panic(parts in proptest::collection::vec(0_usize..PIECES.len(), 0..60)) {
        let text: String = parts.into_iter().map(|at| PIECES[at]).collect();
        let one = judged("a.py", text.as_bytes());
        prop_assert_eq!(&one, &judged("a.py", text.as_bytes()));
        judged("test_a.py", text.as_bytes());
        judged_over("a.py", &text, "def f(): pass\n");
    }
}

const PIECES: [&str; 40] = [
    "def f(x):\n",
    "    ",
    "return x\n",
    "pass\n",
    "class A:\n",
    "\n",
    "# TODO 待实现\n",
    "\"\"\"",
    "'",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "f'{",
    "}'",
    "lambda x: ",
    "if x:\n",
    "else:\n",
    "for y in x:\n",
    "import a\n",
    "raise E\n",
    "try:\n",
    "except E, b:\n",
    "\t",
    "\r",
    "\u{c}",
    "x = ",
    "1",
    ".",
    ",",
    ":",
    "async ",
    "await ",
    "yield ",
    "global x\n",
    "é",
    "\\\n",
    "...",
];
