//! What `CPython`'s compiler refuses though the grammar allows it: `return` outside a function, a late `__future__`,
//! `await` outside `async`, duplicate arguments. The rules are the parser crate's; this file tells it where it stands.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Comprehension, Expr, Parameters, PythonVersion, Stmt, StmtFunctionDef};
use ruff_python_parser::semantic_errors::{
    LazyImportContext, SemanticSyntaxChecker, SemanticSyntaxContext, SemanticSyntaxError,
};
use ruff_text_size::TextRange;

use super::{Script, bindings};

/// Errors of the compiler, in the order in which they are met.
pub(super) fn errors(
    script: &Script,
    version: PythonVersion,
    notebook: bool,
) -> Vec<(TextRange, String)> {
    let mut walk = Walk {
        checker: SemanticSyntaxChecker::new(),
        found: RefCell::default(),
        version,
        notebook,
        source: &script.text,
        scopes: vec![Scope::new(Kind::Module, script.body())],
        in_try: false,
    };
    walk.visit_body(script.body());
    walk.found
        .into_inner()
        .into_iter()
        .map(|error| (error.range, error.to_string()))
        .collect()
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    Module,
    Class,
    Function(&'a StmtFunctionDef),
    Lambda(Option<&'a Parameters>),
    Comprehension { generator: bool, is_async: bool },
}

struct Scope<'a> {
    kind: Kind<'a>,
    globals: HashMap<&'a str, TextRange>,
    bound: OnceCell<HashSet<&'a str>>,
    loops: u32,
}

impl<'a> Scope<'a> {
    fn new(kind: Kind<'a>, body: &'a [Stmt]) -> Self {
        Self {
            kind,
            globals: bindings::globals(body),
            bound: OnceCell::new(),
            loops: 0,
        }
    }

    fn has_parameter(&self, name: &str) -> bool {
        match self.kind {
            Kind::Function(def) => def.parameters.includes(name),
            Kind::Lambda(parameters) => parameters.is_some_and(|p| p.includes(name)),
            Kind::Module | Kind::Class | Kind::Comprehension { .. } => false,
        }
    }
}

struct Walk<'a> {
    checker: SemanticSyntaxChecker,
    found: RefCell<Vec<SemanticSyntaxError>>,
    version: PythonVersion,
    notebook: bool,
    source: &'a str,
    scopes: Vec<Scope<'a>>,
    in_try: bool,
}

impl<'a> Walk<'a> {
    fn current(&self) -> Kind<'a> {
        self.scopes.last().map_or(Kind::Module, |scope| scope.kind)
    }

    fn within(&mut self, kind: Kind<'a>, body: &'a [Stmt], visit: impl FnOnce(&mut Self)) {
        self.scopes.push(Scope::new(kind, body));
        visit(self);
        self.scopes.pop();
    }

    fn looped(&mut self, visit: impl FnOnce(&mut Self)) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.loops += 1;
        }
        visit(self);
        if let Some(scope) = self.scopes.last_mut() {
            scope.loops -= 1;
        }
    }

    fn comprehension(
        &mut self,
        generators: &'a [Comprehension],
        generator: bool,
        elements: &[&'a Expr],
    ) {
        let is_async = generators.iter().any(|part| part.is_async);
        // The first iterable is evaluated in the scope around the comprehension.
        if let Some(first) = generators.first() {
            self.visit_expr(&first.iter);
        }
        let kind = Kind::Comprehension {
            generator,
            is_async,
        };
        self.within(kind, &[], |walk| {
            for (at, part) in generators.iter().enumerate() {
                if at > 0 {
                    walk.visit_expr(&part.iter);
                }
                walk.visit_expr(&part.target);
                for condition in &part.ifs {
                    walk.visit_expr(condition);
                }
            }
            for element in elements {
                walk.visit_expr(element);
            }
        });
    }

    fn function(&mut self, def: &'a StmtFunctionDef) {
        for decorator in &def.decorator_list {
            self.visit_decorator(decorator);
        }
        if let Some(params) = &def.type_params {
            self.visit_type_params(params);
        }
        self.visit_parameters(&def.parameters);
        if let Some(returns) = &def.returns {
            self.visit_annotation(returns);
        }
        let in_try = std::mem::take(&mut self.in_try);
        self.within(Kind::Function(def), &def.body, |walk| {
            walk.visit_body(&def.body);
        });
        self.in_try = in_try;
    }

    fn class(&mut self, class: &'a ruff_python_ast::StmtClassDef) {
        for decorator in &class.decorator_list {
            self.visit_decorator(decorator);
        }
        if let Some(params) = &class.type_params {
            self.visit_type_params(params);
        }
        if let Some(arguments) = &class.arguments {
            self.visit_arguments(arguments);
        }
        self.within(Kind::Class, &class.body, |walk| {
            walk.visit_body(&class.body);
        });
    }
}

