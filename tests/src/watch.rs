//! Watching a file by the kernel's own notice of each write, so that a test can strike at the very
//! moment at which something was recorded.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// The growth of one file.
#[derive(Debug)]
pub struct Growth {
    notices: OwnedFd,
    file: PathBuf,
    begin: u64,
}

impl Growth {
    /// Watches a file that need not be there yet, in a folder that is.
    pub fn of(file: PathBuf) -> Self {
        let folder = file.parent().expect("the file is in a folder");
        let notices = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("inotify");
        inotify::add_watch(&notices, folder, WatchFlags::MODIFY).expect("the folder is there");
        let begin = size(&file);
        Self {
            notices,
            file,
            begin,
        }
    }

    /// Waits until the file has grown by so many bytes; `false` when nothing was written for as long
    /// as `bound`.
    pub fn reaches(&self, bytes: u64, bound: Duration) -> bool {
        while size(&self.file) < self.begin + bytes {
            let timeout = PollTimeout::try_from(bound).expect("a short time");
            let mut fds = [PollFd::new(self.notices.as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, timeout).expect("a file of our own") == 0 {
                return false;
            }
            self.forget();
        }
        true
    }

    /// Takes the notices off the queue; what they say is in the size of the file.
    fn forget(&self) {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.notices, &mut space);
        while reader.next().is_ok() {}
    }
}

fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |meta| meta.len())
}
