//! What a wait was for that began before the wait did.
//!
//! Whoever ends somebody's wait may have done other things before it turned to that: a thread of the kernel that takes
//! work from a queue does what others asked for, one piece after the other. What it did before the piece in question was
//! handed to it does not matter; when that was asked for does. So, behind a wait of such a thread, its time line is left
//! for what its work was for: for a request that somebody else made, from when that was issued; for work that somebody
//! hands to an idle thread of the kernel, with whoever does.

use crate::cause::{ActorId, Wake};
use crate::graph::{Actor, State};
use crate::path::{Kind, Link, Walk, Window};

/// A part of a window that is not the thread's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// What it is instead.
    pub(crate) kind: Kind,
    /// Whose what comes before it is, if that is another thread's.
    pub(crate) by: Option<(ActorId, Link)>,
}

impl Walk<'_> {
    /// What is not the thread's own of a window, from the last to the first.
    pub(crate) fn cuts(&self, hop: u32, actor: &Actor, (begin, end): Window) -> Vec<Cut> {
        let mut cuts = Vec::new();
        let first = actor.place(begin).unwrap_or(0);
        let after = actor.line.partition_point(|stretch| stretch.begin < end);
        let mut until = end;
        for place in (first..after).rev() {
            let Some(stretch) = actor.line.get(place) else {
                break;
            };
            if stretch.begin >= until {
                continue;
            }
            let next = actor
                .line
                .get(place + 1)
                .map_or(until, |next| next.begin.min(until));
            let Some(mut cut) = self.cut(stretch.state, (stretch.begin.max(begin), next)) else {
                continue;
            };
            cut.begin = cut.begin.clamp(begin, next);
            cut.by = cut.by.filter(|(by, _)| self.can_follow(hop, *by, true));
            if cut.begin >= stretch.begin.max(begin) && cut.by.is_none() {
                // Nothing of what came before is left out.
                continue;
            }
            until = cut.begin;
            cuts.push(cut);
            if cut.by.is_some() {
                break;
            }
        }
        cuts
    }

    /// The same of a stretch.
    fn cut(&self, state: State, (_, end): Window) -> Option<Cut> {
        let State::Blocked {
            call,
            object,
            wake,
            is_idle,
        } = state
        else {
            return None;
        };
        let kind = Kind::Waiting { call, object, wake };
        match wake {
            Wake::Request(place) => {
                let request = self.graph.requests.get(place as usize)?;
                let by = request.by.map(|by| (by, Link::Issues(place)));
                let begin = request.begin;
                Some(Cut { begin, end, kind, by })
            }
            Wake::Thread(by) if is_idle => Some(Cut {
                begin: end,
                end,
                kind,
                by: Some((by, Link::Wakes { call, object })),
            }),
            _ => None,
        }
    }
}
