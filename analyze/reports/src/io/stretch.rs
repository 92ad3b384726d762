//! Stretches: what one thread does on a CPU from one boundary (a switch, or a loss of events) to
//! the next, in pieces that chunks cut.
//!
//! Within a stretch an entry is joined with the exit that follows. What is open at its end is
//! parked with the thread; an exit that comes first in a stretch takes what is parked.

use serde::{Deserialize, Serialize};

use crate::io::call::{Done, Exit, NONE, Open};
use crate::io::change::Change;
use crate::io::group::Group;
use crate::kernel::{CpuKey, ThreadKey};

/// Something that happened to a thread at a time, to be looked at in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) time: i64,
    pub(super) cpu: CpuKey,
    pub(super) thread: ThreadKey,
    pub(super) what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum What {
    /// The first event of a stretch was an exit.
    Exit(Exit),
    /// It was an entry: what was parked has lost its exit.
    Entry,
    /// A stretch ended in the middle of a call.
    Park(Open),
    /// A call that moves bytes, and that began at that time, lost its exit.
    Unfinished(i64),
    /// The exit of a call that moves bytes lost its entry.
    Unstarted,
    /// Descriptors changed.
    Change(Change),
    /// A thread was made by this one.
    Fork {
        child: i32,
        child_pid: Option<i32>,
        parent_pid: Option<i32>,
    },
    /// It executed a program.
    Exec,
    /// It ended.
    End,
    /// It belongs to that process.
    Member { pid: i32, table: Option<i64> },
    /// A process, or the owner of a table, has a descriptor.
    Holds {
        pid: Option<i32>,
        table: Option<i64>,
        fd: i32,
        kind: tracebraid_kernel_model::FdType,
        cloexec: bool,
    },
}

/// Stands for a thread that will be known later.
pub(super) const UNNAMED: i32 = i32::MIN;

/// What the first event of a stretch was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) enum First {
    #[default]
    Nothing,
    Exit(Exit),
    Entry(i64),
}

/// A stretch, or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Stretch {
    /// Whose it is, if known.
    pub(super) tid: Option<i32>,
    /// True if it begins here, false if it may go on from earlier chunks.
    pub(super) begun: bool,
    pub(super) first: First,
    /// True if the first event has been told.
    pub(super) told: bool,
    /// Else: how many of the items came before it.
    pub(super) before_first: usize,
    pub(super) open: Option<Open>,
    /// What happened in it, while it is not known whose it is.
    pub(super) items: Vec<Item>,
    pub(super) groups: Vec<Group>,
}

/// What ends a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Boundary {
    /// A switch from a thread (not known, where only the next one's events tell of it).
    Switch { time: i64, prev: Option<i32> },
    /// Lost events.
    Loss { time: i64 },
}

/// What is known of a CPU after some chunks: the stretch that they begin in, and, if they hold a
/// boundary, the first one and the stretch that they end in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Edges {
    pub(super) key: CpuKey,
    pub(super) head: Stretch,
    pub(super) tail: Option<(Boundary, Stretch)>,
}

/// Where things go whose thread is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sink {
    pub(super) items: Vec<Item>,
    pub(super) groups: Vec<Group>,
}

impl Sink {
    /// Takes over what belongs to a stretch, now that its thread is known.
    fn take(&mut self, items: Vec<Item>, groups: Vec<Group>, tid: i32) {
        self.items.extend(items.into_iter().map(|mut item| {
            if item.thread.tid == UNNAMED {
                item.thread.tid = tid;
            }
            item
        }));
        self.groups.extend(groups.into_iter().map(|mut group| {
            group.thread.tid = tid;
            group
        }));
    }
}

impl Stretch {
    /// Adds what happened behind it in the same stretch.
    fn append(&mut self, key: CpuKey, mut later: Stretch, sink: &mut Sink) {
        let rest = later.items.split_off(later.before_first.min(later.items.len()));
        self.put(later.items, Vec::new(), sink);
        let thread = ThreadKey {
            trace: key.trace,
            tid: self.tid.unwrap_or(UNNAMED),
        };
        let mut out = Sink::default();
        let item = |time, what| Item {
            time,
            cpu: key,
            thread,
            what,
        };
        match (later.first, self.open.take()) {
            (First::Nothing, open) => self.open = open,
            (First::Exit(exit), Some(open)) => finish(&open, &exit, key, thread, &mut out),
            (First::Entry(time), Some(open)) => {
                out.items
                    .extend(open.is_io().then(|| item(time, What::Unfinished(open.time))));
            }
            (first, None) if self.first == First::Nothing => {
                self.first = first;
                self.before_first = self.items.len();
                // Of a stretch whose beginning or whose thread is not known this waits for it.
                if self.tid.is_some() && self.begun {
                    self.told = true;
                    out.items.extend(first.item(key, thread));
                }
            }
            (First::Exit(exit), None) => {
                out.items.extend(exit.alone().map(|what| item(exit.time, what)));
            }
            (First::Entry(_), None) => {}
        }
        if later.first != First::Nothing {
            self.open = later.open;
        }
        out.items.extend(rest);
        out.groups.extend(later.groups);
        self.put(out.items, out.groups, sink);
    }

    /// Adds what happened next; it goes to the sink if the thread is known.
    fn put(&mut self, items: Vec<Item>, groups: Vec<Group>, sink: &mut Sink) {
        match self.tid {
            Some(tid) => sink.take(items, groups, tid),
            None => {
                self.items.extend(items);
                self.groups.extend(groups);
            }
        }
    }

