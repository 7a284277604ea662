//! Walls around our own process before it reads hostile bytes: the gates' child.
//!
//! Must be called with one thread and with everything open that is needed later: nothing can be opened afterwards.

use std::collections::BTreeMap;

use landlock::{
    Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetError, Scope,
};
use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::launch::LANDLOCK;

/// What the judge may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgeLimits {
    /// Processor time, in seconds.
    pub cpu_seconds: u64,
    /// Address space, in bytes.
    pub address_space: u64,
}

impl Default for JudgeLimits {
    fn default() -> Self {
        Self {
            cpu_seconds: 10,
            address_space: 2 << 30,
        }
    }
}

/// Why the judge could not be confined; it must not judge then.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// A resource limit.
    #[error("cannot limit {resource}")]
    Limit {
        /// The kernel's name of it.
        resource: String,
        /// What the system said.
        source: nix::errno::Errno,
    },
    /// The promise to gain no privilege.
    #[error("cannot give up new privileges")]
    Privileges(#[source] nix::errno::Errno),
    /// Landlock.
    #[error("cannot apply Landlock")]
    Landlock(#[source] RulesetError),
    /// The system call filter.
    #[error("cannot build the system call filter")]
    Build(#[source] seccompiler::BackendError),
    /// The system call filter.
    #[error("cannot apply the system call filter")]
    Apply(#[source] seccompiler::Error),
}

/// Confines this process for good: limits, no new privileges, no file, no network, only the calls that computing needs.
pub fn confine_judge(limits: &JudgeLimits) -> Result<(), ConfineError> {
    limit(limits)?;
    nix::sys::prctl::set_no_new_privs().map_err(ConfineError::Privileges)?;
    // Not to be looked into by others of this user, and no core file of what it read.
    nix::sys::prctl::set_dumpable(false).map_err(ConfineError::Privileges)?;
    restrict().map_err(ConfineError::Landlock)?;
    for program in filters().map_err(ConfineError::Build)? {
        seccompiler::apply_filter(&program).map_err(ConfineError::Apply)?;
    }
    Ok(())
}

fn limit(limits: &JudgeLimits) -> Result<(), ConfineError> {
    let table = [
        (Resource::RLIMIT_CPU, limits.cpu_seconds),
        (Resource::RLIMIT_AS, limits.address_space),
        (Resource::RLIMIT_FSIZE, 0),
        (Resource::RLIMIT_CORE, 0),
    ];
    for (resource, wanted) in table {
        let fault = |source| ConfineError::Limit {
            resource: format!("{resource:?}"),
            source,
        };
        let (_, hard) = getrlimit(resource).map_err(fault)?;
        let value = wanted.min(hard);
        setrlimit(resource, value, value).map_err(fault)?;
    }
    Ok(())
}

fn restrict() -> Result<(), RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        .restrict_self()
        .map(drop)
}

/// First what must look absent, then what is allowed; the stricter answer counts.
fn filters() -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let refuse = |errno: i32| SeccompAction::Errno(errno.unsigned_abs());
    let absent = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
        SeccompAction::Allow,
        refuse(libc::ENOSYS),
        arch,
    )?;
    let mut allowed: BTreeMap<i64, Vec<SeccompRule>> =
        COMPUTING.iter().map(|call| (*call, Vec::new())).collect();
    allowed.insert(libc::SYS_clone3, Vec::new());
    // A thread of its own stack for the parsers, never a process.
    let thread = u64::try_from(libc::CLONE_THREAD).unwrap_or(0);
    let is_thread = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(thread),
        thread,
    )?;
    allowed.insert(libc::SYS_clone, vec![SeccompRule::new(vec![is_thread])?]);
    // `abort` signals itself; refused, it would crash in a way that looks like a fault of memory.
    let own = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Eq,
        std::process::id().into(),
    )?;
    allowed.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![own])?]);
    let computing = SeccompFilter::new(allowed, refuse(libc::EPERM), SeccompAction::Allow, arch)?;
    Ok(vec![absent.try_into()?, computing.try_into()?])
}

/// Reading what is open, writing what is open, memory, threads, time, and the end.
const COMPUTING: &[i64] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_ppoll,
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_prlimit64,
    libc::SYS_prctl,
    libc::SYS_exit,
    libc::SYS_exit_group,
];
