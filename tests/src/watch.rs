//! Watching the event store by the kernel's own notice of each write, so that a test can strike at
//! the very moment at which something was recorded.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// Writes to one file of a folder, counted.
#[derive(Debug)]
pub struct Writes {
    notices: OwnedFd,
    name: Vec<u8>,
    seen: usize,
}

impl Writes {
    /// Watches a file that need not be there yet, in a folder that is.
    pub fn to(folder: &Path, name: &str) -> Self {
        let notices = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("inotify");
        inotify::add_watch(&notices, folder, WatchFlags::MODIFY).expect("the folder is there");
        Self {
            notices,
            name: name.as_bytes().to_vec(),
            seen: 0,
        }
    }

    /// Waits for the `count`th write; `false` when there was none for as long as `bound`.
    pub fn reach(&mut self, count: usize, bound: Duration) -> bool {
        while self.seen < count {
            let timeout = PollTimeout::try_from(bound).expect("a short time");
            let mut fds = [PollFd::new(self.notices.as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, timeout).expect("a file of our own") == 0 {
                return false;
            }
            self.count();
        }
        true
    }

    fn count(&mut self) {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.notices, &mut space);
        while let Ok(event) = reader.next() {
            let name = event
                .file_name()
                .map(|name| OsStr::from_bytes(name.to_bytes()));
            if event.events().contains(ReadFlags::MODIFY)
                && name == Some(OsStr::from_bytes(&self.name))
            {
                self.seen += 1;
            }
        }
    }
}
