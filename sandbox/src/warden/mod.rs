//! The warden: pid 1 of a job in its room. It starts the command, reaps, reports, and obeys its keeper.
//!
//! It makes itself untouchable before anything else runs here, so that nobody inside can write its memory or speak in
//! its name. When the keeper's end of the socket closes it ends, and the kernel ends everybody else with it.
//! Must never read a word that the command could have written.

mod protocol;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use rustix::process::WaitOptions;

pub(crate) use protocol::{Message, Order, Report, WardenSpec, nonce, send, send_with};

use crate::herd::{AlreadyStopped, Herd};
use crate::{launch, sys};

/// How long a freeze may take.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn main(words: &[OsString]) -> ExitCode {
    // First of all: from here on /proc/1 is nobody's.
    if nix::sys::prctl::set_dumpable(false).is_err() {
        return ExitCode::FAILURE;
    }
    let number = |index: usize| words.get(index)?.to_str()?.parse().ok();
    let numbers = (number(0), number(1), number(2), number(3));
    let (Some(control), Some(spec), Some(output), Some(error)) = numbers else {
        return ExitCode::FAILURE;
    };
    let (Ok(control), Ok(spec), Ok(output), Ok(error)) = (
        sys::inherited(control),
        sys::inherited(spec),
        sys::inherited(output),
        sys::inherited(error),
    ) else {
        return ExitCode::FAILURE;
    };
    match watch(control, spec, output, error) {
        Some(()) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    }
}

fn watch(control: OwnedFd, spec: OwnedFd, output: OwnedFd, error: OwnedFd) -> Option<()> {
    let mut text = String::new();
    File::from(spec).read_to_string(&mut text).ok()?;
    let spec: WardenSpec = serde_json::from_str(&text).ok()?;
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    mask.thread_block().ok()?;
    let children =
        SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).ok()?;
    // bubblewrap's own words went here; the command's go where its output goes.
    nix::unistd::dup2_stdout(&output).ok()?;
    nix::unistd::dup2_stderr(&error).ok()?;
    drop((output, error));
    sys::close_on_exec_from(3).ok()?;
    let mut warden = Warden {
        control,
        spec,
        main: None,
        stopped: None,
    };
    warden.report(Report::Hello)?;
    warden.obey(&children)
}

fn silence() -> Option<()> {
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .ok()?;
    nix::unistd::dup2_stdin(&null).ok()?;
    nix::unistd::dup2_stdout(&null).ok()?;
    nix::unistd::dup2_stderr(&null).ok()
}

struct Warden {
    control: OwnedFd,
    spec: WardenSpec,
    main: Option<Pid>,
    stopped: Option<AlreadyStopped>,
}

impl Warden {
    /// Until nobody is left, or the keeper is gone.
    fn obey(&mut self, children: &SignalFd) -> Option<()> {
        loop {
            let mut ends = [
                PollFd::new(self.control.as_fd(), PollFlags::POLLIN),
                PollFd::new(children.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut ends, PollTimeout::NONE) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(_) => return None,
            }
            let [order, child] = ends.map(|end| end.any().unwrap_or(true));
            if child {
                while children.read_signal().ok()?.is_some() {}
                if self.reap()? {
                    return Some(());
                }
            }
            if order {
                let order = protocol::receive_order(&self.control)?;
                self.carry_out(order)?;
            }
        }
    }

    fn carry_out(&mut self, order: Order) -> Option<()> {
        match order {
            Order::Go => self.start(),
            Order::Terminate => {
                self.stopped = None;
                Herd::Namespace.signal(Signal::SIGTERM);
                // A stopped process takes the first signal only after it goes on.
                Herd::Namespace.signal(Signal::SIGCONT);
                Some(())
            }
            Order::Freeze => {
                if self.stopped.is_none() {
                    self.stopped = Herd::Namespace.freeze(PATIENCE);
                }
                if self.stopped.is_none() {
                    Herd::Namespace.thaw(&AlreadyStopped::default());
                }
                self.report(Report::Frozen {
                    done: self.stopped.is_some(),
                })
            }
            Order::Thaw => {
                if let Some(already) = self.stopped.take() {
                    Herd::Namespace.thaw(&already);
                }
                self.report(Report::Thawed)
            }
        }
    }

    fn start(&mut self) -> Option<()> {
        let telling = |listener: OwnedFd| {
            let message = Message {
                nonce: self.spec.nonce.clone(),
                report: Report::Telling,
            };
            send_with(&self.control, &message, listener)
        };
        match launch::spawn(&self.spec.launch, telling) {
            Ok(main) => {
                self.main = Some(main);
                // From here on somebody else is inside: the list counts for this process too. It could not before,
                // since the command's process would have had it from us, and would tell nothing.
                launch::filter_whole().ok()?;
                // The output ends with the command and what it left, not with us.
                silence()?;
                self.report(Report::Started)
            }
            Err(failure) => {
                self.report(Report::NotStarted { failure })?;
                None
            }
        }
    }

    /// Takes in all children that ended. `true` when the command is over and nobody else is left.
    fn reap(&mut self) -> Option<bool> {
        let mut ended = None;
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if self.is_main(pid) => ended = Report::of(status),
                Ok(None) | Err(rustix::io::Errno::CHILD) => break,
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        if let Some(report) = ended {
            self.main = None;
            self.report(report)?;
            self.spec.over = true;
        }
        Some(self.spec.over && !Herd::Namespace.is_alive())
    }

    fn is_main(&self, pid: rustix::process::Pid) -> bool {
        self.main
            .is_some_and(|main| main.as_raw() == pid.as_raw_nonzero().get())
    }

    fn report(&self, report: Report) -> Option<()> {
        send(
            &self.control,
            &Message {
                nonce: self.spec.nonce.clone(),
                report,
            },
        )
    }
}
