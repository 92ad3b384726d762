//! Calls and changes of descriptors that wait to be looked at.
//!
//! What a descriptor was at a time is known once all CPUs have been merged up to that time. Until
//! then calls are kept in groups of the same thread, system call and descriptor (16 bytes a call),
//! and everything else in the order of time, as records of a few bytes (`crate::packed`). That is
//! some ten thousand entries for each chunk that waits, and most of the memory of the report.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use serde::{Deserialize, Serialize};

use crate::io::group::{self, Calls, Group};
use crate::io::item::Item;
use crate::io::items::{self, Items, Log};
use tracebraid_follow::CpuKey;

/// What happens on a CPU in a part of the trace that is being read.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) cpu: CpuKey,
    pub(super) items: Log,
    pub(super) calls: Calls,
}

/// What happened on a CPU in a part of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Batch {
    cpu: CpuKey,
    items: Items,
    calls: Calls,
    /// When the first call began that something here tells of.
    since: Option<i64>,
    /// When the last call of a group began.
    until: Option<i64>,
}

/// A place in a draft.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) items: items::Mark,
    pub(super) calls: group::Mark,
}

impl Draft {
    pub(super) fn new(cpu: CpuKey) -> Draft {
        Draft {
            cpu,
            items: Log::default(),
            calls: Calls::default(),
        }
    }

    /// How far it has come.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            items: self.items.mark(),
            calls: self.calls.mark(),
        }
    }

    /// Takes out what was added since the mark.
    pub(super) fn split_off(&mut self, mark: Mark) -> Draft {
        let mut rest = Draft::new(self.cpu);
        rest.items.extend(self.items.split_off(mark.items));
        rest.calls = self.calls.split_off(mark.calls);
        rest
    }

    /// Nothing will be added. `None` if nothing was.
    pub(super) fn finish(self) -> Option<Batch> {
        let groups = || self.calls.groups();
        let first = groups().map(|group| group.first).min();
        let batch = Batch {
            cpu: self.cpu,
            since: self.items.since().into_iter().chain(first).min(),
            until: groups().map(Group::last).max(),
            items: self.items.finish(),
            calls: self.calls,
        };
        (!batch.is_empty()).then_some(batch)
    }
}

impl Batch {
    /// It turns out whose it is.
    pub(super) fn name(&mut self, tid: i32) {
        self.items.name(tid);
        self.calls.name(Default::default(), tid);
    }

    /// The earliest time that it tells of.
    pub(super) fn begin(&self) -> Option<i64> {
        self.items.next_time().into_iter().chain(self.since).min()
    }

    /// True if all has been taken.
    fn is_empty(&self) -> bool {
        self.items.next_time().is_none() && self.calls.is_empty()
    }
}

/// What waits for its turn, and whose thread is known. Batches of one CPU are in its order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sink {
    batches: Vec<Batch>,
}

impl Sink {
    pub(super) fn add(&mut self, batch: impl IntoIterator<Item = Batch>) {
        self.batches.extend(batch);
    }

    pub(super) fn add_items(&mut self, cpu: CpuKey, items: impl IntoIterator<Item = Item>) {
        let mut draft = Draft::new(cpu);
        draft.items.extend(items);
        self.add(draft.finish());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Adds what came later.
    pub(super) fn append(&mut self, mut later: Sink) {
        self.batches.append(&mut later.batches);
    }

    /// Adds what came before.
    pub(super) fn prepend(&mut self, mut earlier: Sink) {
        earlier.append(std::mem::take(self));
        *self = earlier;
    }

    /// Gives away the items before a time, or all, that were not yet given: by time and CPU, those of
    /// one CPU and one time in their order.
    pub(super) fn take_items(&mut self, until: Option<i64>, mut to: impl FnMut(CpuKey, Item)) {
        let due = |batch: &Batch| {
            let time = batch.items.next_time()?;
            until.is_none_or(|until| time < until).then_some(time)
        };
        let heads = self.batches.iter().enumerate();
        let heads = heads.filter_map(|(at, batch)| Some(Reverse((due(batch)?, batch.cpu, at))));
        let mut heads: BinaryHeap<_> = heads.collect();
        // What comes next is most often of the same batch, which then stays on top.
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((_, cpu, at)) = *head;
            let batch = self.batches.get_mut(at);
            let next = batch.and_then(|batch| {
                to(cpu, batch.items.take_next()?);
                due(batch)
            });
            match next {
                Some(time) => *head = Reverse((time, cpu, at)),
                None => {
                    PeekMut::pop(head);
                }
            }
        }
    }

    /// Gives away the calls of batches all of which began before a time, or of all batches.
    pub(super) fn take_calls(&mut self, until: Option<i64>, mut to: impl FnMut(CpuKey, &Calls)) {
        for batch in &mut self.batches {
            if batch
                .until
                .is_some_and(|last| until.is_none_or(|until| last < until))
            {
                to(batch.cpu, &std::mem::take(&mut batch.calls));
                batch.until = None;
            }
        }
    }

    /// Drops what has been taken.
    pub(super) fn tidy(&mut self) {
        self.batches.retain(|batch| !batch.is_empty());
    }

    /// When the first call began that something here tells of.
    pub(super) fn since(&self) -> Option<i64> {
        self.batches.iter().filter_map(|batch| batch.since).min()
    }
}
