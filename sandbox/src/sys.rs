//! The only unsafe code of the workspace: calls that neither `nix` nor `rustix` offers safely.
//!
//! Must never hold a decision: each function is one call with its answer.

#![expect(
    unsafe_code,
    reason = "fork, raw descriptors and four system calls have no safe wrapper"
)]

use std::ffi::c_int;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use nix::libc;
use nix::sys::signal::{SigHandler, Signal};
use nix::unistd::{ForkResult, Pid};

/// Both sides of [`fork`].
#[derive(Debug)]
pub(crate) enum Fork {
    /// This is the new process.
    Child,
    /// This is the old process; the child's pid.
    Parent(Pid),
}

/// Forks. Only for the holder, the keeper and the warden, which have one thread: there the child may do anything.
pub(crate) fn fork() -> nix::Result<Fork> {
    // SAFETY: the callers are single-threaded processes, so no lock is held by a thread that the child lacks.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Child => Ok(Fork::Child),
        ForkResult::Parent { child } => Ok(Fork::Parent(child)),
    }
}

/// Ends this process at once, without exit handlers: the way out of a forked child.
pub(crate) fn leave(code: c_int) -> ! {
    // SAFETY: `_exit` takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Sets and clears mount attributes of the (possibly detached) mount `fd`, of all below it too when `recursive`.
pub(crate) fn mount_setattr(
    fd: BorrowedFd<'_>,
    attributes: &libc::mount_attr,
    recursive: bool,
) -> io::Result<()> {
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty C string, `attributes` is alive and its size is given.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd.as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size_of::<libc::mount_attr>(),
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Marks every descriptor from `first` upwards close-on-exec.
pub(crate) fn close_on_exec_from(first: u32) -> io::Result<()> {
    close_range(first, libc::CLOSE_RANGE_CLOEXEC)
}

/// Closes every descriptor from `first` upwards. Only before this process has opened anything itself.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    close_range(first, 0)
}

fn close_range(first: u32, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: three numbers; callers close only what nobody owns any more.
    let answer = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Takes over the descriptor that the parent process left at `number`.
pub(crate) fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD only looks whether the descriptor is open.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, was inherited through exec, and nothing in this process owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Puts a copy of `fd`, kept across exec, at exactly `number`. Only in a forked child, right before exec.
pub(crate) fn place(fd: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
    // SAFETY: the child owns its descriptor table alone and uses no owner of `number` afterwards.
    if unsafe { libc::dup2(fd.as_raw_fd(), number) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sets how this process takes `signal`.
pub(crate) fn dispose(signal: Signal, handler: SigHandler) -> nix::Result<()> {
    // SAFETY: callers pass only SigDfl and SigIgn, so no code runs in signal context.
    unsafe { nix::sys::signal::signal(signal, handler) }.map(drop)
}

/// Brings the loopback interface of the calling process's network namespace up.
pub(crate) fn loopback_up(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: `ifreq` is plain data; all zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *slot = byte.cast_signed();
    }
    let up = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING)
        .expect("interface flags are sixteen bits wide");
    request.ifr_ifru.ifru_flags = up;
    // SAFETY: the request names an interface and its flags, as SIOCSIFFLAGS reads them.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The Landlock version that the kernel offers; 0 without Landlock.
pub(crate) fn landlock_version() -> i64 {
    const VERSION: u32 = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel reads no memory and makes no object, it only answers a number.
    let answer =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, VERSION) };
    answer.max(0)
}

/// Loads a system call filter for this thread and all that it will start. With `listen` the answer is the descriptor
/// on which the calls are told that the filter leaves to its holder.
pub(crate) fn load_filter(
    filter: &[libc::sock_filter],
    listen: bool,
) -> io::Result<Option<OwnedFd>> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(io::Error::other)?,
        filter: filter.as_ptr().cast_mut(),
    };
    let flags = if listen {
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER
    } else {
        0
    };
    // SAFETY: the kernel only reads `program` and the `len` instructions that it points to, all alive.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    if !listen {
        return Ok(None);
    }
    let number = RawFd::try_from(answer).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(number) }))
}

/// Whether the kernel's notices of refused calls are of the size that we know: a larger one would not fit.
pub(crate) fn notices_fit() -> bool {
    let mut sizes = libc::seccomp_notif_sizes {
        seccomp_notif: 0,
        seccomp_notif_resp: 0,
        seccomp_data: 0,
    };
    // SAFETY: the kernel writes three numbers into `sizes`.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_NOTIF_SIZES,
            0,
            &raw mut sizes,
        )
    };
    answer == 0
        && usize::from(sizes.seccomp_notif) == size_of::<libc::seccomp_notif>()
        && usize::from(sizes.seccomp_notif_resp) == size_of::<libc::seccomp_notif_resp>()
}

/// The next call that waits for an answer. Waits for one when there is none: only after a poll.
pub(crate) fn next_told(listener: BorrowedFd<'_>) -> io::Result<libc::seccomp_notif> {
    // SAFETY: plain numbers; all zero is a valid value, and what the kernel asks for.
    let mut notice: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one notice, whose size was compared before the listener was made.
    let answer = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_RECV,
            &raw mut notice,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(notice)
}

/// Lets the call with this notice fail with `errno`.
pub(crate) fn refuse_told(listener: BorrowedFd<'_>, id: u64, errno: i32) -> io::Result<()> {
    let mut response = libc::seccomp_notif_resp {
        id,
        val: 0,
        error: -errno,
        flags: 0,
    };
    // SAFETY: the kernel reads one answer.
    let answer = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            &raw mut response,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
