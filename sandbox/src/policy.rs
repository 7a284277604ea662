//! Which binds a room may have, and in which order they are made. Looks at paths, mounts nothing.
//!
//! Must never let a bind show the state root, the configuration, the repository's git folder, or a daemon's socket.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};

use crate::environment::HOME;
use crate::error::Fault;
use crate::spec::RoomSpec;

/// Not at these and not below them.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Not at these and not above them: what the room itself puts there, and where daemons listen.
const OWN: [&str; 9] = [
    "/run",
    "/var/run",
    "/etc",
    "/tmp",
    "/var/tmp",
    "/home/agent",
    "/usr",
    "/bin",
    "/lib",
];

/// Not below these: whoever can name a socket can talk to who listens there.
const DAEMONS: [&str; 2] = ["/run", "/var/run"];

/// Where a bind comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// The worktree itself.
    Tree,
    /// A path of the host, shown at its own place.
    Host,
    /// A path of the worktree, relative to it, kept from being written.
    InTree(PathBuf),
}

/// One bind of the room's plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) source: Source,
    /// Host path of the source (`Host`), else the place in the room.
    pub(crate) path: PathBuf,
    pub(crate) writable: bool,
}

/// The binds that `spec` asks for: outer ones first, so that the inner ones end on top.
pub(crate) fn plan(spec: &RoomSpec) -> Result<Vec<Bind>, Fault> {
    let mount_at = clean(&spec.mount_at)?;
    place_of_tree(&mount_at)?;
    let mut binds = vec![Bind {
        source: Source::Tree,
        path: mount_at.clone(),
        writable: spec.writable,
    }];
    let readable = spec.ro.iter().map(|path| (path, false));
    let writable = spec.rw.iter().map(|path| (path, true));
    for (path, writable) in readable.chain(writable) {
        let path = clean(path)?;
        binds.push(extra(spec, path, writable, &mount_at)?);
    }
    binds.sort_by_key(|bind| bind.path.components().count());
    layers(spec)?;
    Ok(binds)
}

/// Layers lie below HOME, beside each other, and show no more than a bind may.
fn layers(spec: &RoomSpec) -> Result<(), Fault> {
    for (index, layer) in spec.layers.iter().enumerate() {
        shown(spec, &layer.from)?;
        let at = clean(&layer.at)?;
        if at == Path::new(HOME) || !at.starts_with(HOME) || at != layer.at {
            return Err(refused(&layer.at, &format!("a layer lies below {HOME}")));
        }
        let others = spec.layers.iter().take(index).map(|other| &other.at);
        let mut near = others.filter(|other| at.starts_with(other) || other.starts_with(&at));
        if near.next().is_some() {
            return Err(refused(&at, "another layer is there"));
        }
    }
    Ok(())
}

fn extra(spec: &RoomSpec, path: PathBuf, writable: bool, mount_at: &Path) -> Result<Bind, Fault> {
    if let Ok(inner) = path.strip_prefix(mount_at) {
        if inner.as_os_str().is_empty() {
            return Err(refused(&path, "it is the worktree itself"));
        }
        let inner = inner.to_owned();
        let source = Source::InTree(inner);
        return Ok(Bind {
            source,
            path,
            writable: writable && spec.writable,
        });
    }
    shown(spec, &path)?;
    Ok(Bind {
        source: Source::Host,
        path,
        writable,
    })
}

/// Whether a path of the host may be shown at all.
fn shown(spec: &RoomSpec, path: &Path) -> Result<(), Fault> {
    let real = std::fs::canonicalize(path)
        .map_err(|error| Fault::at("find a path of the policy", path, error))?;
    permitted(path, &spec.forbidden)?;
    if real != path {
        // A link that somebody planted since the path was named would lead elsewhere.
        return Err(refused(
            path,
            &format!("it leads through a link to {}: name that", real.display()),
        ));
    }
    let facts = std::fs::metadata(&real)
        .map_err(|error| Fault::at("look at a path of the policy", path, error))?;
    if facts.file_type().is_socket() {
        return Err(refused(
            path,
            "it is a socket: a read-only bind does not stop a connection",
        ));
    }
    if !facts.is_dir() && !facts.is_file() {
        return Err(refused(path, "it is neither a folder nor a regular file"));
    }
    if let Some(socket) = socket_in(path) {
        let reason = format!(
            "it holds the socket {}, and neither a read-only bind nor a mode stops a connection",
            socket.display()
        );
        return Err(refused(path, &reason));
    }
    Ok(())
}

