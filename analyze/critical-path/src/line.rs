//! A time line that is being made.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_fold::ThreadKey;
use tracebraid_kernel_model::Comm;

use crate::cause::ActorId;
use crate::graph::{State, Stretch, Work};

/// A thread and what it did so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) key: ThreadKey,
    pub(crate) pid: Option<i32>,
    pub(crate) name: Option<Comm>,
    pub(crate) creator: Option<ActorId>,
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) works: Vec<Work>,
}

impl Line {
    pub(crate) fn new(key: ThreadKey) -> Line {
        Line {
            key,
            ..Line::default()
        }
    }

    /// What it does.
    #[inline]
    pub(crate) fn now(&self) -> Option<State> {
        self.stretches.last().map(|last| last.state)
    }

    /// What it does turns out to be something else.
    pub(crate) fn is(&mut self, state: State) {
        if let Some(last) = self.stretches.last_mut() {
            last.state = state;
        }
    }

    /// True if it has waited since that time.
    pub(crate) fn has_waited_since(&self, time: i64) -> bool {
        let since = self.stretches.iter().rev();
        since
            .take_while(|stretch| stretch.begin > time)
            .any(|stretch| matches!(stretch.state, State::Blocked { .. }))
    }

    /// What it did before it did what it does now does not matter.
    pub(crate) fn forgets(&mut self) {
        self.stretches.drain(..self.stretches.len().saturating_sub(1));
        self.works.drain(..self.works.len().saturating_sub(1));
    }

    /// It turns to work.
    pub(crate) fn works(&mut self, work: Work) {
        if self.works.last().is_none_or(|last| last.begin < work.begin) {
            self.works.push(work);
        }
    }

    /// It does something else from now on. What lasted no time is left out, and what goes on is one stretch.
    #[inline]
    pub(crate) fn begins(&mut self, time: i64, state: State) {
        let mut begin = time;
        if let Some(last) = self.stretches.last() {
            begin = begin.max(last.begin);
            if last.begin == begin {
                self.stretches.pop();
            }
        }
        if self.now() != Some(state) {
            self.stretches.push(Stretch { begin, state });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_no_empty_stretches() {
        let mut line = Line::default();
        for (time, state) in [
            (10, State::Unknown),
            (20, State::Running(1)),
            (30, State::Preempted(1)),
            (30, State::Running(1)),
            (25, State::Ended),
        ] {
            line.begins(time, state);
        }
        let found: Vec<_> = line.stretches.iter().map(|of| (of.begin, of.state)).collect();
        let expected = [(10, State::Unknown), (20, State::Running(1)), (25, State::Ended)];
        assert_eq!(found, expected);
    }
}
