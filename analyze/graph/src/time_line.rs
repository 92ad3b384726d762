//! Changes of a time line.

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

    /// Sets the name from a time on.
    #[inline]
    pub(crate) fn is_called(&mut self, time: i64, name: Comm) {
        if self.called != name && name != Comm::default() {
            self.called = name;
            self.name = Some(name.text());
            self.names.push((time, name));
        }
    }

    /// True if the thread has waited since a time.
    pub(crate) fn has_waited_since(&self, time: i64) -> bool {
        let waits = |stretch: &Stretch| matches!(stretch.state, State::Blocked { .. });
        let since = self.line.iter().rev();
        let mut since = since.take_while(|stretch| stretch.begin > time);
        since.any(waits) || self.waited.is_some_and(|waited| waited > time)
    }

    /// Drops stretches that ended before a time, except for the last [`Growing::KEPT_BEFORE`].
    /// Returns the number of dropped stretches. The start of the time line and of the last wait are
    /// kept.
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
        // Only the last of the earlier works can affect later paths.
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

    /// Begins work.
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

    // Drops empty stretches and joins equal ones.
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
