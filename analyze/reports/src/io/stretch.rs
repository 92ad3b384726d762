//! Stretches: the activity of one thread on a CPU from one boundary (a switch, or a loss of events)
//! to the next, in pieces that chunks cut.
//!
//! Within a stretch, an entry is paired with the exit that follows. A call that is open at the end
//! of the stretch is parked with the thread; an exit that comes first in a stretch ends the parked
//! call.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Change, Exit, Open};

use crate::io::call::{Done, EndingCall};
use crate::io::item::{IoAction, IoItem, UNNAMED, name};
use crate::io::sink::{Batch, Draft, Sink};
use tracebraid_follow::{CpuKey, Limits, ThreadKey};

/// The first event of a stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) enum First {
    #[default]
    Nothing,
    Exit(i64, Exit),
    Entry(i64),
}

/// A stretch, or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Stretch {
    /// The thread, if known.
    pub(super) tid: Option<i32>,
    /// True if the stretch begins here, false if it may continue earlier chunks.
    pub(super) begun: bool,
    pub(super) first: First,
    /// True if the first event has been added as an item.
    pub(super) told: bool,
    pub(super) open: Option<Open>,
    /// Items before the first event, while the thread is unknown.
    pub(super) before: Vec<IoItem>,
    /// Items and calls after the first event, while the thread is unknown.
    pub(super) since: Vec<Batch>,
}

/// The end of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Boundary {
    /// A switch from a thread, which is unknown if only events of the next thread reveal the
    /// switch.
    Switch { time: i64, prev: Option<i32> },
    /// Lost events.
    Loss { time: i64 },
}

/// The state of a CPU after some chunks: the stretch at their start and, if they contain a
/// boundary, the first boundary and the stretch at their end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Edges {
    pub(super) key: CpuKey,
    pub(super) head: Stretch,
    pub(super) tail: Option<(Boundary, Stretch)>,
}

impl Stretch {
    /// Appends a later part of the same stretch.
    fn append(&mut self, key: CpuKey, later: Stretch, limits: &Limits, sink: &mut Sink) {
        self.put_items(key, later.before, sink);
        let tid = self.tid.unwrap_or(UNNAMED);
        let mut out = Draft::new(key);
        match (later.first, self.open.take()) {
            (First::Nothing, open) => self.open = open,
            (First::Exit(time, exit), Some(open)) => {
                finish(&open, (time, tid), &exit, limits, &mut out);
            }
            (First::Entry(time), Some(open)) => out.items.extend(open.lost(time, tid)),
            (first, None) if self.first == First::Nothing => {
                self.first = first;
                // If the start or the thread of the stretch is unknown, the event waits.
                if self.tid.is_some() && self.begun {
                    self.told = true;
                    out.items.extend(first.item(tid));
                }
            }
            (First::Exit(time, exit), None) => out.items.extend(alone(&exit, time, tid)),
            (First::Entry(_), None) => {}
        }
        if later.first != First::Nothing {
            self.open = later.open;
        }
        for batch in out.finish().into_iter().chain(later.since) {
            self.put(batch, sink);
        }
    }

    /// Adds a batch: to the sink if the thread is known.
    fn put(&mut self, mut batch: Batch, sink: &mut Sink) {
        match self.tid {
            Some(tid) => {
                batch.name(tid);
                sink.add([batch]);
            }
            None => self.since.push(batch),
        }
    }

    fn put_items(&mut self, key: CpuKey, items: Vec<IoItem>, sink: &mut Sink) {
        if self.tid.is_none() && self.first == First::Nothing {
            self.before.extend(items);
        } else {
            let mut draft = Draft::new(key);
            draft.items.extend(items);
            draft
                .finish()
                .into_iter()
                .for_each(|batch| self.put(batch, sink));
        }
    }

    /// Ends the stretch, whose thread is `tid`.
    pub(super) fn close(mut self, key: CpuKey, tid: i32, end: Boundary, sink: &mut Sink) {
        name(&mut self.before, tid);
        let first = self.first.item(tid).filter(|_| !self.told);
        sink.add_items(key, self.before.into_iter().chain(first));
        for mut batch in self.since {
            batch.name(tid);
            sink.add([batch]);
        }
        sink.add_items(key, self.open.and_then(|open| end.leaves(open, tid)));
    }

    /// The earliest time in the stretch that waits for its thread.
    fn waits_since(&self) -> Option<i64> {
        if self.tid.is_some() {
            return None;
        }
        let first = match self.first {
            First::Nothing => None,
            First::Exit(time, _) | First::Entry(time) => Some(time),
        };
        let before = self.before.iter().map(|item| item.time);
        let since = self.since.iter().filter_map(Batch::begin);
        before.chain(since).chain(first).min()
    }
}

impl First {
    /// The event as an item of a thread.
    pub(super) fn item(self, tid: i32) -> Option<IoItem> {
        let (time, what) = match self {
            First::Nothing => return None,
            First::Exit(time, exit) => (time, IoAction::Exit(exit)),
            First::Entry(time) => (time, IoAction::Entry),
        };
        Some(IoItem { time, tid, what })
    }
}

