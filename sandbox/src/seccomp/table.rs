//! What the filter denies, by name and by number on both machines.
//!
//! Must never rely on the numbers of the machine that compiles it: both columns are written out and tested.

/// A machine whose calls are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    /// The machine this program was built for, when it is known here.
    pub(crate) fn current() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// The kernel's `AUDIT_ARCH` number.
    pub(crate) fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xC000_003E,
            Self::Aarch64 => 0xC000_00B7,
        }
    }
}

/// One system call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    x86_64: Option<u32>,
    aarch64: Option<u32>,
}

impl Call {
    pub(crate) fn number(&self, arch: Arch) -> Option<u32> {
        match arch {
            Arch::X86_64 => self.x86_64,
            Arch::Aarch64 => self.aarch64,
        }
    }
}

const fn both(name: &'static str, x86_64: u32, aarch64: u32) -> Call {
    Call {
        name,
        x86_64: Some(x86_64),
        aarch64: Some(aarch64),
    }
}

const fn x86_only(name: &'static str, x86_64: u32) -> Call {
    Call {
        name,
        x86_64: Some(x86_64),
        aarch64: None,
    }
}

/// Answered with EPERM.
pub(crate) const REFUSED: &[Call] = &[
    // Looking into other processes.
    both("ptrace", 101, 117),
    both("process_vm_readv", 310, 270),
    both("process_vm_writev", 311, 271),
    both("pidfd_getfd", 438, 438),
    both("kcmp", 312, 272),
    both("process_madvise", 440, 440),
    // Namespaces and mounts.
    both("mount", 165, 40),
    both("umount2", 166, 39),
    both("pivot_root", 155, 41),
    both("chroot", 161, 51),
    both("setns", 308, 268),
    // State that the whole kernel shares.
    both("keyctl", 250, 219),
    both("add_key", 248, 217),
    both("request_key", 249, 218),
    both("bpf", 321, 280),
    both("perf_event_open", 298, 241),
    both("userfaultfd", 323, 282),
    both("open_by_handle_at", 304, 265),
    both("fanotify_init", 300, 262),
    both("quotactl", 179, 60),
    both("quotactl_fd", 443, 443),
    both("acct", 163, 89),
    both("syslog", 103, 116),
    both("swapon", 167, 224),
    both("swapoff", 168, 225),
    both("reboot", 169, 142),
    both("kexec_load", 246, 104),
    both("kexec_file_load", 320, 294),
    both("init_module", 175, 105),
    both("finit_module", 313, 273),
    both("delete_module", 176, 106),
    both("settimeofday", 164, 170),
    both("clock_settime", 227, 112),
    both("sethostname", 170, 161),
    both("setdomainname", 171, 162),
    both("vhangup", 153, 58),
    both("lookup_dcookie", 212, 18),
    both("nfsservctl", 180, 42),
    both("migrate_pages", 256, 238),
    both("move_pages", 279, 239),
    x86_only("iopl", 172),
    x86_only("ioperm", 173),
    x86_only("modify_ldt", 154),
    x86_only("uselib", 134),
    x86_only("create_module", 174),
    x86_only("query_module", 178),
    x86_only("_sysctl", 156),
];

/// Answered with ENOSYS and never told to anybody: libraries try these first, many times, and then take a call whose
/// arguments a filter can read.
pub(crate) const TRIED: &[Call] = &[
    both("clone3", 435, 435),
    // Its mode is in memory, where no filter sees a set-id bit.
    both("openat2", 437, 437),
];

/// Answered with ENOSYS, so that programs do without.
pub(crate) const ABSENT: &[Call] = &[
    both("io_uring_setup", 425, 425),
    both("io_uring_enter", 426, 426),
    both("io_uring_register", 427, 427),
    both("open_tree", 428, 428),
    both("move_mount", 429, 429),
    both("fsopen", 430, 430),
    both("fsconfig", 431, 431),
    both("fsmount", 432, 432),
    both("fspick", 433, 433),
    both("mount_setattr", 442, 442),
    both("open_tree_attr", 467, 467),
];

pub(crate) const CLONE: Call = both("clone", 56, 220);
pub(crate) const UNSHARE: Call = both("unshare", 272, 97);
pub(crate) const IOCTL: Call = both("ioctl", 16, 29);
pub(crate) const PERSONALITY: Call = both("personality", 135, 92);
pub(crate) const SOCKET: Call = both("socket", 41, 198);
pub(crate) const SOCKETPAIR: Call = both("socketpair", 53, 199);
/// Not on the list itself: nobody inside may answer in the keeper's place.
pub(crate) const SECCOMP: Call = both("seccomp", 317, 277);

/// Calls that set a mode, with the number of its argument.
pub(crate) const MODES: &[(Call, u32)] = &[
    (x86_only("chmod", 90), 1),
    (x86_only("mknod", 133), 1),
    (x86_only("creat", 85), 1),
    (both("fchmod", 91, 52), 1),
    (both("fchmodat", 268, 53), 2),
    (both("fchmodat2", 452, 452), 2),
    (both("mknodat", 259, 33), 2),
];

