//! A parsed file as plain values: its callables, comments and module level.
//! The gates work on this alone and never see the parser's tree.

use std::collections::HashSet;

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{Expr, ExprLambda, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::{Ranged as _, TextRange};

use super::body::{work_of_function, work_of_lambda};
use super::context::{self, Place};
use super::{Callable, Context, Script, Top, Work, tests_of, top};

/// A comment of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) line: u32,
    /// Bytes before it in its line.
    pub(crate) margin: u32,
    /// Whether nothing but white space stands before it.
    pub(crate) alone: bool,
    /// Text after the `#`.
    pub(crate) text: String,
}

/// What the rules need to know of a file.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    pub(crate) callables: Vec<Callable>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) top: Top,
    /// `except A, b:` clauses, by line.
    pub(crate) comma_excepts: Vec<u32>,
    text: String,
}

impl Outline {
    /// Source text of a callable.
    pub(crate) fn text_of(&self, callable: &Callable) -> &str {
        self.text.get(callable.span.clone()).unwrap_or_default()
    }

    /// Comments inside a callable.
    pub(crate) fn comments_of(&self, callable: &Callable) -> &[Comment] {
        self.comments
            .get(callable.comments.clone())
            .unwrap_or_default()
    }

    /// The decoded text of the file.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl Script {
    /// The outline; `tests` says whether test functions are looked into.
    pub(crate) fn outline(self, tests: bool) -> Outline {
        let comments = comments(&self);
        let top = top::read(&self, &comments);
        let checkers = if tests {
            tests_of::checkers(self.body())
        } else {
            HashSet::new()
        };
        let mut walk = Walk {
            script: &self,
            comments: &comments,
            handed: top::handed(self.body()),
            checkers,
            tests,
            path: Vec::new(),
            found: Vec::new(),
            comma_excepts: Vec::new(),
        };
        walk.visit_body(self.body());
        let (callables, comma_excepts) = (walk.found, walk.comma_excepts);
        Outline {
            callables,
            comments,
            top,
            comma_excepts,
            text: self.text,
        }
    }
}

fn comments(script: &Script) -> Vec<Comment> {
    let found = script.parsed.tokens().iter();
    found
        .filter(|token| token.kind() == TokenKind::Comment)
        .map(|token| {
            let start = script.lines.start_of(token.start().into());
            let margin = script.slice(TextRange::new(start.into(), token.start()));
            Comment {
                line: script.line_of(token.start()),
                margin: u32::from(token.start()) - start,
                alone: margin.trim().is_empty(),
                text: script
                    .slice(token.range())
                    .trim_start_matches('#')
                    .trim()
                    .to_owned(),
            }
        })
        .collect()
}

/// One step of the way down to a definition.
struct Step {
    name: String,
    place: Option<Place>,
    skipped: bool,
}

struct Walk<'a> {
    script: &'a Script,
    comments: &'a [Comment],
    handed: HashSet<&'a str>,
    checkers: HashSet<&'a str>,
    tests: bool,
    path: Vec<Step>,
    found: Vec<Callable>,
    comma_excepts: Vec<u32>,
}

impl<'a> StatementVisitor<'a> for Walk<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(def) => self.function(def),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::Assign(assign) => {
                if let ([Expr::Name(name)], Expr::Lambda(lambda)) =
                    (assign.targets.as_slice(), &*assign.value)
                {
                    self.lambda(name.id.as_str(), lambda, assign.range);
                }
            }
            _ => walk_stmt(self, stmt),
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ruff_python_ast::ExceptHandler) {
        let ruff_python_ast::ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(Expr::Tuple(tuple)) = inner.type_.as_deref()
            && !tuple.parenthesized
            && let [_, Expr::Name(second)] = tuple.elts.as_slice()
            && second.id.starts_with(char::is_lowercase)
        {
            self.comma_excepts
                .push(self.script.line_of(inner.range.start()));
        }
        self.visit_body(&inner.body);
    }
}

impl<'a> Walk<'a> {
    fn qualified(&self, name: &str) -> String {
        let mut parts: Vec<&str> = self.path.iter().map(|step| step.name.as_str()).collect();
        parts.push(name);
        parts.join(".")
    }

    fn class(&mut self, class: &'a StmtClassDef) {
        self.path.push(Step {
            name: class.name.to_string(),
            place: Some(Place::of(class)),
            skipped: top::class_is_skipped(class),
        });
        self.visit_body(&class.body);
        self.path.pop();
    }

