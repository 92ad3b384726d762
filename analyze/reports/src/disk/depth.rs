//! Number of requests that a device has at a time.

use serde::{Deserialize, Serialize};

use tracebraid_follow::Window;

/// A count over time that never falls below 0: a request that ends without a recorded start began
/// before the trace, or its start was lost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Depth {
    /// Times of the first and the last change.
    span: Option<(i64, i64)>,
    level: Level,
    now: u64,
}

/// Sums over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Level {
    /// Nanoseconds.
    pub(super) time: u64,
    /// Nanoseconds in which the count was 0.
    pub(super) zero: u64,
    /// Integral of the count over the nanoseconds.
    pub(super) area: u128,
    /// The greatest count that lasted.
    pub(super) max: u64,
}

impl Level {
    fn add(&mut self, time: u64, count: u64) {
        self.time += time;
        self.area += u128::from(time) * u128::from(count);
        if count == 0 {
            self.zero += time;
        }
        if time > 0 {
            self.max = self.max.max(count);
        }
    }
}

/// The count in a slice of time, relative to its unknown value at the start of the slice.
///
/// With `x` at the start, the count is `max(x + more, more - least)`. `more` is the net increase so
/// far, and `least` its minimum so far, below 0 if requests ended that did not begin in the slice:
/// if they did not begin before the slice either, the count stayed at 0.
#[derive(Clone, Debug, Default)]
pub(super) struct DepthSlice {
    span: Option<(i64, i64)>,
    now: Change,
    /// Nanoseconds by change.
    times: Vec<(Change, u64)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Change {
    more: i64,
    least: i64,
}

impl Change {
    /// The count, given the count at the start of the slice.
    fn count(self, begin: u64) -> u64 {
        let begin = i64::try_from(begin).unwrap_or(i64::MAX);
        let count = begin.saturating_add(self.more).max(self.more - self.least);
        u64::try_from(count).unwrap_or(0)
    }
}

impl DepthSlice {
    /// The count increases by one at `time`.
    pub(super) fn up(&mut self, time: i64, window: Window) {
        self.advance(time, window);
        self.now.more += 1;
    }

    /// The count decreases by one at `time`.
    pub(super) fn down(&mut self, time: i64, window: Window) {
        self.advance(time, window);
        self.now.more -= 1;
        self.now.least = self.now.least.min(self.now.more);
    }

    fn advance(&mut self, time: i64, window: Window) {
        let Some((_, last)) = &mut self.span else {
            self.span = Some((time, time));
            return;
        };
        let span = window.clip(*last, time);
        *last = time;
        // Few requests are in progress at a time.
        match self.times.iter_mut().find(|of| of.0 == self.now) {
            Some((_, time)) => *time += span,
            None => self.times.push((self.now, span)),
        }
    }
}

impl Depth {
    /// Appends a slice.
    pub(super) fn go_on(&mut self, slice: &DepthSlice, window: Window) {
        let Some((first, last)) = slice.span else {
            return;
        };
        self.advance(first, window);
        for &(change, time) in &slice.times {
            self.level.add(time, change.count(self.now));
        }
        self.now = slice.now.count(self.now);
        self.span = self.span.map(|(begin, _)| (begin, last));
    }

    fn advance(&mut self, time: i64, window: Window) {
        let Some((_, last)) = &mut self.span else {
            self.span = Some((time, time));
            return;
        };
        let span = window.clip(*last, time);
        *last = time;
        self.level.add(span, self.now);
    }

    /// Extends the sums to a range, with a count of 0 before the first change; `None` without any
    /// change.
    pub(super) fn within(mut self, (begin, end): (i64, i64), window: Window) -> Option<Level> {
        let (first, last) = self.span?;
        self.level
            .add(window.clip(begin, first.min(end).max(begin)), 0);
        self.advance(end.max(last), window);
        Some(self.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    /// Plays changes, each after a number of nanoseconds, in slices of a number of changes.
    fn play(steps: &[(u8, bool)], slice: usize) -> Depth {
        let mut depth = Depth::default();
        let mut time: i64 = 0;
        for steps in steps.chunks(slice) {
            let mut slice = DepthSlice::default();
            for &(gap, up) in steps {
                time += i64::from(gap);
                match up {
                    true => slice.up(time, Window::default()),
                    false => slice.down(time, Window::default()),
                }
            }
            depth.go_on(&slice, Window::default());
        }
        depth
    }

    /// The same sums, computed without slices.
    fn plain(steps: &[(u8, bool)]) -> Level {
        let (mut level, mut count) = (Level::default(), 0_u64);
        for &(gap, up) in steps {
            level.add(gap.into(), count);
            count = match up {
                true => count + 1,
                false => count.saturating_sub(1),
            };
        }
        level
    }

    proptest! {
        #[test]
        fn slices_are_composed_to_the_whole(
            steps in prop::collection::vec((0..4_u8, any::<bool>()), 1..60),
            slice in 1..20_usize,
        ) {
            let end: i64 = steps.iter().map(|step| i64::from(step.0)).sum();
            let found = play(&steps, slice).within((0, end), Window::default());
            prop_assert_eq!(found, Some(plain(&steps)));
        }
    }

    #[test]
    fn the_count_never_falls_below_zero() {
        let depth = play(
            &[(10, false), (5, true), (3, true), (2, false), (10, false)],
            2,
        );
        let level = depth.within((0, 40), Window::default());
        // Of 40 ns: 2 for 2 ns, 1 for 3 and 10 ns, 0 for 10, 5 and 10 ns.
        let expected = Level {
            time: 40,
            zero: 25,
            area: 17,
            max: 2,
        };
        assert_eq!(level, Some(expected));
        assert_eq!(Depth::default().within((0, 40), Window::default()), None);
    }
}
