//! What the processes of a job hold, to the page: private memory, shared memory once, and what they hold without
//! having it in their address space: nameless files, segments that nobody has attached.
//!
//! Must never count a page twice that a file in a watched place accounts for.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags};

use super::crowd::file;

/// Open files that are looked at, at most; beyond that the kernel's own limits hold the rest small.
const MOST_FILES: usize = 200_000;
/// Shared memory of a process below this is not taken apart.
const LITTLE: u64 = 256 << 10;

/// What was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Bytes of memory.
    pub(super) memory: u64,
    /// Bytes on a watched disk in files that have no name any more.
    pub(super) nameless: u64,
}

/// Counts for `pids` in `proc` and files on `disks`, with the segments of this process's own namespace if they are the job's.
pub(super) fn count(proc: impl AsFd, pids: &[i32], disks: &[u64], with_segments: bool) -> Held {
    let proc = proc.as_fd();
    let shared = nameless_memory();
    let mut held = Held::default();
    let mut known = BTreeSet::new();
    let mut looked = 0;
    for pid in pids {
        for (device, inode, bytes) in nameless(proc, *pid, &mut looked) {
            if !known.insert((device, inode)) {
                continue;
            }
            if Some(device) == shared {
                held.memory = held.memory.saturating_add(bytes);
            } else if disks.contains(&device) {
                held.nameless = held.nameless.saturating_add(bytes);
            }
        }
    }
    for pid in pids {
        // One that is gone meanwhile holds nothing any more.
        let rollup = file(proc, *pid, "smaps_rollup").unwrap_or_default();
        let private = sum(&rollup, "Pss_Anon:") + sum(&rollup, "SwapPss:");
        held.memory = held.memory.saturating_add(private);
        if sum(&rollup, "Pss_Shmem:") >= LITTLE {
            let maps = file(proc, *pid, "smaps").unwrap_or_default();
            held.memory = held.memory.saturating_add(mapped(&maps, shared, &known));
        }
    }
    if with_segments {
        let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        held.memory = held.memory.saturating_add(detached(&table));
    }
    held
}

/// The device of memory that is shared without a place in any tree.
fn nameless_memory() -> Option<u64> {
    let file = rustix::fs::memfd_create("device", rustix::fs::MemfdFlags::CLOEXEC).ok()?;
    Some(rustix::fs::fstat(file).ok()?.st_dev)
}

/// Device, inode and bytes of the open files of a process that have no name.
fn nameless(proc: impl AsFd, pid: i32, looked: &mut usize) -> Vec<(u64, u64, u64)> {
    let Some(folder) = open_files(proc, pid) else {
        return Vec::new();
    };
    let (Ok(at), Ok(entries)) = (folder.try_clone(), Dir::read_from(&folder)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        if *looked >= MOST_FILES {
            break;
        }
        *looked += 1;
        // Through the link to what is open; `.` and `..` have names and fall out below.
        if let Ok(facts) = rustix::fs::statat(&at, entry.file_name(), AtFlags::empty())
            && facts.st_nlink == 0
        {
            let blocks = u64::try_from(facts.st_blocks).unwrap_or(0);
            found.push((facts.st_dev, facts.st_ino, blocks.saturating_mul(512)));
        }
    }
    found
}

fn open_files(proc: impl AsFd, pid: i32) -> Option<OwnedFd> {
    let path = CString::new(format!("{pid}/fd")).ok()?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(proc, path, flags, Mode::empty()).ok()
}

/// Kilobyte lines with this name, added up, in bytes.
fn sum(text: &[u8], name: &str) -> u64 {
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(|line| kilobytes(line, name)).sum()
}

