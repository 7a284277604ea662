//! A scripted agent: does what its arguments say, step by step, and says how each step went. It is
//! for what a shell cannot do, or must not be trusted to do in the same way on every host.

#![expect(clippy::print_stdout, reason = "an agent talks on its standard output")]

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo, pause};

/// What follows from a step.
enum Next {
    Step,
    Exit(u8),
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    while let Some(verb) = words.next() {
        let mut word = || words.next().unwrap_or_default();
        match step(&verb, &mut word) {
            Ok(Next::Step) => println!("{verb}: ok"),
            Ok(Next::Exit(code)) => return ExitCode::from(code),
            Err(error) => println!("{verb}: refused: {error}"),
        }
        io::stdout().flush().ok();
    }
    ExitCode::SUCCESS
}

fn step(verb: &str, word: &mut dyn FnMut() -> String) -> io::Result<Next> {
    match verb {
        "exit" => return Ok(Next::Exit(word().parse().unwrap_or(2))),
        "write" | "append" | "delete" | "chmod" | "symlink" | "mkfifo" | "socket" | "sparse"
        | "read" | "write-odd-names" => {
            on_files(verb, word)?;
        }
        "tcp" | "udp" | "unix" | "abstract" | "serve" | "family" => on_networks(verb, word)?,
        "daemon" | "signal" | "ignore-term" | "hang" | "kill" | "memory-of" | "user-namespace"
        | "remount" | "unmount" => {
            on_processes(verb, word)?;
        }
        "say" => println!("{}", word()),
        "converse" => {
            let of = |name: &str| std::env::var(name).unwrap_or_default();
            tests::converse(&of("FAKE_BASE"), &of("FAKE_KEY"), &word())?;
        }
        "flood" => flood(word().parse().unwrap_or(0))?,
        unknown => {
            println!("there is no step {unknown:?}");
            return Ok(Next::Exit(2));
        }
    }
    Ok(Next::Step)
}

fn on_files(verb: &str, word: &mut dyn FnMut() -> String) -> io::Result<()> {
    let path = word();
    match verb {
        "write" => fs::write(path, word()),
        "append" => fs::File::options()
            .append(true)
            .open(path)?
            .write_all(word().as_bytes()),
        "delete" => fs::remove_file(path),
        "chmod" => {
            let mode = u32::from_str_radix(&word(), 8).unwrap_or(0);
            fs::set_permissions(path, fs::Permissions::from_mode(mode))
        }
        "symlink" => symlink(word(), path),
        "mkfifo" => Ok(mkfifo(path.as_str(), Mode::from_bits_truncate(0o600))?),
        "socket" => UnixListener::bind(path).map(drop),
        "sparse" => fs::File::create(path)?.set_len(word().parse().unwrap_or(0)),
        "read" => fs::File::options()
            .read(true)
            .custom_flags(nix::libc::O_NONBLOCK)
            .open(path)
            .and_then(|mut file| {
                println!("{}", io::read_to_string(&mut file)?);
                Ok(())
            }),
        _ => odd_names(&path),
    }
}

/// Names that a file system allows and few programs expect.
fn odd_names(folder: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let names: [Vec<u8>; 6] = [
        b"new\nline".to_vec(),
        b"not\xff\xfeutf8".to_vec(),
        b"-rf".to_vec(),
        b"quote\"and\\back\ttab".to_vec(),
        vec![b'x'; 255],
        b" blank ".to_vec(),
    ];
    for name in names {
        fs::write(
            std::path::Path::new(folder).join(OsString::from_vec(name)),
            "odd\n",
        )?;
    }
    Ok(())
}

fn on_networks(verb: &str, word: &mut dyn FnMut() -> String) -> io::Result<()> {
    let to = word();
    let address = || to.parse::<SocketAddr>().map_err(io::Error::other);
    match verb {
        "tcp" => TcpStream::connect_timeout(&address()?, Duration::from_secs(3)).map(drop),
        "udp" => {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            socket.send_to(b"hello", address()?).map(drop)
        }
        "unix" => UnixStream::connect(to).map(drop),
        "abstract" => UnixStream::connect_addr(&UnixAddress::from_abstract_name(to)?).map(drop),
        "family" => family(&to),
        _ => {
            let listener = TcpListener::bind(address()?)?;
            TcpStream::connect(listener.local_addr()?).map(drop)
        }
    }
}

/// A socket of a family that leads somewhere else than to a network of ours.
fn family(name: &str) -> io::Result<()> {
    let (family, kind) = match name {
        "vsock" => (AddressFamily::Vsock, SockType::Stream),
        "packet" => (AddressFamily::Packet, SockType::Raw),
        "raw" => (AddressFamily::Inet, SockType::Raw),
        _ => (AddressFamily::Unix, SockType::Stream),
    };
    Ok(socket(family, kind, SockFlag::empty(), None).map(drop)?)
}

fn on_processes(verb: &str, word: &mut dyn FnMut() -> String) -> io::Result<()> {
    match verb {
        "daemon" => daemon(&word()),
        "signal" => Ok(raise(number(&word()))?),
        "ignore-term" => ignore_term(),
        "hang" => hang(),
        "kill" => {
            let pid = word().parse().unwrap_or(0);
            Ok(kill(Pid::from_raw(pid), Signal::SIGKILL)?)
        }
        "memory-of" => fs::File::options()
            .write(true)
            .open(format!("/proc/{}/mem", word()))
            .map(drop),
        "user-namespace" => Ok(unshare(CloneFlags::CLONE_NEWUSER)?),
        "remount" => {
            let none: Option<&str> = None;
            let writable = MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
            Ok(mount(none, word().as_str(), none, writable, none)?)
        }
        _ => Ok(umount2(word().as_str(), MntFlags::MNT_DETACH)?),
    }
}

fn hang() -> ! {
    loop {
        pause();
    }
}

fn number(text: &str) -> Signal {
    text.parse()
        .ok()
        .and_then(|number: i32| Signal::try_from(number).ok())
        .unwrap_or(Signal::SIGKILL)
}

/// The signal is blocked, which a handler of our own would need `unsafe` for.
fn ignore_term() -> io::Result<()> {
    let mut set = nix::sys::signal::SigSet::empty();
    set.add(Signal::SIGTERM);
    Ok(set.thread_block()?)
}

/// A process of its own session that nobody waits for, and that writes its sign of life to a file.
fn daemon(file: &str) -> io::Result<()> {
    let this = std::env::current_exe()?;
    let quiet = || Stdio::null();
    let mut command = Command::new("setsid");
    command
        .arg("--fork")
        .arg(this)
        .args(["ignore-term", "write", file, "alive", "hang"]);
    command
        .stdin(quiet())
        .stdout(quiet())
        .stderr(quiet())
        .status()
        .map(drop)
}

/// Writes this many bytes.
fn flood(bytes: usize) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let piece = [b'f'; 1 << 13];
    let mut left = bytes;
    while left > 0 {
        let part = left.min(piece.len());
        output.write_all(piece.get(..part).unwrap_or_default())?;
        left -= part;
    }
    output.write_all(b"\n")
}
