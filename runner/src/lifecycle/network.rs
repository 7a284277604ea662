//! The proxy of a task, as long as something runs in its room. Decides nothing that the specification has not decided.

use super::Life;
use crate::config;
use crate::exit::{Exit, Failure};
use crate::proxy::{Order, Proxy, ProxyError};
use crate::task::Net;

impl Life<'_> {
    /// The proxy of this task; none where the room has no way out, or is none.
    pub(super) fn open_network(&self) -> Result<Option<Proxy>, Failure> {
        let spec = &self.view.spec;
        let Net::Allow(policy) = &spec.net else {
            return Ok(None);
        };
        if !spec.isolation.confined() {
            return Ok(None);
        }
        self.recall_keys();
        let order = Order {
            task: spec.task.clone(),
            policy: policy.clone(),
            credentials: spec.credentials.clone(),
            keys: self.shop.keys.clone(),
        };
        Proxy::start(&self.folder(), order)
            .map(Some)
            .map_err(|error| no_network(&error))
    }

    /// Values that nobody has handed over, as after the death of a supervisor: this one was started by a command of the
    /// same user, in whose environment or files they may be. What is not found is said when it is needed.
    pub(super) fn recall_keys(&self) {
        let spec = &self.view.spec;
        let keys = &self.shop.keys;
        let missing = spec.credentials.iter();
        let missing: Vec<_> = missing
            .filter(|credential| keys.of(&spec.task, &credential.name).is_none())
            .cloned()
            .collect();
        for credential in missing {
            let found = config::keys(&[credential], &std::env::vars_os().collect());
            keys.give(&spec.task, found.unwrap_or_default());
        }
    }

    /// Where the values are looked for that credentials of this task do not have, in words.
    pub(super) fn missing_keys(&self) -> Vec<String> {
        self.recall_keys();
        let spec = &self.view.spec;
        let without = spec.credentials.iter();
        without
            .filter(|credential| self.shop.keys.of(&spec.task, &credential.name).is_none())
            .map(config::key_place)
            .collect()
    }
}

pub(super) fn no_network(error: &ProxyError) -> Failure {
    match error {
        ProxyError::Socket(_) => Failure::caused(Exit::Internal, error),
        ProxyError::Roots(_) => Failure::caused(Exit::Usage, error).advise(
            "install the certificates of this system (package ca-certificates), or name a file of them in SSL_CERT_FILE",
        ),
    }
}
