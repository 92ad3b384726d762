//! Threads with their processes and tables of descriptors, in pages that copies share.
//!
//! Each slice of time keeps a copy of the threads at its beginning. A trace may have hundreds of
//! thousands of threads, of which a slice changes only a few: only the pages of those threads are
//! copied.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Table, ThreadKey};

use crate::belongings::{Belonging, ThreadEntry};
use crate::shared::Shared;

/// A page holds 2 to the power of this many consecutive ids: threads that are created one after
/// another usually have consecutive ids.
const PAGE_BITS: u32 = 6;

/// Threads with consecutive ids; only known threads have an entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Page {
    /// A bit for each id: whether the thread is known.
    met: u64,
    /// An entry for each bit that is set, in the order of the ids.
    entries: Vec<ThreadEntry>,
}

impl Page {
    /// Index in `entries` at which the entry of an id is, or would be inserted.
    fn rank(&self, bit: u64) -> usize {
        (self.met & (bit - 1)).count_ones() as usize
    }

    fn find(&self, bit: u64) -> Option<usize> {
        (self.met & bit != 0).then(|| self.rank(bit))
    }

    fn get(&mut self, bit: u64) -> &mut ThreadEntry {
        let rank = self.rank(bit);
        if self.met & bit == 0 {
            self.met |= bit;
            self.entries.insert(rank, ThreadEntry::default());
        }
        &mut self.entries[rank]
    }

    fn is_sound(&self) -> bool {
        self.met.count_ones() as usize == self.entries.len()
    }
}

/// Key of a thread's page, and the thread's bit in it.
fn page(thread: ThreadKey) -> (ThreadKey, u64) {
    let bit = 1 << (thread.tid & ((1 << PAGE_BITS) - 1));
    (thread.with(thread.tid >> PAGE_BITS), bit)
}

/// All known threads, about 80 bytes each. A thread without an entry is the only thread of its
/// process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Members {
    pages: Table<Shared<Page>>,
}

impl Members {
    /// Process and table of a thread.
    pub(crate) fn belonging(&self, thread: ThreadKey) -> Belonging {
        let known = self.find(thread).and_then(|entry| entry.belonging);
        known.unwrap_or_else(|| Belonging::alone(thread))
    }

    /// Entry of a known thread.
    pub(crate) fn find(&self, thread: ThreadKey) -> Option<&ThreadEntry> {
        let (page, bit) = page(thread);
        let page = self.pages.find(page)?;
        page.entries.get(page.find(bit)?)
    }

    /// Like [`Members::find`], mutable; copies the page if another copy shares it.
    pub(crate) fn find_mut(&mut self, thread: ThreadKey) -> Option<&mut ThreadEntry> {
        let (page, bit) = page(thread);
        let page = self.pages.find_mut(page)?;
        let at = page.find(bit)?;
        page.change().entries.get_mut(at)
    }

    /// Entry of a thread, which is added if it is not known.
    pub(crate) fn get(&mut self, thread: ThreadKey) -> &mut ThreadEntry {
        let (page, bit) = page(thread);
        self.pages.get(page).change().get(bit)
    }

    /// Entries of all known threads.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &ThreadEntry> {
        self.pages.entries().flat_map(|(_, page)| &page.entries)
    }

    /// Whether adding threads can have produced this value; may be false for deserialized data.
    pub(crate) fn is_sound(&self) -> bool {
        self.pages.is_sound() && self.pages.entries().all(|(_, page)| page.is_sound())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Ids far apart and next to each other, also below zero, in two traces.
    fn threads() -> impl Iterator<Item = ThreadKey> {
        let tids = (0..4000).map(|at: i32| (at * 37) % 300 - 150 + (at % 3) * 100_000);
        tids.zip(0..)
            .map(|(tid, at)| ThreadKey { trace: at % 2, tid })
    }

    #[test]
    fn members_are_as_a_map_and_those_kept_stay_as_they_were() {
        let (mut members, mut map) = (Members::default(), HashMap::new());
        let mut kept = Vec::new();
        for (thread, number) in threads().zip(0..) {
            if number % 500 == 0 {
                kept.push((members.clone(), map.clone()));
            }
            let known = members.find(thread).map(|entry| entry.users.others);
            assert_eq!(known, map.get(&thread).copied());
            assert_eq!(members.find_mut(thread).is_some(), known.is_some());
            members.get(thread).users.others = number;
            map.insert(thread, number);
        }
        kept.push((members, map));
        for (members, map) in kept {
            assert!(members.is_sound());
            assert_eq!(members.entries().count(), map.len());
            for thread in threads() {
                let known = members.find(thread).map(|entry| entry.users.others);
                assert_eq!(known, map.get(&thread).copied());
            }
        }
    }
}
