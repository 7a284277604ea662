//! Who the engine is in commits, notes and reflogs. Never the user's own identity: a commit that the
//! engine made must not look like one that a person made.

use git2::{Signature, Time};

/// The name in every commit that the engine makes.
pub const NAME: &str = "Airlock";
/// The address in every commit that the engine makes.
pub const EMAIL: &str = "airlock@localhost";

/// The engine's signature at `when` (unix seconds, UTC).
pub(crate) fn signature(when: i64) -> Signature<'static> {
    Signature::new(NAME, EMAIL, &Time::new(when, 0))
        .expect("a constant name and address are a valid signature")
}
