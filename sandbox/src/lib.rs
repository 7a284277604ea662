//! Airlock: the locked room.
