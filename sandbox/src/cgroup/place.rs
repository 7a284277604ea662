//! Where control groups can be made here: below the group that this process is in, never above what limits us.
//!
//! Must never look at anything but the tables of the kernel and the permissions of folders.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Which kind of hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// A folder in which a group with a controller can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) version: Version,
}

/// Where memory and processes can be limited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) memory: Option<Place>,
    pub(crate) pids: Option<Place>,
}

impl Places {
    /// What this process may use.
    pub(crate) fn find() -> Self {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self {
            memory: place("memory", &mounts, &own),
            pids: place("pids", &mounts, &own),
        }
    }
}

fn place(controller: &str, mounts: &str, own: &str) -> Option<Place> {
    let second =
        own_folder(None, mounts, own).and_then(|(mount, own)| delegated(controller, &mount, &own));
    second.or_else(|| {
        let (_, folder) = own_folder(Some(controller), mounts, own)?;
        may_write(&folder).then_some(Place {
            folder,
            version: Version::One,
        })
    })
}

/// In version two a group with processes has no groups with controllers: a folder around ours is looked for that
/// hands the controller down and that we may write.
fn delegated(controller: &str, mount: &Path, own: &Path) -> Option<Place> {
    let hands_down = |folder: &&Path| {
        let text = std::fs::read_to_string(folder.join("cgroup.subtree_control"));
        let has = text.is_ok_and(|text| text.split_whitespace().any(|word| word == controller));
        has && may_write(folder) && may_write(&folder.join("cgroup.procs"))
    };
    let around = own
        .ancestors()
        .take_while(|folder| folder.starts_with(mount));
    let folder = around.take(8).find(hands_down)?;
    Some(Place {
        folder: folder.to_owned(),
        version: Version::Two,
    })
}

fn may_write(path: &Path) -> bool {
    access(path, Access::WRITE_OK).is_ok()
}

/// Mount point of a hierarchy and the folder of this process in it; no controller means version two.
fn own_folder(controller: Option<&str>, mounts: &str, own: &str) -> Option<(PathBuf, PathBuf)> {
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, names, path) = (parts.next()?, parts.next()?, parts.next()?);
        let fits = match controller {
            Some(controller) => names.split(',').any(|name| name == controller),
            None => number == "0" && names.is_empty(),
        };
        fits.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let (kind, _source, options) = (right.next()?, right.next()?, right.next()?);
        let fits = match controller {
            Some(controller) => {
                kind == "cgroup" && options.split(',').any(|name| name == controller)
            }
            None => kind == "cgroup2",
        };
        let mut left = left.split(' ').skip(3);
        let (root, point) = (left.next()?, left.next()?);
        // A container sees a part of the hierarchy.
        let inner = Path::new(path).strip_prefix(root).ok().filter(|_| fits)?;
        let point = PathBuf::from(point);
        let folder = if inner.as_os_str().is_empty() {
            point.clone()
        } else {
            point.join(inner)
        };
        Some((point, folder))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw,relatime shared:3 - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const OWN: &str = "8:pids:/\n4:memory,hugetlb:/docker/abc/x\n0::/user.slice/a.scope\n";

    fn folder(controller: Option<&str>) -> Option<PathBuf> {
        own_folder(controller, MOUNTS, OWN).map(|(_, folder)| folder)
    }

    #[test]
    fn the_own_group_is_found_in_each_hierarchy() {
        assert_eq!(
            folder(Some("memory")),
            Some("/sys/fs/cgroup/memory/x".into())
        );
        assert_eq!(folder(Some("pids")), Some("/sys/fs/cgroup/pids".into()));
        assert_eq!(
            folder(None),
            Some("/sys/fs/cgroup/unified/user.slice/a.scope".into())
        );
        assert_eq!(folder(Some("cpu")), None);
        assert_eq!(own_folder(None, "", OWN), None);
    }

    #[test]
    fn a_folder_around_that_hands_the_controller_down_is_used() {
        let root = tempfile::tempdir().unwrap();
        let slice = root.path().join("user/app.slice");
        std::fs::create_dir_all(slice.join("own.scope")).unwrap();
        for (file, text) in [
            ("cgroup.subtree_control", "cpu memory\n"),
            ("cgroup.procs", ""),
        ] {
            std::fs::write(slice.join(file), text).unwrap();
        }
        let own = slice.join("own.scope");
        let found = delegated("memory", root.path(), &own);
        let expected = Place {
            folder: slice,
            version: Version::Two,
        };
        assert_eq!(found, Some(expected));
        assert_eq!(delegated("pids", root.path(), &own), None);
    }
}
