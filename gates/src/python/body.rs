//! What a function body does: nothing, a refusal, a constant, noise, an echo, or work.
//! It must never call a body empty-handed that computes anything from its input.

use std::collections::HashSet;

use ruff_python_ast::visitor::{Visitor, walk_stmt};
use ruff_python_ast::{ExceptHandler, Expr, ExprCall, Parameters, Stmt, StmtFunctionDef, StmtTry};

use super::inert::{is_literal, last_name, live, root_name, truth, yields};

/// What a function body does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Nothing, or `return None`.
    Empty,
    /// Only says that it is not implemented.
    Raises,
    /// Returns a literal.
    Constant,
    /// Prints, logs or sleeps, and returns nothing or a literal.
    Noise,
    /// Returns its own parameter.
    Echo,
    /// Loops over nothing.
    Trivial,
    /// Anything else.
    Real,
}

impl Work {
    /// Whether the body is an open hole: empty or "not implemented".
    pub(crate) fn is_hole(self) -> bool {
        matches!(self, Self::Empty | Self::Raises)
    }
}

pub(super) fn work_of_function(def: &StmtFunctionDef) -> Work {
    if yields(&def.body) {
        return Work::Real;
    }
    let mut reading = Reading::new(Some(&def.parameters));
    reading.read_all(&live_work(&def.body));
    reading.verdict()
}

/// A lambda's value; it cannot be empty, so `None` is a constant like any other.
pub(super) fn work_of_lambda(parameters: Option<&Parameters>, value: &Expr) -> Work {
    if is_literal(value) {
        return Work::Constant;
    }
    match value {
        Expr::Name(name) if parameters.is_some_and(|p| p.includes(&name.id)) => Work::Echo,
        _ => Work::Real,
    }
}

/// Live statements without imports and without nested definitions that nothing uses.
fn live_work(body: &[Stmt]) -> Vec<&Stmt> {
    let stmts = live(body);
    let plain_definition = |stmt: &Stmt| match stmt {
        Stmt::FunctionDef(def) => def.decorator_list.is_empty(),
        Stmt::ClassDef(class) => class.decorator_list.is_empty(),
        _ => false,
    };
    let used = if stmts.iter().any(|stmt| plain_definition(stmt)) {
        names_in(&stmts)
    } else {
        HashSet::new()
    };
    let keeps = |stmt: &&Stmt| match stmt {
        Stmt::Import(_) | Stmt::ImportFrom(_) => false,
        Stmt::FunctionDef(def) => !plain_definition(stmt) || used.contains(def.name.as_str()),
        Stmt::ClassDef(class) => !plain_definition(stmt) || used.contains(class.name.as_str()),
        _ => true,
    };
    stmts.into_iter().filter(keeps).collect()
}

fn names_in<'a>(stmts: &[&'a Stmt]) -> HashSet<&'a str> {
    struct Names<'a>(HashSet<&'a str>);
    impl<'a> Visitor<'a> for Names<'a> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Name(name) = expr
                && name.ctx.is_load()
            {
                self.0.insert(name.id.as_str());
            }
            ruff_python_ast::visitor::walk_expr(self, expr);
        }
    }
    let mut names = Names(HashSet::new());
    for stmt in stmts {
        match stmt {
            Stmt::Global(part) => names
                .0
                .extend(part.names.iter().map(ruff_python_ast::Identifier::as_str)),
            _ => walk_stmt(&mut names, stmt),
        }
    }
    names.0
}

struct Reading<'a> {
    parameters: Option<&'a Parameters>,
    locals: HashSet<&'a str>,
    noise: bool,
    trivial: bool,
    constant: bool,
    ended: Option<Work>,
}

impl<'a> Reading<'a> {
    fn new(parameters: Option<&'a Parameters>) -> Self {
        Self {
            parameters,
            locals: HashSet::new(),
            noise: false,
            trivial: false,
            constant: false,
            ended: None,
        }
    }