/// A socket right in a folder. What lies deeper is not looked for: that would mean to read all of it.
fn socket_in(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries
        .filter_map(Result::ok)
        .find(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
        .map(|entry| entry.path())
}

fn permitted(candidate: &Path, forbidden: &[PathBuf]) -> Result<(), Fault> {
    for kernel in KERNEL {
        let shared_memory = candidate.starts_with("/dev/shm") && candidate != Path::new("/dev/shm");
        if candidate.starts_with(kernel) && !shared_memory {
            return Err(refused(candidate, &format!("{kernel} is the kernel's")));
        }
    }
    for own in OWN {
        if Path::new(own).starts_with(candidate) {
            return Err(refused(candidate, &format!("it would cover {own}")));
        }
    }
    for daemons in DAEMONS {
        if candidate.starts_with(daemons) {
            let reason = format!("{daemons} is where daemons of the host listen");
            return Err(refused(candidate, &reason));
        }
    }
    for guarded in forbidden {
        let real = std::fs::canonicalize(guarded).unwrap_or_else(|_absent| guarded.clone());
        for guarded in [guarded, &real] {
            if guarded.starts_with(candidate) || candidate.starts_with(guarded) {
                let reason = format!("it would show {}", guarded.display());
                return Err(refused(candidate, &reason));
            }
        }
    }
    Ok(())
}

/// The worktree may be anywhere but on, above, or in a place that the room needs for itself.
fn place_of_tree(mount_at: &Path) -> Result<(), Fault> {
    let needed = KERNEL.into_iter().chain(OWN).chain(["/run/airlock"]);
    for place in needed {
        if Path::new(place).starts_with(mount_at) {
            let reason = format!("a worktree there would cover {place}");
            return Err(refused(mount_at, &reason));
        }
    }
    for place in ["/proc", "/sys", "/run/airlock"] {
        if mount_at.starts_with(place) {
            return Err(refused(
                mount_at,
                &format!("a worktree cannot stand in {place}"),
            ));
        }
    }
    Ok(())
}

/// An absolute path without `.`, `..` and doubled slashes, lexically.
fn clean(path: &Path) -> Result<PathBuf, Fault> {
    let mut clean = PathBuf::from("/");
    let mut parts = path.components();
    if parts.next() != Some(Component::RootDir) {
        return Err(refused(path, "it is not absolute"));
    }
    for part in parts {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(refused(path, "it holds `..`"));
            }
        }
    }
    Ok(clean)
}

fn refused(path: &Path, reason: &str) -> Fault {
    Fault::Refused {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Layer, Net};

    fn spec(mount_at: &str, ro: &[&str]) -> RoomSpec {
        RoomSpec {
            task: "t".into(),
            locks: "/x/locks".into(),
            tree: "/x/tree".into(),
            writable: true,
            mount_at: mount_at.into(),
            git: None,
            bg: "/x/bg".into(),
            sub: "/x/sub".into(),
            feedback: "/x/feedback".into(),
            outbox: "/x/outbox".into(),
            ro: ro.iter().map(PathBuf::from).collect(),
            rw: Vec::new(),
            tools: Vec::new(),
            layers: Vec::new(),
            forbidden: vec!["/usr/share/doc".into()],
            net: Net::None,
            home_bytes: 1,
            home_files: std::collections::BTreeMap::new(),
            tmp_bytes: 1,
            repo_owner: (1, 1),
        }
    }

    #[test]
    fn what_undoes_the_room_is_refused() {
        for path in [
            "/",
            "/run",
            "/proc/1",
            "/dev/null",
            "/sys",
            "/etc",
            "/usr",
            "/home",
            "/var",
        ] {
            assert!(plan(&spec("/w", &[path])).is_err(), "{path}");
        }
        for path in [
            "/usr/share",
            "/usr/share/doc",
            "/usr/share/doc/bash",
            "a",
            "/usr/../etc",
        ] {
            assert!(plan(&spec("/w", &[path])).is_err(), "{path}");
        }
        assert!(plan(&spec("/w", &["/usr/lib"])).is_ok());
    }

    #[test]
    fn worktrees_stand_nearly_everywhere() {
        for place in [
            "/root/p",
            "/home/me/p",
            "/tmp/p",
            "/usr/src/p",
            "/dev/shm/p",
            "/var/lib/p",
        ] {
            assert!(plan(&spec(place, &[])).is_ok(), "{place}");
        }
        for place in [
            "/",
            "/home",
            "/etc",
            "/home/agent",
            "/proc/p",
            "/run/airlock/p",
            "/tmp",
        ] {
            assert!(plan(&spec(place, &[])).is_err(), "{place}");
        }
    }

    #[test]
    fn layers_lie_below_home_and_show_what_a_bind_may() {
        let layered = |layers: &[(&str, &str)]| {
            let layers = layers.iter().map(|(from, at)| Layer {
                from: from.into(),
                at: at.into(),
                writable: true,
            });
            let layers = layers.collect();
            plan(&RoomSpec {
                layers,
                ..spec("/w", &[])
            })
        };
        assert!(
            layered(&[
                ("/usr/lib", "/home/agent/a/b"),
                ("/usr/lib", "/home/agent/c")
            ])
            .is_ok()
        );
        for (from, at) in [
            ("/usr/lib", "/home/agent"),
            ("/usr/lib", "/home/agent2/x"),
            ("/usr/lib", "/etc/x"),
            ("/usr/lib", "/home/agent/../x"),
            ("/usr/lib", "home/agent/x"),
            ("/usr/share/doc", "/home/agent/x"),
            ("/etc", "/home/agent/x"),
            ("/dev/null", "/home/agent/x"),
            ("/proc/self", "/home/agent/x"),
        ] {
            assert!(layered(&[(from, at)]).is_err(), "{from} at {at}");
        }
        let nested = [
            ("/usr/lib", "/home/agent/a"),
            ("/usr/bin", "/home/agent/a/b"),
        ];
        assert!(layered(&nested).is_err());
    }

    #[test]
    fn outer_binds_come_first_and_inner_ones_are_the_trees() {
        let binds = plan(&spec("/usr/src/a/b", &["/usr/src/a/b/c/d", "/usr/src"])).unwrap();
        let order: Vec<_> = binds
            .iter()
            .map(|bind| bind.path.to_str().unwrap())
            .collect();
        assert_eq!(order, ["/usr/src", "/usr/src/a/b", "/usr/src/a/b/c/d"]);
        assert_eq!(binds[2].source, Source::InTree("c/d".into()));
    }
}
