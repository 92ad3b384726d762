//! A cache that finds the group of a call.

use tracebraid_descriptors::{Change, NO_FD};

use crate::io::call::Io;
use crate::io::group::Calls;

/// Finds the group of a call. A miss is harmless: the call begins another group.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    entries: Box<[Entry; PLACES]>,
    /// Number of changes of descriptors.
    epoch: u32,
    /// By thread and descriptor: the epoch that ended with its last change. Calls are not added to
    /// older groups, which would have to be split.
    changed: Box<[u32; PLACES]>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    /// The epoch in which the group was made.
    epoch: u32,
    group: u32,
}

const PLACES: usize = 1 << 8;

/// Index in the tables.
fn place(hash: u32) -> usize {
    (hash >> 24) as usize % PLACES
}

fn hash(tid: i32, fd: i32) -> u32 {
    (tid as u32).wrapping_mul(0x9E37_79B1) ^ (fd as u32).wrapping_mul(0x85EB_CA77)
}

impl Default for Cache {
    fn default() -> Self {
        Cache {
            entries: Box::new([Entry::default(); PLACES]),
            epoch: 1,
            changed: Box::new([0; PLACES]),
        }
    }
}

impl Cache {
    /// From now on, no existing group is extended.
    pub(super) fn clear(&mut self) {
        self.entries.fill(Entry::default());
    }

    /// A thread changes descriptors.
    pub(super) fn change(&mut self, tid: i32, change: &Change) {
        let Some((first, second)) = change.fds() else {
            return self.clear();
        };
        for fd in [first, second] {
            self.changed[place(hash(tid, fd))] = self.epoch;
        }
        self.epoch = self.epoch.saturating_add(1);
    }

    /// Adds a call to its group.
    #[inline]
    pub(super) fn add(&mut self, tid: i32, io: &Io, calls: &mut Calls) {
        let base = hash(tid, io.fds.0);
        let entry = &mut self.entries[place(base ^ u32::from(io.call.0).wrapping_mul(0xC2B2_AE3D))];
        let fresh = entry.epoch > self.changed[place(base)]
            && (io.fds.1 == NO_FD || entry.epoch > self.changed[place(hash(tid, io.fds.1))]);
        if fresh && calls.join(entry.group as usize, tid, io) {
            return;
        }
        // A group whose number does not fit is not found again.
        let group = u32::try_from(calls.begin(tid, io)).unwrap_or(u32::MAX);
        *entry = Entry {
            epoch: self.epoch,
            group,
        };
    }
}