    /// The stretch ends, and whose it is has been decided.
    pub(super) fn close(mut self, key: CpuKey, tid: i32, end: Boundary, sink: &mut Sink) {
        let thread = ThreadKey {
            trace: key.trace,
            tid,
        };
        let rest = self.items.split_off(self.before_first.min(self.items.len()));
        sink.take(self.items, Vec::new(), tid);
        if !self.told {
            sink.items.extend(self.first.item(key, thread));
        }
        sink.take(rest, self.groups, tid);
        let left = self.open.and_then(|open| end.leaves(open));
        sink.items.extend(left.map(|(time, what)| Item {
            time,
            cpu: key,
            thread,
            what,
        }));
    }

    /// The earliest time at which something in it waits for its thread.
    fn waits_since(&self) -> Option<i64> {
        if self.tid.is_some() {
            return None;
        }
        let first = match self.first {
            First::Nothing => None,
            First::Exit(exit) => Some(exit.time),
            First::Entry(time) => Some(time),
        };
        let items = self.items.iter().map(|item| item.time);
        items
            .chain(self.groups.iter().map(|group| group.first))
            .chain(first)
            .min()
    }
}

impl First {
    pub(super) fn item(self, cpu: CpuKey, thread: ThreadKey) -> Option<Item> {
        match self {
            First::Nothing => None,
            First::Exit(exit) => Some(Item {
                time: exit.time,
                cpu,
                thread,
                what: What::Exit(exit),
            }),
            First::Entry(time) => Some(Item {
                time,
                cpu,
                thread,
                what: What::Entry,
            }),
        }
    }
}

impl Boundary {
    /// What becomes of the call that is open there.
    pub(super) fn leaves(self, open: Open) -> Option<(i64, What)> {
        match self {
            Boundary::Switch { time, .. } => Some((time, What::Park(open))),
            // Whether the next exit is its own, nobody knows.
            Boundary::Loss { time } => open.is_io().then_some((time, What::Unfinished(open.time))),
        }
    }

    /// Whose the stretch before it was, if nothing else tells.
    pub(super) fn prev(self) -> Option<i32> {
        match self {
            Boundary::Switch { prev, .. } => prev,
            Boundary::Loss { .. } => None,
        }
    }
}

impl Exit {
    /// What an exit tells whose entry was lost.
    pub(super) fn alone(&self) -> impl Iterator<Item = What> + use<> {
        let io = self.counts && self.call.is_some_and(|call| call.action().is_io());
        let open = |call| Open {
            call,
            time: self.time,
            arguments: [NONE; 3],
        };
        let change = self.call.and_then(|call| Change::of(&open(call), self));
        io.then_some(What::Unstarted)
            .into_iter()
            .chain(change.map(What::Change))
    }
}

/// A call has ended.
pub(super) fn finish(open: &Open, exit: &Exit, cpu: CpuKey, thread: ThreadKey, out: &mut Sink) {
    let item = |what| Item {
        time: exit.time,
        cpu,
        thread,
        what,
    };
    match open.end(exit) {
        Done::Io(io) => out.groups.push(Group::new(thread, &io)),
        Done::Change(change) => out.items.push(item(What::Change(change))),
        Done::Nothing => {}
        Done::Mismatch => {
            out.items
                .extend(open.is_io().then(|| item(What::Unfinished(open.time))));
            out.items.extend(exit.alone().map(item));
        }
    }
}

impl Edges {
    /// Joins what later chunks know of the CPU.
    pub(super) fn join(&mut self, later: Edges, sink: &mut Sink) {
        let key = self.key;
        let last = match &mut self.tail {
            Some((_, tail)) => tail,
            None => &mut self.head,
        };
        last.append(key, later.head, sink);
        let Some((boundary, stretch)) = later.tail else {
            return;
        };
        match &mut self.tail {
            // The stretch before the first boundary waits for what comes before.
            None => self.tail = Some((boundary, stretch)),
            Some((_, tail)) => {
                let done = std::mem::replace(tail, stretch);
                // If it began with a loss, only what follows can tell whose it was.
                let tid = done.tid.or(boundary.prev()).unwrap_or(ThreadKey::UNKNOWN);
                done.close(key, tid, boundary, sink);
            }
        }
    }

    /// Nothing comes before: the first stretch is that of whom its end names. What happened in it
    /// goes before all else in the sink, so that events of one CPU stay in their order.
    pub(super) fn open_beginning(&mut self, sink: &mut Sink) {
        let Some((boundary, _)) = self.tail else { return };
        let head = std::mem::take(&mut self.head);
        let tid = head.tid.or(boundary.prev()).unwrap_or(ThreadKey::UNKNOWN);
        let mut first = Sink::default();
        head.close(self.key, tid, boundary, &mut first);
        if !first.items.is_empty() {
            first.items.append(&mut sink.items);
            sink.items = first.items;
        }
        sink.groups.append(&mut first.groups);
    }

    /// Nothing comes behind either; calls that are open stay unfinished.
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

    /// The earliest time at which something waits for its thread to be known.
    pub(super) fn waits_since(&self) -> Option<i64> {
        let tail = self.tail.as_ref().and_then(|(_, tail)| tail.waits_since());
        self.head.waits_since().into_iter().chain(tail).min()
    }

    /// When the open call began that a later chunk may end.
    pub(super) fn open_since(&self) -> Option<i64> {
        let tail = self.tail.as_ref().map_or(&self.head, |(_, tail)| tail);
        tail.open
            .map(|open| open.time)
            .into_iter()
            .chain(self.head.open.map(|open| open.time))
            .min()
    }
}
