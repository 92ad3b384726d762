//! What adds up in any order.

use serde::{Deserialize, Serialize};

use crate::disk::device::Disk;
use crate::disk::request::{DiskKey, Request, RequestKind};
use tracebraid_follow::{Table, ThreadKey};

/// What adds up in any order. Its size depends on the number of disks and threads, but for the log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    pub(super) disks: Vec<Disk>,
    pub(super) threads: Table<Vec<(DiskKey, Issues)>>,
    /// With the number of bios, and their bytes.
    pub(super) remaps: Vec<(Remap, u64, u64)>,
    pub(super) log: Vec<Request>,
}

/// Requests that a thread issued on a disk.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Issues {
    pub(super) requests: u64,
    /// By kind.
    pub(super) bytes: [u64; RequestKind::ALL.len()],
}

impl Issues {
    pub(super) fn merge(&mut self, other: &Issues) {
        self.requests += other.requests;
        let bytes = self.bytes.iter_mut().zip(other.bytes);
        bytes.for_each(|(own, other)| *own = own.saturating_add(other));
    }
}

/// Bios go from one device to another: from a partition to its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Remap {
    pub(super) from: DiskKey,
    pub(super) to: DiskKey,
}

impl Sums {
    pub(super) fn disk(&mut self, key: DiskKey) -> &mut Disk {
        // There are few.
        let at = self.disks.iter().position(|disk| disk.key == key);
        let at = at.unwrap_or_else(|| {
            self.disks.push(Disk::new(key));
            self.disks.len() - 1
        });
        &mut self.disks[at]
    }

    /// What a thread issued.
    pub(super) fn issued_by(&mut self, thread: ThreadKey, disk: DiskKey) -> &mut Issues {
        issues_of(self.threads.get(thread), disk)
    }

    /// So many bios, of so many bytes, went from one device to another.
    pub(super) fn remaps(&mut self, remap: Remap, bios: u64, bytes: u64) {
        match self.remaps.iter_mut().find(|known| known.0 == remap) {
            Some(known) => (known.1, known.2) = (known.1 + bios, known.2.saturating_add(bytes)),
            None => self.remaps.push((remap, bios, bytes)),
        }
    }

    /// Adds other sums, of which so many requests at most are listed by disk.
    pub(super) fn merge(&mut self, other: Sums, top: usize) {
        for disk in other.disks {
            self.disk(disk.key).merge(disk, top);
        }
        self.threads.merge_by(other.threads, |own, issues| {
            issues
                .iter()
                .for_each(|(disk, issues)| issues_of(own, *disk).merge(issues));
        });
        for (remap, bios, bytes) in other.remaps {
            self.remaps(remap, bios, bytes);
        }
        self.log.extend(other.log);
    }
}

fn issues_of(disks: &mut Vec<(DiskKey, Issues)>, disk: DiskKey) -> &mut Issues {
    let at = disks.iter().position(|of| of.0 == disk);
    let at = at.unwrap_or_else(|| {
        disks.push((disk, Issues::default()));
        disks.len() - 1
    });
    &mut disks[at].1
}
