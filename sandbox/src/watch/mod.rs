//! The watch over a job: what it uses, seen from outside, and whether it still works. The keeper asks it on each turn.
//!
//! A glance is cheap and often; what takes longer is counted by a child (a survey) and only when a glance says that a
//! limit may be passed. Must never end anything itself, and must never take longer than the keeper may look away.

mod crowd;
mod idleness;
mod ledger;
mod memory;
mod share;
mod survey;
mod walk;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

pub(crate) use share::USE;

use crate::cgroup::Cgroup;
use crate::environment::HOME;
use crate::identity::Identity;
use crate::keeper::KeeperSpec;
use crate::limit::Limit;
use crate::meta::now_ms;
use crate::spec::Limits;
use crowd::{Crowd, Glance};
use idleness::Idleness;
use ledger::{Free, Ledger};
use share::Share;
use survey::{Errand, Survey, TreeFindings};

/// Between two glances at the processes: of a job that works, and of one that sleeps.
const BUSY: Duration = Duration::from_millis(100);
const QUIET: Duration = Duration::from_millis(250);
/// Between two looks at the disk of a job that works.
const DISK: Duration = Duration::from_millis(20);
/// Least and longest time between two surveys of memory.
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(400));
/// How long the largest job of a task may take to end itself before the others do not wait for it.
const DEFER: Duration = Duration::from_secs(1);

/// What the watch has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A limit is passed; its value.
    Over(Limit, u64),
    /// Nothing was seen of the job for too long.
    Idle,
}

/// What can be seen of a job that runs in a room.
#[derive(Debug)]
pub(crate) struct Inside {
    /// The `/proc` of its pid namespace.
    pub(crate) proc: OwnedFd,
    /// The memory file systems of its room.
    pub(crate) tmpfs: Vec<OwnedFd>,
    /// Its pid 1.
    pub(crate) warden: Option<OwnedFd>,
}

impl Inside {
    /// The room as its pid 1 sees it, to be taken while nothing else runs in it yet.
    pub(crate) fn of(warden: Pid, pidfd: Option<&OwnedFd>) -> Option<Self> {
        let root = format!("/proc/{}/root", warden.as_raw_nonzero());
        let open = |place: &str, flags: OFlags| {
            let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::open(format!("{root}{place}"), flags, Mode::empty()).ok()
        };
        let tmpfs = ["/tmp", HOME, "/dev/shm"].into_iter();
        Some(Self {
            proc: open("/proc", OFlags::RDONLY)?,
            tmpfs: tmpfs
                .filter_map(|place| open(place, OFlags::PATH))
                .collect(),
            warden: pidfd.and_then(|pidfd| pidfd.try_clone().ok()),
        })
    }
}

#[derive(Debug)]
pub(crate) struct Watch {
    limits: Limits,
    folders: Vec<OwnedFd>,
    holder: Option<OwnedFd>,
    cgroup: Option<Cgroup>,
    share: Share,
    crowd: Option<Crowd>,
    tmpfs: Vec<OwnedFd>,
    warden: Option<OwnedFd>,
    idle: Idleness,
    ledger: Ledger,
    last: Glance,
    /// Shared memory of the whole host when the job began.
    shared_before: u64,
    busy: bool,
    /// Whether it has worked since its files were counted last.
    worked: bool,
    glance_at: Instant,
    disk_at: Instant,
    memory_after: Instant,
    over_since: Option<Instant>,
    wants_memory: bool,
    survey: Option<(Survey, Free)>,
}

impl Watch {
    pub(crate) fn new(spec: &KeeperSpec, cgroup: Option<Cgroup>) -> Self {
        let now = Instant::now();
        let job = &spec.job;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |path| rustix::fs::open(path, flags, Mode::empty()).ok();
        let folders: Vec<OwnedFd> = job.watched.iter().filter_map(open).collect();
        let idle = job.idle_ms.map(Duration::from_millis);
        let ordinary = !rustix::process::geteuid().is_root();
        let entrance = spec.entrance.as_ref().filter(|_| ordinary);
        let free = Free::of(&folders);
        Self {
            limits: job.limits,
            ledger: Ledger::new(job.limits.disk, job.limits.files, free, now),
            folders,
            holder: entrance.and_then(|entrance| Identity::open(&entrance.holder)),
            cgroup,
            share: Share::new(&spec.locks, &spec.task, &job.job),
            crowd: None,
            tmpfs: Vec::new(),
            warden: None,
            idle: Idleness::new(idle, now, now_ms()),
            last: Glance::default(),
            shared_before: shared(),
            busy: true,
            worked: true,
            glance_at: now,
            disk_at: now,
            memory_after: now,
            over_since: None,
            wants_memory: false,
            survey: None,
        }
    }

