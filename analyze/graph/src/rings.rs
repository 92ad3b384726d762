//! Requests of io_uring, from being submitted to their ends: which of them a wait was for, and what
//! worker threads did.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Pairs, ThreadKey};

use crate::cause::{ActorId, Wake};
use crate::graph::{Actor, NO_OBJECT, Queue, RingRequest, State, Stretch, Work};
use crate::graph_machine::GraphMachine;
use crate::graph_step::{RingEvent, RingStep};
use crate::kept::Kept;
use crate::later::Line;
use crate::thread_life::ThreadLife;

/// A request that is under way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Open {
    ring: i64,
    request: RingRequest,
    /// When it went to the worker threads, and by whom.
    queued: Option<(i64, ActorId)>,
}

/// The requests of all rings.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rings {
    open: Pairs<(u32, i64), Open>,
    /// Those that ended waits.
    pub(crate) done: Kept<RingRequest>,
    pub(crate) are_used: bool,
}

/// What is known of a thread and io_uring.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RingLife {
    /// The ring that it waited for last.
    ring: Option<i64>,
    /// What it completed last, of which ring, and when.
    done: Option<(i64, i64, RingRequest)>,
    /// The wait of which it is not known for which request it was.
    waits: Option<Wait>,
    /// Since when it is done with all that it took from a queue.
    free: Option<i64>,
}

/// A wait for an io_uring that has ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Wait {
    place: usize,
    begin: i64,
    /// Since when the worker thread that ended it had been done with all before.
    free: Option<i64>,
    /// What ended it, and when, if its place is no more there.
    dropped: Option<(Wake, i64)>,
}

impl Wait {
    /// So many stretches are going to be dropped from the front of the time line.
    fn drop_front(&mut self, line: &[Stretch], count: usize) {
        if let Some(place) = self.place.checked_sub(count) {
            self.place = place;
            return;
        }
        let ended = (line.get(self.place), line.get(self.place.saturating_add(1)));
        if let (Some(stretch), Some(next)) = ended
            && let State::Blocked { object, wake, .. } = stretch.state
            && stretch.begin == self.begin
            && object == NO_OBJECT
        {
            self.dropped = Some((wake, next.begin));
        }
        self.place = usize::MAX;
    }
}

impl Rings {
    fn remember(&mut self, request: RingRequest) -> u32 {
        self.done.push(request)
    }

    /// Events were lost: what is under way may have been done.
    pub(crate) fn lose(&mut self) {
        self.open = Pairs::default();
    }
}

/// When a thread turned to what it did last, which was queued then, if it was done with all before
/// since then.
fn turned(free: Option<i64>, queued: i64) -> i64 {
    free.map_or(queued, |free| free.max(queued))
}

fn ring(life: &mut ThreadLife) -> &mut RingLife {
    life.ring.get_or_insert_default()
}

fn work(queued: (i64, ActorId), begin: i64) -> Work {
    Work {
        begin,
        queued: queued.0,
        cause: Wake::Thread(queued.1),
        queue: Queue::Ring,
    }
}

impl GraphMachine {
    /// Something happens to a request of an io_uring, by that thread.
    pub(crate) fn ring(&mut self, time: i64, thread: ThreadKey, event: RingEvent) {
        self.rings.are_used = true;
        let key = (thread.trace, event.request);
        let by = self.actor(thread);
        let request = RingRequest {
            submitted: time,
            by: Some(by),
            operation: event.operation,
        };
        let new = Open {
            ring: event.ring,
            request,
            queued: None,
        };
        match event.step {
            RingStep::Submit => _ = self.rings.open.begin(key, new),
            RingStep::Queue => {
                let mut open = self.rings.open.end(key).unwrap_or(new);
                open.queued = Some((time, by));
                self.rings.open.begin(key, open);
            }
            RingStep::Wait => ring(self.life(thread)).ring = Some(event.ring),
            RingStep::Complete => {
                if let Some(open) = self.rings.open.end(key) {
                    self.completes(time, thread, by, open);
                }
            }
        }
    }

