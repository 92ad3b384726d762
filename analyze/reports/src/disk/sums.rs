//! Sums that do not depend on order.

use serde::{Deserialize, Serialize};

use crate::disk::device::Disk;
use crate::disk::request::{DiskKey, Request, RequestKind};
use tracebraid_follow::{Table, ThreadKey};

/// Sums that do not depend on order. Apart from the log, their size is bounded by the number of
/// disks and threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    pub(super) disks: Vec<Disk>,
    pub(super) threads: Table<Vec<(DiskKey, Issues)>>,
    /// With the number of bios, and their size in bytes.
    pub(super) remaps: Vec<(Remap, u64, u64)>,
    pub(super) log: Vec<Request>,
}

/// Requests that a thread issued to a disk.
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

/// Remapping of bios from one device to another, such as from a partition to its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Remap {
    pub(super) from: DiskKey,
    pub(super) to: DiskKey,
}

impl Sums {
    pub(super) fn disk(&mut self, key: DiskKey) -> &mut Disk {
        // Linear search: there are few disks.
        let at = self.disks.iter().position(|disk| disk.key == key);
        let at = at.unwrap_or_else(|| {
            self.disks.push(Disk::new(key));
            self.disks.len() - 1
        });
        &mut self.disks[at]
    }

    /// The requests that a thread issued to a disk.
    pub(super) fn issued_by(&mut self, thread: ThreadKey, disk: DiskKey) -> &mut Issues {
        issues_of(self.threads.get(thread), disk)
    }

    /// Adds remapped bios.
    pub(super) fn remaps(&mut self, remap: Remap, bios: u64, bytes: u64) {
        match self.remaps.iter_mut().find(|known| known.0 == remap) {
            Some(known) => (known.1, known.2) = (known.1 + bios, known.2.saturating_add(bytes)),
            None => self.remaps.push((remap, bios, bytes)),
        }
    }

    /// Adds other sums, keeping at most `top` requests by disk for the list.
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
