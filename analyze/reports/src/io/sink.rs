//! Calls and changes of descriptors that wait for the order of time.
//!
//! The type of a descriptor at a time is known once all CPUs have been merged up to that time.
//! Until then calls are kept in groups with the same thread, system call and descriptor (16 bytes a
//! call), and all other events in the order of time, as records of a few bytes (`crate::packed`).
//! That is some ten thousand entries for each waiting chunk, and most of the memory of the report.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::Shared;
use tracebraid_follow::CpuKey;

use crate::io::cut::{Cut, Piece};
use crate::io::group::{self, Calls, Group};
use crate::io::item::{IoItem, UNNAMED};
use crate::io::items::{self, Items, Log, Position};
use crate::io::span::Span;

/// Events of a CPU in the part of the trace that is being read.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) cpu: CpuKey,
    pub(super) items: Log,
    pub(super) calls: Calls,
}

/// Events of a CPU in a part of the trace. Slices of time take them out and share them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Batch {
    cpu: CpuKey,
    items: Shared<Items>,
    /// At or shortly before the first item that was not taken.
    at: Position,
    /// Items that decide which thread uses which descriptor table, and a touch by each thread that
    /// may change a table.
    acts: Shared<Items>,
    /// At or shortly before the first act that was not taken.
    acts_at: Position,
    calls: Shared<Calls>,
    /// Thread of the unnamed items.
    named: i32,
    /// Events before this time have been taken.
    from: i64,
    /// Start of the oldest call in the batch.
    since: Option<i64>,
    /// Start of the last call of a group.
    until: Option<i64>,
}

/// A position in a draft.
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

    /// The current end.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            items: self.items.mark(),
            calls: self.calls.mark(),
        }
    }

    /// Removes and returns the events after the mark.
    pub(super) fn split_off(&mut self, mark: Mark) -> Draft {
        let mut rest = Draft::new(self.cpu);
        rest.items.extend(self.items.split_off(mark.items));
        rest.calls = self.calls.split_off(mark.calls);
        rest
    }

    /// Completes the draft; `None` if it is empty.
    pub(super) fn finish(self) -> Option<Batch> {
        let groups = || self.calls.groups();
        let first = groups().map(|group| group.first).min();
        let until = groups().map(Group::last).max();
        let since = self.items.since().into_iter().chain(first).min();
        let (items, acts) = self.items.finish();
        let is_empty = items.range.is_none() && self.calls.is_empty();
        (!is_empty).then(|| Batch {
            cpu: self.cpu,
            items: Shared::new(items),
            at: Position::default(),
            acts: Shared::new(acts),
            acts_at: Position::default(),
            calls: Shared::new(self.calls),
            named: UNNAMED,
            from: i64::MIN,
            since,
            until,
        })
    }
}

impl Batch {
    /// Sets the thread of the unnamed items and groups.
    pub(super) fn name(&mut self, tid: i32) {
        if self.named == UNNAMED {
            self.named = tid;
        }
        if !self.calls.is_empty() {
            self.calls.change().name(Default::default(), tid);
        }
    }

    /// The earliest time in the batch.
    pub(super) fn begin(&self) -> Option<i64> {
        let first = self.items.range.map(|range| range.0);
        first.into_iter().chain(self.since).min()
    }

    /// Takes the acts before a time that decide which thread uses which descriptor table. Must be
    /// called before `cut`.
    fn cut_acts(&mut self, until: i64) -> Option<Piece> {
        let span = Span {
            from: self.from,
            until: Some(until),
        };
        if !self.acts.range.is_some_and(|range| span.meets(range)) {
            return None;
        }
        let (at, named) = (self.acts_at, self.named);
        let is_last = self.acts.range.is_some_and(|range| range.1 < until);
        let items = match is_last {
            // No later piece needs the acts.
            true => std::mem::take(&mut self.acts),
            false => self.acts.clone(),
        };
        self.acts_at = self.acts.seek(until);
        Some(Piece {
            cpu: self.cpu,
            items,
            at,
            calls: Shared::default(),
            named,
            span,
        })
    }

    /// Takes the events before a time, or all.
    fn cut(&mut self, until: Option<i64>) -> Option<Piece> {
        let span = Span {
            from: self.from,
            until,
        };
        let items = self.items.range.is_some_and(|range| span.meets(range));
        let calls = self.since.zip(self.until);
        let calls = calls.is_some_and(|range| span.meets(range));
        if !items && !calls {
            return None;
        }
        let piece = Piece {
            cpu: self.cpu,
            items: self.items.clone(),
            at: self.at,
            calls: self.calls.clone(),
            named: self.named,
            span,
        };
        if let Some(until) = until {
            self.at = self.items.seek(until);
            self.from = until;
            // The remaining calls of groups begin from there on.
            let calls = self.until.filter(|last| *last >= until).map(|_| until);
            self.since = self.items.since(until).into_iter().chain(calls).min();
        }
        Some(piece)
    }

    /// Whether no events remain from that time on.
    fn is_before(&self, until: Option<i64>) -> bool {
        let last = self.items.range.map(|range| range.1);
        let last = last.into_iter().chain(self.until).max();
        until.is_none_or(|until| last.is_none_or(|last| last < until))
    }
}

/// Waiting events whose thread is known. Batches of one CPU are in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sink {
    batches: Vec<Batch>,
}

impl Sink {
    pub(super) fn add(&mut self, batch: impl IntoIterator<Item = Batch>) {
        self.batches.extend(batch);
    }

    pub(super) fn add_items(&mut self, cpu: CpuKey, items: impl IntoIterator<Item = IoItem>) {
        let mut draft = Draft::new(cpu);
        draft.items.extend(items);
        self.add(draft.finish());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Appends later events.
    pub(super) fn append(&mut self, mut later: Sink) {
        self.batches.append(&mut later.batches);
    }

    /// Prepends earlier events.
    pub(super) fn prepend(&mut self, mut earlier: Sink) {
        earlier.append(std::mem::take(self));
        *self = earlier;
    }

    /// Takes the items before a time, or all, and the calls that began before it. The cost depends
    /// on the number of batches.
    pub(super) fn cut(&mut self, until: Option<i64>) -> Cut {
        let pieces = self.batches.iter_mut().filter_map(|batch| batch.cut(until));
        let pieces = pieces.collect();
        self.batches.retain(|batch| !batch.is_before(until));
        Cut { pieces }
    }

    /// Takes the acts before a time that decide which thread uses which descriptor table, from the
    /// items that `cut` takes next.
    pub(super) fn cut_acts(&mut self, until: i64) -> Cut {
        let pieces = self.batches.iter_mut();
        let pieces = pieces.filter_map(|batch| batch.cut_acts(until)).collect();
        Cut { pieces }
    }

    /// Start of the oldest waiting call.
    pub(super) fn since(&self) -> Option<i64> {
        self.batches.iter().filter_map(|batch| batch.since).min()
    }
}
