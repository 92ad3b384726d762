//! The clock of a trace: its unit, and its relation to the monotonic and the wall clock.

/// Largest difference between the trace's clock and the monotonic clock, if they are the same: the
/// unit of the trace's clock (64 ns), and the time between reading both, in nanoseconds.
const SAME_CLOCK_NS: u64 = 1_000_000;

/// The clocks at one moment, as the runtime read them one after another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot {
    /// In units of the trace's clock.
    pub(super) trace: u64,
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub(super) monotonic: u64,
    /// Of the wall clock, since 1970.
    pub(super) seconds: u64,
    pub(super) nanoseconds: u64,
}

/// Nanoseconds per unit of the trace's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit(f64);

impl Unit {
    /// From the units per second. The arithmetic is that of Go's reader, so that times are equal.
    pub(super) fn of(frequency: u64) -> Unit {
        Unit(1.0 / (frequency as f64 / 1e9))
    }

    /// Nanoseconds of a number of units.
    pub(super) fn nanoseconds(self, units: u64) -> u64 {
        (units as f64 * self.0) as u64
    }

    /// The unit, rounded up to whole nanoseconds.
    pub(super) fn resolution(self) -> u64 {
        self.0.ceil() as u64
    }
}

/// The clock of the imported trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    /// The clock counts as CLOCK_MONOTONIC does.
    pub(super) is_monotonic: bool,
    /// Nanoseconds from the Epoch to the zero of the clock, if known.
    pub(super) offset: Option<i64>,
}

impl Relation {
    /// From the first snapshot of the trace. Without one (until Go 1.24), the time of day is
    /// unknown, and the clock that of all systems but Windows.
    pub(super) fn of(snapshot: Option<&Snapshot>, unit: Unit) -> Relation {
        let Some(snapshot) = snapshot else {
            return Relation {
                is_monotonic: true,
                offset: None,
            };
        };
        let trace = unit.nanoseconds(snapshot.trace);
        let is_monotonic = trace.abs_diff(snapshot.monotonic) <= SAME_CLOCK_NS;
        let zero = if is_monotonic {
            snapshot.monotonic
        } else {
            trace
        };
        let wall = i128::from(snapshot.seconds) * 1_000_000_000 + i128::from(snapshot.nanoseconds);
        Relation {
            is_monotonic,
            offset: i64::try_from(wall - i128::from(zero)).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_go() {
        let unit = Unit::of(15_625_000);
        assert_eq!(unit.nanoseconds(3), 192);
        // Exact as long as a machine may run: 64 is a power of two.
        assert_eq!(unit.nanoseconds((1 << 52) + 1), ((1 << 52) + 1) * 64);
        assert_eq!(unit.resolution(), 64);
    }

    #[test]
    fn other_clocks_keep_their_zero() {
        let snapshot = |trace| Snapshot {
            trace,
            monotonic: 6_400,
            seconds: 1_000,
            nanoseconds: 7_000,
        };
        let unit = Unit::of(15_625_000);
        let same = Relation::of(Some(&snapshot(99)), unit);
        assert_eq!(
            (same.is_monotonic, same.offset),
            (true, Some(1_000_000_000_600))
        );
        let other = Relation::of(Some(&snapshot(1_000_000)), unit);
        assert!(!other.is_monotonic);
        assert_eq!(other.offset, Some(1_000_000_007_000 - 64_000_000));
    }
}
