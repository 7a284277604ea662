//! From what failed to what a person can do: problem, cause, fix.
//!
//! Must never advise to run without the room.

use std::path::PathBuf;

use crate::error::Unavailable;

/// What was seen.
#[derive(Debug, Clone)]
pub(crate) enum Symptom {
    /// No bubblewrap in any of the folders.
    NoBwrap,
    /// It, or its folder, belongs to somebody else or can be written by others.
    ForeignBwrap(PathBuf),
    /// It is set-uid.
    SetUidBwrap(PathBuf),
    /// bubblewrap failed before it ran anything; its words.
    Bwrap(String),
    /// Our own namespaces could not be made; the step and the error number.
    Namespace { step: String, errno: i32 },
    /// Our program cannot be executed by the room's user.
    Program(PathBuf),
}

/// What the host says about itself.
#[derive(Debug, Default)]
pub(crate) struct Host {
    /// `kernel.apparmor_restrict_unprivileged_userns`
    apparmor: Option<u64>,
    /// `kernel.unprivileged_userns_clone` (Debian)
    userns_clone: Option<u64>,
    /// `user.max_user_namespaces`
    max_user: Option<u64>,
    /// `user.max_net_namespaces`
    max_net: Option<u64>,
    /// We are root, and without the capability to mount.
    tamed_root: bool,
}

impl Host {
    fn read() -> Self {
        let number = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
            text.trim().parse().ok()
        };
        Self {
            apparmor: number("kernel/apparmor_restrict_unprivileged_userns"),
            userns_clone: number("kernel/unprivileged_userns_clone"),
            max_user: number("user/max_user_namespaces"),
            max_net: number("user/max_net_namespaces"),
            tamed_root: rustix::process::geteuid().is_root() && !may_administer(),
        }
    }
}

/// Whether `CAP_SYS_ADMIN` is effective.
fn may_administer() -> bool {
    const SYS_ADMIN: u32 = 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    set.is_some_and(|set| set & (1 << SYS_ADMIN) != 0)
}

/// The answer for a person.
pub(crate) fn explain(symptom: &Symptom) -> Unavailable {
    classify(symptom, &Host::read())
}

fn classify(symptom: &Symptom, host: &Host) -> Unavailable {
    let (problem, cause, fix) = match symptom {
        Symptom::NoBwrap => (
            "bwrap was not found in /usr/bin, /bin or /usr/local/bin".into(),
            "bubblewrap is not installed".into(),
            "install the package bubblewrap (0.8.0 or newer)".into(),
        ),
        Symptom::ForeignBwrap(path) => (
            format!("{} is not trusted", path.display()),
            "it or its folder does not belong to root, or others can write it".into(),
            format!(
                "chown root:root {0} and chmod 755 {0}, and the same for its folder",
                path.display()
            ),
        ),
        Symptom::SetUidBwrap(path) => (
            format!("{} is set-uid", path.display()),
            "a set-uid bubblewrap runs as root and has had escapes of its own".into(),
            format!(
                "chmod u-s {} and allow unprivileged user namespaces",
                path.display()
            ),
        ),
        Symptom::Program(path) => (
            format!(
                "{} cannot be executed by the user of the room",
                path.display()
            ),
            "its mode does not let others read and execute it".into(),
            format!("chmod 755 {}", path.display()),
        ),
        Symptom::Bwrap(words) => return of_bwrap(words, host),
        Symptom::Namespace { step, errno } => return of_namespace(step, *errno, host),
    };
    Unavailable {
        problem,
        cause,
        fix,
    }
}

fn of_bwrap(words: &str, host: &Host) -> Unavailable {
    let last = words.lines().rev().find(|line| !line.trim().is_empty());
    let said = last.unwrap_or("it said nothing").trim();
    let said = said.strip_prefix("bwrap: ").unwrap_or(said);
    let problem = format!("bwrap could not build the room ({said})");
    let (cause, fix) = if words.contains("uid map: Permission denied")
        || words.contains("RTM_NEWADDR")
    {
        if host.apparmor == Some(1) {
            apparmor()
        } else {
            namespaces_off(host)
        }
    } else if words.contains("No permissions to create") {
        namespaces_off(host)
    } else if words.contains("ENOSPC") || words.contains("No space left") {
        used_up(host)
    } else if words.contains("Can't mount proc") {
        (
            "an outer container masks parts of /proc, so the kernel refuses a fresh one".into(),
            "run the outer container with an unmasked /proc (docker: --security-opt systempaths=unconfined)".into(),
        )
    } else if words.contains("Resource temporarily unavailable") {
        (
            "the process limit of this user is reached".into(),
            "end some processes or raise the limit (ulimit -u)".into(),
        )
    } else if words.contains("Exceeded maximum number of arguments") {
        (
            "the policy has more paths than bwrap takes".into(),
            "name fewer paths with --ro and --rw".into(),
        )
    } else if words.contains("Unknown option") {
        (
            "this bubblewrap is too old".into(),
            "install bubblewrap 0.8.0 or newer".into(),
        )
    } else {
        (
            "bubblewrap failed before it ran anything".into(),
            "run `airlock doctor` and look at the first wall that is off".into(),
        )
    };
    Unavailable {
        problem,
        cause,
        fix,
    }
}

