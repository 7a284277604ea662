//! What a module does outside its functions: imports, data, calls, work.

use std::collections::HashSet;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef, StmtIf};

use super::context::{bases, is_dunder};
use super::inert::{is_inert, is_literal, last_name, live, root_name};
use super::{Comment, Script, body, tests_of};

/// What a file holds as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// No characters but white space.
    Blank,
    /// Only inert statements.
    Inert,
    /// Only imports, and nothing that makes them a re-export.
    Imports,
    /// Only bookkeeping names such as `__author__`.
    Bookkeeping,
    /// Only prints and sleeps.
    Noise,
    /// Anything else.
    Code,
}

/// The module level of a file.
#[derive(Clone, Debug)]
pub(crate) struct Top {
    pub(crate) contents: Contents,
    /// A class holds fields or other statements besides methods.
    pub(crate) class_data: bool,
    /// Classes without bases, decorators, methods and data.
    pub(crate) empty_classes: Vec<(String, u32)>,
    /// A call that is not one of the file's own functions, a print or a driver of these.
    pub(crate) outside_call: bool,
    /// Statements at module level that do something besides defining and calling the file's own.
    pub(crate) work: usize,
    /// Where the whole module is skipped as a test.
    pub(crate) skips_all: Option<u32>,
}

pub(super) fn read(script: &Script, comments: &[Comment]) -> Top {
    let stmts = live(script.body());
    let own = own_names(script.body());
    let mut calls = Calls {
        own,
        outside: false,
    };
    calls.visit_body(script.body());
    let mut classes = Classes {
        data: false,
        empty: Vec::new(),
    };
    classes.visit_body(script.body());
    Top {
        contents: contents(script, &stmts, comments),
        class_data: classes.data,
        empty_classes: classes
            .empty
            .into_iter()
            .map(|class| {
                let line = script.line_of(class.name.range.start());
                (class.name.to_string(), line)
            })
            .collect(),
        outside_call: calls.outside,
        work: work_in(&stmts, &calls.own),
        skips_all: stmts
            .iter()
            .find(|stmt| skips_module(stmt))
            .map(|stmt| script.line_of(ruff_text_size::Ranged::start(*stmt))),
    }
}

fn contents(script: &Script, stmts: &[&Stmt], comments: &[Comment]) -> Contents {
    let import = |stmt: &Stmt| matches!(stmt, Stmt::Import(_) | Stmt::ImportFrom(_));
    if script.text.trim().is_empty() {
        return Contents::Blank;
    }
    if stmts.is_empty() {
        return Contents::Inert;
    }
    let noise = noise_only(stmts);
    if noise {
        return Contents::Noise;
    }
    if !stmts
        .iter()
        .all(|stmt| import(stmt) || is_bookkeeping(stmt))
    {
        return Contents::Code;
    }
    if !stmts.iter().any(|stmt| import(stmt)) {
        return Contents::Bookkeeping;
    }
    let exported = stmts.iter().any(|stmt| is_reexport(stmt)) || comments.iter().any(is_lint_mark);
    if exported {
        Contents::Code
    } else {
        Contents::Imports
    }
}

/// `__author__ = "..."`; a version is content, and `__all__` makes imports a re-export.
fn is_bookkeeping(stmt: &Stmt) -> bool {
    let Stmt::Assign(assign) = stmt else {
        return false;
    };
    is_literal(&assign.value)
        && assign.targets.iter().all(|target| {
            target.as_name_expr().is_some_and(|name| {
                is_dunder(&name.id)
                    && !matches!(
                        name.id.as_str(),
                        "__version__" | "__version_info__" | "__all__"
                    )
            })
        })
}

fn is_reexport(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Import(part) => part.names.iter().any(|alias| alias.asname.is_some()),
        Stmt::ImportFrom(part) => {
            part.level > 0
                || part
                    .names
                    .iter()
                    .any(|alias| alias.asname.is_some() || alias.name.as_str() == "*")
        }
        _ => false,
    }
}

