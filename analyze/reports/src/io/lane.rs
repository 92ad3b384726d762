//! Following one CPU through a chunk: who makes which call.

use crate::io::cache::Cache;
use crate::io::call::{Done, Exit, Open};
use crate::io::change::Change;
use crate::io::group::{ArenaKey, Arenas};
use crate::io::stretch::{Boundary, Edges, First, Item, Sink, Stretch, UNNAMED, What, finish};
use crate::kernel::{CpuKey, ThreadKey};

/// Follows a CPU through a chunk.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) key: CpuKey,
    /// Set at the first boundary.
    head: Option<(Stretch, Boundary)>,
    tid: i32,
    /// How many stretches there were, this one among them.
    pub(super) stretches: u64,
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
    pub(super) fn new(key: CpuKey, never_known: bool, arena: ArenaKey) -> Lane {
        Lane {
            key,
            head: None,
            tid: if never_known { ThreadKey::UNKNOWN } else { UNNAMED },
            stretches: 1,
            at_head: true,
            first: First::Nothing,
            open: None,
            out: Sink::default(),
            began: (0, 0),
            before_first: 0,
            cache: Cache::new(arena),
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
        self.stretches += 1;
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
    pub(super) fn end(mut self, sink: &mut Sink, arenas: &mut Arenas) -> Edges {
        let stretch = self.stretch();
        if sink.items.is_empty() && sink.groups.is_empty() {
            *sink = self.out;
        } else {
            sink.items.append(&mut self.out.items);
            sink.groups.append(&mut self.out.groups);
        }
        let (key, arena) = self.cache.into_arena();
        arenas.add(key, arena);
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
