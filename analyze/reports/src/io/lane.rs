//! Follows one CPU through a chunk: the calls of each thread.

use tracebraid_descriptors::{Change, Exit, Open};
use tracebraid_kernel_model::Syscall;

use crate::io::cache::Cache;
use crate::io::call::{Done, EndingCall};
use crate::io::item::{IoAction, IoItem, UNNAMED, name};
use crate::io::sink::{Draft, Mark, Sink};
use crate::io::stretch::{Boundary, Edges, First, LostCall, Stretch, alone, change_item};
use tracebraid_follow::{CpuKey, Limits, ThreadKey};

/// Follows a CPU through a chunk.
#[derive(Clone, Debug)]
pub(super) struct IoCpu {
    pub(super) key: CpuKey,
    /// True if calls that end on the CPU are selected.
    pub(super) counts: bool,
    /// Restricts calls by latency.
    limits: Limits,
    /// Index of the running thread in the chunk's `people`, if it was looked up.
    pub(super) runner: Option<usize>,
    /// Set at the first boundary.
    head: Option<(Stretch, Boundary)>,
    tid: i32,
    /// Number of stretches, including the current one.
    pub(super) stretches: u64,
    /// True during the chunk's first stretch.
    at_head: bool,
    first: First,
    open: Option<Open>,
    out: Draft,
    /// Position of `out` at the start of the stretch, and number of items between that and the
    /// stretch's first event.
    began: Mark,
    before_first: usize,
    cache: Cache,
}

impl IoCpu {
    /// A lane whose thread is not known yet, or never will be.
    pub(super) fn new(key: CpuKey, counts: bool, limits: Limits, never_known: bool) -> IoCpu {
        IoCpu {
            key,
            counts,
            limits,
            runner: None,
            head: None,
            tid: if never_known {
                ThreadKey::UNKNOWN
            } else {
                UNNAMED
            },
            stretches: 1,
            at_head: true,
            first: First::Nothing,
            open: None,
            out: Draft::new(key),
            began: Default::default(),
            before_first: 0,
            cache: Cache::default(),
        }
    }

    /// The running thread, if known by now.
    #[inline(always)]
    pub(super) fn tid(&self) -> Option<i32> {
        (self.tid != UNNAMED).then_some(self.tid)
    }

    /// Adds an event that contains its thread.
    pub(super) fn tell(&mut self, time: i64, tid: i32, what: IoAction) {
        self.out.items.push(IoItem { time, tid, what });
    }

    /// A call begins.
    #[inline]
    pub(super) fn entry(&mut self, open: Open) {
        self.enters(open.time);
        self.open = Some(open);
    }

    /// A call begins whose entry alone determines its effect; its exit is not read.
    pub(super) fn entry_of(&mut self, time: i64, change: Change) {
        self.enters(time);
        self.change(time, change);
    }

    /// System call events were lost, but no switches: the exit of the open call may be among them.
    pub(super) fn loses_calls(&mut self, time: i64) {
        self.enters(time);
    }

    #[inline]
    fn enters(&mut self, time: i64) {
        self.begins(First::Entry(time));
        if let Some(lost) = self.open.take().and_then(|open| open.lost(time, self.tid)) {
            self.out.items.push(lost);
        }
    }

    /// Ends the open call if it moves bytes and began in the same stretch, as most do; true if so.
    #[inline(always)]
    pub(super) fn exit_of_io(
        &mut self,
        time: i64,
        call: Option<Syscall>,
        result: i64,
        counts: bool,
    ) -> bool {
        let Some(open) = &self.open else { return false };
        if !open.is_io() || call.is_some_and(|call| call != open.call) {
            return false;
        }
        if counts && let Some(io) = open.done(time, result, &self.limits) {
            self.cache.add(self.tid, &io, &mut self.out.calls);
        }
        self.open = None;
        true
    }

    /// A call ends.
    pub(super) fn exit(&mut self, time: i64, exit: Exit) {
        let Some(open) = self.open.take() else {
            if self.first == First::Nothing {
                self.begins(First::Exit(time, exit));
            } else {
                self.alone(time, exit);
            }
            return;
        };
        match open.end(time, &exit, &self.limits) {
            Done::Io(io) => self.cache.add(self.tid, &io, &mut self.out.calls),
            Done::Change(change) => self.change(time, change),
            Done::Nothing => {}
            Done::Mismatch => {
                self.out.items.extend(open.lost(time, self.tid));
                self.alone(time, exit);
            }
        }
    }

