//! How files of one user can be shown as another's: a user namespace that says who is who, for a mount.
//!
//! Must never map anybody but the owner of what is shown, and must leave no process behind.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use nix::sched::CloneFlags;

use crate::account::Account;
use crate::sys::{self, Fork};

/// A namespace in which files of `owner` (uid, gid) are `account`'s. Needs root.
pub(super) fn view(owner: (u32, u32), account: Account) -> std::io::Result<OwnedFd> {
    let (ready, tell) = nix::unistd::pipe()?;
    let (wait, release) = nix::unistd::pipe()?;
    match sys::fork()? {
        Fork::Child => {
            drop((ready, release));
            let made = nix::sched::unshare(CloneFlags::CLONE_NEWUSER).is_ok();
            // A parent that hears nothing, or that is gone, ends the waiting.
            if made && File::from(tell).write_all(b"1").is_ok() {
                drop(File::from(wait).read(&mut [0]));
            }
            sys::leave(0)
        }
        Fork::Parent(child) => {
            drop((tell, wait));
            let view = named(File::from(ready), child, owner, account);
            drop(release);
            nix::sys::wait::waitpid(child, None)?;
            view
        }
    }
}

fn named(
    mut ready: File,
    child: nix::unistd::Pid,
    owner: (u32, u32),
    account: Account,
) -> std::io::Result<OwnedFd> {
    ready.read_exact(&mut [0])?;
    let (uid, gid) = owner;
    std::fs::write(
        format!("/proc/{child}/uid_map"),
        format!("{uid} {} 1", account.uid),
    )?;
    std::fs::write(
        format!("/proc/{child}/gid_map"),
        format!("{gid} {} 1", account.gid),
    )?;
    Ok(File::open(format!("/proc/{child}/ns/user"))?.into())
}