impl<'a> Visitor<'a> for Walk<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let mut checker = std::mem::take(&mut self.checker);
        checker.visit_stmt(stmt, self);
        self.checker = checker;
        match stmt {
            Stmt::FunctionDef(def) => self.function(def),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::For(part) => {
                self.visit_expr(&part.iter);
                self.visit_expr(&part.target);
                self.looped(|walk| walk.visit_body(&part.body));
                self.visit_body(&part.orelse);
            }
            Stmt::While(part) => {
                self.visit_expr(&part.test);
                self.looped(|walk| walk.visit_body(&part.body));
                self.visit_body(&part.orelse);
            }
            Stmt::Try(_) => {
                let before = std::mem::replace(&mut self.in_try, true);
                walk_stmt(self, stmt);
                self.in_try = before;
            }
            _ => walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        let mut checker = std::mem::take(&mut self.checker);
        checker.visit_expr(expr, self);
        self.checker = checker;
        match expr {
            Expr::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    self.visit_parameters(parameters);
                }
                let kind = Kind::Lambda(lambda.parameters.as_deref());
                self.within(kind, &[], |walk| walk.visit_expr(&lambda.body));
            }
            Expr::ListComp(part) => self.comprehension(&part.generators, false, &[&part.elt]),
            Expr::SetComp(part) => self.comprehension(&part.generators, false, &[&part.elt]),
            Expr::Generator(part) => self.comprehension(&part.generators, true, &[&part.elt]),
            Expr::DictComp(part) => {
                let mut elements: Vec<&Expr> = part.key.iter().map(|key| &**key).collect();
                elements.push(&part.value);
                self.comprehension(&part.generators, false, &elements);
            }
            _ => walk_expr(self, expr),
        }
    }
}

impl SemanticSyntaxContext for Walk<'_> {
    fn future_annotations_or_stub(&self) -> bool {
        false
    }

    fn lazy_import_context(&self) -> Option<LazyImportContext> {
        match self.current() {
            Kind::Function(_) | Kind::Lambda(_) => Some(LazyImportContext::Function),
            Kind::Class => Some(LazyImportContext::Class),
            Kind::Module | Kind::Comprehension { .. } => {
                self.in_try.then_some(LazyImportContext::TryExceptBlocks)
            }
        }
    }

    fn python_version(&self) -> PythonVersion {
        self.version
    }

    fn source(&self) -> &str {
        self.source
    }

    fn global(&self, name: &str) -> Option<TextRange> {
        self.scopes.last()?.globals.get(name).copied()
    }

    fn has_nonlocal_binding(&self, name: &str) -> bool {
        if name == "__class__" {
            return true;
        }
        self.scopes
            .iter()
            .rev()
            .skip(1)
            .any(|scope| match scope.kind {
                Kind::Function(def) => {
                    scope.has_parameter(name)
                        || scope
                            .bound
                            .get_or_init(|| bindings::bound(&def.body))
                            .contains(name)
                }
                Kind::Lambda(_) => scope.has_parameter(name),
                Kind::Module | Kind::Class | Kind::Comprehension { .. } => false,
            })
    }

    fn in_async_context(&self) -> bool {
        for scope in self.scopes.iter().rev() {
            match scope.kind {
                Kind::Class | Kind::Lambda(_) => return false,
                Kind::Function(def) => return def.is_async,
                Kind::Module | Kind::Comprehension { .. } => {}
            }
        }
        false
    }

    fn in_await_allowed_context(&self) -> bool {
        for scope in self.scopes.iter().rev() {
            match scope.kind {
                Kind::Class => return false,
                Kind::Function(_)
                | Kind::Lambda(_)
                | Kind::Comprehension {
                    generator: true, ..
                } => return true,
                Kind::Module | Kind::Comprehension { .. } => {}
            }
        }
        false
    }

    fn in_yield_allowed_context(&self) -> bool {
        for scope in self.scopes.iter().rev() {
            match scope.kind {
                Kind::Class | Kind::Comprehension { .. } => return false,
                Kind::Function(_) | Kind::Lambda(_) => return true,
                Kind::Module => {}
            }
        }
        false
    }

    fn in_sync_comprehension(&self) -> bool {
        self.scopes.iter().any(|scope| {
            matches!(
                scope.kind,
                Kind::Comprehension {
                    generator: false,
                    is_async: false
                }
            )
        })
    }

    fn in_class_body_comprehension(&self) -> bool {
        for scope in self.scopes.iter().rev() {
            match scope.kind {
                Kind::Comprehension { .. } => {}
                Kind::Class => return true,
                Kind::Module | Kind::Function(_) | Kind::Lambda(_) => return false,
            }
        }
        false
    }

    fn in_module_scope(&self) -> bool {
        matches!(self.current(), Kind::Module)
    }

    fn in_function_scope(&self) -> bool {
        matches!(self.current(), Kind::Function(_) | Kind::Lambda(_))
    }

    fn in_generator_context(&self) -> bool {
        self.scopes.iter().any(|scope| {
            matches!(
                scope.kind,
                Kind::Comprehension {
                    generator: true,
                    ..
                }
            )
        })
    }

    fn in_notebook(&self) -> bool {
        self.notebook
    }

    fn report_semantic_error(&self, error: SemanticSyntaxError) {
        self.found.borrow_mut().push(error);
    }

    fn in_loop_context(&self) -> bool {
        self.scopes.last().is_some_and(|scope| scope.loops > 0)
    }

    fn is_bound_parameter(&self, name: &str) -> bool {
        self.scopes
            .last()
            .is_some_and(|scope| scope.has_parameter(name))
    }
}