fn kilobytes(line: &[u8], name: &str) -> Option<u64> {
    let rest = line.strip_prefix(name.as_bytes())?;
    let number = std::str::from_utf8(rest).ok()?.trim();
    let number: u64 = number.strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

/// Shared memory in the address space that no file elsewhere accounts for.
fn mapped(maps: &[u8], shared: Option<u64>, known: &BTreeSet<(u64, u64)>) -> u64 {
    let mut total: u64 = 0;
    let (mut counts, mut resident) = (false, 0);
    for line in maps.split(|byte| *byte == b'\n') {
        if let Some((device, inode)) = header(line) {
            counts = Some(device) == shared && !known.contains(&(device, inode));
            resident = 0;
        } else if counts {
            if let Some(bytes) = kilobytes(line, "Pss:") {
                resident = bytes;
            } else if let Some(private) = kilobytes(line, "Anonymous:") {
                // Private copies are in the sum of the private pages.
                total = total.saturating_add(u64::saturating_sub(resident, private));
            }
        }
    }
    total
}

/// Device and inode of a line such as `7f00-7f01 rw-s 00000000 00:01 1025  /memfd:x (deleted)`.
fn header(line: &[u8]) -> Option<(u64, u64)> {
    let text = String::from_utf8_lossy(line.get(..line.len().min(200))?);
    let mut words = text.split_ascii_whitespace();
    let range = words.next()?;
    let (from, to) = range.split_once('-')?;
    u64::from_str_radix(from, 16).ok()?;
    u64::from_str_radix(to, 16).ok()?;
    let device = words.nth(2)?;
    let (major, minor) = device.split_once(':')?;
    let major = u32::from_str_radix(major, 16).ok()?;
    let minor = u32::from_str_radix(minor, 16).ok()?;
    Some((
        rustix::fs::makedev(major, minor),
        words.next()?.parse().ok()?,
    ))
}

/// Segments of System V that nobody has attached.
fn detached(table: &str) -> u64 {
    let of = |line: &str| {
        let fields: Vec<u64> = line
            .split_ascii_whitespace()
            .map(|word| word.parse().unwrap_or(0))
            .collect();
        let (attached, resident, swapped) = (fields.get(6)?, fields.get(14)?, fields.get(15)?);
        (*attached == 0).then_some(resident.saturating_add(*swapped))
    };
    table
        .lines()
        .skip(1)
        .filter_map(of)
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn shared_memory_counts_once_and_files_of_the_disk_do_not() {
        let maps = b"\
7f00-7f01 rw-s 00000000 00:01 1025                       /memfd:x (deleted)
Pss:                1000 kB
Anonymous:             0 kB
7f02-7f03 rw-s 00000000 00:01 1026                       /dev/zero (deleted)
Pss:                 600 kB
Anonymous:           100 kB
7f04-7f05 r--p 00000000 fe:00 1026                       /usr/lib/x.so
Pss:                5000 kB
Anonymous:             0 kB
7f06-7f07 rw-p 00000000 00:00 0
Pss:                7000 kB
Anonymous:          7000 kB
";
        let device = Some(rustix::fs::makedev(0, 1));
        let known = BTreeSet::from([(rustix::fs::makedev(0, 1), 1025)]);
        assert_eq!(mapped(maps, device, &known), 500 << 10);
        assert_eq!(mapped(maps, device, &BTreeSet::new()), 1500 << 10);
        assert_eq!(sum(maps, "Pss:"), 13_600 << 10);
    }

    #[test]
    fn detached_segments_are_counted() {
        let table = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap
         0          0   600               1048576   100   100      0     0     0     0     0          0          0          0               1048576                  4096
         0          1   600               1048576   100   100      1     0     0     0     0          0          0          0               1048576                     0
";
        assert_eq!(detached(table), 1_052_672);
    }

    #[test]
    fn what_is_only_held_open_is_found() {
        let proc = std::fs::File::open("/proc").unwrap();
        let pid = i32::try_from(std::process::id()).unwrap();
        let memory = rustix::fs::memfd_create("t", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let held = || {
            let found = nameless(&proc, pid, &mut 0);
            let facts = rustix::fs::fstat(&memory).unwrap();
            found
                .into_iter()
                .find(|(device, inode, _)| (*device, *inode) == (facts.st_dev, facts.st_ino))
                .map(|(_, _, bytes)| bytes)
        };
        assert_eq!(held(), Some(0), "{}", memory.as_raw_fd());
        rustix::io::write(&memory, &vec![1; 65_536]).unwrap();
        assert_eq!(held(), Some(65_536));
        assert_eq!(
            nameless_memory(),
            Some(rustix::fs::fstat(&memory).unwrap().st_dev)
        );
    }
}
