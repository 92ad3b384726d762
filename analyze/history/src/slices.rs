//! The slices of time that correspond to the blocks of a history.
//!
//! Slices begin at the starts of packets, so that each contains about the same number of bytes of
//! the trace, whatever the rate of events, and so that they do not depend on the chunks of a build.
//! A slice also begins where the recording of a CPU ends, since values change there without an
//! event.

use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::Recorded;

/// Minimum size of the packets of a slice, in bytes.
const SLICE_BYTES: u64 = 512 << 10;

/// Consecutive slices of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slices {
    /// Starts of all slices but the first, which begins with the first event. Strictly ascending.
    begins: Vec<i64>,
    /// Start of the first slice, if earlier slices are not included.
    first: Option<i64>,
}

impl Slices {
    /// Slices of a trace set; each of `recorded.ends()` is the start of a slice.
    pub(crate) fn of(set: &TraceSet, recorded: &Recorded) -> Slices {
        let mut packets: Vec<(i64, u64)> = Vec::new();
        for trace in &set.traces {
            for stream in &trace.streams {
                let Some(clock) = trace.clock(stream) else {
                    continue;
                };
                let begins = stream.packets.iter().filter_map(|packet| {
                    let begin = clock.timestamp(packet.begin?).0;
                    Some((begin, packet.bytes))
                });
                packets.extend(begins);
            }
        }
        packets.sort_unstable();
        let mut slices = Slices::new(&packets, SLICE_BYTES);
        slices
            .begins
            .extend(recorded.ends().iter().map(|end| end.0));
        slices.begins.sort_unstable();
        slices.begins.dedup();
        slices
    }

    /// Slices of packets, given their starts and sizes in the order of time.
    fn new(packets: &[(i64, u64)], threshold: u64) -> Slices {
        let mut begins: Vec<i64> = Vec::new();
        let mut bytes: u64 = 0;
        for &(begin, size) in packets {
            let last = begins.last().copied().unwrap_or(i64::MIN);
            if bytes >= threshold && begin > last {
                begins.push(begin);
                bytes = 0;
            }
            bytes = bytes.saturating_add(size);
        }
        Slices {
            begins,
            first: None,
        }
    }

    /// The last start of a slice at or before a time.
    pub(crate) fn last_begin(&self, time: i64) -> Option<i64> {
        let behind = self.begins.partition_point(|&begin| begin <= time);
        self.begins.get(behind.checked_sub(1)?).copied()
    }

    /// The slices from the one that begins at `first` on.
    pub(crate) fn behind(self, first: i64) -> Slices {
        Slices {
            begins: self
                .begins
                .into_iter()
                .filter(|&begin| begin > first)
                .collect(),
            first: Some(first),
        }
    }

    /// Start of a slice; `i64::MIN` for the first slice of the trace.
    pub(crate) fn begin(&self, slice: usize) -> i64 {
        match slice.checked_sub(1) {
            Some(before) => self.end(before),
            None => self.first.unwrap_or(i64::MIN),
        }
    }

    /// The slice that contains a time.
    pub(crate) fn find(&self, time: i64) -> usize {
        self.begins.partition_point(|&begin| begin <= time)
    }

    /// End of a slice, where the next slice begins; `i64::MAX` for the last.
    pub(crate) fn end(&self, slice: usize) -> i64 {
        self.begins.get(slice).copied().unwrap_or(i64::MAX)
    }

    /// Number of slices.
    pub(crate) fn len(&self) -> usize {
        self.begins.len() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_closed_when_they_are_full() {
        let packets = [(0, 4), (1, 4), (1, 4), (1, 4), (5, 4), (6, 4), (9, 4)];
        let slices = Slices::new(&packets, 8);
        assert_eq!(slices.begins, [1, 5, 9]);
        let found: Vec<usize> = [-5, 0, 1, 4, 5, 9, 100]
            .map(|time| slices.find(time))
            .to_vec();
        assert_eq!(found, [0, 0, 1, 1, 2, 3, 3]);
        assert_eq!(
            (slices.end(0), slices.end(3), slices.len()),
            (1, i64::MAX, 4)
        );
        assert_eq!(
            [0, 1, 8].map(|time| slices.last_begin(time)),
            [None, Some(1), Some(5)]
        );
        let behind = slices.behind(5);
        assert_eq!((behind.len(), behind.begin(0), behind.begin(1)), (2, 5, 9));
    }
}
