//! Names that a function's own body binds, for `nonlocal`, and names it declares `global`.
//! Nested functions and classes are scopes of their own and are not entered.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::statement_visitor::{self, StatementVisitor};
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_pattern, walk_stmt};
use ruff_python_ast::{ExceptHandler, Expr, ExprContext, Pattern, Stmt};
use ruff_text_size::TextRange;

/// Where each name is declared `global` in a scope.
pub(super) fn globals(body: &[Stmt]) -> HashMap<&str, TextRange> {
    let mut found = Globals::default();
    found.visit_body(body);
    found.0
}

#[derive(Default)]
struct Globals<'a>(HashMap<&'a str, TextRange>);

impl<'a> StatementVisitor<'a> for Globals<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            Stmt::Global(global) => {
                for name in &global.names {
                    self.0.entry(name.as_str()).or_insert(global.range);
                }
            }
            _ => statement_visitor::walk_stmt(self, stmt),
        }
    }
}

/// Names that a function body binds.
pub(super) fn bound(body: &[Stmt]) -> HashSet<&str> {
    let mut found = Bound::default();
    found.visit_body(body);
    found.0
}

#[derive(Default)]
struct Bound<'a>(HashSet<&'a str>);

impl<'a> Visitor<'a> for Bound<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => {
                self.0.insert(function.name.as_str());
            }
            Stmt::ClassDef(class) => {
                self.0.insert(class.name.as_str());
            }
            Stmt::Import(import) => self.import(&import.names),
            Stmt::ImportFrom(import) => self.import(&import.names),
            _ => walk_stmt(self, stmt),
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.0.insert(name.as_str());
        }
        ruff_python_ast::visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(inner) => inner.name.as_ref(),
            Pattern::MatchStar(inner) => inner.name.as_ref(),
            Pattern::MatchMapping(inner) => inner.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            self.0.insert(name.as_str());
        }
        walk_pattern(self, pattern);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr
            && matches!(name.ctx, ExprContext::Store | ExprContext::Del)
        {
            self.0.insert(name.id.as_str());
        }
        walk_expr(self, expr);
    }
}

impl<'a> Bound<'a> {
    fn import(&mut self, names: &'a [ruff_python_ast::Alias]) {
        for alias in names {
            let name = match &alias.asname {
                Some(name) => name.as_str(),
                None => alias.name.split('.').next().unwrap_or_default(),
            };
            self.0.insert(name);
        }
    }
}