fn of_namespace(step: &str, errno: i32, host: &Host) -> Unavailable {
    let error = std::io::Error::from_raw_os_error(errno);
    let problem = format!("cannot {step} ({error})");
    let (cause, fix) = match errno {
        nix::libc::ENOSPC | nix::libc::EUSERS => used_up(host),
        nix::libc::EPERM | nix::libc::EACCES if host.apparmor == Some(1) => apparmor(),
        nix::libc::EPERM | nix::libc::EACCES if host.tamed_root => (
            "this is the root user of a container, without the capability to mount (CAP_SYS_ADMIN)".into(),
            "run it as an ordinary user there, or give the container that capability (docker: --cap-add SYS_ADMIN)".into(),
        ),
        nix::libc::EPERM | nix::libc::EACCES => namespaces_off(host),
        nix::libc::ENOSYS | nix::libc::EINVAL => (
            "this kernel lacks a call that the room needs".into(),
            "use Linux 5.12 or newer with user namespaces".into(),
        ),
        _ => (
            "the kernel refused a namespace".into(),
            "run `airlock doctor` and look at the first wall that is off".into(),
        ),
    };
    Unavailable {
        problem,
        cause,
        fix,
    }
}

fn apparmor() -> (String, String) {
    let program = std::env::current_exe().unwrap_or_else(|_unknown| "airlock".into());
    (
        "this host restricts unprivileged user namespaces (kernel.apparmor_restrict_unprivileged_userns = 1)".into(),
        format!(
            "give {program} an AppArmor profile that allows them: put `abi <abi/4.0>, profile airlock {program} flags=(unconfined) {{ userns, }}` into /etc/apparmor.d/airlock and run `apparmor_parser -r /etc/apparmor.d/airlock`; bwrap needs its profile too (package apparmor-profiles, bwrap-userns-restrict)",
            program = program.display()
        ),
    )
}

fn namespaces_off(host: &Host) -> (String, String) {
    if host.userns_clone == Some(0) {
        return (
            "unprivileged user namespaces are switched off (kernel.unprivileged_userns_clone = 0)"
                .into(),
            "sysctl kernel.unprivileged_userns_clone=1".into(),
        );
    }
    if host.max_user == Some(0) {
        return used_up(host);
    }
    (
        "user namespaces are refused here, most likely by the seccomp profile of an outer container".into(),
        "start the container with a profile that allows unshare, clone and mount (docker: --security-opt seccomp=unconfined)".into(),
    )
}

/// A limit that is 0, or else that of user namespaces, which are nested 32 deep at most besides.
fn used_up(host: &Host) -> (String, String) {
    let (name, value) = if host.max_net == Some(0) {
        ("user.max_net_namespaces", host.max_net)
    } else {
        ("user.max_user_namespaces", host.max_user)
    };
    match value {
        None => (
            format!("the limit on namespaces is 0 or used up ({name} cannot be read)"),
            format!("sysctl {name}=15000"),
        ),
        Some(0) => (
            format!("the limit on namespaces is 0 ({name} = 0)"),
            format!("sysctl {name}=15000"),
        ),
        Some(value) => (
            format!(
                "the limit on namespaces is used up, or they are nested too deep ({name} = {value})"
            ),
            format!(
                "end some sandboxes or containers of this user, or sysctl {name}={}",
                value.saturating_mul(2)
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(words: &str, host: &Host) -> String {
        classify(&Symptom::Bwrap(words.to_owned()), host).cause
    }

    #[test]
    fn known_words_have_their_cause() {
        let plain = Host::default();
        let ubuntu = Host {
            apparmor: Some(1),
            ..Host::default()
        };
        let debian = Host {
            userns_clone: Some(0),
            ..Host::default()
        };
        let table = [
            (
                "bwrap: setting up uid map: Permission denied",
                &ubuntu,
                "apparmor_restrict",
            ),
            (
                "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
                &ubuntu,
                "apparmor",
            ),
            (
                "bwrap: No permissions to create new namespace",
                &debian,
                "unprivileged_userns_clone",
            ),
            (
                "bwrap: No permissions to create new namespace",
                &plain,
                "outer container",
            ),
            (
                "Creating new namespace failed: nesting depth (ENOSPC)",
                &plain,
                "0 or used up",
            ),
            (
                "Can't mount proc on /newroot/proc: Operation not permitted",
                &plain,
                "/proc",
            ),
            (
                "bwrap: Creating new namespace: Resource temporarily unavailable",
                &plain,
                "process limit",
            ),
            (
                "Exceeded maximum number of arguments 9000",
                &plain,
                "more paths",
            ),
            ("bwrap: Unknown option --disable-userns", &plain, "too old"),
        ];
        for (words, host, expected) in table {
            let cause = cause(words, host);
            assert!(cause.contains(expected), "{words}: {cause}");
        }
    }

    #[test]
    fn the_problem_quotes_the_tool() {
        let answer = classify(
            &Symptom::Bwrap("noise\nbwrap: boo\n".into()),
            &Host::default(),
        );
        assert_eq!(answer.problem, "bwrap could not build the room (boo)");
    }

    #[test]
    fn a_missing_program_names_the_package() {
        let answer = classify(&Symptom::NoBwrap, &Host::default());
        assert!(answer.fix.contains("bubblewrap"));
    }
}
