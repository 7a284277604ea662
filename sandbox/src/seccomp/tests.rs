//! Every rule of the list, on both machines and in every form, as the kernel would run it.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::libc;

use super::answer::run;
use super::assemble::{ALLOW, KILL, RETURN, TELL};
use super::table::{
    ABSENT, CLONE, CREATING, Call, IOCTL, MODES, PERSONALITY, REFUSED, SECCOMP, SOCKET, SOCKETPAIR,
    TRIED, UNSHARE,
};
use super::{Arch, Attempt, Form, Instruction, errno, name, program};
use crate::sys;

const BOTH: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

fn kernel(error: i32) -> u32 {
    0x0005_0000 | u32::try_from(error).unwrap()
}

fn attempt(arch: Arch, call: Call, arguments: &[u64]) -> Option<Attempt> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    Some(Attempt {
        number: call.number(arch)?,
        machine: arch.audit(),
        arguments: all,
    })
}

/// The call is refused with `error` on every machine that has it, by every form that knows it.
#[track_caller]
fn refused(call: Call, arguments: &[u64], error: i32) {
    for arch in BOTH {
        let Some(attempt) = attempt(arch, call, arguments) else {
            continue;
        };
        let what = format!("{}{arguments:x?} on {arch:?}", call.name);
        let whole = program(arch, Form::Whole);
        assert_eq!(run(&whole, &attempt), kernel(error), "{what}");
        assert_eq!(errno(&whole, &attempt), Some(error), "{what}");
        assert_eq!(run(&program(arch, Form::Telling), &attempt), TELL, "{what}");
        assert_eq!(run(&program(arch, Form::Below), &attempt), ALLOW, "{what}");
        assert_ne!(name(arch, &attempt), "another call", "{what}");
    }
}

#[track_caller]
fn passes(call: Call, arguments: &[u64]) {
    for arch in BOTH {
        let Some(attempt) = attempt(arch, call, arguments) else {
            continue;
        };
        for form in [Form::Whole, Form::Below, Form::Telling] {
            let got = run(&program(arch, form), &attempt);
            assert_eq!(
                got, ALLOW,
                "{}{arguments:x?} on {arch:?} {form:?}",
                call.name
            );
        }
        assert_eq!(errno(&program(arch, Form::Whole), &attempt), None);
    }
}

#[test]
fn every_listed_call_has_its_answer_on_both_machines() {
    for (calls, error) in [(REFUSED, libc::EPERM), (ABSENT, libc::ENOSYS)] {
        for call in calls {
            refused(*call, &[], error);
        }
    }
}

#[test]
fn what_libraries_try_first_is_answered_by_the_kernel_in_every_form() {
    for arch in BOTH {
        for call in TRIED {
            let attempt = attempt(arch, *call, &[]).unwrap();
            for form in [Form::Whole, Form::Below, Form::Telling] {
                let got = run(&program(arch, form), &attempt);
                assert_eq!(got, kernel(libc::ENOSYS), "{} {form:?}", call.name);
            }
        }
    }
}

#[test]
fn other_machines_are_killed_and_x32_is_absent() {
    for arch in BOTH {
        for form in [Form::Whole, Form::Below, Form::Telling] {
            let program = program(arch, form);
            let mut foreign = Attempt {
                number: 1,
                machine: 0x4000_0003,
                arguments: [0; 6],
            };
            assert_eq!(run(&program, &foreign), KILL, "{arch:?} {form:?}");
            foreign.machine = arch.audit();
            foreign.number = 0x4000_0000 + 16;
            let x32 = if arch == Arch::X86_64 {
                kernel(libc::ENOSYS)
            } else {
                ALLOW
            };
            assert_eq!(run(&program, &foreign), x32, "{arch:?} {form:?}");
            foreign.number = if arch == Arch::X86_64 { 0 } else { 63 };
            assert_eq!(run(&program, &foreign), ALLOW, "read on {arch:?} {form:?}");
        }
    }
}

#[test]
fn namespaces_cannot_be_made() {
    for flag in [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ] {
        let flag = u64::try_from(flag).unwrap();
        refused(CLONE, &[flag | 0x11], libc::EPERM);
        refused(UNSHARE, &[flag], libc::EPERM);
    }
    refused(UNSHARE, &[0x80], libc::EPERM);
    passes(CLONE, &[0x003d_0f00]);
    passes(UNSHARE, &[0x400]);
}

#[test]
fn a_high_bit_dodges_nothing() {
    for request in [0x5412, 0x1_0000_5412, 0xffff_ffff_0000_541c, 0x5423] {
        refused(IOCTL, &[0, request], libc::EPERM);
    }
    passes(IOCTL, &[0, 0x5401]);
    refused(SOCKET, &[0x1_0000_0028, 1], libc::EAFNOSUPPORT);
    for (call, mode) in MODES {
        let mut arguments = [0; 6];
        arguments[*mode as usize] = 0xf_0000_0000 | 0o4755;
        refused(*call, &arguments, libc::EPERM);
    }
}

