//! Time series of quantities, by CPU or thread.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, ThreadKey};

use crate::contexts::Hasher;
use crate::counts::quantities::FAULTS;
use crate::counts::time_series::{Keep, SeriesCursor, TimeSeries};

/// CPU or thread of a time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Owner {
    /// The CPU on which the value was recorded.
    Cpu(CpuKey),
    Thread(ThreadKey),
}

/// Index of a quantity, and the owner of the time series.
pub(crate) type SeriesKey = (u16, Owner);

/// All time series: by owner, and in each list by index of the quantity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    from = "Vec<(SeriesKey, TimeSeries)>",
    into = "Vec<(SeriesKey, TimeSeries)>"
)]
pub struct CountSeries(HashMap<Owner, Vec<TimeSeries>, Hasher>);

/// A reader's position in each series: by owner, and in each list by index of the quantity. Kept
/// between queries, because the next position is usually near.
#[derive(Debug, Default)]
pub(crate) struct SeriesCursors(HashMap<Owner, Vec<SeriesCursor>, Hasher>);

impl SeriesCursors {
    /// The positions in the first `count` series of an owner.
    pub(crate) fn of(&mut self, owner: Owner, count: usize) -> &mut [SeriesCursor] {
        let cursors = self.0.entry(owner).or_default();
        if cursors.len() < count {
            cursors.resize(count, SeriesCursor::default());
        }
        cursors
    }
}

impl From<Vec<(SeriesKey, TimeSeries)>> for CountSeries {
    fn from(list: Vec<(SeriesKey, TimeSeries)>) -> CountSeries {
        let mut all = CountSeries::default();
        for (key, series) in list {
            *all.at(key) = series;
        }
        all
    }
}

impl From<CountSeries> for Vec<(SeriesKey, TimeSeries)> {
    fn from(all: CountSeries) -> Self {
        let of_owner = |(owner, series): (Owner, Vec<TimeSeries>)| {
            let quantities = (0..)
                .zip(series)
                .filter(|(_, series)| *series != TimeSeries::default());
            quantities.map(move |(quantity, series)| ((quantity, owner), series))
        };
        let mut list: Vec<_> = all.0.into_iter().flat_map(of_owner).collect();
        list.sort_unstable_by_key(|(key, _)| *key);
        list
    }
}

impl CountSeries {
    fn at(&mut self, (quantity, owner): SeriesKey) -> &mut TimeSeries {
        let series = self.0.entry(owner).or_default();
        let quantity = usize::from(quantity);
        if series.len() <= quantity {
            series.resize_with(quantity + 1, TimeSeries::default);
        }
        &mut series[quantity]
    }

    /// Adds a value; `time` must not be earlier than that of the last value of its series.
    pub(crate) fn add(&mut self, key: SeriesKey, time: i64, value: u64, keep: Keep) {
        self.at(key).add(time, value, keep);
    }

    /// Appends later values.
    pub(crate) fn append(&mut self, later: CountSeries) {
        for (owner, series) in later.0 {
            for (quantity, series) in (0..).zip(series) {
                self.append_series((quantity, owner), series);
            }
        }
    }

    /// Appends later values of one series.
    pub(crate) fn append_series(&mut self, key: SeriesKey, later: TimeSeries) {
        self.at(key).append(later);
    }

    /// The series of an owner, by index of the quantity; quantities without values may be missing
    /// at the end.
    pub(crate) fn of(&self, owner: Owner) -> &[TimeSeries] {
        self.0.get(&owner).map_or(&[], Vec::as_slice)
    }

    /// Drops values earlier than `before`, in nanoseconds from the origin; up to half of each
    /// series may be kept.
    pub fn forget(&mut self, before: i64) {
        self.0
            .values_mut()
            .flatten()
            .for_each(|series| series.forget(before));
    }

    /// Total of a quantity over all owners. Its index: page faults, bytes read, bytes written,
    /// system calls, and then those of [`crate::Quantities::extra`].
    pub fn total(&self, quantity: usize) -> u64 {
        let series = self.0.values().filter_map(|series| series.get(quantity));
        series.fold(0, |sum, series| series.total().saturating_add(sum))
    }

    /// Page faults of all threads.
    pub(crate) fn faults(&self) -> u64 {
        self.total(usize::from(FAULTS))
    }

    /// Number of values.
    pub fn kept(&self) -> usize {
        self.0.values().flatten().map(TimeSeries::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_serialized_by_owner() {
        let owners = [0, 3].map(|cpu| Owner::Cpu(CpuKey { trace: 0, cpu }));
        let mut series = CountSeries::default();
        for time in 0..1000 {
            for (owner, quantity) in owners.into_iter().zip([1, 0]) {
                let mut later = TimeSeries::default();
                later.add(time, 5, Keep::Sum);
                series.append_series((quantity, owner), later);
            }
        }
        let serialized = Vec::from(series.clone());
        assert_eq!(serialized.len(), 2, "empty series are left out");
        assert_eq!(CountSeries::from(serialized), series);
        assert_eq!(
            (series.total(0), series.total(1), series.kept()),
            (5000, 5000, 2000)
        );
        series.forget(900);
        assert_eq!(
            (series.total(0), series.total(1), series.kept()),
            (5000, 5000, 200)
        );
    }
}
