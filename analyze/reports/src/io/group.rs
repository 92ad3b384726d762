//! Groups of calls with the same descriptor, which most often was the same thing for all of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Syscall;

use crate::io::call::{Io, Sums, sums};
use crate::kernel::ThreadKey;

/// Calls of one thread, by one system call, with the same descriptors, while that thread did not
/// change descriptors. Others may have: then the calls are looked at one by one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Group {
    pub(super) thread: ThreadKey,
    pub(super) call: Syscall,
    pub(super) fds: (i32, i32),
    /// Times of the first and the last entry.
    pub(super) first: i64,
    pub(super) last: i64,
    count: u64,
    errors: u64,
    bytes: u64,
    latency: u64,
    longest: u64,
    /// Where its calls are, if there are several.
    calls: Option<Place>,
}

/// The last call of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    arena: ArenaKey,
    last: u32,
}

/// One call of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Single {
    entry: i64,
    latency: u64,
    result: i64,
    /// The one before it in the group.
    before: Option<u32>,
}

/// Chunk and lane that calls come from.
pub(super) type ArenaKey = u64;

/// The calls of a lane's groups, in one piece: groups are many and small, and they are made and
/// done with by different threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Arena {
    calls: Vec<Single>,
    /// Groups that have calls in it.
    groups: u32,
}

impl Arena {
    /// True if no group has calls in it.
    pub(super) fn is_empty(&self) -> bool {
        self.groups == 0
    }

    fn add(&mut self, single: Single) -> u32 {
        self.calls.push(single);
        // A chunk has less event records than that.
        (self.calls.len() - 1) as u32
    }
}

/// Those whose groups have not all been settled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Arenas(BTreeMap<ArenaKey, Arena>);

impl Arenas {
    pub(super) fn add(&mut self, key: ArenaKey, arena: Arena) {
        if !arena.is_empty() {
            self.0.insert(key, arena);
        }
    }

    pub(super) fn merge(&mut self, later: Arenas) {
        self.0.extend(later.0);
    }

    /// The calls of a group as groups of one, from the last to the first.
    pub(super) fn split<'a>(&'a self, group: &Group) -> impl Iterator<Item = Group> + use<'a> {
        let Group {
            thread,
            call,
            fds,
            calls,
            ..
        } = *group;
        let arena = calls.and_then(|place| self.0.get(&place.arena));
        let single = move |at: u32| arena.and_then(|arena| arena.calls.get(at as usize));
        let last = calls.and_then(|place| single(place.last));
        std::iter::successors(last, move |later| single(later.before?)).map(move |single| {
            let Single {
                entry,
                latency,
                result,
                ..
            } = *single;
            Group::new(
                thread,
                &Io {
                    call,
                    fds,
                    entry,
                    latency,
                    result,
                },
            )
        })
    }

    /// A group is done with.
    pub(super) fn release(&mut self, group: &Group) {
        let Some(place) = group.calls else { return };
        if let Some(arena) = self.0.get_mut(&place.arena) {
            arena.groups = arena.groups.saturating_sub(1);
            if arena.is_empty() {
                self.0.remove(&place.arena);
            }
        }
    }
}

impl Group {
    pub(super) fn new(thread: ThreadKey, io: &Io) -> Group {
        Group {
            thread,
            call: io.call,
            fds: io.fds,
            first: io.entry,
            last: io.entry,
            count: 1,
            errors: u64::from(io.result < 0),
            bytes: u64::try_from(io.result).unwrap_or(0),
            latency: io.latency,
            longest: io.latency,
            calls: None,
        }
    }

    /// True if a call of that thread belongs to it.
    #[inline(always)]
    pub(super) fn is_of(&self, thread: ThreadKey, io: &Io) -> bool {
        self.thread == thread && self.call == io.call && self.fds == io.fds
    }

    #[inline]
    pub(super) fn add(&mut self, io: &Io, key: ArenaKey, arena: &mut Arena) {
        let before = match self.calls {
            Some(place) => place.last,
            None => {
                arena.groups += 1;
                let result = if self.errors > 0 { -1 } else { self.bytes as i64 };
                arena.add(Single {
                    entry: self.first,
                    latency: self.latency,
                    result,
                    before: None,
                })
            }
        };
        let Io {
            entry,
            latency,
            result,
            ..
        } = *io;
        let last = arena.add(Single {
            entry,
            latency,
            result,
            before: Some(before),
        });
        self.calls = Some(Place { arena: key, last });
        self.count += 1;
        self.errors += u64::from(result < 0);
        self.bytes = self.bytes.saturating_add(u64::try_from(result).unwrap_or(0));
        self.latency = self.latency.saturating_add(latency);
        self.longest = self.longest.max(latency);
        self.first = self.first.min(entry);
        self.last = self.last.max(entry);
    }

    /// See [`sums`].
    pub(super) fn sums(&self) -> (Sums, Option<Sums>) {
        sums(
            self.call,
            self.count,
            self.errors,
            self.bytes,
            self.latency,
            self.longest,
        )
    }

    /// True if it is one call.
    pub(super) fn is_single(&self) -> bool {
        self.calls.is_none()
    }
}
