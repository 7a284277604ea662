//! What a program says to a call: the same machine as the kernel's, run by ourselves, so that the keeper gives the
//! very answer that the kernel would have given; and what the call is called.
//!
//! Must never read the memory of the process that called: only the numbers that the kernel copied count.

use super::assemble::{
    ALLOW, AND, Instruction, JUMP_ANY_BIT, JUMP_EQUAL, JUMP_GREATER_EQUAL, KILL, LOAD, RETURN,
};
use super::table::{
    ABSENT, Arch, CLONE, CREATING, Call, IOCTL, MODES, PERSONALITY, REFUSED, SOCKET, SOCKETPAIR,
    UNSHARE,
};

/// A call as the kernel describes it to a filter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) number: u32,
    /// The kernel's `AUDIT_ARCH` number.
    pub(crate) machine: u32,
    pub(crate) arguments: [u64; 6],
}

/// Runs `program` as the kernel would. A program that runs out of its end kills.
pub(crate) fn run(program: &[Instruction], attempt: &Attempt) -> u32 {
    let data = described(attempt);
    let (mut at, mut accumulator) = (0_usize, 0_u32);
    while let Some(instruction) = program.get(at) {
        at += 1;
        let value = instruction.value;
        let holds = match instruction.code {
            LOAD => {
                let word = usize::try_from(value / 4).ok().and_then(|at| data.get(at));
                let Some(word) = word else { return KILL };
                accumulator = *word;
                continue;
            }
            AND => {
                accumulator &= value;
                continue;
            }
            RETURN => return value,
            JUMP_EQUAL => accumulator == value,
            JUMP_GREATER_EQUAL => accumulator >= value,
            JUMP_ANY_BIT => accumulator & value != 0,
            _unknown => return KILL,
        };
        at += usize::from(if holds {
            instruction.when_true
        } else {
            instruction.when_false
        });
    }
    KILL
}

/// `seccomp_data` in words of 32 bits: number, machine, place, arguments, low half first.
fn described(attempt: &Attempt) -> [u32; 16] {
    let mut words = [0; 16];
    let low = |value: u64| u32::try_from(value & 0xffff_ffff).unwrap_or(u32::MAX);
    let arguments = attempt.arguments.into_iter();
    let rest = arguments.flat_map(|argument| [low(argument), low(argument >> 32)]);
    let all = [attempt.number, attempt.machine, 0, 0]
        .into_iter()
        .chain(rest);
    for (word, value) in words.iter_mut().zip(all) {
        *word = value;
    }
    words
}

/// The error number that `program`, which answers everything itself, gives; `None` when it lets the call pass.
pub(crate) fn errno(program: &[Instruction], attempt: &Attempt) -> Option<i32> {
    match run(program, attempt) {
        ALLOW => None,
        answer => Some(i32::try_from(answer & 0xffff).unwrap_or(nix::libc::EPERM)),
    }
}

/// What a refused call is called: one of a fixed number of names, whatever its arguments are.
pub(crate) fn name(arch: Arch, attempt: &Attempt) -> &'static str {
    let is = |call: &Call| call.number(arch) == Some(attempt.number);
    let low = |index: usize| {
        let argument = attempt.arguments.get(index).copied().unwrap_or(0);
        u32::try_from(argument & 0xffff_ffff).unwrap_or(0)
    };
    if is(&SOCKET) || is(&SOCKETPAIR) {
        return family(low(0));
    }
    if is(&IOCTL) {
        return terminal(low(1));
    }
    let whole = REFUSED.iter().chain(ABSENT).chain([&PERSONALITY]);
    let spaces = [
        (CLONE, "clone (new namespace)"),
        (UNSHARE, "unshare (new namespace)"),
    ];
    let modes = MODES.iter().chain(CREATING).map(|(call, _)| call);
    whole
        .into_iter()
        .find(|call| is(call))
        .map(|call| call.name)
        .or_else(|| {
            spaces
                .into_iter()
                .find(|(call, _)| is(call))
                .map(|(_, name)| name)
        })
        .or_else(|| {
            modes
                .into_iter()
                .find(|call| is(call))
                .map(|call| call.name)
        })
        .unwrap_or("another call")
}

fn family(number: u32) -> &'static str {
    match number {
        2 | 10 => "socket (raw)",
        15 => "socket (AF_KEY)",
        17 => "socket (AF_PACKET)",
        21 => "socket (AF_RDS)",
        29 => "socket (AF_CAN)",
        30 => "socket (AF_TIPC)",
        31 => "socket (AF_BLUETOOTH)",
        38 => "socket (AF_ALG)",
        40 => "socket (AF_VSOCK)",
        44 => "socket (AF_XDP)",
        _ => "socket (another family)",
    }
}

fn terminal(request: u32) -> &'static str {
    match request {
        0x5412 => "ioctl (TIOCSTI)",
        0x541C => "ioctl (TIOCLINUX)",
        _ => "ioctl (TIOCSETD)",
    }
}
