//! Airlock: the locked room.
//!
//! A task's room is a holder process with user, mount and network namespaces and a finished file tree in them; each
//! job is a bubblewrap of its own that joins these, with our warden as its pid 1 and a keeper outside.
//!
//! ```text
//! supervisor ── Room::open ──▶ holder: takes what is shown, gives up root, builds the tree, drops the host's root
//!            └─ Room::start ─▶ keeper ── joins the holder's namespaces ──▶ bwrap ──▶ warden (pid 1) ──▶ command
//! ```
//!
//! What holds: the command sees no file, process, socket or variable of the host but those that the spec shows; it
//! cannot write but in its worktree, its git view, HOME, /tmp and named paths; it cannot outlive its keeper, forge how
//! it ended, or gain a privilege; a job that passes a limit is ended and says which. Each promise with its wall and its
//! test, and what is not promised, stands in `README.md` beside this crate; nothing is promised for jobs started by
//! [`start_unconfined`].
//!
//! Must never fall back to less than the whole room, and knows nothing of git, SQL or tokio.

mod account;
mod attach;
mod bwrap;
mod cgroup;
mod control;
mod denial;
mod diagnose;
mod durable;
pub mod egress;
mod environment;
mod error;
mod foreground;
mod herd;
mod hidden;
mod holder;
mod identity;
mod judge;
mod keeper;
mod launch;
mod limit;
mod lock;
mod mechanism;
mod meta;
mod outcome;
mod policy;
mod probe;
mod relay;
mod room;
mod seccomp;
mod spec;
mod sys;
mod warden;
mod watch;
mod wire;

pub use attach::{Attached, Keeper, attach};
pub use bwrap::find_bwrap;
pub use control::{Swept, control, sweep};
pub use denial::{Allow, DENIALS, Denial, DenialKind, DenialLog, Denials};
pub use environment::{chosen_environment, room_environment};
pub use error::{ControlError, RoomError, Unavailable};
pub use foreground::{Ends, Line, Said};
pub use hidden::hidden;
pub use judge::{ConfineError, JudgeLimits, confine_judge};
pub use keeper::Order;
pub use lock::{HeldLock, LockError};
pub use mechanism::Mechanism;
pub use meta::{JobState, LogSize, Meta, MetaError};
pub use outcome::{Exit, Outcome};
pub use probe::{Wall, WallState, Walls, probe};
pub use room::{Room, start_unconfined};
pub use seccomp::system_call_filter;
pub use spec::{GitView, JobSpec, Layer, Limits, Net, RoomSpec};
