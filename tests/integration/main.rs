//! The end-to-end tests, one module for each thing a user relies on. Real binary, real git, real
//! bubblewrap; nothing is mocked, nothing is skipped: what this host cannot do fails, and says so.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails loudly where it stands, and says what led there"
)]

/// What a person does around a task: look, deliver, accept, go on, clean up.
mod after;
/// Named agents: what is here of them, their model behind the proxy, what they say of their run.
mod agents;
/// The command line as scripts see it: every exit code, help, streams.
mod cli;
/// Who may say what: flags, the user's file, the repository's file, trust.
mod config;
/// A test for each promise about the room.
mod escape;
/// The record of a delivery, and that a changed byte is found.
mod evidence;
/// A command of a person's own in a task's room.
mod exec;
/// What is let out and what is not; judging any commit.
mod gates;
/// Odd repositories and poor hosts.
mod hosts;
/// What an agent finds in its room.
mod inside;
/// Limits: hit, and just below.
mod limits;
/// Many rooms at once, and many commands in one.
mod many;
/// Landing: the target, its checkout, and a person's edits.
mod merge;
/// What a room reaches through its proxy, and what it does not.
mod net;
/// Many at once.
mod races;
/// kill -9 of every process at every moment.
mod recovery;
/// The way of a task that goes well.
mod run;
/// What the engine reads out of a tree.
mod seal;
/// Commands that prepare a tree: once, apart, and copied into each task's own.
mod setup;
/// Stopping: Ctrl-C, order, clock, a caller that goes away.
mod signals;
/// The rules of the source itself.
mod tidy;
/// Tokens beside programs and caches of the host.
mod tokens;
/// Builds and tests without a network, from the caches of the host.
mod toolchains;
/// A sandbox that cannot be had: cause, remedy, and nothing ran.
mod unavailable;
/// What a room refused, and what would allow it.
mod why;
/// That the tests see what they have to see.
mod world;
