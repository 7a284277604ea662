//! From the table to bytecode: one block per call, each ending in an answer, so that no jump is long.
//!
//! Must never fall through to "allow" from inside a block that began to test arguments of a denied form.

use super::table::{
    ABSENT, Arch, CLONE, CREATING, Call, IOCTL, MODES, PERSONALITY, REFUSED, SOCKET, SOCKETPAIR,
    UNSHARE,
};

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER_EQUAL: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0x8000_0000;

/// Offsets in the kernel's `seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

/// Every flag of clone and unshare that makes a namespace; the time namespace stands apart.
const NAMESPACES: u32 = 0x7e02_0000;
const NEW_TIME: u32 = 0x80;
const SET_ID: u32 = 0o6000;
/// `O_CREAT`, and the bit of `O_TMPFILE` that is its own.
const CREATES: u32 = 0o100 | 0o20_000_000;
/// TIOCSTI, TIOCLINUX, TIOCSETD.
const TERMINAL: [u32; 3] = [0x5412, 0x541C, 0x5423];
/// `PER_LINUX`, `PER_LINUX32`, `UNAME26` with both, and the question "which one?".
const USUAL: [u32; 5] = [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];
const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const SOCK_TYPE: u32 = 0xf;
const SOCK_RAW: u32 = 3;

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    code: u16,
    when_true: u8,
    when_false: u8,
    value: u32,
}

const fn plain(code: u16, value: u32) -> Instruction {
    Instruction {
        code,
        when_true: 0,
        when_false: 0,
        value,
    }
}

const fn jump(code: u16, value: u32, when_true: u8, when_false: u8) -> Instruction {
    Instruction {
        code,
        when_true,
        when_false,
        value,
    }
}

fn errno(number: i32) -> Instruction {
    plain(RETURN, 0x0005_0000 | number.unsigned_abs())
}

/// The low word of argument `index`; both machines are little-endian.
fn argument(index: u32) -> Instruction {
    plain(LOAD, 16 + 8 * index)
}

/// The filter of a room on `arch`, as the bytes that `bwrap --seccomp` reads.
pub(crate) fn room_filter(arch: Arch) -> Vec<u8> {
    let mut bytes = Vec::new();
    for instruction in program(arch) {
        bytes.extend(instruction.code.to_ne_bytes());
        bytes.push(instruction.when_true);
        bytes.push(instruction.when_false);
        bytes.extend(instruction.value.to_ne_bytes());
    }
    bytes
}

fn program(arch: Arch) -> Vec<Instruction> {
    let mut program = vec![
        plain(LOAD, ARCHITECTURE),
        jump(JUMP_EQUAL, arch.audit(), 1, 0),
        plain(RETURN, KILL),
        plain(LOAD, NUMBER),
    ];
    if arch == Arch::X86_64 {
        // The x32 calls have the same architecture and a bit of their own.
        program.push(jump(JUMP_GREATER_EQUAL, 0x4000_0000, 0, 1));
        program.push(errno(nix::libc::ENOSYS));
    }
    for call in REFUSED {
        block(&mut program, arch, *call, &[errno(nix::libc::EPERM)]);
    }
    for call in ABSENT {
        block(&mut program, arch, *call, &[errno(nix::libc::ENOSYS)]);
    }
    block(&mut program, arch, CLONE, &refuse_bits(0, NAMESPACES));
    block(
        &mut program,
        arch,
        UNSHARE,
        &refuse_bits(0, NAMESPACES | NEW_TIME),
    );
    block(&mut program, arch, IOCTL, &terminal());
    block(&mut program, arch, PERSONALITY, &personality());
    block(&mut program, arch, SOCKET, &socket());
    block(&mut program, arch, SOCKETPAIR, &socketpair());
    for (call, mode) in MODES {
        block(&mut program, arch, *call, &refuse_bits(*mode, SET_ID));
    }
    for (call, mode) in CREATING {
        block(&mut program, arch, *call, &creating(*mode));
    }
    program.push(plain(RETURN, ALLOW));
    program
}