    fn read_all(&mut self, stmts: &[&'a Stmt]) {
        for stmt in stmts {
            if self.ended == Some(Work::Real) {
                return;
            }
            self.read(stmt);
        }
    }

    fn verdict(&self) -> Work {
        match self.ended {
            Some(Work::Real) => Work::Real,
            Some(Work::Raises) => Work::Raises,
            _ if self.noise => Work::Noise,
            Some(Work::Empty) | None if self.trivial => Work::Trivial,
            Some(Work::Empty) | None if self.constant => Work::Constant,
            Some(work) => work,
            None => Work::Empty,
        }
    }

    fn end(&mut self, work: Work) {
        // Of two ends (in a `try`), a constant says more than nothing.
        self.ended = match (self.ended, work) {
            (Some(Work::Real), _) | (_, Work::Real) => Some(Work::Real),
            (Some(before), Work::Empty) => Some(before),
            (_, work) => Some(work),
        };
    }

    fn read(&mut self, stmt: &'a Stmt) {
        // So many names are data, and copying them per `try` would not stay linear.
        if self.locals.len() > 64 {
            return self.end(Work::Real);
        }
        match stmt {
            Stmt::Return(part) => {
                let work = part
                    .value
                    .as_deref()
                    .map_or(Work::Empty, |value| self.returned(value));
                self.end(work);
            }
            Stmt::Raise(part) => {
                let refuses = part.exc.as_deref().is_some_and(is_not_implemented);
                self.end(if refuses { Work::Raises } else { Work::Real });
            }
            Stmt::Assert(part) => match truth(&part.test) {
                Some(true) => {}
                Some(false) if part.msg.as_deref().is_some_and(says_not_implemented) => {
                    self.end(Work::Raises);
                }
                _ => self.end(Work::Real),
            },
            Stmt::Assign(part) => {
                let local = part.targets.iter().all(Expr::is_name_expr);
                if local && is_literal(&part.value) {
                    self.constant = true;
                    self.locals.extend(
                        part.targets
                            .iter()
                            .filter_map(|target| target.as_name_expr())
                            .map(|name| name.id.as_str()),
                    );
                } else {
                    self.end(Work::Real);
                }
            }
            Stmt::AnnAssign(part) => match (&*part.target, part.value.as_deref()) {
                (Expr::Name(_), None) => {}
                (Expr::Name(name), Some(value)) if is_literal(value) => {
                    self.constant = true;
                    self.locals.insert(name.id.as_str());
                }
                _ => self.end(Work::Real),
            },
            Stmt::Expr(part) => {
                if is_noise(&part.value) {
                    self.noise = true;
                } else {
                    self.end(Work::Real);
                }
            }
            Stmt::For(_) | Stmt::While(_) => self.loops(stmt),
            Stmt::Try(part) => self.tries(part),
            _ => self.end(Work::Real),
        }
    }

    fn returned(&self, value: &Expr) -> Work {
        match value {
            Expr::NoneLiteral(_) => Work::Empty,
            value if is_literal(value) || self.is_local_literal(value) => Work::Constant,
            Expr::Name(name) if !is_receiver(&name.id) => {
                let own = self.parameters.is_some_and(|p| p.includes(&name.id));
                if own { Work::Echo } else { Work::Real }
            }
            _ => Work::Real,
        }
    }

    fn is_local_literal(&self, value: &Expr) -> bool {
        match value {
            Expr::Name(name) => self.locals.contains(name.id.as_str()),
            Expr::List(part) => part
                .elts
                .iter()
                .all(|e| is_literal(e) || self.is_local_literal(e)),
            Expr::Tuple(part) => part
                .elts
                .iter()
                .all(|e| is_literal(e) || self.is_local_literal(e)),
            Expr::Dict(part) => part.items.iter().all(|item| {
                item.key.as_ref().is_some_and(is_literal)
                    && (is_literal(&item.value) || self.is_local_literal(&item.value))
            }),
            _ => false,
        }
    }

    /// A loop that only passes is trivial; one that only makes noise over a made-up range is fake progress.
    fn loops(&mut self, stmt: &'a Stmt) {
        let (counted, body, orelse) = match stmt {
            Stmt::For(part) => (is_made_up(&part.iter), &part.body, &part.orelse),
            Stmt::While(part) => (!super::inert::calls(&part.test), &part.body, &part.orelse),
            _ => return self.end(Work::Real),
        };
        let mut inner = Reading::new(self.parameters);
        inner.locals.clone_from(&self.locals);
        inner.read_all(&live_work(body));
        inner.read_all(&live_work(orelse));
        match (counted, inner.verdict()) {
            (true, Work::Empty) if inner.ended.is_none() => self.trivial = true,
            (true, Work::Noise) if stmt.is_for_stmt() && inner.ended.is_none() => self.noise = true,
            _ => self.end(Work::Real),
        }
    }

    /// A `try` around nothing but noise and constants is no work; one that imports is feature detection.
    fn tries(&mut self, part: &'a StmtTry) {
        let handlers = part.handlers.iter().map(|handler| {
            let ExceptHandler::ExceptHandler(inner) = handler;
            &inner.body
        });
        let bodies = [&part.body, &part.orelse, &part.finalbody]
            .into_iter()
            .chain(handlers);
        for body in bodies {
            let imports = |stmt: &Stmt| matches!(stmt, Stmt::Import(_) | Stmt::ImportFrom(_));
            if body.iter().any(imports) {
                return self.end(Work::Real);
            }
            let before = self.locals.clone();
            self.read_all(&live_work(body));
            self.locals.extend(before);
        }
    }
}

fn is_receiver(name: &str) -> bool {
    matches!(name, "self" | "cls" | "mcs" | "klass")
}

/// An iterable that needs no input: a literal, a plain name, a range, a progress bar over these.
fn is_made_up(iter: &Expr) -> bool {
    match iter {
        Expr::Call(call) => {
            let known = last_name(&call.func).is_some_and(|name| {
                matches!(name, "range" | "enumerate" | "tqdm" | "trange" | "track")
            });
            known && call.arguments.args.iter().all(is_made_up)
        }
        other => !super::inert::calls(other),
    }
}

fn is_not_implemented(exc: &Expr) -> bool {
    let named = last_name(exc).is_some_and(|name| {
        name.contains("NotImplemented") || name.contains("Unimplemented") || name == "TODO"
    });
    let said = exc
        .as_call_expr()
        .is_some_and(|call| call.arguments.args.iter().any(says_not_implemented));
    named || said
}

fn says_not_implemented(expr: &Expr) -> bool {
    let Expr::StringLiteral(text) = expr else {
        return false;
    };
    let text = text.value.to_str().to_lowercase();
    [
        "not implemented",
        "not yet implemented",
        "unimplemented",
        "to be implemented",
        "implement me",
        "implementation missing",
        "not been implemented",
        "待实现",
        "未实现",
        "尚未实现",
        "没有实现",
    ]
    .iter()
    .any(|words| text.contains(words))
        || text
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| word == "todo")
}

