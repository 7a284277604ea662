//! The only code that writes to standard output and standard error: data to the first, talk to the
//! second. Text of agents passes a filter on its way. Decides nothing about a task.

pub mod agent_text;
mod console;
mod paint;
mod table;

pub use console::Console;
pub use paint::{Paint, Tone};
