//! A sandbox that cannot be had: the right cause, a remedy that can be followed, exit code 30, and nothing ran. The
//! host is made poor for one call alone, in a mount namespace of its own: there a program of root's stands in the
//! place of bubblewrap, or something that a room needs is really missing. Where this user may have no such
//! namespace, these tests fail and say so.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use nix::unistd::geteuid;
use tests::{Ended, TestEnv, TestRepo};

const BWRAP: &str = "/usr/bin/bwrap";

/// Words before a shell script that runs in a mount namespace of its own, where it may mount.
fn private() -> Vec<&'static str> {
    if geteuid().is_root() {
        vec!["unshare", "-m", "sh", "-ec"]
    } else {
        vec!["unshare", "-Urm", "sh", "-ec"]
    }
}

/// Runs a task whose agent leaves a mark, after `cover` has changed what this one call sees of the host.
/// No mark may be there, and nothing of the task.
#[track_caller]
fn nothing_runs(env: &TestEnv, repo: &TestRepo<'_>, wrapper: &[&str], cover: &str) -> Ended {
    let marker = env.shared().join("ran");
    let script = format!("{cover}\nexec \"$0\" \"$@\"");
    let words: Vec<&str> = wrapper.iter().copied().chain([script.as_str()]).collect();
    let run = env
        .airlock_under(&words, repo.path())
        .args(["run", "--rw", env.shared().to_str().unwrap(), "--"])
        .args(["touch", marker.to_str().unwrap(), "ran"])
        .run()
        .exits(30);
    tells(&run, &["sandbox unavailable: ", "Nothing was run"]);
    assert!(!marker.exists(), "{run}");
    assert_eq!(repo.status(), "");
    repo.is_clean();
    env.is_quiet();
    run
}

/// The answer holds these words, on whichever stream.
#[track_caller]
fn tells(run: &Ended, words: &[&str]) {
    for word in words {
        let told = run.stdout.contains(word) || run.stderr.contains(word);
        assert!(told, "it does not say {word:?}\n{run}");
    }
}

