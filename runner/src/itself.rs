//! The running program as others must start it: re-executed for every process that Airlock makes.

use std::path::PathBuf;

/// The executable to start for hidden subcommands. Also right after the file was replaced by an
/// upgrade: the kernel's link names the very file that runs.
pub fn executable() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// The engine's version, as recorded in evidence and compared between processes.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
