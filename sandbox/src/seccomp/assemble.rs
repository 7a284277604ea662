//! From the table to bytecode: one block per call, each ending in an answer, so that no jump is long.
//!
//! Must never fall through to "allow" from inside a block that began to test arguments of a denied form.

use nix::libc;

use super::table::{
    ABSENT, Arch, CLONE, CREATING, Call, IOCTL, MODES, PERSONALITY, REFUSED, SECCOMP, SOCKET,
    SOCKETPAIR, TRIED, UNSHARE,
};

pub(super) const LOAD: u16 = 0x20;
pub(super) const AND: u16 = 0x54;
pub(super) const JUMP_EQUAL: u16 = 0x15;
pub(super) const JUMP_GREATER_EQUAL: u16 = 0x35;
pub(super) const JUMP_ANY_BIT: u16 = 0x45;
pub(super) const RETURN: u16 = 0x06;

pub(super) const ALLOW: u32 = 0x7fff_0000;
pub(super) const KILL: u32 = 0x8000_0000;
/// The caller waits for whoever holds the listener; with nobody there the kernel answers ENOSYS.
pub(super) const TELL: u32 = 0x7fc0_0000;

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
const SET_MODE_FILTER: u32 = 1;
const NEW_LISTENER: u32 = 8;
/// Blocks that stand together.
const GROUP: usize = 8;

/// How much of the list a program holds, and who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// All of it, answered by the kernel.
    Whole,
    /// Foreign machines and what libraries try first: all that may stand below a program that tells, since an answer
    /// of the kernel's would come before the telling.
    Below,
    /// All of it; what a person may ask about is told to the holder of the listener, whose answer the caller gets.
    Telling,
}

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(super) code: u16,
    pub(super) when_true: u8,
    pub(super) when_false: u8,
    pub(super) value: u32,
}

