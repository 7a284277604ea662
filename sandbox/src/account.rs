//! As whom a room runs: the caller, or, when the caller is root, an ordinary user that nobody else is.
//!
//! Must never answer root: without any capability uid 0 may still write `/proc/sys`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Unavailable;

/// First of the uids that belong to nobody: above those that container tools and user databases hand out.
const UNUSED: u32 = 1_879_110_000;
/// How many tasks get a uid of their own.
const SPREAD: u32 = 60_000;
/// Used inside when the caller is uid 0 of a user namespace that maps nobody else.
const INSIDE: u32 = 1000;

/// Who the processes of a room are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    /// User id on this side of the room.
    pub(crate) uid: u32,
    /// Group id on this side.
    pub(crate) gid: u32,
    /// Whether root has to change to it first.
    pub(crate) drop_root: bool,
}

impl Account {
    /// The uid and gid that the room's processes see for themselves.
    pub(crate) fn inside(self) -> (u32, u32) {
        let seen = |id: u32| if id == 0 { INSIDE } else { id };
        (seen(self.uid), seen(self.gid))
    }

    /// The account for the room of `task` in a repository of `owner` (uid, gid).
    pub(crate) fn choose(owner: (u32, u32), task: &str) -> Result<Self, Unavailable> {
        let (uid, gid) = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        if uid != 0 {
            return Ok(Self {
                uid,
                gid,
                drop_root: false,
            });
        }
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let map = UidMap::parse(&read("/proc/self/uid_map"));
        if let Some(outside) = map.only_root() {
            if outside == 0 {
                return Err(no_uid());
            }
            return Ok(Self {
                uid,
                gid,
                drop_root: false,
            });
        }
        let taken = (read("/etc/passwd"), read("/etc/group"));
        if owner.0 != 0 && map.holds(owner.0) {
            let gid = if owner.1 != 0 && map.holds(owner.1) {
                owner.1
            } else {
                map.unused(task, &taken.0, &taken.1).ok_or_else(no_uid)?
            };
            return Ok(Self {
                uid: owner.0,
                gid,
                drop_root: true,
            });
        }
        let unused = map.unused(task, &taken.0, &taken.1).ok_or_else(no_uid)?;
        Ok(Self {
            uid: unused,
            gid: unused,
            drop_root: true,
        })
    }

    /// Whether `path` can be entered and its files executed by others, which the dropped account needs.
    pub(crate) fn may_execute(self, path: &Path) -> bool {
        use std::os::unix::fs::PermissionsExt as _;
        !self.drop_root
            || std::fs::metadata(path).is_ok_and(|facts| facts.permissions().mode() & 0o5 == 0o5)
    }
}

fn no_uid() -> Unavailable {
    Unavailable {
        problem: "root has no ordinary user id to change to".into(),
        cause: "only uid 0 exists in this user namespace, or every candidate is taken".into(),
        fix: "run it as an ordinary user, or in a container that maps more than one user id".into(),
    }
}

/// The user ids that exist here.
struct UidMap {
    /// First id here, first id outside, count.
    ranges: Vec<(u32, u32, u32)>,
}

impl UidMap {
    fn parse(text: &str) -> Self {
        let ranges = text.lines().filter_map(|line| {
            let mut numbers = line.split_ascii_whitespace().map(str::parse);
            Some((
                numbers.next()?.ok()?,
                numbers.next()?.ok()?,
                numbers.next()?.ok()?,
            ))
        });
        Self {
            ranges: ranges.collect(),
        }
    }

    /// Whom uid 0 stands for, when it is the only one here.
    fn only_root(&self) -> Option<u32> {
        match self.ranges.as_slice() {
            [(0, outside, 1)] => Some(*outside),
            _ => None,
        }
    }

    fn holds(&self, id: u32) -> bool {
        self.ranges
            .iter()
            .any(|(first, _, count)| id.checked_sub(*first).is_some_and(|offset| offset < *count))
    }

    /// An id of `task`'s own that neither file lists.
    fn unused(&self, task: &str, passwd: &str, group: &str) -> Option<u32> {
        let start = fingerprint(task);
        // A container maps few ids: there the range that service managers use for short-lived users is the best.
        let bases = [(UNUSED, SPREAD), (61_184, 4_300), (2_000, 50_000)];
        bases.into_iter().find_map(|(base, spread)| {
            (0..64)
                .map(|step| base + (start.wrapping_add(step)) % spread)
                .find(|id| self.holds(*id) && !lists(passwd, *id) && !lists(group, *id))
        })
    }
}

/// Whether the third field of a line of `/etc/passwd` or `/etc/group` is `id`.
fn lists(database: &str, id: u32) -> bool {
    let id = id.to_string();
    database
        .lines()
        .any(|line| line.split(':').nth(2) == Some(id.as_str()))
}

/// FNV-1a: the same task gets the same id again.
fn fingerprint(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_ids_are_stable_mapped_and_in_no_database() {
        let all = UidMap::parse("         0          0 4294967295\n");
        let first = all.unused("task", "root:x:0:0::/:/bin/sh\n", "").unwrap();
        assert_eq!(all.unused("task", "", ""), Some(first));
        let taken = format!("somebody:x:{first}:{first}::/:/bin/sh\n");
        assert_ne!(all.unused("task", &taken, ""), Some(first));
        let container = UidMap::parse("0 100000 65536\n");
        let id = container.unused("task", "", "").unwrap();
        assert!((61_184..65_484).contains(&id), "{id}");
    }

    #[test]
    fn a_namespace_of_one_is_an_ordinary_user() {
        assert_eq!(UidMap::parse("0 1000 1\n").only_root(), Some(1000));
        assert_eq!(UidMap::parse("0 0 4294967295\n").only_root(), None);
        let account = Account {
            uid: 0,
            gid: 0,
            drop_root: false,
        };
        assert_eq!(account.inside(), (1000, 1000));
    }
}