/// A script that says `words` as bubblewrap does, and the shell line that puts it into its place.
fn failing(env: &TestEnv, words: &str) -> String {
    let script = env.path().join("failing-bwrap");
    fs::write(
        &script,
        format!("#!/bin/sh\ncat >&2 <<'END'\nbwrap: {words}\nEND\nexit 1\n"),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    format!("mount --bind '{}' {BWRAP}", script.display())
}

/// Shell lines that put bubblewrap's folder below a layer of memory, and change it there.
fn layered(env: &TestEnv, change: &str) -> String {
    let place = env.path().join("layers");
    format!(
        "mkdir '{0}'; mount -t tmpfs tmpfs '{0}'; mkdir '{0}/up' '{0}/work'\n\
         mount -t overlay -o 'lowerdir=/usr/bin,upperdir={0}/up,workdir={0}/work' overlay /usr/bin\n{change}",
        place.display()
    )
}

/// A shell line that lets a kernel setting appear, which this kernel need not have.
fn setting(env: &TestEnv, name: &str, value: u32) -> String {
    let folder = env.path().join("settings");
    fs::create_dir_all(folder.join("random")).unwrap();
    for kept in ["random/boot_id", "overflowuid", "overflowgid"] {
        fs::copy(format!("/proc/sys/kernel/{kept}"), folder.join(kept)).unwrap();
    }
    fs::write(folder.join(name), format!("{value}\n")).unwrap();
    format!("mount --bind '{}' /proc/sys/kernel", folder.display())
}

/// Bubblewrap fails with these words on a host with this setting: the answer names cause and remedy.
#[track_caller]
fn said(words: &str, set: Option<(&str, u32)>, cause: &str, fix: &str) {
    let env = TestEnv::new();
    let repo = env.repository();
    let mut cover = failing(&env, words);
    if let Some((name, value)) = set {
        cover = format!("{cover}\n{}", setting(&env, name, value));
    }
    let run = nothing_runs(&env, &repo, &private(), &cover);
    tells(&run, &[words, cause, fix]);
}

#[test]
fn a_host_that_restricts_namespaces_by_apparmor() {
    let set = Some(("apparmor_restrict_unprivileged_userns", 1));
    let cause = "kernel.apparmor_restrict_unprivileged_userns = 1";
    let fix = "AppArmor profile";
    said("setting up uid map: Permission denied", set, cause, fix);
    let words = "loopback: Failed RTM_NEWADDR: Operation not permitted";
    said(words, set, cause, fix);
}

#[test]
fn a_host_that_has_switched_user_namespaces_off() {
    let words = "No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.";
    let set = Some(("unprivileged_userns_clone", 0));
    let fix = "sysctl kernel.unprivileged_userns_clone=1";
    said(words, set, "kernel.unprivileged_userns_clone = 0", fix);
}

#[test]
fn a_container_whose_own_filter_refuses_namespaces() {
    let words = "No permissions to create a new namespace";
    said(
        words,
        None,
        "seccomp profile of an outer container",
        "seccomp=unconfined",
    );
    let words = "setting up uid map: Permission denied";
    said(
        words,
        None,
        "seccomp profile of an outer container",
        "seccomp=unconfined",
    );
}

#[test]
fn a_host_whose_namespaces_are_used_up() {
    let words = "Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)";
    said(
        words,
        None,
        "the limit on namespaces",
        "sysctl user.max_user_namespaces=",
    );
}

#[test]
fn a_container_that_masks_proc() {
    let words = "Can't mount proc on /newroot/proc: Operation not permitted";
    said(
        words,
        None,
        "masks parts of /proc",
        "systempaths=unconfined",
    );
}

#[test]
fn a_user_at_the_limit_of_processes() {
    let words = "Creating new namespace failed: Resource temporarily unavailable";
    said(words, None, "process limit of this user", "ulimit -u");
}

#[test]
fn a_user_at_the_limit_of_processes_really() {
    let env = TestEnv::new();
    let repo = env.repository();
    if geteuid().is_root() {
        // Root is not bound by it; the user that a room runs as is: with its holder, or with bubblewrap too.
        for limit in ["--nproc=1", "--nproc=2"] {
            let run = nothing_runs(&env, &repo, &["prlimit", limit, "sh", "-ec"], "");
            tells(&run, &["process limit of this user", "ulimit -u"]);
        }
        return;
    }
    // Whatever of the engine is the first to be refused a process says so, and nothing runs.
    let marker = env.shared().join("ran");
    let run = env
        .airlock_under(&["unshare", "-Ur", "prlimit", "--nproc=1"], repo.path())
        .args(["run", "--rw", env.shared().to_str().unwrap(), "--"])
        .args(["touch", marker.to_str().unwrap()])
        .run();
    assert_ne!(run.code, Some(0), "{run}");
    assert!(
        run.stderr.contains("Resource temporarily unavailable"),
        "{run}"
    );
    assert!(
        !run.stderr.contains("panicked") && !marker.exists(),
        "{run}"
    );
}

#[test]
fn a_bubblewrap_that_takes_fewer_words_or_knows_fewer() {
    let words = "Exceeded maximum number of arguments 9000";
    said(words, None, "more paths than bwrap takes", "fewer paths");
    said(
        "Unknown option --disable-userns",
        None,
        "too old",
        "0.8.0 or newer",
    );
}

#[test]
fn a_bubblewrap_that_fails_without_a_known_word() {
    said(
        "the moon is full",
        None,
        "failed before it ran anything",
        "airlock doctor",
    );
    let env = TestEnv::new();
    let repo = env.repository();
    let silent = env.path().join("silent-bwrap");
    fs::write(&silent, "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(&silent, fs::Permissions::from_mode(0o755)).unwrap();
    let cover = format!("mount --bind '{}' {BWRAP}", silent.display());
    tells(
        &nothing_runs(&env, &repo, &private(), &cover),
        &["it said nothing"],
    );
}

#[test]
fn a_missing_bubblewrap_really() {
    let env = TestEnv::new();
    let repo = env.repository();
    let cover = layered(&env, &format!("rm {BWRAP}"));
    tells(
        &nothing_runs(&env, &repo, &private(), &cover),
        &[
            "bwrap was not found in /usr/bin",
            "install the package bubblewrap",
        ],
    );
}

#[test]
fn a_bubblewrap_that_is_not_roots_or_that_others_can_write() {
    let env = TestEnv::new();
    let repo = env.repository();
    let copy = env.path().join("bwrap");
    fs::copy(BWRAP, &copy).unwrap();
    let bind = format!("mount --bind '{}' {BWRAP}", copy.display());
    for mode in [0o757, 0o775] {
        fs::set_permissions(&copy, fs::Permissions::from_mode(mode)).unwrap();
        tells(
            &nothing_runs(&env, &repo, &private(), &bind),
            &["/usr/bin/bwrap is not trusted", "chmod 755 /usr/bin/bwrap"],
        );
    }
    if geteuid().is_root() {
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(&copy, Some(12345), None).unwrap();
        tells(
            &nothing_runs(&env, &repo, &private(), &bind),
            &["/usr/bin/bwrap is not trusted"],
        );
    }
    let folder = &layered(&env, "chmod 777 /usr/bin");
    tells(
        &nothing_runs(&env, &repo, &private(), folder),
        &["/usr/bin/bwrap is not trusted"],
    );
}

#[test]
fn a_set_uid_bubblewrap_really() {
    let env = TestEnv::new();
    let repo = env.repository();
    let copy = env.path().join("bwrap");
    fs::copy(BWRAP, &copy).unwrap();
    for mode in [0o4755, 0o2755] {
        fs::set_permissions(&copy, fs::Permissions::from_mode(mode)).unwrap();
        let cover = format!("mount --bind '{}' {BWRAP}", copy.display());
        tells(
            &nothing_runs(&env, &repo, &private(), &cover),
            &["/usr/bin/bwrap is set-uid", "chmod u-s /usr/bin/bwrap"],
        );
    }
}

#[test]
fn a_masked_proc_really() {
    let env = TestEnv::new();
    let repo = env.repository();
    // As container engines do it: something over an entry that tells about the host.
    let cover = "mount --bind /dev/null /proc/interrupts";
    tells(
        &nothing_runs(&env, &repo, &private(), cover),
        &["Can't mount proc", "masks parts of /proc"],
    );
}

#[test]
fn no_user_namespace_really() {
    let env = TestEnv::new();
    let repo = env.repository();
    // A namespace with as many ids as there are here, whose own limit on further ones is none.
    let script = r"
import ctypes, os, sys
told, tell = os.pipe(); mapped, map = os.pipe()
child = os.fork()
if child == 0:
    if ctypes.CDLL(None, use_errno=True).unshare(0x10020000): sys.exit('no user namespace for this test')
    os.write(tell, b'x'); os.read(mapped, 1)
    open('/proc/sys/user/max_user_namespaces', 'w').write('0')
    os.execv('/bin/sh', ['sh', '-ec'] + sys.argv[1:])
os.read(told, 1)
ids = '0 0 4294967295' if os.geteuid() == 0 else None
if ids is None: open('/proc/%d/setgroups' % child, 'w').write('deny')
open('/proc/%d/uid_map' % child, 'w').write(ids or '0 %d 1' % os.geteuid())
open('/proc/%d/gid_map' % child, 'w').write(ids or '0 %d 1' % os.getegid())
os.write(map, b'x')
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))";
    let wrapper = ["python3", "-c", script];
    tells(
        &nothing_runs(&env, &repo, &wrapper, ""),
        &[
            "user.max_user_namespaces = 0",
            "sysctl user.max_user_namespaces=",
        ],
    );
}