impl Instruction {
    /// As the kernel takes it.
    pub(crate) fn raw(self) -> libc::sock_filter {
        libc::sock_filter {
            code: self.code,
            jt: self.when_true,
            jf: self.when_false,
            k: self.value,
        }
    }
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

/// A program as the bytes that `bwrap --seccomp` reads.
pub(crate) fn bytes(arch: Arch, form: Form) -> Vec<u8> {
    let mut bytes = Vec::new();
    for instruction in program(arch, form) {
        bytes.extend(instruction.code.to_ne_bytes());
        bytes.push(instruction.when_true);
        bytes.push(instruction.when_false);
        bytes.extend(instruction.value.to_ne_bytes());
    }
    bytes
}

/// The program for `arch` in this form.
pub(crate) fn program(arch: Arch, form: Form) -> Vec<Instruction> {
    let mut program = vec![
        plain(LOAD, ARCHITECTURE),
        jump(JUMP_EQUAL, arch.audit(), 1, 0),
        plain(RETURN, KILL),
        plain(LOAD, NUMBER),
    ];
    if arch == Arch::X86_64 {
        // The x32 calls have the same architecture and a bit of their own.
        program.push(jump(JUMP_GREATER_EQUAL, 0x4000_0000, 0, 1));
        program.push(errno(libc::ENOSYS));
    }
    let mut blocks: Vec<Block> = TRIED
        .iter()
        .filter_map(|call| block(arch, *call, &[errno(libc::ENOSYS)]))
        .collect();
    if form == Form::Telling {
        blocks.extend(block(arch, SECCOMP, &listening()));
    }
    if form != Form::Below {
        for (call, mut body) in rules() {
            if form == Form::Telling {
                body.iter_mut().for_each(tell);
            }
            blocks.extend(block(arch, call, &body));
        }
    }
    blocks.sort_by_key(|(number, _)| *number);
    program.extend(arranged(&blocks));
    program
}

/// A call's number and what is done about it; whoever has another number comes out of its end.
type Block = (u32, Vec<Instruction>);

/// Blocks in order, in groups that a call with a higher number jumps over: when a program is loaded, the kernel runs it
/// once for every call there is, and a job waits for that.
fn arranged(blocks: &[Block]) -> Vec<Instruction> {
    let mut program = Vec::new();
    let mut groups = blocks.chunks(GROUP).peekable();
    while let Some(group) = groups.next() {
        let mut inner: Vec<Instruction> = Vec::new();
        for (_, body) in group {
            inner.extend_from_slice(body);
        }
        inner.push(plain(RETURN, ALLOW));
        if let Some((next, _)) = groups.peek().and_then(|group| group.first()) {
            let length = u8::try_from(inner.len()).expect("groups are shorter than a jump");
            program.push(jump(JUMP_GREATER_EQUAL, *next, length, 0));
        }
        program.append(&mut inner);
    }
    program
}

/// Every call that a person may ask about, with what is done about it.
fn rules() -> Vec<(Call, Vec<Instruction>)> {
    let mut rules = Vec::new();
    for (calls, answer) in [(REFUSED, libc::EPERM), (ABSENT, libc::ENOSYS)] {
        rules.extend(calls.iter().map(|call| (*call, vec![errno(answer)])));
    }
    rules.extend([
        (CLONE, refuse_bits(0, NAMESPACES)),
        (UNSHARE, refuse_bits(0, NAMESPACES | NEW_TIME)),
        (IOCTL, terminal()),
        (PERSONALITY, personality()),
        (SOCKET, socket()),
        (SOCKETPAIR, socketpair()),
    ]);
    let modes = MODES.iter();
    rules.extend(modes.map(|(call, mode)| (*call, refuse_bits(*mode, SET_ID))));
    let creating_calls = CREATING.iter();
    rules.extend(creating_calls.map(|(call, mode)| (*call, creating(*mode))));
    rules
}

/// Lets the keeper answer in the place of the kernel.
fn tell(instruction: &mut Instruction) {
    if instruction.code == RETURN && instruction.value != ALLOW {
        instruction.value = TELL;
    }
}

/// Runs `body` for `call` alone; whoever comes out of the body's end is allowed. `None` where there is no such call.
fn block(arch: Arch, call: Call, body: &[Instruction]) -> Option<Block> {
    let number = call.number(arch)?;
    let ends = body.last().is_some_and(|last| last.code == RETURN) && body.len() == 1;
    let length = body.len() + usize::from(!ends);
    let length = u8::try_from(length).expect("blocks are shorter than a jump");
    let mut block = vec![jump(JUMP_EQUAL, number, 0, length)];
    block.extend_from_slice(body);
    if !ends {
        block.push(plain(RETURN, ALLOW));
    }
    Some((number, block))
}

/// A second listener could let pass what the first one's holder refuses, once that is gone.
fn listening() -> Vec<Instruction> {
    vec![
        argument(0),
        jump(JUMP_EQUAL, SET_MODE_FILTER, 0, 3),
        argument(1),
        jump(JUMP_ANY_BIT, NEW_LISTENER, 0, 1),
        errno(libc::EBUSY),
    ]
}

fn refuse_bits(index: u32, bits: u32) -> Vec<Instruction> {
    vec![
        argument(index),
        jump(JUMP_ANY_BIT, bits, 0, 1),
        errno(libc::EPERM),
    ]
}

fn terminal() -> Vec<Instruction> {
    let [sti, linux, setd] = TERMINAL;
    vec![
        argument(1),
        jump(JUMP_EQUAL, sti, 2, 0),
        jump(JUMP_EQUAL, linux, 1, 0),
        jump(JUMP_EQUAL, setd, 0, 1),
        errno(libc::EPERM),
    ]
}

fn personality() -> Vec<Instruction> {
    let mut body = vec![argument(0)];
    for (left, usual) in (1..=5).rev().zip(USUAL) {
        body.push(jump(JUMP_EQUAL, usual, left, 0));
    }
    body.push(errno(libc::EPERM));
    body
}

fn socket() -> Vec<Instruction> {
    vec![
        argument(0),
        jump(JUMP_EQUAL, AF_UNIX, 7, 0),
        jump(JUMP_EQUAL, AF_NETLINK, 6, 0),
        jump(JUMP_EQUAL, AF_INET, 2, 0),
        jump(JUMP_EQUAL, AF_INET6, 1, 0),
        errno(libc::EAFNOSUPPORT),
        // Raw sockets are refused for IP only: getifaddrs uses them with netlink.
        argument(1),
        plain(AND, SOCK_TYPE),
        jump(JUMP_EQUAL, SOCK_RAW, 1, 0),
        plain(RETURN, ALLOW),
        errno(libc::EPERM),
    ]
}

fn socketpair() -> Vec<Instruction> {
    vec![
        argument(0),
        jump(JUMP_EQUAL, AF_UNIX, 1, 0),
        errno(libc::EAFNOSUPPORT),
    ]
}

fn creating(mode: u32) -> Vec<Instruction> {
    vec![
        argument(mode),
        jump(JUMP_ANY_BIT, SET_ID, 0, 3),
        argument(mode - 1),
        jump(JUMP_ANY_BIT, CREATES, 0, 1),
        errno(libc::EPERM),
    ]
}
