//! Which host paths a room may show. Whatever could hand a room the engine's own state, the
//! repository's git directory, the whole host or a daemon is refused, whoever asks for it.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::origin::Given;

/// Folders of the system in which daemons listen or the kernel speaks.
const SYSTEM: &[(&str, &str)] = &[
    ("/run", "where daemons listen"),
    ("/var/run", "where daemons listen"),
    ("/tmp/.X11-unix", "where the display listens"),
    ("/proc", "the kernel's"),
    ("/sys", "the kernel's"),
    ("/dev", "the kernel's"),
];

/// Folders below HOME of keys and of settings that hold tokens.
const SECRET: &[&str] = &[".aws", ".config", ".docker", ".gnupg", ".kube", ".ssh"];

/// Memory that people use as a disk; what lies below it is nobody's device.
const SHARED_MEMORY: &str = "/dev/shm";

/// A path that no room gets.
#[derive(Debug, thiserror::Error)]
pub(super) enum BindError {
    /// It is not there, or cannot be reached.
    #[error("{} from {origin} cannot be shown in a room", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
        /// Who asked.
        origin: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It would open the room.
    #[error("{} from {origin} is refused: it {relation} {}, {what}", path.display(), forbidden.display())]
    Forbidden {
        /// The path.
        path: PathBuf,
        /// Who asked.
        origin: String,
        /// `is`, `lies in` or `holds`.
        relation: &'static str,
        /// What it would show.
        forbidden: PathBuf,
        /// What that is.
        what: &'static str,
    },
    /// A link in the checkout, which an agent may once have written.
    #[error("{} from {origin} is refused: a link in the repository leads it to {}; name that if you mean it", path.display(), target.display())]
    Led {
        /// The path.
        path: PathBuf,
        /// Who asked.
        origin: String,
        /// Where it leads.
        target: PathBuf,
    },
    /// Neither a file nor a folder.
    #[error("{} from {origin} is refused: it is a {kind}", path.display())]
    Special {
        /// The path.
        path: PathBuf,
        /// Who asked.
        origin: String,
        /// `socket`, `pipe` or `device`.
        kind: &'static str,
    },
}

