//! Which rule governs a path in the room of a task, and what would change it. From the task's own values; looks at no
//! file.

use std::path::{Component, Path, PathBuf};

use sandbox::Allow;

use crate::config::quantity;
use crate::protected::Protected;
use crate::task::{Isolation, Spec};

/// What a job can do with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Read and write; it is part of the delivery, or of a path that was named.
    Writable,
    /// Write, but a delivery that changes it is refused.
    Protected,
    /// Read and write; nobody else sees it and it goes with the room.
    Private,
    /// Read only.
    ReadOnly,
    /// It is the engine's or the kernel's.
    Engine,
    /// It is not there.
    Absent,
    /// There is no room.
    Unconfined,
}

impl Reach {
    /// The word for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Writable => "writable",
            Self::Protected => "protected",
            Self::Private => "private",
            Self::ReadOnly => "read-only",
            Self::Engine => "engine",
            Self::Absent => "absent",
            Self::Unconfined => "unconfined",
        }
    }
}

/// A path and its rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Governed {
    /// The path as the room sees it.
    pub path: PathBuf,
    /// What a job can do with it.
    pub reach: Reach,
    /// By which rule.
    pub rule: String,
    /// What would allow more.
    pub allow: Option<Allow>,
    /// Why nothing allows more.
    pub never: Option<&'static str>,
}

/// What is around a room on this host.
#[derive(Debug)]
pub struct Surroundings {
    /// Where the worktree appears.
    pub worktree: PathBuf,
    /// What no room shows: state, configuration, the repository's git folder.
    pub forbidden: Vec<PathBuf>,
}

/// System folders that every room shows.
const SYSTEM: [&str; 7] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
];
/// What belongs to the room itself or to the kernel.
const OWN: [&str; 6] = ["/run", "/var/run", "/etc", "/dev", "/proc", "/sys"];

/// The rule for `path`; a relative one starts at the worktree.
pub fn governs(spec: &Spec, around: &Surroundings, path: &Path) -> Governed {
    let path = clean(&around.worktree.join(path));
    let found = |reach, rule: String| Governed {
        path: path.clone(),
        reach,
        rule,
        allow: None,
        never: None,
    };
    if !spec.isolation.confined() {
        let rule = format!(
            "--isolation {}: no room, the agent has your own permissions",
            spec.isolation.as_str()
        );
        return found(Reach::Unconfined, rule);
    }
    // A worktree may stand in a place that is private otherwise.
    if let Ok(inner) = path.strip_prefix(&around.worktree) {
        return in_worktree(spec, &around.worktree, inner, &found);
    }
    let covers = |binds: &[PathBuf]| {
        let fitting = binds.iter().filter(|bind| path.starts_with(bind));
        fitting
            .max_by_key(|bind| bind.components().count())
            .cloned()
    };
    let (ro, rw) = (covers(&spec.ro), covers(&spec.rw));
    let deeper = |one: &Option<PathBuf>, other: &Option<PathBuf>| {
        let depth =
            |bind: &Option<PathBuf>| bind.as_ref().map_or(0, |bind| bind.components().count());
        depth(one) > depth(other)
    };
    match (&ro, &rw) {
        (_, Some(bind)) if !deeper(&ro, &rw) => {
            return found(
                Reach::Writable,
                format!("--rw {}: {}", bind.display(), origin(spec, "rw", bind)),
            );
        }
        (Some(bind), _) => {
            let rule = format!("--ro {}: {}", bind.display(), origin(spec, "ro", bind));
            return Governed {
                allow: Some(bind_flag("--rw", "rw", &path)),
                ..found(Reach::ReadOnly, rule)
            };
        }
        (None, _) => {}
    }
    elsewhere(spec, around, &path, &found)
}

fn origin<'s>(spec: &'s Spec, kind: &str, bind: &Path) -> &'s str {
    let key = format!("{kind} {}", bind.display());
    spec.origins
        .get(&key)
        .map_or("named by the task", String::as_str)
}

fn in_worktree(
    spec: &Spec,
    worktree: &Path,
    inner: &Path,
    found: &dyn Fn(Reach, String) -> Governed,
) -> Governed {
    let first = inner.components().next().map(Component::as_os_str);
    if first.is_some_and(|first| first == ".git") {
        let rule =
            "the task's own git view; the repository's git folder is not in the room".to_owned();
        return Governed {
            never: Some("what a task commits inside is never read as a repository"),
            ..found(Reach::Engine, rule)
        };
    }
    if first.is_some_and(|first| first == ".bg" || first == ".sub") {
        return Governed {
            never: Some("only the engine writes there"),
            ..found(
                Reach::Engine,
                "logs and states of the task's jobs, shown read-only".to_owned(),
            )
        };
    }
    if spec.isolation == Isolation::Session {
        let rule = "--isolation session: the repository is read-only".to_owned();
        let allow = Allow {
            flag: vec!["--isolation".to_owned(), "sandbox".to_owned()],
            config: None,
        };
        return Governed {
            allow: Some(allow),
            ..found(Reach::ReadOnly, rule)
        };
    }
    let place = worktree.join(inner);
    if let Some(bind) = spec
        .ro
        .iter()
        .find(|bind| bind.starts_with(worktree) && place.starts_with(bind))
    {
        let rule = format!("--ro {}: {}", bind.display(), origin(spec, "ro", bind));
        return Governed {
            never: Some("leave out the --ro that names it"),
            ..found(Reach::ReadOnly, rule)
        };
    }
    let protected = Protected {
        patterns: spec.protect.clone(),
        allowed: spec.allow.clone(),
        ..Protected::default()
    };
    let name = inner.to_string_lossy();
    if let Some(pattern) = protected.pattern(&name) {
        let rule = format!(
            "[protect] {pattern}: it can be written, and a delivery that changes it is refused"
        );
        let allow = Allow {
            flag: vec!["--allow".to_owned(), name.clone().into_owned()],
            config: Some(("protect".to_owned(), format!("allow = [{}]", quoted(&name)))),
        };
        return Governed {
            allow: Some(allow),
            ..found(Reach::Protected, rule)
        };
    }
    found(Reach::Writable, "the task's worktree".to_owned())
}

