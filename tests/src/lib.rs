//! What the end-to-end tests share: a hermetic environment, repositories made by the real git, the
//! binary under test, and the processes that it leaves. Nothing here looks into the crates under
//! test: a test sees what a user sees.

#![expect(
    clippy::panic,
    reason = "a test that cannot be set up has to fail loudly, where it stands"
)]

mod call;
mod converse;
mod environment;
mod processes;
mod repository;
mod run;
pub mod server;
mod waiting;
mod watch;

pub use call::{Call, Running};
pub use converse::converse;
pub use environment::TestEnv;
pub use processes::{Process, Role};
pub use repository::TestRepo;
pub use run::{Ended, Run};
pub use server::Server;
pub use waiting::{until, within};
pub use watch::Growth;
