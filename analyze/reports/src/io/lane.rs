//! Following one CPU through a chunk: who makes which call.
//!
//! A stretch is what one thread does on a CPU from one boundary (a switch, or a loss of events)
//! to the next. Within it an entry is joined with the exit that follows. What is open at its end
//! is parked with the thread; an exit that comes first in a stretch takes what is parked.

use serde::{Deserialize, Serialize};

use crate::io::call::{Done, Exit, Group, Io, NONE, Open};
use crate::io::change::Change;
use crate::kernel::{CpuKey, Table, ThreadKey};

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
const UNNAMED: i32 = i32::MIN;

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
    tid: Option<i32>,
    /// True if it begins here, false if it may go on from earlier chunks.
    begun: bool,
    first: First,
    /// True if the first event has been told.
    told: bool,
    /// Else: how many of the items came before it.
    before_first: usize,
    open: Option<Open>,
    /// What happened in it, while it is not known whose it is.
    items: Vec<Item>,
    groups: Vec<Group>,
}

/// What ends a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Boundary {
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
    head: Stretch,
    tail: Option<(Boundary, Stretch)>,
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
    fn close(mut self, key: CpuKey, tid: i32, end: Boundary, sink: &mut Sink) {
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
    fn item(self, cpu: CpuKey, thread: ThreadKey) -> Option<Item> {
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
    fn leaves(self, open: Open) -> Option<(i64, What)> {
        match self {
            Boundary::Switch { time, .. } => Some((time, What::Park(open))),
            // Whether the next exit is its own, nobody knows.
            Boundary::Loss { time } => open.is_io().then_some((time, What::Unfinished(open.time))),
        }
    }

    /// Whose the stretch before it was, if nothing else tells.
    fn prev(self) -> Option<i32> {
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
fn finish(open: &Open, exit: &Exit, cpu: CpuKey, thread: ThreadKey, out: &mut Sink) {
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

/// Follows a CPU through a chunk.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) key: CpuKey,
    /// Set at the first boundary.
    head: Option<(Stretch, Boundary)>,
    tid: i32,
    /// True as long as the stretch is the chunk's first.
    at_head: bool,
    first: First,
    open: Option<Open>,
    out: Sink,
    /// How much of `out` was there when the stretch began, and how many items before its first
    /// event.
    began: (usize, usize),
    before_first: usize,
    cache: Cache,
}

impl Lane {
    /// A lane whose thread is not known; `UNKNOWN` if it never will be.
    pub(super) fn new(key: CpuKey, never_known: bool) -> Lane {
        Lane {
            key,
            head: None,
            tid: if never_known { ThreadKey::UNKNOWN } else { UNNAMED },
            at_head: true,
            first: First::Nothing,
            open: None,
            out: Sink::default(),
            began: (0, 0),
            before_first: 0,
            cache: Cache::default(),
        }
    }

    /// The thread that runs, if it is known by now.
    #[inline(always)]
    pub(super) fn tid(&self) -> Option<i32> {
        (self.tid != UNNAMED).then_some(self.tid)
    }

    fn thread(&self) -> ThreadKey {
        ThreadKey {
            trace: self.key.trace,
            tid: self.tid,
        }
    }

    fn item(&mut self, time: i64, what: What) {
        let item = Item {
            time,
            cpu: self.key,
            thread: self.thread(),
            what,
        };
        self.out.items.push(item);
    }

    /// Something that tells its thread itself.
    pub(super) fn tell(&mut self, time: i64, tid: i32, what: What) {
        let thread = ThreadKey {
            trace: self.key.trace,
            tid,
        };
        self.out.items.push(Item {
            time,
            cpu: self.key,
            thread,
            what,
        });
    }

    /// A call begins.
    #[inline]
    pub(super) fn entry(&mut self, open: Open) {
        self.begins(First::Entry(open.time));
        if let Some(lost) = self.open.replace(open)
            && lost.is_io()
        {
            self.item(open.time, What::Unfinished(lost.time));
        }
        if open.call.action().is_done_at_entry() {
            if let Some(change) = Change::at_entry(&open) {
                self.cache.forget(self.thread());
                self.item(open.time, What::Change(change));
            }
            // Its exit tells nothing and is not read.
            self.open = None;
        }
    }

    /// A call ends.
    #[inline]
    pub(super) fn exit(&mut self, exit: Exit) {
        let Some(open) = self.open.take() else {
            if self.first == First::Nothing {
                self.begins(First::Exit(exit));
            } else {
                self.cache.forget(self.thread());
                exit.alone().for_each(|what| self.item(exit.time, what));
            }
            return;
        };
        let (key, thread) = (self.key, self.thread());
        match open.end(&exit) {
            Done::Io(io) => self.cache.add(thread, &io, &mut self.out.groups),
            Done::Nothing => {}
            _ => {
                self.cache.forget(thread);
                finish(&open, &exit, key, thread, &mut self.out);
            }
        }
    }

    /// The first event of a stretch is told at once, unless the stretch goes back beyond the
    /// chunk, or its thread is not known.
    #[inline]
    fn begins(&mut self, first: First) {
        if self.first != First::Nothing {
            return;
        }
        self.first = first;
        self.before_first = self.out.items.len() - self.began.0;
        if !self.at_head && self.tid != UNNAMED {
            let item = first.item(self.key, self.thread());
            self.out.items.extend(item);
        }
    }

    /// A CPU goes from one thread to another.
    pub(super) fn switch(&mut self, time: i64, prev: Option<i32>, next: i32) {
        self.ends(Boundary::Switch { time, prev });
        self.tid = next;
        self.cache.turn_to(self.thread());
    }

    /// Events were lost.
    pub(super) fn loss(&mut self, time: i64, never_known: bool) {
        self.ends(Boundary::Loss { time });
        self.tid = if never_known { ThreadKey::UNKNOWN } else { UNNAMED };
        self.cache.turn_to(self.thread());
    }

    #[inline]
    fn ends(&mut self, boundary: Boundary) {
        if self.at_head || self.tid == UNNAMED {
            self.ends_unknown(boundary);
        } else if let Some((time, what)) = self.open.take().and_then(|open| boundary.leaves(open)) {
            self.item(time, what);
        }
        self.first = First::Nothing;
        self.began = (self.out.items.len(), self.out.groups.len());
    }

    fn ends_unknown(&mut self, boundary: Boundary) {
        let stretch = self.stretch();
        // What comes next must not be added to groups that were taken away.
        self.cache.forget(self.thread());
        if std::mem::take(&mut self.at_head) {
            self.head = Some((stretch, boundary));
        } else {
            let tid = boundary.prev().unwrap_or(ThreadKey::UNKNOWN);
            stretch.close(self.key, tid, boundary, &mut self.out);
        }
    }

    /// The present stretch, taken out of the lane.
    fn stretch(&mut self) -> Stretch {
        let known = self.tid != UNNAMED;
        let (items, groups) = match known && !self.at_head {
            true => (Vec::new(), Vec::new()),
            false => (
                self.out.items.split_off(self.began.0),
                self.out.groups.split_off(self.began.1),
            ),
        };
        let (begun, told) = (
            !self.at_head,
            !self.at_head && known && self.first != First::Nothing,
        );
        let before_first = if items.is_empty() { 0 } else { self.before_first };
        Stretch {
            tid: self.tid(),
            begun,
            first: self.first,
            told,
            before_first,
            open: self.open.take(),
            items,
            groups,
        }
    }

    /// The chunk ends.
    pub(super) fn end(mut self, sink: &mut Sink) -> Edges {
        let stretch = self.stretch();
        if sink.items.is_empty() && sink.groups.is_empty() {
            *sink = self.out;
        } else {
            sink.items.append(&mut self.out.items);
            sink.groups.append(&mut self.out.groups);
        }
        match self.head {
            Some((head, boundary)) => Edges {
                key: self.key,
                head,
                tail: Some((boundary, stretch)),
            },
            None => Edges {
                key: self.key,
                head: stretch,
                tail: None,
            },
        }
    }
}

/// Finds the group of a call again. Groups that it has forgotten are still right, only more.
#[derive(Clone, Debug)]
struct Cache {
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

impl Default for Cache {
    fn default() -> Self {
        Cache {
            entries: vec![Entry::default(); ENTRIES],
            epoch: FIRST_EPOCH,
            last_epoch: FIRST_EPOCH,
            epochs: Table::default(),
        }
    }
}

impl Cache {
    /// Another thread runs.
    fn turn_to(&mut self, thread: ThreadKey) {
        self.epoch = self.epochs.find(thread).copied().unwrap_or(FIRST_EPOCH);
    }

    /// The running thread's descriptors may have changed.
    fn forget(&mut self, thread: ThreadKey) {
        self.last_epoch += 1;
        self.epoch = self.last_epoch;
        *self.epochs.get(thread) = self.epoch;
    }

    #[inline]
    fn add(&mut self, thread: ThreadKey, io: &Io, groups: &mut Vec<Group>) {
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
            group.add(io);
            return;
        }
        *entry = Entry {
            epoch: self.epoch,
            group: groups.len() as u32,
        };
        groups.push(Group::new(thread, io));
    }
}
