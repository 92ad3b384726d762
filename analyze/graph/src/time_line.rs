//! A time line that is being made.

use tracebraid_follow::ThreadKey;
use tracebraid_kernel_model::Comm;

use tracebraid_threads::Past;

use crate::cause::Wake;
use crate::graph::{Actor, State, Stretch, Work};
use crate::growing::Growing;
use crate::thread_life::TimeLine;

impl Actor {
    pub(crate) fn new(key: ThreadKey) -> Actor {
        Actor {
            key,
            ..Actor::default()
        }
    }

    /// It has that name from now on.
    #[inline]
    pub(crate) fn is_called(&mut self, time: i64, name: Comm) {
        if self.called != name && name != Comm::default() {
            self.called = name;
            self.name = Some(name.text());
            self.names.push((time, name));
        }
    }

    /// True if it has waited since that time.
    pub(crate) fn has_waited_since(&self, time: i64) -> bool {
        let waits = |stretch: &Stretch| matches!(stretch.state, State::Blocked { .. });
        let since = self.line.iter().rev();
        let mut since = since.take_while(|stretch| stretch.begin > time);
        since.any(waits) || self.waited.is_some_and(|waited| waited > time)
    }

    /// Drops what ended before a time, but for [`Growing::KEPT_BEFORE`]; gives how many stretches
    /// that were. When it is known first, and when it waited last, stays known.
    pub(crate) fn drop_before(&mut self, cut: i64) -> usize {
        let count = self
            .place(cut)
            .unwrap_or(0)
            .saturating_sub(Growing::KEPT_BEFORE);
        if count > 0 {
            self.since = self.begin();
            let dropped = self.line.drain(..count);
            let mut waits =
                dropped.filter(|stretch| matches!(stretch.state, State::Blocked { .. }));
            self.waited = waits
                .next_back()
                .map(|stretch| stretch.begin)
                .or(self.waited);
        }
        // Of works only the last one may matter to what comes.
        let works = self.works.partition_point(|work| work.begin < cut);
        self.works
            .drain(..works.min(self.works.len().saturating_sub(1)));
        let names = self.names.partition_point(|name| name.0 <= cut);
        self.names.drain(..names.saturating_sub(1));
        if self.line.capacity() > 4 * self.line.len() {
            self.line.shrink_to(2 * self.line.len());
        }
        count
    }

    /// It turns to work.
    pub(crate) fn works(&mut self, work: Work) {
        if self.works.last().is_none_or(|last| last.begin < work.begin) {
            self.works.push(work);
        }
    }
}

impl TimeLine for Actor {
    #[inline]
    fn now(&self) -> Option<State> {
        self.line.last().map(|last| last.state)
    }

    #[inline]
    fn is(&mut self, state: State) {
        if let Some(last) = self.line.last_mut() {
            last.state = state;
        }
    }

    // What lasted no time is left out, and what goes on is one stretch.
    #[inline]
    fn begins(&mut self, time: i64, state: State) {
        let mut begin = time;
        if let Some(last) = self.line.last() {
            begin = begin.max(last.begin);
            if last.begin == begin {
                self.line.pop();
            }
        }
        if self.now() != Some(state) {
            self.line.push(Stretch { begin, state });
        }
    }

    fn has_waited(&mut self, past: Past<Wake>) {
        if let Some(state) = self.now().and_then(|now| now.after_wait(past)) {
            self.is(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_no_empty_stretches() {
        let mut line = Actor::default();
        for (time, state) in [
            (10, State::Unknown),
            (20, State::Running(1)),
            (30, State::Preempted(1)),
            (30, State::Running(1)),
            (25, State::Ended),
        ] {
            line.begins(time, state);
        }
        let found: Vec<_> = line.line.iter().map(|of| (of.begin, of.state)).collect();
        let expected = [
            (10, State::Unknown),
            (20, State::Running(1)),
            (25, State::Ended),
        ];
        assert_eq!(found, expected);
    }
}
