//! Python read as `CPython` reads it: decode, parse, semantic errors, statement count, outline of what each body does.
//!
//! The only place that knows `ruff_python_parser` and its tree: that crate is internal to another project and
//! breaks often, so nothing of it may appear in a signature outside this folder.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a grammar has a hundred kinds of nodes, and each rule speaks of a few"
)]

mod bindings;
mod body;
mod callable;
mod context;
mod count;
mod decode;
mod depth;
mod inert;
mod outline;
mod parse;
mod scope;
mod tabs;
mod tests_of;
mod top;

pub(crate) use body::Work;
pub(crate) use callable::{Callable, Context, TestFacts};
pub(crate) use decode::{decode, is_lfs_pointer};
pub(crate) use outline::{Comment, Outline};
pub(crate) use parse::{Refusal, Script, read_cell, read_file};
pub(crate) use top::{Contents, Top};
