//! Following one CPU through a chunk: who makes which call.

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
    /// True if calls that end on it are asked for.
    pub(super) counts: bool,
    /// Only calls that take that long are asked for.
    limits: Limits,
    /// Place of the running thread among the people of the chunk, if it was looked up.
    pub(super) runner: Option<usize>,
    /// Set at the first boundary.
    head: Option<(Stretch, Boundary)>,
    tid: i32,
    /// How many stretches there were, this one among them.
    pub(super) stretches: u64,
    /// True as long as the stretch is the chunk's first.
    at_head: bool,
    first: First,
    open: Option<Open>,
    out: Draft,
    /// How far `out` had come when the stretch began, and how many items it has had since, before
    /// its first event.
    began: Mark,
    before_first: usize,
    cache: Cache,
}

impl IoCpu {
    /// A lane whose thread is not known; `UNKNOWN` if it never will be.
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

    /// The thread that runs, if it is known by now.
    #[inline(always)]
    pub(super) fn tid(&self) -> Option<i32> {
        (self.tid != UNNAMED).then_some(self.tid)
    }

    /// Something that tells its thread itself.
    pub(super) fn tell(&mut self, time: i64, tid: i32, what: IoAction) {
        self.out.items.push(IoItem { time, tid, what });
    }

    /// A call begins.
    #[inline]
    pub(super) fn entry(&mut self, open: Open) {
        self.enters(open.time);
        self.open = Some(open);
    }

    /// A call begins that tells of its change at once; its exit is not read.
    pub(super) fn entry_of(&mut self, time: i64, change: Change) {
        self.enters(time);
        self.change(time, change);
    }

    /// Events of calls were lost, but none that tell who runs: the exit of what is open may be
    /// among them.
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

    /// A call ends. This does it if it is one that moves bytes and began in the same stretch: most
    /// are.
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

    /// The first event of a stretch is told at once, unless the stretch goes back beyond the
    /// chunk, or its thread is not known.
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

    /// A CPU goes from one thread to another.
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

    /// The boundary tells whose the stretch was, or nobody ever will.
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
        // Calls of the next one whose thread is not known must not be added to these.
        self.cache.clear();
    }

    /// The present stretch, of which `rest` is not told to the sink.
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

    /// The chunk ends.
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
