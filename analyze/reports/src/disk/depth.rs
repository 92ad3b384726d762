//! How many requests a device has at a time.

use serde::{Deserialize, Serialize};

use crate::kernel::Window;

/// A count that goes up and down in the course of time, and never below 0.
///
/// A chunk does not know the count at its beginning. It counts as if that were 0; wherever the count
/// would fall below 0, a new level begins: with a count of `b` at the beginning, the first `b`
/// levels are not cut at 0, but higher by what is left of `b`. So chunks are joined exactly,
/// in any order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Depth {
    /// Times of the first and the last change.
    span: Option<(i64, i64)>,
    /// One more than how often the count would have fallen below 0.
    levels: Vec<Level>,
    now: u64,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Level {
    /// Nanoseconds.
    pub(super) time: u64,
    /// Of them, those in which the count was 0.
    pub(super) zero: u64,
    /// Sum over the nanoseconds of the count.
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

    /// Adds another one that was that much higher.
    fn join(&mut self, other: Level, higher: u64) {
        self.time += other.time;
        self.area += other.area + u128::from(other.time) * u128::from(higher);
        self.zero += if higher == 0 { other.zero } else { 0 };
        if other.time > 0 {
            self.max = self.max.max(other.max + higher);
        }
    }
}

impl Depth {
    /// One more from that time on.
    pub(super) fn up(&mut self, time: i64, window: Window) {
        self.advance(time, window);
        self.now += 1;
    }

    /// One less from that time on.
    pub(super) fn down(&mut self, time: i64, window: Window) {
        self.advance(time, window);
        match self.now.checked_sub(1) {
            Some(less) => self.now = less,
            None => self.levels.push(Level::default()),
        }
    }

    fn advance(&mut self, time: i64, window: Window) {
        let Some((_, last)) = &mut self.span else {
            self.span = Some((time, time));
            self.levels.push(Level::default());
            return;
        };
        let span = window.clip(*last, time);
        *last = time;
        if let Some(level) = self.levels.last_mut() {
            level.add(span, self.now);
        }
    }

    /// Joins what comes later to this.
    pub(super) fn merge(&mut self, later: Depth, window: Window) {
        let Some((first, last)) = later.span else { return };
        if self.span.is_none() {
            *self = later;
            return;
        }
        self.advance(first, window);
        let base = self.now;
        let fell = later.levels.len().saturating_sub(1) as u64;
        for (below, level) in later.levels.into_iter().enumerate() {
            match (base.checked_sub(below as u64), self.levels.last_mut()) {
                (Some(higher), Some(own)) => own.join(level, higher),
                _ => self.levels.push(level),
            }
        }
        self.now = later.now + base.saturating_sub(fell);
        self.span = self.span.map(|(first, _)| (first, last));
    }

    /// From beginning to end of a range, with nothing before; `None` if nothing happened at all.
    pub(super) fn within(mut self, (begin, end): (i64, i64), window: Window) -> Option<Level> {
        let (first, last) = self.span?;
        let mut all = Level::default();
        all.add(window.clip(begin, first.min(end).max(begin)), 0);
        self.advance(end.max(last), window);
        self.levels.into_iter().for_each(|level| all.join(level, 0));
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn play(steps: &[(u8, bool)], from: usize) -> Depth {
        let mut depth = Depth::default();
        let mut time: i64 = 0;
        for (at, &(gap, up)) in steps.iter().enumerate() {
            time += i64::from(gap);
            if at >= from {
                match up {
                    true => depth.up(time, Window::default()),
                    false => depth.down(time, Window::default()),
                }
            }
        }
        depth
    }

    #[test]
    fn the_count_never_falls_below_zero() {
        let depth = play(&[(10, false), (5, true), (3, true), (2, false), (10, false)], 0);
        let level = depth.within((0, 40), Window::default());
        // 2 once for 2 ns, 1 for 3 and 10, 0 for 10, 5 and 10.
        let expected = Level {
            time: 40,
            zero: 25,
            area: 17,
            max: 2,
        };
        assert_eq!(level, Some(expected));
        assert_eq!(Depth::default().within((0, 40), Window::default()), None);
    }

    proptest! {
        #[test]
        fn chunks_give_what_one_pass_gives(
            steps in prop::collection::vec((0u8..5, any::<bool>()), 1..60),
            cuts in (0usize..60, 0usize..60),
            from_the_left: bool,
        ) {
            let window = Window::default();
            let end = steps.iter().map(|step| i64::from(step.0)).sum::<i64>() + 7;
            let (a, b) = (cuts.0.min(cuts.1).min(steps.len()), cuts.0.max(cuts.1).min(steps.len()));
            let mut parts = [play(&steps[..a], 0), play(&steps[..b], a), play(&steps, b)];
            let [first, second, third] = &mut parts;
            if from_the_left {
                first.merge(second.clone(), window);
                first.merge(third.clone(), window);
            } else {
                second.merge(third.clone(), window);
                first.merge(second.clone(), window);
            }
            let whole = play(&steps, 0).within((0, end), window);
            prop_assert_eq!(first.clone().within((0, end), window), whole);
        }
    }
}