/// Calls that set a mode only when they make the file: number of the mode, the flags stand before it.
pub(crate) const CREATING: &[(Call, u32)] =
    &[(x86_only("open", 2), 2), (both("openat", 257, 56), 3)];

#[cfg(test)]
mod tests {
    use super::*;
    use nix::libc;

    fn all() -> Vec<Call> {
        let mut calls = [REFUSED, TRIED, ABSENT].concat();
        calls.extend([
            CLONE,
            UNSHARE,
            IOCTL,
            PERSONALITY,
            SOCKET,
            SOCKETPAIR,
            SECCOMP,
        ]);
        calls.extend(MODES.iter().chain(CREATING).map(|(call, _)| *call));
        calls
    }

    #[test]
    fn no_number_stands_twice() {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            let mut numbers: Vec<_> = all().iter().filter_map(|call| call.number(arch)).collect();
            let count = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), count, "{arch:?}");
        }
    }

    #[test]
    fn numbers_are_those_of_the_system_headers() {
        let arch = Arch::current().unwrap();
        let known = [
            ("ptrace", libc::SYS_ptrace),
            ("process_vm_readv", libc::SYS_process_vm_readv),
            ("process_vm_writev", libc::SYS_process_vm_writev),
            ("pidfd_getfd", libc::SYS_pidfd_getfd),
            ("kcmp", libc::SYS_kcmp),
            ("process_madvise", libc::SYS_process_madvise),
            ("mount", libc::SYS_mount),
            ("umount2", libc::SYS_umount2),
            ("pivot_root", libc::SYS_pivot_root),
            ("chroot", libc::SYS_chroot),
            ("setns", libc::SYS_setns),
            ("keyctl", libc::SYS_keyctl),
            ("add_key", libc::SYS_add_key),
            ("request_key", libc::SYS_request_key),
            ("bpf", libc::SYS_bpf),
            ("perf_event_open", libc::SYS_perf_event_open),
            ("userfaultfd", libc::SYS_userfaultfd),
            ("open_by_handle_at", libc::SYS_open_by_handle_at),
            ("fanotify_init", libc::SYS_fanotify_init),
            ("quotactl", libc::SYS_quotactl),
            ("quotactl_fd", libc::SYS_quotactl_fd),
            ("acct", libc::SYS_acct),
            ("syslog", libc::SYS_syslog),
            ("swapon", libc::SYS_swapon),
            ("swapoff", libc::SYS_swapoff),
            ("reboot", libc::SYS_reboot),
            ("kexec_load", libc::SYS_kexec_load),
            ("kexec_file_load", libc::SYS_kexec_file_load),
            ("init_module", libc::SYS_init_module),
            ("finit_module", libc::SYS_finit_module),
            ("delete_module", libc::SYS_delete_module),
            ("settimeofday", libc::SYS_settimeofday),
            ("clock_settime", libc::SYS_clock_settime),
            ("sethostname", libc::SYS_sethostname),
            ("setdomainname", libc::SYS_setdomainname),
            ("vhangup", libc::SYS_vhangup),
            ("lookup_dcookie", libc::SYS_lookup_dcookie),
            ("nfsservctl", libc::SYS_nfsservctl),
            ("migrate_pages", libc::SYS_migrate_pages),
            ("move_pages", libc::SYS_move_pages),
            ("io_uring_setup", libc::SYS_io_uring_setup),
            ("io_uring_enter", libc::SYS_io_uring_enter),
            ("io_uring_register", libc::SYS_io_uring_register),
            ("open_tree", libc::SYS_open_tree),
            ("move_mount", libc::SYS_move_mount),
            ("fsopen", libc::SYS_fsopen),
            ("fsconfig", libc::SYS_fsconfig),
            ("fsmount", libc::SYS_fsmount),
            ("fspick", libc::SYS_fspick),
            ("clone3", libc::SYS_clone3),
            ("openat2", libc::SYS_openat2),
            ("mount_setattr", libc::SYS_mount_setattr),
            ("clone", libc::SYS_clone),
            ("unshare", libc::SYS_unshare),
            ("ioctl", libc::SYS_ioctl),
            ("personality", libc::SYS_personality),
            ("socket", libc::SYS_socket),
            ("socketpair", libc::SYS_socketpair),
            ("seccomp", libc::SYS_seccomp),
            ("fchmod", libc::SYS_fchmod),
            ("fchmodat", libc::SYS_fchmodat),
            ("fchmodat2", libc::SYS_fchmodat2),
            ("mknodat", libc::SYS_mknodat),
            ("openat", libc::SYS_openat),
        ];
        for (name, number) in known {
            let call = all().into_iter().find(|call| call.name == name).unwrap();
            assert_eq!(call.number(arch).map(i64::from), Some(number), "{name}");
        }
    }
}
