//! What a test function checks: assertions it makes, errors it swallows, exits and skips.

use std::collections::HashSet;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Decorator, ExceptHandler, Expr, Number, Stmt, StmtFunctionDef, StmtTry};

use super::TestFacts;
use super::inert::{is_inert, last_name, root_name};

/// Facts of one test; `checkers` are functions of the same file that assert something.
pub(super) fn facts(def: &StmtFunctionDef, checkers: &HashSet<&str>) -> TestFacts {
    let mut walk = Walk {
        facts: TestFacts::default(),
        checkers,
    };
    walk.visit_body(&def.body);
    walk.facts.skipped = def.decorator_list.iter().any(is_skip);
    walk.facts
}

/// Functions and methods of a file that assert, so that calling them is a check.
pub(super) fn checkers(body: &[Stmt]) -> HashSet<&str> {
    #[derive(Default)]
    struct Definitions<'a>(HashSet<&'a str>);
    impl<'a> Visitor<'a> for Definitions<'a> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            if let Stmt::FunctionDef(def) = stmt
                && !def.name.starts_with("test")
                && facts(def, &HashSet::new()).asserts
            {
                self.0.insert(def.name.as_str());
            }
            walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut found = Definitions::default();
    found.visit_body(body);
    found.0
}

/// `@pytest.mark.skip`, `@unittest.skip("...")`, without a condition.
pub(super) fn is_skip(decorator: &Decorator) -> bool {
    last_name(&decorator.expression) == Some("skip")
}

struct Walk<'a> {
    facts: TestFacts,
    checkers: &'a HashSet<&'a str>,
}

impl Visitor<'_> for Walk<'_> {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assert(_) => self.facts.asserts = true,
            Stmt::Import(_) | Stmt::ImportFrom(_) => self.facts.imports = true,
            Stmt::Raise(part) => {
                // `raise AssertionError(...)` and re-raising are checks too.
                self.facts.asserts |= part
                    .exc
                    .as_deref()
                    .is_none_or(|exc| !exc.is_none_literal_expr());
            }
            Stmt::Try(part) => self.facts.swallows |= swallows(part),
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &Expr) {
        if let Expr::Call(call) = expr {
            let name = last_name(&call.func).unwrap_or_default();
            self.facts.asserts |= is_check(name) || self.checkers.contains(name);
            self.facts.exits_zero |= is_exit(&call.func, name) && exits_with_success(call);
        }
        walk_expr(self, expr);
    }
}

fn is_check(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    [
        "assert", "raises", "expect", "verify", "check", "should", "fail", "warns", "ensure",
        "validate", "compare",
    ]
    .iter()
    .any(|word| lower.contains(word))
        || matches!(
            name,
            "snapshot" | "benchmark" | "skip" | "skipTest" | "xfail" | "testmod" | "pytester"
        )
}

fn is_exit(func: &Expr, name: &str) -> bool {
    match func {
        Expr::Name(_) => matches!(name, "exit" | "quit" | "_exit"),
        _ => {
            matches!(name, "exit" | "_exit")
                && root_name(func).is_some_and(|root| matches!(root, "sys" | "os" | "pytest"))
        }
    }
}

fn exits_with_success(call: &ruff_python_ast::ExprCall) -> bool {
    match call.arguments.args.first() {
        Some(Expr::NumberLiteral(number)) => {
            matches!(&number.value, Number::Int(int) if int.as_u64() == Some(0))
        }
        None | Some(Expr::NoneLiteral(_)) => true,
        Some(_) => false,
    }
}

/// Assertions inside a `try` whose handler takes every exception and does nothing.
fn swallows(part: &StmtTry) -> bool {
    let catches_all = part.handlers.iter().any(|handler| {
        let ExceptHandler::ExceptHandler(inner) = handler;
        let wide = match inner.type_.as_deref() {
            None => true,
            Some(kind) => last_name(kind).is_some_and(|name| {
                matches!(name, "Exception" | "BaseException" | "AssertionError")
            }),
        };
        wide && inner.body.iter().all(is_inert)
    });
    catches_all && part.body.iter().any(|stmt| matches!(stmt, Stmt::Assert(_)))
}