    /// The command begins now; without a room around it, its processes are ours.
    pub(crate) fn begin(&mut self, inside: Option<Inside>, now: Instant) {
        if let Some(inside) = inside {
            self.crowd = Some(Crowd::Room(inside.proc));
            self.tmpfs = inside.tmpfs;
            self.warden = inside.warden;
        } else {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let proc = rustix::fs::open("/proc", flags, Mode::empty());
            self.crowd = proc.ok().map(Crowd::Bare);
        }
        self.idle.sign(now, now_ms());
        (self.glance_at, self.disk_at) = (now + BUSY, now + DISK);
    }

    /// The job has printed something.
    pub(crate) fn output(&mut self, now: Instant) {
        self.idle.sign(now, now_ms());
    }

    /// The job stood still by our order for this long.
    pub(crate) fn stood_still(&mut self, time: Duration) {
        self.idle.forgive(time);
    }

    /// When the next turn is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.crowd
            .as_ref()
            .map(|_| self.glance_at.min(self.disk_at))
    }

    /// Becomes readable when a survey is over.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.survey.as_ref().map(|(survey, _)| survey.descriptor())
    }

    /// Looks at what is due.
    pub(crate) fn turn(&mut self, now: Instant, frozen: bool) -> Option<Verdict> {
        self.crowd.as_ref()?;
        if let Some(verdict) = self.take_survey(now, frozen) {
            return Some(verdict);
        }
        if now >= self.glance_at
            && let Some(verdict) = self.glance(now)
        {
            return Some(verdict);
        }
        let idle = self.idle.due().is_some_and(|due| now >= due) && !frozen;
        if idle && self.folders.is_empty() {
            return Some(Verdict::Idle);
        }
        let free = Free::of(&self.folders);
        let pause = if self.busy { DISK } else { QUIET };
        self.disk_at = now + pause;
        let tree = idle || self.ledger.wants(now, free, self.worked);
        if self.survey.is_none() && (tree || self.wants_memory) {
            self.send(tree, free);
        }
        None
    }

    fn glance(&mut self, now: Instant) -> Option<Verdict> {
        let Some(crowd) = &self.crowd else {
            return None;
        };
        let glance = crowd.glance();
        self.busy = glance.ticks != self.last.ticks || glance.who != self.last.who;
        self.worked |= self.busy;
        self.last = glance;
        self.glance_at = now + if self.busy { BUSY } else { QUIET };
        self.idle.glance(glance, now, now_ms());
        if let Some(limit) = self.kernel_says().or_else(|| self.too_many(glance)) {
            return Some(limit);
        }
        if let Some(limit) = self.limits.memory {
            // Shared memory that is mapped nowhere is in the host's number only.
            let unseen = shared().saturating_sub(self.shared_before);
            let own = glance.resident.saturating_add(unseen);
            self.share.tell(glance.resident);
            let others: u64 = self.share.others(now).iter().sum();
            let all = own.saturating_add(others).saturating_add(used(&self.tmpfs));
            self.wants_memory = all > limit && now >= self.memory_after;
        }
        None
    }

    /// A limit that the kernel kept, by the counters of the job's groups.
    fn kernel_says(&self) -> Option<Verdict> {
        let cgroup = self.cgroup.as_ref()?;
        if let Some(limit) = self.limits.memory
            && cgroup.ran_out_of_memory()
        {
            return Some(Verdict::Over(Limit::Memory, limit));
        }
        let refused = cgroup.was_refused_a_process();
        refused.then_some(Verdict::Over(Limit::Pids, self.limits.pids))
    }

    /// Without a group nobody counts refusals: a job that is seen at its limit has reached it.
    fn too_many(&self, glance: Glance) -> Option<Verdict> {
        let counted = self.cgroup.as_ref().is_some_and(Cgroup::counts_pids);
        let at_limit = glance.threads >= self.limits.pids && !counted;
        at_limit.then_some(Verdict::Over(Limit::Pids, self.limits.pids))
    }

    fn errand(&self, memory: bool, tree: bool) -> Errand<'_> {
        Errand {
            memory,
            tree: tree.then(|| self.ledger.enough()),
            crowd: self.crowd.as_ref(),
            folders: &self.folders,
            holder: self.holder.as_ref(),
            warden: self.warden.as_ref(),
        }
    }

    fn send(&mut self, tree: bool, free: Free) {
        let memory = std::mem::take(&mut self.wants_memory);
        if tree {
            self.worked = false;
        }
        // A fork that fails is tried again with the next turn.
        if let Ok(survey) = Survey::begin(&self.errand(memory, tree)) {
            self.survey = Some((survey, free));
        }
    }

    fn take_survey(&mut self, now: Instant, frozen: bool) -> Option<Verdict> {
        let (survey, free) = self.survey.take()?;
        let since = survey.since;
        match survey.take() {
            Err(survey) => {
                self.survey = Some((survey, free));
                None
            }
            Ok(findings) => {
                let cost = now.saturating_duration_since(since);
                let was_due = self.idle.due().is_some_and(|due| since >= due) && !frozen;
                let memory = findings.memory;
                memory
                    .and_then(|own| self.judge_memory(own, cost, now))
                    .or_else(|| self.judge_tree(&findings.tree?, free, cost, now))
                    .or_else(|| self.judge_idle(&findings.tree?, was_due, now))
            }
        }
    }

    fn judge_tree(
        &mut self,
        tree: &TreeFindings,
        free: Free,
        cost: Duration,
        now: Instant,
    ) -> Option<Verdict> {
        self.ledger.learn(tree, free, cost, now);
        let (limit, value) = self.ledger.passed(tree.too_deep)?;
        Some(Verdict::Over(limit, value))
    }

    fn judge_idle(&mut self, tree: &TreeFindings, was_due: bool, now: Instant) -> Option<Verdict> {
        let still = self.idle.is_still(tree.newest_ms, now, now_ms());
        (was_due && still).then_some(Verdict::Idle)
    }

    /// The largest job of a task ends first; the others see whether that was enough.
    fn judge_memory(&mut self, own: u64, cost: Duration, now: Instant) -> Option<Verdict> {
        let limit = self.limits.memory?;
        self.memory_after = now + (cost * 10).clamp(AGAIN.0, AGAIN.1);
        self.share.tell(own);
        let others = self.share.others(now);
        let largest = others.iter().all(|other| own >= *other);
        let all = others.iter().sum::<u64>().saturating_add(own);
        if all.saturating_add(used(&self.tmpfs)) <= limit {
            self.over_since = None;
            return None;
        }
        let since = *self.over_since.get_or_insert(now);
        let ours = largest || now.saturating_duration_since(since) >= DEFER;
        ours.then_some(Verdict::Over(Limit::Memory, limit))
    }

    /// The job is over: what it left behind may still be too much, and the kernel may have ended it.
    pub(crate) fn last_look(&mut self) -> Option<Verdict> {
        if let Some(verdict) = self.kernel_says() {
            return Some(verdict);
        }
        drop(self.survey.take());
        let free = Free::of(&self.folders);
        if !self.ledger.wants_last(free) {
            return None;
        }
        self.crowd = None;
        let survey = Survey::begin(&self.errand(false, true)).ok()?;
        let tree = survey.wait().tree?;
        self.judge_tree(&tree, free, Duration::ZERO, Instant::now())
    }

    /// Takes the groups away; nobody of the job is left.
    pub(crate) fn end(mut self) {
        if let Some(cgroup) = self.cgroup.take() {
            cgroup.remove();
        }
    }
}

/// Bytes of shared memory on this host, by whomever.
fn shared() -> u64 {
    let info = rustix::system::sysinfo();
    info.sharedram.saturating_mul(info.mem_unit.into())
}

/// Bytes in memory file systems.
fn used(tmpfs: &[OwnedFd]) -> u64 {
    let of = |folder: &OwnedFd| {
        let disk = rustix::fs::fstatfs(folder).ok()?;
        let block = u64::try_from(disk.f_bsize).unwrap_or(4096);
        Some(
            disk.f_blocks
                .saturating_sub(disk.f_bfree)
                .saturating_mul(block),
        )
    };
    tmpfs.iter().filter_map(of).fold(0, u64::saturating_add)
}