/// Paths that no room may see or hold.
#[derive(Debug, Default)]
pub(super) struct Forbidden(Vec<(PathBuf, &'static str)>);

impl Forbidden {
    /// The system's own.
    pub(super) fn new() -> Self {
        let mut forbidden = Self::default();
        for (path, what) in SYSTEM {
            forbidden.add(Path::new(path), what);
        }
        forbidden
    }

    /// One more path with what it is.
    pub(super) fn add(&mut self, path: &Path, what: &'static str) {
        self.0.push((settled(path), what));
    }

    /// The folders in a person's home that hold keys and tokens.
    pub(super) fn add_secrets(&mut self, home: &Path) {
        for name in SECRET {
            self.add(&home.join(name), "where keys and tokens are kept");
        }
    }

    /// The path itself as the kernel will find it, or why no room gets it.
    pub(super) fn check(&self, wish: &Given<PathBuf>) -> Result<PathBuf, BindError> {
        let origin = || wish.origin.to_string();
        let missing = |source| BindError::Missing {
            path: wish.value.clone(),
            origin: origin(),
            source,
        };
        let path = fs::canonicalize(&wish.value).map_err(missing)?;
        let shared_memory = path.starts_with(SHARED_MEMORY) && path != Path::new(SHARED_MEMORY);
        for (forbidden, what) in &self.0 {
            if shared_memory && forbidden == Path::new("/dev") {
                continue;
            }
            let relation = match (path.starts_with(forbidden), forbidden.starts_with(&path)) {
                (true, true) => "is",
                (true, false) => "lies in",
                (false, true) => "holds",
                (false, false) => continue,
            };
            let (path, forbidden) = (wish.value.clone(), forbidden.clone());
            return Err(BindError::Forbidden {
                path,
                origin: origin(),
                relation,
                forbidden,
                what,
            });
        }
        let kind = fs::metadata(&path).map_err(missing)?.file_type();
        let special = [
            (kind.is_socket(), "socket"),
            (kind.is_fifo(), "pipe"),
            (kind.is_block_device() || kind.is_char_device(), "device"),
        ];
        match special.into_iter().find(|(is, _)| *is) {
            Some((_, kind)) => Err(BindError::Special {
                path: wish.value.clone(),
                origin: origin(),
                kind,
            }),
            None => Ok(path),
        }
    }
}

/// Refuses a path that by its name lies in the checkout and in truth does not.
pub(super) fn not_led_out(wish: &Given<PathBuf>, checkout: &Path) -> Result<(), BindError> {
    let by_name = wish.value.ancestors().skip(1).any(|above| {
        let real = fs::canonicalize(above);
        real.is_ok_and(|real| real == checkout)
    });
    match fs::canonicalize(&wish.value) {
        Ok(target) if by_name && !target.starts_with(checkout) => Err(BindError::Led {
            path: wish.value.clone(),
            origin: wish.origin.to_string(),
            target,
        }),
        // One that is not there is named by whoever looks at it next.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// A path with its links followed as far as it exists.
pub(super) fn settled(path: &Path) -> PathBuf {
    match (fs::canonicalize(path), path.parent(), path.file_name()) {
        (Ok(path), _, _) => path,
        (Err(_not_there), Some(parent), Some(name)) => settled(parent).join(name),
        (Err(_not_there), _, _) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Origin;

    fn check(forbidden: &Forbidden, path: &Path) -> Result<PathBuf, BindError> {
        forbidden.check(&Given::new(path.to_owned(), Origin::Flag("--ro")))
    }

    #[test]
    fn what_would_open_the_room_is_refused() {
        let host = tempfile::tempdir().unwrap();
        let state = host.path().join("state");
        let free = host.path().join("free");
        for folder in [&state, &free, &state.join("deep")] {
            fs::create_dir_all(folder).unwrap();
        }
        std::os::unix::fs::symlink(&state, free.join("link")).unwrap();
        std::os::unix::net::UnixListener::bind(free.join("socket")).unwrap();
        let mut forbidden = Forbidden::new();
        forbidden.add(&state, "Airlock's state");
        forbidden.add(
            &host.path().join("absent/config"),
            "Airlock's configuration",
        );
        assert!(check(&forbidden, &free).is_ok());
        let relation = |path: &Path| match check(&forbidden, path) {
            Err(BindError::Forbidden { relation, .. }) => relation,
            Err(BindError::Special { kind, .. }) => kind,
            Err(BindError::Missing { .. }) => "missing",
            Err(BindError::Led { .. }) => "led out",
            Ok(_) => "allowed",
        };
        assert_eq!(relation(&state), "is");
        assert_eq!(relation(&state.join("deep")), "lies in");
        assert_eq!(relation(host.path()), "holds");
        assert_eq!(relation(&free.join("link")), "is");
        assert_eq!(relation(&free.join("socket")), "socket");
        assert_eq!(relation(&host.path().join("absent")), "missing");
        assert_eq!(relation(Path::new("/")), "holds");
        assert_eq!(relation(Path::new("/proc/self")), "lies in");
        assert_eq!(relation(Path::new("/dev/shm")), "lies in");
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        assert_eq!(relation(memory.path()), "allowed");
    }

    #[test]
    fn a_link_of_the_checkout_leads_nowhere() {
        let host = tempfile::tempdir().unwrap();
        let host = host.path().canonicalize().unwrap();
        let checkout = host.join("checkout");
        for folder in ["checkout/inner", "outside/deep"] {
            fs::create_dir_all(host.join(folder)).unwrap();
        }
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, host.join(name)).unwrap();
        };
        link("../outside", "checkout/out");
        link("inner", "checkout/in");
        link("checkout", "by-another-name");
        let led = |name: &str| {
            let wish = Given::new(host.join(name), Origin::Flag("--rw"));
            not_led_out(&wish, &checkout).is_err()
        };
        for name in ["checkout/out", "checkout/out/deep", "by-another-name/out"] {
            assert!(led(name), "{name}");
        }
        for name in [
            "checkout/in",
            "checkout/inner",
            "outside",
            "checkout/absent",
        ] {
            assert!(!led(name), "{name}");
        }
    }
}
