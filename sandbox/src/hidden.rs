//! The roles that our own program plays when it is started again: `__holder`, `__keeper`, `__relay`, `__warden`.
//!
//! Must never be reached by a person's typing: each role needs a spec that only this crate writes.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::{holder, keeper, relay, warden};

/// Plays the role that the first argument after the program's name asks for. `None` when it asks for none.
/// A program that uses this crate calls it before anything else, with all of its arguments.
pub fn hidden(args: &[OsString]) -> Option<ExitCode> {
    let role = args.get(1)?.to_str()?;
    let words = args.get(2..).unwrap_or_default();
    match role {
        "__holder" => Some(holder::main(words)),
        "__keeper" => Some(keeper::main(words)),
        "__relay" => Some(relay::main(words)),
        "__warden" => Some(warden::main(words)),
        _ => None,
    }
}