    fn function(&mut self, def: &'a StmtFunctionDef) {
        let place = self.path.last().and_then(|step| step.place.as_ref());
        let nested = self.path.iter().any(|step| step.place.is_none());
        let context = context::of_function(def, place, nested, &self.handed);
        let work = work_of_function(def);
        let doc = context::docstring(&def.body).map(|doc| {
            let line = def
                .body
                .first()
                .map_or(0, |stmt| self.script.line_of(stmt.start()));
            (line, doc.to_owned())
        });
        let strings = if work == Work::Real {
            Vec::new()
        } else {
            self.strings(&def.body)
        };
        let range = def.range;
        let line = self.script.line_of(def.name.range.start());
        let end_line = self.script.line_of(range.end());
        let margin = u32::from(range.start()) - self.script.lines.start_of(range.start().into());
        let is_test = self.tests && (def.name.starts_with("test") || def.name == *"runTest");
        let test = is_test.then(|| {
            let mut facts = tests_of::facts(def, &self.checkers);
            facts.skipped |= self.path.iter().any(|step| step.skipped);
            facts
        });
        // A test that only imports fails when the import does.
        let imports = test.is_some_and(|facts| facts.imports);
        let work = if imports { Work::Real } else { work };
        self.found.push(Callable {
            name: self.qualified(&def.name),
            line,
            end_line,
            work,
            context,
            variant: def
                .decorator_list
                .first()
                .and_then(context::decorator_name)
                .unwrap_or_default()
                .to_owned(),
            parameters: has_parameters(def),
            doc,
            strings,
            comments: self.comments_within(self.script.line_of(range.start()), end_line, margin),
            span: range.start().to_usize()..range.end().to_usize(),
            test,
        });
        self.path.push(Step {
            name: def.name.to_string(),
            place: None,
            skipped: false,
        });
        self.visit_body(&def.body);
        self.path.pop();
    }

    fn lambda(&mut self, name: &str, lambda: &ExprLambda, range: TextRange) {
        let line = self.script.line_of(range.start());
        let end_line = self.script.line_of(range.end());
        let parameters = lambda.parameters.as_deref();
        self.found.push(Callable {
            name: self.qualified(name),
            line,
            end_line,
            work: work_of_lambda(parameters, &lambda.body),
            context: if self.path.is_empty() {
                Context::None
            } else {
                Context::Weak
            },
            variant: "lambda".to_owned(),
            parameters: parameters.is_some_and(|p| !p.is_empty()),
            doc: None,
            strings: Vec::new(),
            comments: self.comments_within(line, end_line, u32::MAX),
            span: range.start().to_usize()..range.end().to_usize(),
            test: None,
        });
    }

    /// Comments from the first to the last line, and deeper ones that follow without a gap of code.
    fn comments_within(&self, first: u32, last: u32, margin: u32) -> std::ops::Range<usize> {
        let start = self
            .comments
            .partition_point(|comment| comment.line < first);
        let mut end = self
            .comments
            .partition_point(|comment| comment.line <= last);
        let mut expected = last + 1;
        while let Some(comment) = self.comments.get(end)
            && comment.alone
            && comment.line <= expected
            && comment.margin > margin
        {
            expected = comment.line + 1;
            end += 1;
        }
        start..end
    }

    fn strings(&self, body: &'a [Stmt]) -> Vec<(u32, String)> {
        let mut walk = Strings {
            script: self.script,
            found: Vec::new(),
        };
        let skip = usize::from(context::docstring(body).is_some());
        for stmt in body.iter().skip(skip) {
            walk.visit_stmt(stmt);
        }
        walk.found
    }
}

fn has_parameters(def: &StmtFunctionDef) -> bool {
    def.parameters
        .iter()
        .any(|parameter| !matches!(parameter.name().as_str(), "self" | "cls" | "mcs"))
}

struct Strings<'a> {
    script: &'a Script,
    found: Vec<(u32, String)>,
}

impl<'a> Visitor<'a> for Strings<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if !matches!(stmt, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
            ruff_python_ast::visitor::walk_stmt(self, stmt);
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        let line = || self.script.line_of(expr.start());
        match expr {
            Expr::StringLiteral(part) => {
                let text = part.value.to_str().to_owned();
                self.found.push((line(), text));
            }
            Expr::FString(part) => {
                let words: Vec<&str> = part
                    .value
                    .elements()
                    .filter_map(|element| element.as_literal())
                    .map(|literal| &*literal.value)
                    .collect();
                self.found.push((line(), words.join(" ")));
            }
            _ => walk_expr(self, expr),
        }
    }
}
