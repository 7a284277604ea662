//! The room's system call filter: a deny list, compiled to the kernel's bytecode. bubblewrap loads the part that may
//! stand below the rest; the rest is loaded between fork and exec of the command, where it can tell the keeper of each
//! refusal, and by the warden for itself.
//!
//! Must never compare 64 bits of an argument that the kernel reads as 32: a high bit would dodge the rule.

mod answer;
mod assemble;
mod table;

pub(crate) use answer::{Attempt, errno, name};
pub(crate) use assemble::{Form, Instruction, bytes, program};
pub(crate) use table::Arch;

/// The whole filter of a room as `bwrap --seccomp` reads it, for who builds the same walls by hand; none on a machine
/// that has no list.
pub fn system_call_filter() -> Option<Vec<u8>> {
    Some(bytes(Arch::current()?, Form::Whole))
}

#[cfg(test)]
mod tests;
