//! Requests of io_uring, from being submitted to their ends: which of them a wait was for, and what worker threads did.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_fold::{Pairs, ThreadKey};

use crate::cause::{ActorId, Wake};
use crate::graph::{NO_OBJECT, Queue, RingRequest, State, Work};
use crate::life::Life;
use crate::line::Line;
use crate::machine::Machine;
use crate::step::{RingEvent, RingStep};

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
    pub(crate) done: Vec<RingRequest>,
    are_used: bool,
}

/// What is known of a thread and io_uring.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RingLife {
    /// The ring that it waited for last.
    ring: Option<i64>,
    /// What it completed last, of which ring, and when.
    done: Option<(i64, i64, RingRequest)>,
    /// The wait of which it is not known for which request it was: its place and beginning.
    waits: Option<(usize, i64)>,
    /// Since when it is done with all that it took from a queue.
    free: Option<i64>,
}

impl Rings {
    fn remember(&mut self, request: RingRequest) -> u32 {
        self.done.push(request);
        self.done.len() as u32 - 1
    }

    /// Events were lost: what is under way may have been done.
    pub(crate) fn lose(&mut self) {
        self.open = Pairs::default();
    }
}

impl RingLife {
    /// When a thread turned to what it did last, which was queued then.
    fn turned(&self, queued: i64) -> i64 {
        self.free.map_or(queued, |free| free.max(queued))
    }
}

fn ring(life: &mut Life) -> &mut RingLife {
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

impl Machine {
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
        let (life, line, _) = self.thread(thread);
        let own = ring(life);
        own.done = Some((time, open.ring, open.request));
        if let Some(queued) = open.queued.filter(|queued| queued.1 != by) {
            line.works(work(queued, own.turned(queued.0)));
            own.free = Some(time);
        }
        let Some((place, begin)) = own.waits else { return };
        if own.ring.is_some_and(|ring| ring != open.ring) {
            return;
        }
        // It is told by the thread that waited for it, once that runs again.
        own.waits = None;
        let wake = self.was_for(by, (place, begin), open.request);
        if let (Some((Wake::Thread(worker), until)), Some(queued)) = (wake, open.queued)
            && worker != queued.1
        {
            self.has_worked(worker, queued, until);
        }
    }

    /// A wait of a thread was for that request, if that was under way then; gives what ended the wait, and when.
    fn was_for(
        &mut self,
        actor: ActorId,
        (place, began): (usize, i64),
        request: RingRequest,
    ) -> Option<(Wake, i64)> {
        let line = self.lines.get_mut(actor.0 as usize)?;
        let end = line.stretches.get(place + 1)?.begin;
        let stretch = line.stretches.get_mut(place)?;
        let State::Blocked { object, wake, .. } = &mut stretch.state else {
            return None;
        };
        if stretch.begin != began || *object != NO_OBJECT || request.submitted >= end {
            return None;
        }
        *object = self.rings.remember(request);
        Some((*wake, end))
    }

    /// A worker thread has done what was queued, up to then.
    fn has_worked(&mut self, worker: ActorId, queued: (i64, ActorId), until: i64) {
        let Some(key) = self.lines.get(worker.0 as usize).map(|line| line.key) else {
            return;
        };
        let (life, line, _) = self.thread(key);
        let own = ring(life);
        let begin = own.turned(queued.0);
        if begin < until {
            line.works(work(queued, begin));
            own.free = Some(until);
        }
    }

    /// A thread that waits for an io_uring, or perhaps does, is woken by that.
    pub(crate) fn ring_wakes(&mut self, time: i64, woken: ThreadKey, wake: Wake, is_sure: bool) {
        if !self.rings.are_used {
            return;
        }
        let (life, line, _) = self.thread(woken);
        let Some(begin) = line.stretches.last().map(|last| last.begin) else {
            return;
        };
        let place = line.stretches.len() - 1;
        let waits_for = life.ring.as_ref().and_then(|own| own.ring);
        if is_sure {
            ring(life).waits = Some((place, begin));
        }
        let Wake::Thread(by) = wake else { return };
        let Some(waker) = self.lines.get(by.0 as usize).map(|line| line.key) else {
            return;
        };
        let Some(waker) = self.life(waker).ring.as_mut() else {
            return;
        };
        // What it was woken for is done: what the waker does from now on is something else.
        if waker.free.is_some() {
            waker.free = Some(time);
        }
        let is_of_it = |done: &(i64, i64, RingRequest)| {
            is_sure && done.0 >= begin && waits_for.is_none_or(|ring| ring == done.1)
        };
        if let Some((.., request)) = waker.done.filter(is_of_it) {
            let place = self.rings.remember(request);
            let (life, line, _) = self.thread(woken);
            ring(life).waits = None;
            for_request(line, place);
        }
    }
}

/// The wait that goes on is for that request.
fn for_request(line: &mut Line, place: u32) {
    if let Some(State::Blocked { object, .. }) = line.stretches.last_mut().map(|last| &mut last.state) {
        *object = place;
    }
}