#[test]
fn only_plain_sockets() {
    for family in [1, 2, 10, 16] {
        passes(SOCKET, &[family, 1]);
    }
    for family in [0, 15, 17, 21, 29, 30, 31, 38, 40, 44, 45] {
        refused(SOCKET, &[family, 1], libc::EAFNOSUPPORT);
        refused(SOCKETPAIR, &[family, 1], libc::EAFNOSUPPORT);
    }
    for family in [2, 10] {
        refused(SOCKET, &[family, 3], libc::EPERM);
        refused(SOCKET, &[family, 0x80803], libc::EPERM);
    }
    passes(SOCKET, &[16, 3]);
    passes(SOCKETPAIR, &[1, 1]);
}

#[test]
fn no_set_id_modes_and_no_odd_personality() {
    for (call, mode) in MODES {
        for (bits, allowed) in [(0o4755, false), (0o2755, false), (0o1755, true)] {
            let mut arguments = [0; 6];
            arguments[*mode as usize] = bits;
            if allowed {
                passes(*call, &arguments);
            } else {
                refused(*call, &arguments, libc::EPERM);
            }
        }
    }
    for (call, mode) in CREATING {
        let with = |flags: u64, bits: u64| {
            let mut arguments = [0; 6];
            arguments[*mode as usize - 1] = flags;
            arguments[*mode as usize] = bits;
            arguments
        };
        refused(*call, &with(0o101, 0o4755), libc::EPERM);
        refused(*call, &with(0o20_200_001, 0o2755), libc::EPERM);
        passes(*call, &with(0o1, 0o4755));
        passes(*call, &with(0o101, 0o644));
    }
    refused(PERSONALITY, &[0x0004_0000], libc::EPERM);
    for usual in [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff] {
        passes(PERSONALITY, &[usual]);
    }
}

#[test]
fn nobody_inside_can_answer_in_the_keepers_place() {
    for arch in BOTH {
        let telling = program(arch, Form::Telling);
        let of = |arguments: &[u64]| run(&telling, &attempt(arch, SECCOMP, arguments).unwrap());
        for flags in [8, 8 | 1, 8 | 32, 0xf_0000_0008] {
            assert_eq!(of(&[1, flags]), kernel(libc::EBUSY), "{flags:#x} {arch:?}");
        }
        // A program may narrow itself further.
        for arguments in [[1, 0], [1, 1], [2, 0], [0, 0]] {
            assert_eq!(of(&arguments), ALLOW, "{arguments:?} {arch:?}");
        }
    }
}

#[test]
fn names_are_of_a_fixed_number() {
    for arch in BOTH {
        let said = |call, arguments: &[u64]| name(arch, &attempt(arch, call, arguments).unwrap());
        assert_eq!(said(SOCKET, &[40, 1]), "socket (AF_VSOCK)");
        assert_eq!(said(SOCKET, &[2, 3]), "socket (raw)");
        assert_eq!(said(SOCKET, &[4711]), said(SOCKET, &[4712]));
        assert_eq!(said(IOCTL, &[0, 0xf_0000_5412]), "ioctl (TIOCSTI)");
        assert_eq!(said(UNSHARE, &[0x1000_0000]), "unshare (new namespace)");
    }
}

/// Answers from inside a thread of its own around which `program` stands.
fn inside<T: Send>(form: Form, listen: bool, act: impl FnOnce(Option<OwnedFd>) -> T + Send) -> T {
    let arch = Arch::current().unwrap();
    let filter: Vec<_> = program(arch, form)
        .into_iter()
        .map(Instruction::raw)
        .collect();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            nix::sys::prctl::set_no_new_privs().unwrap();
            act(sys::load_filter(&filter, listen).unwrap())
        });
        thread.join().unwrap()
    })
}

fn unmount() -> Errno {
    nix::mount::umount("/nowhere").unwrap_err()
}

#[test]
fn the_kernel_answers_as_the_list_says() {
    assert_eq!(inside(Form::Whole, false, |_none| unmount()), Errno::EPERM);
    assert_eq!(inside(Form::Below, false, |_none| unmount()), Errno::ENOENT);
}

#[test]
fn without_anybody_who_listens_the_calls_still_fail_and_nobody_takes_the_place() {
    let seen = inside(Form::Telling, true, |listener| {
        drop(listener.unwrap());
        let all = libc::sock_filter {
            code: RETURN,
            jt: 0,
            jf: 0,
            k: ALLOW,
        };
        let second = sys::load_filter(&[all], true).unwrap_err();
        // A filter that lets everything pass may be added, and widens nothing.
        sys::load_filter(&[all], false).unwrap();
        (second.raw_os_error(), unmount())
    });
    assert_eq!(seen, (Some(libc::EBUSY), Errno::ENOSYS));
}