fn elsewhere(
    spec: &Spec,
    around: &Surroundings,
    path: &Path,
    found: &dyn Fn(Reach, String) -> Governed,
) -> Governed {
    let bounds = &spec.bounds;
    let sized = |key: &str, bytes: u64| {
        format!(
            "private to the task, {key} = {}, counted as memory",
            quantity::show_bytes(bytes)
        )
    };
    let private = [
        ("/tmp", sized("tmp", bounds.tmp)),
        ("/var/tmp", sized("tmp", bounds.tmp)),
        ("/home/agent", sized("home", bounds.home)),
        (
            "/dev/shm",
            "private to the task, 64M, counted as memory".to_owned(),
        ),
    ];
    for (place, rule) in private {
        if path.starts_with(place) {
            return found(Reach::Private, rule);
        }
    }
    if let Some(place) = SYSTEM.iter().find(|place| path.starts_with(place)) {
        return Governed {
            never: Some("install what is needed into the worktree, HOME or a path named with --rw"),
            ..found(
                Reach::ReadOnly,
                format!("{place}: the system's folders are shown read-only"),
            )
        };
    }
    if let Some(place) = OWN.iter().find(|place| path.starts_with(place)) {
        return Governed {
            never: Some("no flag shows the host's own"),
            ..found(
                Reach::Engine,
                format!("{place}: made by the engine for this room, or the kernel's"),
            )
        };
    }
    let forbidden = |guarded: &&PathBuf| path.starts_with(guarded) || guarded.starts_with(path);
    if let Some(guarded) = around.forbidden.iter().find(forbidden) {
        return Governed {
            never: Some("a room that saw it could change how it is judged"),
            ..found(
                Reach::Absent,
                format!("it would show {}, which no room gets", guarded.display()),
            )
        };
    }
    Governed {
        allow: Some(bind_flag("--ro", "ro", path)),
        ..found(Reach::Absent, "not in the room: nobody named it".to_owned())
    }
}

fn bind_flag(flag: &str, key: &str, path: &Path) -> Allow {
    let shown = path.to_string_lossy();
    Allow {
        flag: vec![flag.to_owned(), shown.clone().into_owned()],
        config: Some((
            "sandbox".to_owned(),
            format!("{key} = [{}]", quoted(&shown)),
        )),
    }
}

/// A text of the configuration.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// Without `.` and `..`, by the words alone.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) | Component::Normal(_) => clean.push(part),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reporter::report::a_spec;

    fn around() -> Surroundings {
        Surroundings {
            worktree: "/home/me/project".into(),
            forbidden: vec![
                "/home/me/project/.git".into(),
                "/home/me/.local/state/airlock".into(),
            ],
        }
    }

    fn reach(spec: &Spec, path: &str) -> (Reach, Option<Vec<String>>) {
        let governed = governs(spec, &around(), Path::new(path));
        (governed.reach, governed.allow.map(|allow| allow.flag))
    }

    fn flag(flag: &str, path: &str) -> Vec<String> {
        vec![flag.to_owned(), path.to_owned()]
    }

    #[test]
    fn each_place_has_its_rule() {
        let mut spec = a_spec();
        spec.protect = vec![".envrc".to_owned()];
        spec.ro = vec!["/opt/tools".into(), "/home/me/project/LICENSE".into()];
        spec.rw = vec!["/opt/tools/cache".into()];
        assert_eq!(reach(&spec, "src/a.py"), (Reach::Writable, None));
        assert_eq!(
            reach(&spec, "/home/me/project/src"),
            (Reach::Writable, None)
        );
        assert_eq!(
            reach(&spec, ".envrc"),
            (Reach::Protected, Some(flag("--allow", ".envrc")))
        );
        assert_eq!(reach(&spec, ".git/config"), (Reach::Engine, None));
        assert_eq!(reach(&spec, ".bg/agent"), (Reach::Engine, None));
        assert_eq!(reach(&spec, "LICENSE"), (Reach::ReadOnly, None));
        assert_eq!(
            reach(&spec, "/opt/tools/x"),
            (Reach::ReadOnly, Some(flag("--rw", "/opt/tools/x")))
        );
        assert_eq!(reach(&spec, "/opt/tools/cache/x"), (Reach::Writable, None));
        assert_eq!(reach(&spec, "/tmp/x"), (Reach::Private, None));
        assert_eq!(reach(&spec, "/usr/bin/x"), (Reach::ReadOnly, None));
        assert_eq!(reach(&spec, "/etc/passwd"), (Reach::Engine, None));
        assert_eq!(
            reach(&spec, "/home/me/.cargo"),
            (Reach::Absent, Some(flag("--ro", "/home/me/.cargo")))
        );
        assert_eq!(
            reach(&spec, "/home/me/.local/state/airlock/x"),
            (Reach::Absent, None)
        );
        assert_eq!(
            reach(&spec, "../other"),
            (Reach::Absent, Some(flag("--ro", "/home/me/other")))
        );
        spec.isolation = Isolation::Session;
        assert_eq!(reach(&spec, "src/a.py").0, Reach::ReadOnly);
        spec.isolation = Isolation::None;
        assert_eq!(reach(&spec, "/etc/shadow"), (Reach::Unconfined, None));
    }
}
