//! Statements that do nothing, and what is left of a body without them.

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{ExceptHandler, Expr, Operator, Stmt, StmtIf, UnaryOp};

/// Statements of a body that may do something: inert ones dropped, constant branches resolved,
/// nothing after an unconditional `return` or `raise`.
pub(super) fn live(body: &[Stmt]) -> Vec<&Stmt> {
    let mut found = Vec::new();
    collect(body, &mut found);
    found
}

fn collect<'a>(body: &'a [Stmt], found: &mut Vec<&'a Stmt>) -> bool {
    for stmt in body {
        if let Stmt::If(part) = stmt
            && let Some(taken) = decided(part)
        {
            if collect(taken, found) {
                return true;
            }
            continue;
        }
        if is_inert(stmt) {
            continue;
        }
        found.push(stmt);
        if matches!(stmt, Stmt::Return(_) | Stmt::Raise(_)) {
            return true;
        }
    }
    false
}

/// The branch that a constant test takes; `None` when the test is not constant.
fn decided(part: &StmtIf) -> Option<&[Stmt]> {
    if truth(&part.test)? {
        return Some(&part.body);
    }
    match part.elif_else_clauses.as_slice() {
        [] => Some(&[]),
        [only] if only.test.is_none() => Some(&only.body),
        _ => None,
    }
}

/// The truth of a constant; `None` when it is not one.
pub(super) fn truth(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::BooleanLiteral(part) => Some(part.value),
        Expr::NoneLiteral(_) => Some(false),
        Expr::EllipsisLiteral(_) => Some(true),
        Expr::StringLiteral(part) => Some(!part.value.is_empty()),
        Expr::BytesLiteral(part) => Some(!part.value.is_empty()),
        Expr::NumberLiteral(part) => Some(match &part.value {
            ruff_python_ast::Number::Int(int) => int.as_u64() != Some(0),
            ruff_python_ast::Number::Float(float) => *float != 0.0,
            ruff_python_ast::Number::Complex { real, imag } => *real != 0.0 || *imag != 0.0,
        }),
        Expr::UnaryOp(part) if part.op == UnaryOp::Not => truth(&part.operand).map(|t| !t),
        _ => None,
    }
}

/// Whether a statement does nothing at all.
pub(super) fn is_inert(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Pass(_) | Stmt::Global(_) | Stmt::Nonlocal(_) => true,
        Stmt::Expr(part) => is_literal(&part.value),
        Stmt::ImportFrom(part) => part.module.as_deref() == Some("__future__") && part.level == 0,
        Stmt::If(part) => {
            if let Some(taken) = decided(part) {
                return taken.iter().all(is_inert);
            }
            !calls(&part.test)
                && part.body.iter().all(is_inert)
                && part.elif_else_clauses.iter().all(|clause| {
                    !clause.test.as_ref().is_some_and(calls) && clause.body.iter().all(is_inert)
                })
        }
        Stmt::While(part) => truth(&part.test) == Some(false) && part.orelse.iter().all(is_inert),
        Stmt::With(part) => {
            !part.items.iter().any(|item| calls(&item.context_expr))
                && part.body.iter().all(is_inert)
        }
        Stmt::Try(part) => {
            let handled = part.handlers.iter().all(|handler| {
                let ExceptHandler::ExceptHandler(inner) = handler;
                inner.body.iter().all(is_inert)
            });
            handled
                && part.body.iter().all(is_inert)
                && part.orelse.iter().all(is_inert)
                && part.finalbody.iter().all(is_inert)
        }
        Stmt::Match(part) => {
            !calls(&part.subject)
                && part.cases.iter().all(|case| {
                    !case.guard.as_ref().is_some_and(|guard| calls(guard))
                        && case.body.iter().all(is_inert)
                })
        }
        _ => false,
    }
}

/// A literal, or a container or an arithmetic expression of literals, or an empty built-in container.
pub(super) fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::StringLiteral(_)
        | Expr::BytesLiteral(_)
        | Expr::NumberLiteral(_)
        | Expr::BooleanLiteral(_)
        | Expr::NoneLiteral(_)
        | Expr::EllipsisLiteral(_) => true,
        Expr::FString(part) => part
            .value
            .elements()
            .all(ruff_python_ast::InterpolatedStringElement::is_literal),
        Expr::UnaryOp(part) => is_literal(&part.operand),
        Expr::BinOp(part) => {
            // Only arithmetic on numbers stays readable as a constant.
            part.op != Operator::MatMult && is_literal(&part.left) && is_literal(&part.right)
        }
        Expr::List(part) => part.elts.iter().all(is_literal),
        Expr::Tuple(part) => part.elts.iter().all(is_literal),
        Expr::Set(part) => part.elts.iter().all(is_literal),
        Expr::Dict(part) => part
            .items
            .iter()
            .all(|item| item.key.as_ref().is_some_and(is_literal) && is_literal(&item.value)),
        Expr::Call(call) => {
            call.arguments.args.is_empty()
                && call.arguments.keywords.is_empty()
                && last_name(&call.func).is_some_and(|name| {
                    call.func.is_name_expr()
                        && matches!(
                            name,
                            "list"
                                | "dict"
                                | "set"
                                | "tuple"
                                | "frozenset"
                                | "str"
                                | "bytes"
                                | "int"
                                | "float"
                                | "bool"
                        )
                })
        }
        _ => false,
    }
}

/// The last part of a dotted name, seen through a call or a subscript: `a.b.c(1)` gives `c`.
pub(super) fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(part) => Some(part.attr.as_str()),
        Expr::Call(call) => last_name(&call.func),
        Expr::Subscript(part) => last_name(&part.value),
        _ => None,
    }
}

/// The first part of a dotted name or call chain: `a.b(1).c` gives `a`.
pub(super) fn root_name(expr: &Expr) -> Option<&str> {
    let mut expr = expr;
    loop {
        expr = match expr {
            Expr::Name(name) => return Some(name.id.as_str()),
            Expr::Attribute(part) => &part.value,
            Expr::Call(call) => &call.func,
            Expr::Subscript(part) => &part.value,
            Expr::Await(part) => &part.value,
            _ => return None,
        };
    }
}

/// Whether an expression calls anything.
pub(super) fn calls(expr: &Expr) -> bool {
    #[derive(Default)]
    struct Calls(bool);
    impl Visitor<'_> for Calls {
        fn visit_expr(&mut self, expr: &Expr) {
            self.0 = self.0 || expr.is_call_expr() || expr.is_await_expr();
            if !self.0 {
                walk_expr(self, expr);
            }
        }
    }
    let mut found = Calls::default();
    found.visit_expr(expr);
    found.0
}

/// Whether a function body yields, which makes calling it return a generator.
pub(super) fn yields(body: &[Stmt]) -> bool {
    #[derive(Default)]
    struct Yields(bool);
    impl Visitor<'_> for Yields {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            if !self.0 && !matches!(stmt, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
                walk_stmt(self, stmt);
            }
        }
        fn visit_expr(&mut self, expr: &Expr) {
            self.0 = self.0 || expr.is_yield_expr() || expr.is_yield_from_expr();
            if !self.0 && !expr.is_lambda_expr() {
                walk_expr(self, expr);
            }
        }
    }
    let mut found = Yields::default();
    found.visit_body(body);
    found.0
}
