//! Requests of io_uring from submission to completion, the waits for them, and the work of worker
//! threads.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Pairs, ThreadKey};

use crate::cause::{ActorId, Wake};
use crate::graph::{Actor, NO_OBJECT, Queue, RingRequest, State, Stretch, Work};
use crate::graph_machine::GraphMachine;
use crate::graph_step::{RingEvent, RingStep};
use crate::kept::Kept;
use crate::later::Line;
use crate::thread_life::ThreadLife;

/// A request in progress.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Open {
    ring: i64,
    request: RingRequest,
    /// When the request was queued for the worker threads, and by which thread.
    queued: Option<(i64, ActorId)>,
}

/// The requests of all rings.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rings {
    open: Pairs<(u32, i64), Open>,
    /// Requests that ended waits.
    pub(crate) done: Kept<RingRequest>,
    pub(crate) are_used: bool,
}

/// State of a thread that uses an io_uring.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RingLife {
    /// The ring that the thread waited for last.
    ring: Option<i64>,
    /// The last completion by the thread: ring, time and request.
    done: Option<(i64, i64, RingRequest)>,
    /// The last wait whose request is not known yet.
    waits: Option<Wait>,
    /// Time since which the thread has finished all work that it took from queues.
    free: Option<i64>,
}

/// A completed wait for an io_uring.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Wait {
    place: usize,
    begin: i64,
    /// Time since which the worker thread that ended the wait had finished all earlier work.
    free: Option<i64>,
    /// Cause and end of the wait, if its stretch was dropped.
    dropped: Option<(Wake, i64)>,
}

impl Wait {
    /// Prepares for the removal of the first `count` stretches of the time line.
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

    /// Handles lost events: requests in progress may have completed.
    pub(crate) fn lose(&mut self) {
        self.open = Pairs::default();
    }
}

/// When a worker thread began its last work, which was queued at `queued`, if it had finished all
/// earlier work at `free`.
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
    /// Handles an event of an io_uring request.
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
        // The waiting thread reports the completion itself once it runs again.
        own.waits = None;
        let wake = self.was_for(by, wait, open.request);
        if let (Some((Wake::Thread(worker), until)), Some(queued)) = (wake, open.queued)
            && worker != queued.1
        {
            self.has_worked(worker, queued, (wait.free, until));
        }
    }

    /// Prepares for the removal of stretches that ended before a time.
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

    /// Attributes a wait to a request, if the request was in progress during the wait. Returns the
    /// cause and the end of the wait.
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

    /// Adds work of a worker thread that was queued at `queued` and done at `until`; the thread had
    /// finished all earlier work at `free`.
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

    /// Handles the wake-up of a thread that waits for an io_uring, or may do so if not `is_sure`.
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
        // The work for the woken thread is done; later activity of the waker is unrelated.
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

/// Sets the request of the current wait.
fn for_request(line: &mut Actor, place: u32) {
    if let Some(State::Blocked { object, .. }) = line.line.last_mut().map(|last| &mut last.state) {
        *object = place;
    }
}