fn is_lint_mark(comment: &Comment) -> bool {
    let text = comment.text.to_lowercase();
    [
        "noqa", "pylint", "type:", "pyright", "isort", "f401", "flake8", "ruff", "mypy", "nopycln",
    ]
    .iter()
    .any(|mark| text.contains(mark))
}

fn noise_only(stmts: &[&Stmt]) -> bool {
    let mut any = false;
    for stmt in stmts {
        match stmt {
            Stmt::Import(_) | Stmt::ImportFrom(_) => {}
            Stmt::Expr(part) if body::is_noise(&part.value) => any = true,
            Stmt::If(part) if is_main_guard(part) => {
                let inner = live(&part.body);
                if !part.elif_else_clauses.is_empty() || !noise_only(&inner) {
                    return false;
                }
                any = true;
            }
            _ => return false,
        }
    }
    any
}

/// `if __name__ == "__main__":`
pub(super) fn is_main_guard(part: &StmtIf) -> bool {
    let Expr::Compare(compare) = &*part.test else {
        return false;
    };
    let is_name = |expr: &Expr| {
        expr.as_name_expr()
            .is_some_and(|name| name.id == "__name__")
    };
    is_name(&compare.left) || compare.comparators.iter().any(is_name)
}

/// Names that the file defines, and names assigned from calling them.
fn own_names(body: &[Stmt]) -> HashSet<String> {
    let mut own = HashSet::new();
    for stmt in body {
        match stmt {
            Stmt::FunctionDef(def) => {
                own.insert(def.name.to_string());
            }
            Stmt::ClassDef(class) => {
                own.insert(class.name.to_string());
            }
            _ => {}
        }
    }
    let mut derived = Derived(own);
    derived.visit_body(body);
    derived.0
}

struct Derived(HashSet<String>);

impl Visitor<'_> for Derived {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            Stmt::Assign(assign) => {
                let from_own = assign.value.is_call_expr()
                    && root_name(&assign.value).is_some_and(|root| self.0.contains(root));
                if from_own {
                    for name in assign.targets.iter().filter_map(Expr::as_name_expr) {
                        self.0.insert(name.id.to_string());
                    }
                }
            }
            _ => walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, _: &Expr) {}
}

struct Calls {
    own: HashSet<String>,
    outside: bool,
}

impl Visitor<'_> for Calls {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::FunctionDef(_) => {}
            Stmt::ClassDef(class) => self.visit_body(&class.body),
            _ => walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, expr: &Expr) {
        if let Expr::Call(call) = expr {
            self.outside |= is_outside(call, &self.own);
        }
        if !expr.is_lambda_expr() {
            walk_expr(self, expr);
        }
    }
}

/// A call to something else than the file's own names, a print, a driver such as `sys.exit`, or bookkeeping.
fn is_outside(call: &ExprCall, own: &HashSet<String>) -> bool {
    if root_name(&call.func).is_some_and(|root| own.contains(root)) {
        return false;
    }
    let Some(name) = last_name(&call.func) else {
        return true;
    };
    let root = root_name(&call.func).unwrap_or_default();
    let driver =
        matches!(name, "exit" | "quit" | "SystemExit") || (name == "run" && root == "asyncio");
    let bookkeeping = matches!(
        name,
        "getLogger" | "get_logger" | "TypeVar" | "NewType" | "ParamSpec" | "print" | "sleep"
    );
    !driver && !bookkeeping
}

struct Classes<'a> {
    data: bool,
    empty: Vec<&'a StmtClassDef>,
}

impl<'a> Visitor<'a> for Classes<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(_) => {}
            Stmt::ClassDef(class) => {
                let holds = |stmt: &Stmt| {
                    !is_inert(stmt) && !matches!(stmt, Stmt::FunctionDef(_) | Stmt::ClassDef(_))
                };
                self.data |= class.body.iter().any(holds);
                if class.body.iter().all(is_inert)
                    && class.decorator_list.is_empty()
                    && bases(class).next().is_none()
                    && class.arguments.iter().all(|a| a.keywords.is_empty())
                {
                    self.empty.push(class);
                }
                self.visit_body(&class.body);
            }
            _ => walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, _: &'a Expr) {}
}