/// A print, log or sleep call whose arguments call nothing themselves.
pub(super) fn is_noise(expr: &Expr) -> bool {
    let expr = match expr {
        Expr::Await(part) => &part.value,
        other => other,
    };
    let Expr::Call(call) = expr else {
        return false;
    };
    names_noise(call)
        && !call.arguments.args.iter().any(super::inert::calls)
        && !call
            .arguments
            .keywords
            .iter()
            .any(|keyword| super::inert::calls(&keyword.value))
}

fn names_noise(call: &ExprCall) -> bool {
    let Some(last) = last_name(&call.func) else {
        return false;
    };
    match &*call.func {
        Expr::Name(_) => matches!(last, "print" | "sleep" | "pprint"),
        Expr::Attribute(part) => {
            let owner = last_name(&part.value).unwrap_or_default();
            let root = root_name(&part.value).unwrap_or_default();
            match last {
                "sleep" => matches!(root, "time" | "asyncio" | "anyio" | "trio" | "gevent"),
                "debug" | "info" | "warning" | "warn" | "error" | "critical" | "exception"
                | "log" => {
                    let owner = owner.to_ascii_lowercase();
                    owner.ends_with("log") || owner.ends_with("logger") || owner == "logging"
                }
                "print" => owner == "console",
                _ => false,
            }
        }
        _ => false,
    }
}