impl Boundary {
    /// The item for a call that is open at the boundary.
    pub(super) fn leaves(self, open: Open, tid: i32) -> Option<IoItem> {
        match self {
            Boundary::Switch { time, .. } => Some(IoItem {
                time,
                tid,
                what: IoAction::Park(open),
            }),
            // The next exit may belong to another call.
            Boundary::Loss { time } => open.lost(time, tid),
        }
    }

    /// The thread of the stretch before the boundary, if the boundary records it.
    pub(super) fn prev(self) -> Option<i32> {
        match self {
            Boundary::Switch { prev, .. } => prev,
            Boundary::Loss { .. } => None,
        }
    }
}

/// Items for calls whose entry or exit was lost.
pub(super) trait LostCall {
    /// The item for a call whose exit proves to be lost at `time`.
    fn lost(&self, time: i64, tid: i32) -> Option<IoItem>;
}

impl LostCall for Open {
    fn lost(&self, time: i64, tid: i32) -> Option<IoItem> {
        self.is_io().then_some(IoItem {
            time,
            tid,
            what: IoAction::Unfinished(self.time),
        })
    }
}

/// Ends a call.
fn finish(open: &Open, (time, tid): (i64, i32), exit: &Exit, limits: &Limits, out: &mut Draft) {
    match open.end(time, exit, limits) {
        Done::Io(io) => {
            out.calls.begin(tid, &io);
        }
        Done::Change(change) => out.items.push(change_item(change, time, tid)),
        Done::Nothing => {}
        Done::Mismatch => {
            out.items.extend(open.lost(time, tid));
            out.items.extend(alone(exit, time, tid));
        }
    }
}

/// A change as an item of a thread.
pub(super) fn change_item(change: Change, time: i64, tid: i32) -> IoItem {
    let what = IoAction::Change(change);
    IoItem { time, tid, what }
}

/// The items for an exit whose entry was lost.
pub(super) fn alone(exit: &Exit, time: i64, tid: i32) -> impl Iterator<Item = IoItem> + use<> {
    let open = exit.call.map(|call| Open::new(call, time, &mut |_| None));
    let io = exit.counts && open.is_some_and(|open| open.is_io());
    let change = open
        .and_then(|open| Change::of(&open, exit))
        .map(IoAction::Change);
    let whats = io.then_some(IoAction::Unstarted).into_iter().chain(change);
    whats.map(move |what| IoItem { time, tid, what })
}

impl Edges {
    /// Joins the state of the CPU from later chunks.
    pub(super) fn join(&mut self, later: Edges, limits: &Limits, sink: &mut Sink) {
        let key = self.key;
        let last = match &mut self.tail {
            Some((_, tail)) => tail,
            None => &mut self.head,
        };
        last.append(key, later.head, limits, sink);
        let Some((boundary, stretch)) = later.tail else {
            return;
        };
        match &mut self.tail {
            // The stretch before the first boundary waits for earlier chunks.
            None => self.tail = Some((boundary, stretch)),
            Some((_, tail)) => {
                let done = std::mem::replace(tail, stretch);
                // If the stretch began with a loss, only the boundary records its thread.
                let tid = done.tid.or(boundary.prev()).unwrap_or(ThreadKey::UNKNOWN);
                done.close(key, tid, boundary, sink);
            }
        }
    }

    /// At the beginning of the trace: the first stretch belongs to the thread that its boundary
    /// records. Its items go to the front of the sink, so that events of one CPU stay in order.
    pub(super) fn open_beginning(&mut self, sink: &mut Sink) {
        let Some((boundary, _)) = self.tail else {
            return;
        };
        let head = std::mem::take(&mut self.head);
        let tid = head.tid.or(boundary.prev()).unwrap_or(ThreadKey::UNKNOWN);
        let mut first = Sink::default();
        head.close(self.key, tid, boundary, &mut first);
        if !first.is_empty() {
            sink.prepend(first);
        }
    }

    /// At the end of the trace: open calls stay unfinished.
    pub(super) fn close(mut self, sink: &mut Sink) {
        let key = self.key;
        self.open_beginning(sink);
        let last = match self.tail {
            Some((_, tail)) => tail,
            None => self.head,
        };
        let tid = last.tid.unwrap_or(ThreadKey::UNKNOWN);
        last.close(key, tid, Boundary::Loss { time: i64::MAX }, sink);
    }

    /// The earliest time that waits for its thread.
    pub(super) fn waits_since(&self) -> Option<i64> {
        let tail = self.tail.as_ref().and_then(|(_, tail)| tail.waits_since());
        self.head.waits_since().into_iter().chain(tail).min()
    }

    /// Start of the oldest open call that a later chunk may end.
    pub(super) fn open_since(&self) -> Option<i64> {
        let tail = self.tail.as_ref().map_or(&self.head, |(_, tail)| tail);
        tail.open
            .map(|open| open.time)
            .into_iter()
            .chain(self.head.open.map(|open| open.time))
            .min()
    }
}