/// Statements of the module level that do something on their own.
fn work_in(stmts: &[&Stmt], own: &HashSet<String>) -> usize {
    stmts
        .iter()
        .map(|stmt| match stmt {
            Stmt::Expr(part) => match &*part.value {
                Expr::Call(call) => {
                    usize::from(is_outside(call, own) && !body::is_noise(&part.value))
                }
                _ => 1,
            },
            Stmt::For(part) => 1 + work_in(&live(&part.body), own),
            Stmt::While(part) => 1 + work_in(&live(&part.body), own),
            Stmt::With(part) => 1 + work_in(&live(&part.body), own),
            Stmt::If(part) => work_in(&live(&part.body), own),
            Stmt::Try(part) => work_in(&live(&part.body), own),
            Stmt::AugAssign(_) | Stmt::Delete(_) | Stmt::Match(_) => 1,
            _ => 0,
        })
        .sum()
}

/// Names handed to a call at module level, outside the main guard: these functions are registered.
pub(super) fn handed(body: &[Stmt]) -> HashSet<&str> {
    struct Handed<'a>(HashSet<&'a str>);
    impl<'a> Visitor<'a> for Handed<'a> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            match stmt {
                Stmt::FunctionDef(_) => {}
                Stmt::If(part) if is_main_guard(part) => {}
                _ => walk_stmt(self, stmt),
            }
        }
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Call(call) = expr {
                let keywords = call.arguments.keywords.iter().map(|keyword| &keyword.value);
                let names = call.arguments.args.iter().chain(keywords);
                self.0.extend(
                    names
                        .filter_map(Expr::as_name_expr)
                        .map(|name| name.id.as_str()),
                );
            }
            if !expr.is_lambda_expr() {
                walk_expr(self, expr);
            }
        }
    }
    let mut found = Handed(HashSet::new());
    found.visit_body(body);
    found.0.extend(migration_steps(body));
    found.0
}

/// `upgrade` and `downgrade` beside `revision` and `down_revision` belong to a migration tool.
fn migration_steps(body: &[Stmt]) -> [&'static str; 2] {
    let assigns = |wanted: &str| {
        body.iter().any(|stmt| match stmt {
            Stmt::Assign(part) => part
                .targets
                .iter()
                .filter_map(Expr::as_name_expr)
                .any(|name| name.id == wanted),
            Stmt::AnnAssign(part) => part
                .target
                .as_name_expr()
                .is_some_and(|name| name.id == wanted),
            _ => false,
        })
    };
    if assigns("revision") && assigns("down_revision") {
        ["upgrade", "downgrade"]
    } else {
        ["", ""]
    }
}

fn skips_module(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Assign(part) => {
            let marks = part.targets.iter().any(|target| {
                target
                    .as_name_expr()
                    .is_some_and(|name| name.id == "pytestmark")
            });
            let skips = match &*part.value {
                Expr::List(list) => list.elts.iter().any(|mark| last_name(mark) == Some("skip")),
                mark => last_name(mark) == Some("skip"),
            };
            marks && skips
        }
        Stmt::Expr(part) => part.value.as_call_expr().is_some_and(|call| {
            last_name(&call.func) == Some("skip") && root_name(&call.func) == Some("pytest")
        }),
        Stmt::Raise(part) => part
            .exc
            .as_deref()
            .is_some_and(|exc| matches!(last_name(exc), Some("SkipTest" | "Skipped"))),
        _ => false,
    }
}

/// Whether every test of a class is skipped by its decorator.
pub(super) fn class_is_skipped(class: &StmtClassDef) -> bool {
    class.decorator_list.iter().any(tests_of::is_skip)
}
