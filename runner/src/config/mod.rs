//! From what was typed and configured to plain values. Four places can say something: flags, the
//! task file of `--spec`, the user's `config.toml`, and the repository's `airlock.toml` as the base
//! commit has it. Each is read into the same form ([`Wishes`]) with the place of every value
//! ([`Origin`]), then all are resolved once to a [`crate::task::Spec`].
//!
//! Precedence: flag, task file, user's file, repository's file, default. Three exceptions, all in
//! favour of the stricter: the network, the isolation and the limits that the repository sets may
//! narrow what the user's file allows; gates have a floor ([`profile()`]); and what the repository
//! asks for beyond that counts only when the user has agreed to exactly this ([`crate::trust`]).
//!
//! Nothing here starts a process, and nothing but the flags' own files and the two configuration
//! files is read.

mod agents;
mod binds;
mod branch;
mod command;
mod credentials;
mod defaults;
mod document;
mod environment;
mod file;
mod flags;
mod landing;
mod layers;
mod nearest;
mod origin;
mod places;
mod profile;
mod program;
mod protect;
pub mod quantity;
mod reach;
mod resolve;
mod room;
mod scene;
mod setup;
mod toolchains;
mod widening;
mod wishes;
pub mod words;

pub use agents::{
    Agent, CopyError, Endpoint, Key, PROMPT_FILE, STAND_IN, built_in as built_in_agents,
    fit_to_copy, told,
};
pub use credentials::{keys, place as key_place};
pub use defaults::BOUNDS;
pub use document::{ConfigError, Source};
pub use environment::{EnvEntry, EnvError, looks_secret};
pub use file::{
    attempts, files_problem, memory, note_file, pids_problem, read as read_file, set as set_gate,
};
pub use flags::{Flags, text_of};
pub use layers::{Files, agents_of_the_user, files};
pub use nearest::nearest;
pub use origin::{Given, Origin};
pub use places::own_folder;
pub use profile::profile;
pub use program::find as find_program;
pub use quantity::duration;
pub use resolve::{Request, resolve};
pub use toolchains::{Choice, ToolWord, here as toolchains_here};
pub use widening::{Ask, asks};
pub use wishes::{Limits, Wishes};