/// Runs `body` for `call` alone; whoever comes out of the body's end is allowed.
fn block(program: &mut Vec<Instruction>, arch: Arch, call: Call, body: &[Instruction]) {
    let Some(number) = call.number(arch) else {
        return;
    };
    let ends = body.last().is_some_and(|last| last.code == RETURN) && body.len() == 1;
    let length = body.len() + usize::from(!ends);
    let length = u8::try_from(length).expect("blocks are shorter than a jump");
    program.push(jump(JUMP_EQUAL, number, 0, length));
    program.extend_from_slice(body);
    if !ends {
        program.push(plain(RETURN, ALLOW));
    }
}

fn refuse_bits(index: u32, bits: u32) -> Vec<Instruction> {
    vec![
        argument(index),
        jump(JUMP_ANY_BIT, bits, 0, 1),
        errno(nix::libc::EPERM),
    ]
}

fn terminal() -> Vec<Instruction> {
    let [sti, linux, setd] = TERMINAL;
    vec![
        argument(1),
        jump(JUMP_EQUAL, sti, 2, 0),
        jump(JUMP_EQUAL, linux, 1, 0),
        jump(JUMP_EQUAL, setd, 0, 1),
        errno(nix::libc::EPERM),
    ]
}

fn personality() -> Vec<Instruction> {
    let mut body = vec![argument(0)];
    for (left, usual) in (1..=5).rev().zip(USUAL) {
        body.push(jump(JUMP_EQUAL, usual, left, 0));
    }
    body.push(errno(nix::libc::EPERM));
    body
}

fn socket() -> Vec<Instruction> {
    vec![
        argument(0),
        jump(JUMP_EQUAL, AF_UNIX, 7, 0),
        jump(JUMP_EQUAL, AF_NETLINK, 6, 0),
        jump(JUMP_EQUAL, AF_INET, 2, 0),
        jump(JUMP_EQUAL, AF_INET6, 1, 0),
        errno(nix::libc::EAFNOSUPPORT),
        // Raw sockets are refused for IP only: getifaddrs uses them with netlink.
        argument(1),
        plain(AND, SOCK_TYPE),
        jump(JUMP_EQUAL, SOCK_RAW, 1, 0),
        plain(RETURN, ALLOW),
        errno(nix::libc::EPERM),
    ]
}

fn socketpair() -> Vec<Instruction> {
    vec![
        argument(0),
        jump(JUMP_EQUAL, AF_UNIX, 1, 0),
        errno(nix::libc::EAFNOSUPPORT),
    ]
}

