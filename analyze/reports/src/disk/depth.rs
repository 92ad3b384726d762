//! How many requests a device has at a time.

use serde::{Deserialize, Serialize};

use crate::kernel::Window;

/// A count that goes up and down in the course of time, and never below 0: what ends that did not
/// begin began before the trace, or its beginning was lost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Depth {
    /// Times of the first and the last change.
    span: Option<(i64, i64)>,
    level: Level,
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
        self.now = self.now.saturating_sub(1);
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

    /// From beginning to end of a range, with nothing before; `None` if nothing happened at all.
    pub(super) fn within(mut self, (begin, end): (i64, i64), window: Window) -> Option<Level> {
        let (first, last) = self.span?;
        self.level.add(window.clip(begin, first.min(end).max(begin)), 0);
        self.advance(end.max(last), window);
        Some(self.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(steps: &[(u8, bool)]) -> Depth {
        let mut depth = Depth::default();
        let mut time: i64 = 0;
        for &(gap, up) in steps {
            time += i64::from(gap);
            match up {
                true => depth.up(time, Window::default()),
                false => depth.down(time, Window::default()),
            }
        }
        depth
    }

    #[test]
    fn the_count_never_falls_below_zero() {
        let depth = play(&[(10, false), (5, true), (3, true), (2, false), (10, false)]);
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
}
