//! The room's system call filter: a deny list, compiled to the kernel's bytecode for bubblewrap to load.
//!
//! Must never compare 64 bits of an argument that the kernel reads as 32: a high bit would dodge the rule.

mod assemble;
mod table;

pub(crate) use assemble::room_filter;
pub(crate) use table::Arch;
