//! The only code that writes to standard output and standard error: data to the first, talk to the
//! second. Text of agents passes a filter on its way. Decides nothing about a task.

pub mod agent_text;
mod console;
mod lane;
mod markdown;
mod narration;
mod paint;
mod passing;
mod progress;
pub mod report;
mod table;
pub mod words;

pub use console::Console;
pub use lane::Lane;
pub use markdown::comment;
pub use narration::{Beat, Told, tell};
pub use paint::{Paint, Tone};
pub use passing::{Channel, Passing};
pub use progress::Progress;