    fn completes(&mut self, time: i64, thread: ThreadKey, by: ActorId, open: Open) {
        let (life, Line { actor: line, .. }, _) = self.thread(thread);
        let own = ring(life);
        own.done = Some((time, open.ring, open.request));
        if let Some(queued) = open.queued.filter(|queued| queued.1 != by) {
            line.works(work(queued, turned(own.free, queued.0)));
            own.free = Some(time);
        }
        let Some(wait) = own.waits else { return };
        if own.ring.is_some_and(|ring| ring != open.ring) {
            return;
        }
        // It is told by the thread that waited for it, once that runs again.
        own.waits = None;
        let wake = self.was_for(by, wait, open.request);
        if let (Some((Wake::Thread(worker), until)), Some(queued)) = (wake, open.queued)
            && worker != queued.1
        {
            self.has_worked(worker, queued, (wait.free, until));
        }
    }

    /// What ended before a time is going to be dropped from all time lines.
    pub(crate) fn ring_waits_drop(&mut self, cut: i64) {
        let GraphMachine { lives, lines, .. } = self;
        for life in lives.values() {
            let wait = life.ring.as_mut().and_then(|own| own.waits.as_mut());
            let line = life.actor.and_then(|actor| lines.get(actor as usize));
            if let Some((wait, line)) = wait.zip(line) {
                wait.drop_front(&line.line, line.place(cut).unwrap_or(0));
            }
        }
    }

    /// A wait of a thread was for that request, if that was under way then; gives what ended the
    /// wait, and when.
    fn was_for(&mut self, actor: ActorId, wait: Wait, request: RingRequest) -> Option<(Wake, i64)> {
        if let Some((wake, end)) = wait.dropped.filter(|dropped| request.submitted < dropped.1) {
            self.rings.remember(request);
            return Some((wake, end));
        }
        let line = self.lines.get_mut(actor.0 as usize)?;
        let end = line.line.get(wait.place.checked_add(1)?)?.begin;
        let stretch = line.line.get_mut(wait.place)?;
        let State::Blocked { object, wake, .. } = &mut stretch.state else {
            return None;
        };
        if stretch.begin != wait.begin || *object != NO_OBJECT || request.submitted >= end {
            return None;
        }
        *object = self.rings.remember(request);
        Some((*wake, end))
    }

    /// A worker thread has done what was queued, up to then; it had been done with all before since
    /// the first time.
    fn has_worked(
        &mut self,
        worker: ActorId,
        queued: (i64, ActorId),
        (free, until): (Option<i64>, i64),
    ) {
        let Some(key) = self.lines.get(worker.0 as usize).map(|line| line.key) else {
            return;
        };
        let (life, Line { actor: line, .. }, _) = self.thread(key);
        let begin = turned(free, queued.0);
        if begin < until {
            line.works(work(queued, begin));
            let own = ring(life);
            own.free = own.free.max(Some(until));
        }
    }

    /// A thread that waits for an io_uring, or perhaps does, is woken by that.
    pub(crate) fn ring_wakes(&mut self, time: i64, woken: ThreadKey, wake: Wake, is_sure: bool) {
        if !self.rings.are_used {
            return;
        }
        let (life, Line { actor: line, .. }, _) = self.thread(woken);
        let Some(begin) = line.line.last().map(|last| last.begin) else {
            return;
        };
        let place = line.line.len() - 1;
        let waits_for = life.ring.as_ref().and_then(|own| own.ring);
        if is_sure {
            let free = None;
            ring(life).waits = Some(Wait {
                place,
                begin,
                free,
                dropped: None,
            });
        }
        let Wake::Thread(by) = wake else { return };
        let Some(waker) = self.lines.get(by.0 as usize).map(|line| line.key) else {
            return;
        };
        let (
            waker,
            Line {
                actor: its_line, ..
            },
            _,
        ) = self.thread(waker);
        let Some(waker) = waker.ring.as_mut() else {
            return;
        };
        // What it was woken for is done: what the waker does from now on is something else.
        let free = waker.free;
        if free.is_some() {
            waker.free = Some(time);
        }
        let is_of_it = |done: &(i64, i64, RingRequest)| {
            is_sure
                && done.0 >= begin
                && !its_line.has_waited_since(done.0)
                && waits_for.is_none_or(|ring| ring == done.1)
        };
        if let Some((.., request)) = waker.done.filter(is_of_it) {
            let place = self.rings.remember(request);
            let (life, Line { actor: line, .. }, _) = self.thread(woken);
            ring(life).waits = None;
            for_request(line, place);
        } else if let Some(wait) = ring(self.life(woken)).waits.as_mut() {
            wait.free = free;
        }
    }
}

/// The wait that goes on is for that request.
fn for_request(line: &mut Actor, place: u32) {
    if let Some(State::Blocked { object, .. }) = line.line.last_mut().map(|last| &mut last.state) {
        *object = place;
    }
}
