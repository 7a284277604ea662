//! The environment of a job: the fixed part. Whatever else gets in comes by name from the caller's allow-list.
//!
//! Must never read this process's own environment.

use std::collections::BTreeMap;

/// HOME inside every room.
pub(crate) const HOME: &str = "/home/agent";

/// The variables that every job has, where its home and its temporary folder are `home` and `tmp`.
/// In a room these are `/home/agent` and `/tmp`.
pub fn chosen_environment(home: &str, tmp: &str) -> BTreeMap<String, String> {
    let fixed = [
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ),
        ("HOME", home),
        ("TMPDIR", tmp),
        ("USER", "agent"),
        ("LOGNAME", "agent"),
        ("SHELL", "/bin/sh"),
        ("LANG", "C.UTF-8"),
        ("TERM", "dumb"),
        ("NO_COLOR", "1"),
        ("CI", "1"),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
        // `false` makes an editor-driven command fail loudly; `true` would rewrite history in silence.
        ("GIT_EDITOR", "false"),
        ("GIT_SEQUENCE_EDITOR", "false"),
    ];
    fixed
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The fixed environment of a job in a room.
pub fn room_environment() -> BTreeMap<String, String> {
    chosen_environment(HOME, "/tmp")
}
