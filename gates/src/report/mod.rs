//! Report formats, all from one list of findings.
//!
//! [`Report::of`] makes the list from a delivery and its judgement; [`Report::render`] writes it in a [`Format`].
//! [`text`] is for terminals (colour by the caller's [`Style`]), [`json`] for scripts, [`sarif`], [`github`] and
//! [`gitlab`] for code hosts, [`junit`] for test viewers, [`html`] for people.
//!
//! Paths, messages and claims are an agent's words. Each format makes them inert in its own way, and [`inert`] turns
//! control and direction-changing characters into visible escapes before that. Nothing here prints.

mod github;
mod gitlab;
mod html;
mod inert;
mod json;
mod junit;
mod list;
mod sarif;
#[cfg(test)]
mod tests;
mod text;

pub use inert::{escape_html, shown};
pub use list::{Format, Item, Report, TaskFacts, UnknownFormat};
pub use text::{Plain, Role, Style};
