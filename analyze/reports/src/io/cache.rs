//! Finding the group of a call again.

use crate::io::call::Io;
use crate::io::group::{Arena, ArenaKey, Group};
use crate::kernel::{Table, ThreadKey};

/// Finds the group of a call again. Groups that it has forgotten are still right, only more.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    key: ArenaKey,
    /// The calls of its groups.
    arena: Arena,
    entries: Vec<Entry>,
    /// Of the running thread. Those of a thread's groups that are older are not added to.
    epoch: u32,
    last_epoch: u32,
    /// Those of threads that changed descriptors.
    epochs: Table<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    epoch: u32,
    group: u32,
}

const ENTRIES: usize = 256;
/// Of threads that have not changed descriptors.
const FIRST_EPOCH: u32 = 1;

impl Cache {
    /// An empty one; its arena is known by that key.
    pub(super) fn new(key: ArenaKey) -> Self {
        Cache {
            key,
            arena: Arena::default(),
            entries: vec![Entry::default(); ENTRIES],
            epoch: FIRST_EPOCH,
            last_epoch: FIRST_EPOCH,
            epochs: Table::default(),
        }
    }

    /// What is left of it.
    pub(super) fn into_arena(self) -> (ArenaKey, Arena) {
        (self.key, self.arena)
    }

    /// Another thread runs.
    pub(super) fn turn_to(&mut self, thread: ThreadKey) {
        self.epoch = self.epochs.find(thread).copied().unwrap_or(FIRST_EPOCH);
    }

    /// The running thread's descriptors may have changed.
    pub(super) fn forget(&mut self, thread: ThreadKey) {
        self.last_epoch += 1;
        self.epoch = self.last_epoch;
        *self.epochs.get(thread) = self.epoch;
    }

    #[inline]
    pub(super) fn add(&mut self, thread: ThreadKey, io: &Io, groups: &mut Vec<Group>) {
        let hash =
            (thread.tid as u32).wrapping_mul(0x9E37_79B1) ^ (io.fds.0 as u32).wrapping_mul(0x85EB_CA77);
        let hash = hash ^ u32::from(io.call.0).wrapping_mul(0xC2B2_AE3D);
        let slot = (hash >> 24) as usize % ENTRIES;
        let Some(entry) = self.entries.get_mut(slot) else {
            return;
        };
        if entry.epoch == self.epoch
            && let Some(group) = groups.get_mut(entry.group as usize)
            && group.is_of(thread, io)
        {
            group.add(io, self.key, &mut self.arena);
            return;
        }
        *entry = Entry {
            epoch: self.epoch,
            group: groups.len() as u32,
        };
        groups.push(Group::new(thread, io));
    }
}