fn creating(mode: u32) -> Vec<Instruction> {
    vec![
        argument(mode),
        jump(JUMP_ANY_BIT, SET_ID, 0, 3),
        argument(mode - 1),
        jump(JUMP_ANY_BIT, CREATES, 0, 1),
        errno(nix::libc::EPERM),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERM: u32 = 0x0005_0001;
    const NOSYS: u32 = 0x0005_0026;
    const FAMILY: u32 = 0x0005_0061;

    /// Runs the program as the kernel would.
    fn run(arch: Arch, audit: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let program = program(arch);
        let mut data = Vec::new();
        data.extend(number.to_le_bytes());
        data.extend(audit.to_le_bytes());
        data.extend(0_u64.to_le_bytes());
        for argument in arguments {
            data.extend(argument.to_le_bytes());
        }
        let (mut at, mut accumulator) = (0, 0_u32);
        loop {
            let instruction = program[at];
            at += 1;
            let value = instruction.value;
            let holds = match instruction.code {
                LOAD => {
                    let from = value as usize;
                    accumulator = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
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
                other => panic!("unknown instruction {other:#x}"),
            };
            let skip = if holds {
                instruction.when_true
            } else {
                instruction.when_false
            };
            at += usize::from(skip);
        }
    }

    fn x86(number: u32, arguments: [u64; 6]) -> u32 {
        run(Arch::X86_64, Arch::X86_64.audit(), number, arguments)
    }

    #[test]
    fn every_listed_call_has_its_answer_on_both_machines() {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            for (calls, answer) in [(REFUSED, PERM), (ABSENT, NOSYS)] {
                for call in calls {
                    if let Some(number) = call.number(arch) {
                        let got = run(arch, arch.audit(), number, [0; 6]);
                        assert_eq!(got, answer, "{} on {arch:?}", call.name);
                    }
                }
            }
            assert_eq!(run(arch, 0x4000_0003, 1, [0; 6]), KILL);
            let ordinary = if arch == Arch::X86_64 { 0 } else { 63 };
            assert_eq!(run(arch, arch.audit(), ordinary, [0; 6]), ALLOW);
        }
        assert_eq!(x86(0x4000_0000 + 16, [0; 6]), NOSYS);
    }

    #[test]
    fn namespaces_cannot_be_made() {
        assert_eq!(x86(56, [0x1000_0011, 0, 0, 0, 0, 0]), PERM);
        assert_eq!(x86(56, [0x003d_0f00, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(x86(272, [0x80, 0, 0, 0, 0, 0]), PERM);
        assert_eq!(x86(272, [0x400, 0, 0, 0, 0, 0]), ALLOW);
    }

    #[test]
    fn a_high_bit_dodges_nothing() {
        for request in [0x5412_u64, 0x1_0000_5412, 0xffff_ffff_0000_541c, 0x5423] {
            assert_eq!(x86(16, [0, request, 0, 0, 0, 0]), PERM, "{request:#x}");
        }
        assert_eq!(x86(16, [0, 0x5401, 0, 0, 0, 0]), ALLOW);
        assert_eq!(x86(91, [0, 0xf_0000_0000 | 0o4755, 0, 0, 0, 0]), PERM);
    }

    #[test]
    fn only_plain_sockets() {
        for family in [1, 2, 10, 16] {
            assert_eq!(x86(41, [family, 1, 0, 0, 0, 0]), ALLOW, "{family}");
        }
        for family in [0, 17, 40, 44, 38, 0x1_0000_0028] {
            assert_eq!(x86(41, [family, 1, 0, 0, 0, 0]), FAMILY, "{family}");
        }
        assert_eq!(x86(41, [2, 3, 0, 0, 0, 0]), PERM);
        assert_eq!(x86(41, [10, 0x80803, 0, 0, 0, 0]), PERM);
        assert_eq!(x86(41, [16, 3, 0, 0, 0, 0]), ALLOW);
        assert_eq!(x86(53, [1, 1, 0, 0, 0, 0]), ALLOW);
        assert_eq!(x86(53, [40, 1, 0, 0, 0, 0]), FAMILY);
    }

    #[test]
    fn no_set_id_modes_and_no_odd_personality() {
        assert_eq!(x86(90, [0, 0o4755, 0, 0, 0, 0]), PERM);
        assert_eq!(x86(268, [0, 0, 0o2755, 0, 0, 0]), PERM);
        assert_eq!(x86(268, [0, 0, 0o1755, 0, 0, 0]), ALLOW);
        assert_eq!(x86(257, [0, 0, 0o101, 0o4755, 0, 0]), PERM);
        assert_eq!(x86(257, [0, 0, 0o20_200_001, 0o4755, 0, 0]), PERM);
        assert_eq!(x86(257, [0, 0, 0o1, 0o4755, 0, 0]), ALLOW);
        assert_eq!(x86(257, [0, 0, 0o101, 0o644, 0, 0]), ALLOW);
        assert_eq!(x86(135, [0x0004_0000, 0, 0, 0, 0, 0]), PERM);
        for usual in USUAL {
            assert_eq!(x86(135, [u64::from(usual), 0, 0, 0, 0, 0]), ALLOW);
        }
    }
}
