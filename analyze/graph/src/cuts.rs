//! Leaves the time line of a thread for work that began before the wait did.
//!
//! The thread that ends a wait may have done other work before it began the work in question: a
//! kernel thread processes a queue of requests, one after the other. Its activity before it
//! received that work does not matter, but the time at which the work was requested does. So a path
//! leaves the time line of such a thread at one of three points:
//!
//! - for a request that another thread made: when that thread issued the request;
//! - for work from a queue: when it was queued, and continues with the thread that queued it, or
//!   with a wait for the interrupt that did;
//! - if no event records queues, for work that an idle kernel thread received: at the wake-up, and
//!   continues with the waker.

use crate::cause::{ActorId, Wake};
use crate::graph::{Actor, State, Work};
use crate::path::{Link, SegmentKind, Walk, Window};

/// A part of a window that does not belong to the thread itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// Kind of the segment that replaces the thread's own activity.
    pub(crate) kind: SegmentKind,
    pub(crate) before: Before,
}

/// The activity before a cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Before {
    /// The thread's own.
    Own,
    /// That of another thread.
    Of(ActorId, Link),
    /// A wait that this cause ended.
    Wait(Wake),
}

impl Walk<'_> {
    /// The cuts of a window, from the last to the first.
    pub(crate) fn cuts(&self, hop: u32, actor: &Actor, (begin, end): Window) -> Vec<Cut> {
        let mut cuts = Vec::new();
        let first = actor.place(begin).unwrap_or(0);
        let after = actor.line.partition_point(|stretch| stretch.begin < end);
        let mut until = end;
        let mut was_idle = false;
        for place in (first..after).rev() {
            let Some(stretch) = actor.line.get(place) else {
                break;
            };
            let from = stretch.begin.max(begin);
            while let Some(work) = actor
                .work(until)
                .filter(|work| work.begin >= from && !was_idle)
            {
                let cut = self.queued_at(hop, work, begin);
                until = cut.begin;
                cuts.push(cut);
                // A thread that queued its own work continues before the cut.
                if !matches!(cut.before, Before::Own) || !self.is_of(hop, work.cause) {
                    return cuts;
                }
            }
            if stretch.begin >= until {
                continue;
            }
            let next = actor
                .line
                .get(place + 1)
                .map_or(until, |next| next.begin.min(until));
            was_idle |= matches!(stretch.state, State::Blocked { is_idle: true, .. });
            // At its end, a wait for a device is for no other work.
            let is_of_device = !self
                .graph
                .devices
                .waits(actor.key, (next - 1, next))
                .is_empty();
            let cut = self.cut(stretch.state, next).filter(|_| !is_of_device);
            let Some(mut cut) = cut else {
                continue;
            };
            cut.begin = cut.begin.clamp(begin, next);
            cut.before = self.followed(hop, cut.before);
            let is_own = matches!(cut.before, Before::Own);
            if cut.begin >= from && is_own {
                // The cut covers all activity since `from`, so none is left out.
                continue;
            }
            until = cut.begin;
            cuts.push(cut);
            if !is_own {
                break;
            }
        }
        cuts
    }

    fn followed(&self, hop: u32, before: Before) -> Before {
        match before {
            Before::Of(by, _) if !self.can_follow(hop, by, true) => Before::Own,
            before => before,
        }
    }

    /// The time for which work was queued, in a window that begins at `begin`.
    fn queued_at(&self, hop: u32, work: &Work, begin: i64) -> Cut {
        let before = match work.cause {
            _ if work.queued <= begin => Before::Own,
            Wake::Thread(by) => Before::Of(by, Link::Queues(work.queue)),
            Wake::Unknown | Wake::StillWaiting => Before::Own,
            cause => Before::Wait(cause),
        };
        Cut {
            begin: work.queued.clamp(begin, work.begin),
            end: work.begin,
            kind: SegmentKind::Queued(work.queue),
            before: self.followed(hop, before),
        }
    }

    /// The cut at the end of a wait, if the wait is for work that began earlier.
    fn cut(&self, state: State, end: i64) -> Option<Cut> {
        let State::Blocked {
            call,
            object,
            wake,
            reason,
            is_idle,
        } = state
        else {
            return None;
        };
        let kind = SegmentKind::Waiting {
            call,
            object,
            wake,
            reason,
        };
        match wake {
            Wake::Request(place) => {
                let request = self.graph.requests.get(place as usize)?;
                let by = request.by.map(|by| Before::Of(by, Link::Issues(place)));
                Some(Cut {
                    begin: request.begin,
                    end,
                    kind,
                    before: by.unwrap_or(Before::Own),
                })
            }
            Wake::Thread(by) if is_idle => Some(Cut {
                begin: end,
                end,
                kind,
                before: Before::Of(by, Link::Wakes { call, object }),
            }),
            _ => None,
        }
    }
}