    /// The exit of a call whose entry was lost.
    #[cold]
    fn alone(&mut self, time: i64, exit: Exit) {
        for item in alone(&exit, time, self.tid) {
            match item.what {
                IoAction::Change(change) => self.change(time, change),
                _ => self.out.items.push(item),
            }
        }
    }

    /// The running thread changes descriptors.
    fn change(&mut self, time: i64, change: Change) {
        self.cache.change(self.tid, &change);
        self.out.items.push(change_item(change, time, self.tid));
    }

    /// Adds the first event of a stretch as an item, unless the stretch began before the chunk, or
    /// its thread is unknown.
    #[inline]
    fn begins(&mut self, first: First) {
        if self.first != First::Nothing {
            return;
        }
        self.first = first;
        self.before_first = self.out.items.count_since(&self.began.items);
        if !self.at_head
            && self.tid != UNNAMED
            && let Some(item) = first.item(self.tid)
        {
            self.out.items.push(item);
        }
    }

    /// Processes a switch.
    pub(super) fn switch(&mut self, time: i64, prev: Option<i32>, next: i32) {
        self.ends(Boundary::Switch { time, prev });
        self.tid = next;
        self.runner = None;
    }

    /// Events were lost.
    pub(super) fn loss(&mut self, time: i64, never_known: bool) {
        self.ends(Boundary::Loss { time });
        self.tid = if never_known {
            ThreadKey::UNKNOWN
        } else {
            UNNAMED
        };
        self.runner = None;
    }

    #[inline]
    fn ends(&mut self, boundary: Boundary) {
        self.stretches += 1;
        if self.at_head {
            // Calls of the next stretch must not be added to groups that are taken away.
            self.cache.clear();
            let rest = std::mem::replace(&mut self.out, Draft::new(self.key));
            self.head = Some((self.stretch(rest), boundary));
            self.at_head = false;
        } else if self.tid == UNNAMED {
            self.name_stretch(boundary);
        } else if let Some(open) = self.open.take()
            && let Some(item) = boundary.leaves(open, self.tid)
        {
            self.out.items.push(item);
        }
        self.first = First::Nothing;
        self.began = self.out.mark();
    }

    /// Sets the thread of the stretch, which the boundary records; otherwise it stays unknown.
    fn name_stretch(&mut self, boundary: Boundary) {
        let tid = boundary.prev().unwrap_or(ThreadKey::UNKNOWN);
        let mut items = self.out.items.split_off(self.began.items);
        name(&mut items, tid);
        if let Some(first) = self.first.item(tid) {
            items.insert(self.before_first.min(items.len()), first);
        }
        self.out.items.extend(items);
        self.out.calls.name(self.began.calls, tid);
        if let Some(open) = self.open.take() {
            self.out.items.extend(boundary.leaves(open, tid));
        }
        // Calls of the next stretch, whose thread may be unknown, must not be added to these
        // groups.
        self.cache.clear();
    }

    /// The current stretch, with its items and calls from `rest`.
    fn stretch(&mut self, mut rest: Draft) -> Stretch {
        let before = match self.first {
            First::Nothing => rest.items.split_off(Default::default()),
            _ => rest.items.take_first(self.before_first),
        };
        let told = !self.at_head && self.tid != UNNAMED;
        Stretch {
            tid: self.tid(),
            begun: !self.at_head,
            first: self.first,
            told: told && self.first != First::Nothing,
            open: self.open.take(),
            before,
            since: rest.finish().into_iter().collect(),
        }
    }

    /// Ends the chunk.
    pub(super) fn end(mut self, sink: &mut Sink) -> Edges {
        let rest = if self.at_head {
            std::mem::replace(&mut self.out, Draft::new(self.key))
        } else if self.tid == UNNAMED {
            self.out.split_off(self.began)
        } else {
            Draft::new(self.key)
        };
        let stretch = self.stretch(rest);
        sink.add(self.out.finish());
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
