//! Facts about threads that slices need from earlier slices and that seldom change: the process of
//! each thread, and whether it makes calls.
//!
//! The serial merge of chunks maintains the directory from small summaries of chunks
//! ([`ThreadNews`]); slices get copies.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, Items, KeyHasher, ThreadKey};

/// Facts about a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadFacts {
    /// Process of the thread, if known.
    pub pid: Option<i32>,
    /// The thread has made calls, or died, in the chunks merged so far.
    pub is_active: bool,
}

/// A change of a thread's process or id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThreadMove {
    /// The thread is created.
    Made(i32),
    /// The thread whose id was the second id has the first id from now on.
    TakeOver(i32, i32),
    /// The first id is a thread of the process with the second id.
    Belongs(i32, i32),
}

/// Changes of facts about threads in some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ThreadNews {
    moves: Items<ThreadMove>,
    /// Threads that have made calls, or died; each appears once or a few times per chunk.
    active: Vec<ThreadKey>,
    /// The most recently added threads, indexed by their ids modulo the length.
    #[serde(skip)]
    near: Vec<Option<ThreadKey>>,
}

/// Number of recently active threads that are remembered.
const NEAR: usize = 256;

impl ThreadNews {
    /// Records that the thread makes calls or dies.
    #[inline]
    pub fn is_active(&mut self, thread: ThreadKey) {
        let slot = thread.tid as usize % NEAR;
        if self.near.get(slot) != Some(&Some(thread)) {
            self.add_active(thread, slot);
        }
    }

    #[cold]
    fn add_active(&mut self, thread: ThreadKey, slot: usize) {
        self.near.resize(NEAR, None);
        self.near[slot] = Some(thread);
        self.active.push(thread);
    }

    /// Records a change of a thread, at the time that the CPU's items have for it
    /// ([`Items::held`]).
    pub fn moves(&mut self, cpu: CpuKey, time: i64, of: ThreadMove) {
        self.moves.push(cpu, time, of);
    }

    /// Appends the changes of later chunks, before the items of those chunks are added to `items`.
    pub fn append<I>(&mut self, later: ThreadNews, items: &Items<I>) {
        self.moves.hold(items);
        self.moves.append(later.moves);
        self.active.extend(later.active);
    }
}

type Facts = HashMap<ThreadKey, ThreadFacts, BuildHasherDefault<KeyHasher>>;

/// Facts about all threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(
    from = "Vec<(ThreadKey, ThreadFacts)>",
    into = "Vec<(ThreadKey, ThreadFacts)>"
)]
pub struct ThreadDirectory {
    /// Shared with slices.
    all: Arc<Facts>,
    /// Changes since `all` was built. Kept small, since each slice gets a copy.
    recent: Facts,
}

impl ThreadDirectory {
    /// Returns the facts about a thread.
    pub fn get(&self, thread: ThreadKey) -> ThreadFacts {
        let found = self.recent.get(&thread).or_else(|| self.all.get(&thread));
        found.copied().unwrap_or_default()
    }

    fn set(&mut self, thread: ThreadKey, facts: ThreadFacts) {
        if self.get(thread) == facts {
            return;
        }
        self.recent.insert(thread, facts);
        if self.recent.len() * self.recent.len() > self.all.len() + 256 {
            let recent = std::mem::take(&mut self.recent);
            Arc::make_mut(&mut self.all).extend(recent);
        }
    }

    fn moves(&mut self, trace: u32, moves: ThreadMove) {
        let key = |tid: i32| ThreadKey { trace, tid };
        match moves {
            ThreadMove::Made(tid) => self.belongs(key(tid), None),
            ThreadMove::Belongs(tid, pid) => self.belongs(key(tid), Some(pid)),
            ThreadMove::TakeOver(tid, old) => {
                let pid = self.get(key(old)).pid;
                self.belongs(key(old), None);
                self.belongs(key(tid), pid);
            }
        }
    }

    fn belongs(&mut self, thread: ThreadKey, pid: Option<i32>) {
        let facts = self.get(thread);
        self.set(thread, ThreadFacts { pid, ..facts });
    }

    /// Advances to `until`, in nanoseconds from the origin, up to which all chunks are merged.
    /// Returns the facts from before the advance, but with all threads active that are so by
    /// `until`.
    pub fn go_on(&mut self, news: &mut ThreadNews, until: i64) -> ThreadDirectory {
        for thread in std::mem::take(&mut news.active) {
            let is_active = true;
            let facts = self.get(thread);
            self.set(thread, ThreadFacts { is_active, ..facts });
        }
        let before = self.clone();
        let mut moves = news.moves.cut(until);
        moves.play(None, |cpu, _, moves| self.moves(cpu.trace, moves));
        before
    }
}

// Most formats allow only text as keys of maps.
impl From<Vec<(ThreadKey, ThreadFacts)>> for ThreadDirectory {
    fn from(facts: Vec<(ThreadKey, ThreadFacts)>) -> Self {
        ThreadDirectory {
            all: Arc::new(facts.into_iter().collect()),
            recent: Facts::default(),
        }
    }
}

impl From<ThreadDirectory> for Vec<(ThreadKey, ThreadFacts)> {
    fn from(directory: ThreadDirectory) -> Self {
        let mut all = (*directory.all).clone();
        all.extend(directory.recent);
        all.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: CpuKey = CpuKey { trace: 0, cpu: 0 };

    fn key(tid: i32) -> ThreadKey {
        ThreadKey { trace: 0, tid }
    }

    #[test]
    fn slices_get_what_was_known_before_them() {
        let mut news = ThreadNews::default();
        let moves = [
            (10, ThreadMove::Belongs(1, 1)),
            (20, ThreadMove::Made(2)),
            (20, ThreadMove::Belongs(2, 1)),
            (30, ThreadMove::TakeOver(1, 2)),
        ];
        for (time, of) in moves {
            news.moves(CPU, time, of);
        }
        news.is_active(key(2));
        let mut directory = ThreadDirectory::default();
        let pids = |directory: &ThreadDirectory| [1, 2].map(|tid| directory.get(key(tid)).pid);
        let before = directory.go_on(&mut news, 20);
        assert_eq!(pids(&before), [None, None]);
        assert!(before.get(key(2)).is_active && !before.get(key(1)).is_active);
        let before = directory.go_on(&mut news, 30);
        assert_eq!(pids(&before), [Some(1), None]);
        let before = directory.go_on(&mut news, 40);
        assert_eq!(pids(&before), [Some(1), Some(1)]);
        assert_eq!(pids(&directory), [Some(1), None]);
    }

    /// Even with many threads, a slice copies few facts.
    #[test]
    fn copies_are_small() {
        let mut news = ThreadNews::default();
        let mut directory = ThreadDirectory::default();
        for tid in 0..10_000 {
            news.is_active(key(tid));
            directory.go_on(&mut news, 0);
            assert!(directory.recent.len() <= 110, "{}", directory.recent.len());
        }
        let facts: Vec<_> = directory.into();
        assert!(ThreadDirectory::from(facts).get(key(9999)).is_active);
    }
}
