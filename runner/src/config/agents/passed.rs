//! What of the caller's an agent gets where it speaks to its model directly.

use super::Agent;
use crate::config::environment::EnvEntry;
use crate::config::origin::{Given, Origin};

impl Agent {
    /// Names of the variables that say where its model is and that sign it in.
    pub fn sign_in(&self) -> impl Iterator<Item = &str> {
        self.models.iter().flat_map(|model| {
            let keys = model.keys.iter().map(|key| key.variable.as_str());
            keys.chain(model.upstream_from.as_deref())
        })
    }

    /// The same as wishes of the profile, which come before all others.
    pub(in crate::config) fn handed_over(&self, origin: &Origin) -> Vec<Given<EnvEntry>> {
        let entry = |name: &str| Given::new(EnvEntry::Pass(name.to_owned()), origin.clone());
        self.sign_in().map(entry).collect()
    }
}