#[test]
fn root_of_a_container_without_the_capability_to_mount() {
    let env = TestEnv::new();
    let repo = env.repository();
    let tamed = ["setpriv", "--bounding-set=-sys_admin", "sh", "-ec"];
    if geteuid().is_root() {
        tells(
            &nothing_runs(&env, &repo, &tamed, ""),
            &["CAP_SYS_ADMIN", "run it as an ordinary user"],
        );
        return;
    }
    // An ordinary user has never had it, and needs it for nothing.
    let words = ["unshare", "-Ur", "setpriv", "--bounding-set=-sys_admin"];
    env.airlock_under(&words, repo.path())
        .args(["run", "--merge", "--", "sh", "-c", "echo x = 1 > x.py"])
        .run()
        .exits(0);
}

#[test]
fn no_namespace_below_a_sandbox_that_allows_none() {
    let env = TestEnv::new();
    let repo = env.repository();
    let outer = [
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        "--unshare-user",
        "--disable-userns",
        "--",
        "sh",
        "-ec",
    ];
    tells(&nothing_runs(&env, &repo, &outer, ""), &["namespace"]);
}

#[test]
fn doctor_gives_the_same_answer_and_exit_code() {
    let env = TestEnv::new();
    let repo = env.repository();
    let cover = failing(
        &env,
        "Can't mount proc on /newroot/proc: Operation not permitted",
    );
    let script = format!("{cover}\nexec \"$0\" \"$@\"");
    let words: Vec<&str> = private().into_iter().chain([script.as_str()]).collect();
    env.airlock_under(&words, repo.path())
        .arg("doctor")
        .run()
        .exits(30)
        .prints("masks parts of /proc")
        .prints("systempaths=unconfined");
}
