//! Threads, in a table that can be kept as it is at little cost while it changes.
//!
//! Each slice of time keeps the threads as they were when it began. A trace may have hundreds of
//! thousands of threads, of which a slice changes a few: only their pages are copied.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Table, ThreadKey};

use crate::belongings::{Belonging, Person};
use crate::shared::Shared;

/// A page contains 2 to the power of this many consecutive ids: threads that are created one after
/// another usually have consecutive ids.
const PAGE_BITS: u32 = 6;

/// The threads of consecutive ids.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Page {
    /// A bit for each id: whether it was met.
    met: u64,
    /// One for each bit that is set, in the order of the ids.
    people: Vec<Person>,
}

impl Page {
    /// Index of the entry in `people` for that id, whether or not it was met.
    fn rank(&self, bit: u64) -> usize {
        (self.met & (bit - 1)).count_ones() as usize
    }

    fn find(&self, bit: u64) -> Option<usize> {
        (self.met & bit != 0).then(|| self.rank(bit))
    }

    fn get(&mut self, bit: u64) -> &mut Person {
        let rank = self.rank(bit);
        if self.met & bit == 0 {
            self.met |= bit;
            self.people.insert(rank, Person::default());
        }
        &mut self.people[rank]
    }

    fn is_sound(&self) -> bool {
        self.met.count_ones() as usize == self.people.len()
    }
}

/// The page of a thread, and its bit there.
fn page(thread: ThreadKey) -> (ThreadKey, u64) {
    let bit = 1 << (thread.tid & ((1 << PAGE_BITS) - 1));
    (thread.with(thread.tid >> PAGE_BITS), bit)
}

/// Threads; who is not in it is alone in its process. Takes about 80 bytes for each thread that was
/// met.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Members {
    pages: Table<Shared<Page>>,
}

impl Members {
    /// What a thread belongs to.
    pub(crate) fn belonging(&self, thread: ThreadKey) -> Belonging {
        let known = self.find(thread).and_then(|person| person.belonging);
        known.unwrap_or_else(|| Belonging::alone(thread))
    }

    /// A thread that was met.
    pub(crate) fn find(&self, thread: ThreadKey) -> Option<&Person> {
        let (page, bit) = page(thread);
        let page = self.pages.find(page)?;
        page.people.get(page.find(bit)?)
    }

    /// A thread that was met, to be changed.
    pub(crate) fn find_mut(&mut self, thread: ThreadKey) -> Option<&mut Person> {
        let (page, bit) = page(thread);
        let page = self.pages.find_mut(page)?;
        let at = page.find(bit)?;
        page.change().people.get_mut(at)
    }

    /// A thread, which is added if it was not met.
    pub(crate) fn get(&mut self, thread: ThreadKey) -> &mut Person {
        let (page, bit) = page(thread);
        self.pages.get(page).change().get(bit)
    }

    /// All threads that were met.
    pub(crate) fn people(&self) -> impl Iterator<Item = &Person> {
        self.pages.entries().flat_map(|(_, page)| &page.people)
    }

    /// Whether it can have come about by adding threads.
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
        tids.zip(0..).map(|(tid, at)| ThreadKey { trace: at % 2, tid })
    }

    #[test]
    fn members_are_as_a_map_and_those_kept_stay_as_they_were() {
        let (mut members, mut map) = (Members::default(), HashMap::new());
        let mut kept = Vec::new();
        for (thread, number) in threads().zip(0..) {
            if number % 500 == 0 {
                kept.push((members.clone(), map.clone()));
            }
            let known = members.find(thread).map(|person| person.users.others);
            assert_eq!(known, map.get(&thread).copied());
            assert_eq!(members.find_mut(thread).is_some(), known.is_some());
            members.get(thread).users.others = number;
            map.insert(thread, number);
        }
        kept.push((members, map));
        for (members, map) in kept {
            assert!(members.is_sound());
            assert_eq!(members.people().count(), map.len());
            for thread in threads() {
                let known = members.find(thread).map(|person| person.users.others);
                assert_eq!(known, map.get(&thread).copied());
            }
        }
    }
}
