//! The limits of a task file. Holds what was said; reads and resolves nothing.

use crate::config::{Given, Limits, Origin};

/// The keys of the limits.
#[derive(Debug, Default)]
pub struct FormLimits {
    /// `timeout`.
    pub timeout: Option<u64>,
    /// `idle_timeout`.
    pub idle_timeout: Option<u64>,
    /// `memory`.
    pub memory: Option<u64>,
    /// `pids`.
    pub pids: Option<u64>,
    /// `disk`.
    pub disk: Option<u64>,
    /// `files`.
    pub files: Option<u64>,
}

impl FormLimits {
    /// The same as what one place says; `origin` names the place of a key.
    pub fn wishes(&self, origin: &dyn Fn(&'static str) -> Origin) -> Limits {
        let wish = |key, value: Option<u64>| value.map(|value| Given::new(value, origin(key)));
        Limits {
            timeout_ms: wish("timeout", self.timeout),
            idle_ms: wish("idle_timeout", self.idle_timeout),
            memory: wish("memory", self.memory),
            pids: wish("pids", self.pids),
            disk: wish("disk", self.disk),
            files: wish("files", self.files),
            ..Limits::default()
        }
    }
}
