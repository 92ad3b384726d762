//! What a wait was for that began before the wait did.
//!
//! Whoever ends somebody's wait may have done other things before it turned to that: a thread of
//! the kernel that takes work from a queue does what others asked for, one piece after the other.
//! What it did before the piece in question was handed to it does not matter; when that was asked
//! for does. So, behind a wait of such a thread, its time line is left for what its work was for:
//! for a request that somebody else made, from when that was issued; for work that was put into a
//! queue, with whoever did that, or as a wait for what did; where no event tells of queues, for
//! work that somebody hands to an idle thread of the kernel, with whoever does.

use crate::cause::{ActorId, Wake};
use crate::graph::{Actor, State, Work};
use crate::path::{Link, SegmentKind, Walk, Window};

/// A part of a window that is not the thread's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// What it is instead.
    pub(crate) kind: SegmentKind,
    pub(crate) before: Before,
}

/// What comes before a part that is not the thread's own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Before {
    /// What the thread did.
    Own,
    /// What that one did.
    Of(ActorId, Link),
    /// A wait that this ended.
    Wait(Wake),
}

impl Walk<'_> {
    /// What is not the thread's own of a window, from the last to the first.
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
                // Who queues its own work goes on before that.
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
            let Some(mut cut) = self.cut(stretch.state, next) else {
                continue;
            };
            cut.begin = cut.begin.clamp(begin, next);
            cut.before = self.followed(hop, cut.before);
            let is_own = matches!(cut.before, Before::Own);
            if cut.begin >= from && is_own {
                // Nothing of what came before is left out.
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

    /// The time in which work was queued, in a window that begins then.
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

    /// What is a wait, in place of the thread's own, of a stretch that ends then.
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
