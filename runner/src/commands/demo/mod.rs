//! `demo`: four scripted agents in real rooms, side by side, and what Airlock lets out of them.
//! Needs no key and no network, writes only into a folder of its own, and believes nothing that
//! the scripts print: what held is looked at from outside.

mod cast;
mod child;
mod play;
mod scene;
mod telling;
mod walls;

pub(in crate::commands) use child::answer;
pub use play::{Args, run};
