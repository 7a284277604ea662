//! The values of credentials, in memory and nowhere else: a supervisor that dies takes them along.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::sync::watch;

use crate::task::{Key, TaskId};

type Held = HashMap<TaskId, BTreeMap<String, Key>>;

/// A handle to the values of all tasks; clones see the same ones.
#[derive(Debug, Clone, Default)]
pub struct Keys(Arc<watch::Sender<Held>>);

impl Keys {
    /// Takes values for a task, in place of those of the same names.
    pub fn give(&self, task: &TaskId, keys: BTreeMap<String, Key>) {
        if !keys.is_empty() {
            self.0
                .send_modify(|held| held.entry(task.clone()).or_default().extend(keys));
        }
    }

    /// The value of a credential of a task.
    pub fn of(&self, task: &TaskId, name: &str) -> Option<Key> {
        self.0.borrow().get(task)?.get(name).cloned()
    }

    /// Forgets the values of a task.
    pub fn forget(&self, task: &TaskId) {
        self.0.send_modify(|held| drop(held.remove(task)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_of_one_task_and_can_be_given_anew() {
        let keys = Keys::default();
        let task = |name: &str| TaskId::try_from(name.to_owned()).unwrap();
        let value =
            |text: &str| BTreeMap::from([("model".to_owned(), Key::new(text.to_owned()).unwrap())]);
        keys.give(&task("a"), value("one"));
        keys.clone().give(&task("a"), value("two"));
        assert_eq!(keys.of(&task("a"), "model").unwrap().reveal(), "two");
        assert!(keys.of(&task("b"), "model").is_none());
        assert!(!format!("{keys:?}").contains("two"));
        keys.forget(&task("a"));
        assert!(keys.of(&task("a"), "model").is_none());
    }
}
