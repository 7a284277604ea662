//! Where an empty body is right: protocols, abstract members, overloads, null objects, registered handlers.

use std::collections::HashSet;

use ruff_python_ast::{Decorator, Expr, Stmt, StmtClassDef, StmtFunctionDef};

use super::body::work_of_function;
use super::inert::last_name;
use super::{Context, Work};

/// The class around a method.
pub(super) struct Place {
    strong: bool,
    based: bool,
}

impl Place {
    pub(super) fn of(class: &StmtClassDef) -> Self {
        Self {
            strong: is_strong(class),
            based: bases(class).next().is_some() || !class.decorator_list.is_empty(),
        }
    }
}

/// Bases that say something: `object` does not.
pub(super) fn bases(class: &StmtClassDef) -> impl Iterator<Item = &Expr> {
    class
        .arguments
        .iter()
        .flat_map(|arguments| arguments.args.iter())
        .filter(|base| last_name(base) != Some("object"))
}

/// What the place of a function asks of it.
pub(super) fn of_function(
    def: &StmtFunctionDef,
    place: Option<&Place>,
    nested: bool,
    handed: &HashSet<&str>,
) -> Context {
    let handed = !nested && place.is_none() && handed.contains(def.name.as_str());
    let decorators = || def.decorator_list.iter().filter_map(decorator_name);
    if handed || place.is_some_and(|place| place.strong) || decorators().any(is_abstract) {
        return Context::Strong;
    }
    // These three change how a method is called, not what an empty body means.
    let plain = |name: &str| matches!(name, "staticmethod" | "classmethod" | "property");
    if def
        .decorator_list
        .iter()
        .any(|d| !decorator_name(d).is_some_and(plain))
        || place.is_some_and(|place| place.based)
    {
        return Context::Weak;
    }
    if nested || is_dunder(&def.name) {
        return Context::Small;
    }
    Context::None
}

pub(super) fn is_dunder(name: &str) -> bool {
    name.len() > 4 && name.starts_with("__") && name.ends_with("__")
}

pub(super) fn decorator_name(decorator: &Decorator) -> Option<&str> {
    last_name(&decorator.expression)
}

fn is_abstract(name: &str) -> bool {
    name.starts_with("abstract") || matches!(name, "overload" | "hookspec")
}

fn is_strong(class: &StmtClassDef) -> bool {
    let name = class.name.trim_start_matches('_');
    ["Null", "NoOp", "Noop", "Dummy"]
        .iter()
        .any(|word| name.starts_with(word))
        || bases(class).filter_map(last_name).any(is_interface)
        || has_abstract_metaclass(class)
        || methods(class).any(|def| {
            def.decorator_list
                .iter()
                .filter_map(decorator_name)
                .any(|name| name.starts_with("abstract"))
        })
        || is_interface_by_convention(class)
}

fn is_interface(base: &str) -> bool {
    matches!(base, "Protocol" | "ABC" | "Interface")
        || base.ends_with("Protocol")
        || base.ends_with("Interface")
        || base.starts_with("Abstract")
        || is_i_name(base)
}

/// `IReader`: a capital I before another capital.
fn is_i_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next() == Some('I') && chars.next().is_some_and(char::is_uppercase)
}

fn has_abstract_metaclass(class: &StmtClassDef) -> bool {
    class.arguments.iter().any(|arguments| {
        arguments.keywords.iter().any(|keyword| {
            keyword.arg.as_deref() == Some("metaclass")
                && last_name(&keyword.value).is_some_and(|name| name.ends_with("ABCMeta"))
        })
    })
}

fn methods(class: &StmtClassDef) -> impl Iterator<Item = &StmtFunctionDef> {
    class.body.iter().filter_map(Stmt::as_function_def_stmt)
}

/// A base class by its name or its words, in which every method only raises.
fn is_interface_by_convention(class: &StmtClassDef) -> bool {
    let name = class.name.trim_start_matches('_');
    let named = name.starts_with("Base")
        || name.starts_with("Abstract")
        || name.ends_with("Base")
        || name.ends_with("Mixin")
        || is_i_name(name);
    (named || documented_as_interface(class))
        && methods(class).next().is_some()
        && methods(class).all(|def| work_of_function(def) == Work::Raises)
}

fn documented_as_interface(class: &StmtClassDef) -> bool {
    docstring(&class.body).is_some_and(|doc| {
        let doc = doc.to_lowercase();
        [
            "interface",
            "abstract",
            "base class",
            "baseclass",
            "subclass",
            "must implement",
        ]
        .iter()
        .any(|word| doc.contains(word))
    })
}

/// The docstring of a body.
pub(super) fn docstring(body: &[Stmt]) -> Option<&str> {
    match body.first() {
        Some(Stmt::Expr(part)) => part
            .value
            .as_string_literal_expr()
            .map(|literal| literal.value.to_str()),
        _ => None,
    }
}
