//! Acting as the owner of a repository when the engine is root, so that the objects, refs and files it
//! makes belong to the people who use the repository, and so that a link planted by that owner cannot
//! lead root anywhere. Never changes the identity of the process: only the file system identity of this thread.

use std::marker::PhantomData;
use std::path::Path;

use nix::unistd::{Gid, Uid, geteuid, setfsgid, setfsuid};

/// While it lives, this thread touches files as the repository's owner.
#[derive(Debug)]
pub(crate) struct ActingAsOwner {
    switched: bool,
    // The file system identity belongs to the thread that changed it.
    _this_thread: PhantomData<*const ()>,
}

impl ActingAsOwner {
    /// Switches if we are root and the repository is somebody else's.
    ///
    /// An owner who cannot reach `place` (a repository below a folder of root's) could not use it either:
    /// then root goes on as root, as git does.
    pub(crate) fn begin(owner: (u32, u32), place: &Path) -> Self {
        // Asking for an impossible user only tells the present one. When this thread acts already, whoever began
        // that also ends it.
        let acting = || setfsuid(Uid::from_raw(u32::MAX)) != Uid::from_raw(0);
        let switched = geteuid().is_root() && owner.0 != 0 && !acting();
        if switched {
            // The group first: once the user is switched, the right to change the group is gone.
            setfsgid(Gid::from_raw(owner.1));
            setfsuid(Uid::from_raw(owner.0));
        }
        let acting = Self {
            switched,
            _this_thread: PhantomData,
        };
        if switched && std::fs::read_dir(place).is_err() {
            drop(acting);
            return Self {
                switched: false,
                _this_thread: PhantomData,
            };
        }
        acting
    }
}

impl Drop for ActingAsOwner {
    fn drop(&mut self) {
        if self.switched {
            setfsuid(Uid::from_raw(0));
            setfsgid(nix::unistd::getegid());
        }
    }
}

/// While it lives, this thread is itself again, for what is its own: root's configuration cannot be read as the
/// owner of a repository.
#[derive(Debug)]
pub(crate) struct ActingAsSelf {
    before: Option<(Uid, Gid)>,
    _this_thread: PhantomData<*const ()>,
}

impl ActingAsSelf {
    pub(crate) fn begin() -> Self {
        let mut before = None;
        if geteuid().is_root() {
            let user = setfsuid(Uid::from_raw(0));
            let group = setfsgid(nix::unistd::getegid());
            if user != Uid::from_raw(0) {
                before = Some((user, group));
            }
        }
        Self {
            before,
            _this_thread: PhantomData,
        }
    }
}

impl Drop for ActingAsSelf {
    fn drop(&mut self) {
        if let Some((user, group)) = self.before {
            setfsgid(group);
            setfsuid(user);
        }
    }
}

/// Whether files made by this process for that owner need a change of owner.
pub(crate) fn must_hand_over(owner: (u32, u32)) -> bool {
    geteuid().is_root() && owner.0 != 0
}
