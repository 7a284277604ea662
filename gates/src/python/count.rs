//! Statements as `CPython`'s `ast.stmt` counts them, on the parser's tree. Depth is bounded by the indentation limit.

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{ElifElseClause, Stmt};

use super::Script;

#[derive(Default)]
struct Count {
    statements: u64,
    functions: u64,
}

impl<'a> StatementVisitor<'a> for Count {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        self.statements += 1;
        self.functions += u64::from(stmt.is_function_def_stmt());
        walk_stmt(self, stmt);
    }

    fn visit_elif_else_clause(&mut self, clause: &'a ElifElseClause) {
        // CPython nests an `elif` as a statement of its own.
        self.statements += u64::from(clause.test.is_some());
        self.visit_body(&clause.body);
    }
}

impl Script {
    /// Statements and function definitions.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let mut count = Count::default();
        count.visit_body(self.body());
        (count.statements, count.functions)
    }
}
