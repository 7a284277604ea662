//! The crate against real repositories made by the real `git`. Nothing is faked; every test has its own folder.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]
#![expect(
    unreachable_pub,
    reason = "what the modules of a test share is public to no one else"
)]

mod fixture;

mod create;
mod history;
mod kept;
mod land;
mod notes;
mod owner;
mod problems;
mod properties;
mod recovery;
mod refusals;
mod removal;
mod scale;
mod seal;
mod survey;
