//! Command lists and timers of Level Zero, as THAPI records them.
//!
//! Commands are appended to command lists. Those of an *immediate* list are queued by that; those of
//! another list each time the list is executed. Handles of lists are used again, so a list is
//! identified by its handle and the time at which it was created.
//!
//! A command has its start and end in cycles of the device's timer, which has few valid bits and
//! wraps after minutes. The number of wraps follows from one reading of the timer at a known time, and
//! the time of the call. The time at which a command was queued is not recorded: it is taken
//! to be that of the beginning of the call that queued it, by the relation of the clocks.
//!
//! So all of this must be known before commands are matched: a first reading of the traces finds lists
//! and timers ([`Learned`]), a second one the relation of the clocks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_clocks::Path;

use crate::item::{Completed, Handle, Times};

/// Structure type of properties whose resolution is in cycles per second, not in nanoseconds
/// (`ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2`).
const CYCLES_PER_SECOND: u32 = 0x2_0006;

/// Offsets in `ze_device_properties_t` of 64-bit programs.
mod offset {
    pub(super) const RESOLUTION: usize = 80;
    pub(super) const KERNEL_VALID_BITS: usize = 92;
    pub(super) const UUID: usize = 96;
    pub(super) const NAME: usize = 112;
}

/// A command list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct List {
    pub(crate) device: u64,
    /// Commands are queued when they are appended.
    pub(crate) is_immediate: bool,
}

/// The counter of a device by which commands are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counter {
    /// Nanoseconds of a cycle, as a fraction.
    nanoseconds: (u64, u64),
    bits: u32,
}

/// The properties of a device that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) counter: Counter,
    /// Equal for the same device in two processes.
    pub(crate) uuid: [u8; 16],
    pub(crate) name: String,
}

/// A device's counter, and its first reading: time of the trace, and cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Timer {
    counter: Option<Counter>,
    reading: Option<(i64, u64)>,
}

/// Lists and timers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Learned {
    /// By list: from when on it is such a list.
    lists: BTreeMap<Handle, Vec<(i64, List)>>,
    /// By device.
    timers: BTreeMap<Handle, Timer>,
}

impl Described {
    /// From the bytes of `ze_device_properties_t`.
    pub(crate) fn of(bytes: &[u8]) -> Option<Described> {
        let kind = u32::from_le_bytes(*bytes.first_chunk()?);
        let long = bytes.get(offset::RESOLUTION..)?.first_chunk()?;
        let resolution = u64::from_le_bytes(*long).max(1);
        let bits = bytes.get(offset::KERNEL_VALID_BITS..)?.first_chunk()?;
        let name = bytes.get(offset::NAME..)?.split(|byte| *byte == 0).next()?;
        Some(Described {
            counter: Counter {
                nanoseconds: match kind {
                    CYCLES_PER_SECOND => (1_000_000_000, resolution),
                    _ => (resolution, 1),
                },
                bits: u32::from_le_bytes(*bits),
            },
            uuid: *bytes.get(offset::UUID..)?.first_chunk()?,
            name: String::from_utf8_lossy(name).into_owned(),
        })
    }
}

impl Counter {
    /// Number of values, unless all bits are valid.
    fn period(self) -> Option<i128> {
        (1..64).contains(&self.bits).then(|| 1 << self.bits)
    }

    fn valid(self, cycles: u64) -> i128 {
        let cycles = i128::from(cycles);
        self.period()
            .map_or(cycles, |period| cycles.rem_euclid(period))
    }

    fn nanoseconds(self, cycles: i128) -> u64 {
        let (times, parts) = self.nanoseconds;
        let whole = cycles.saturating_mul(i128::from(times)) / i128::from(parts);
        u64::try_from(whole.max(0)).unwrap_or(u64::MAX)
    }

    fn cycles(self, nanoseconds: i64) -> i128 {
        let (times, parts) = self.nanoseconds;
        i128::from(nanoseconds) * i128::from(parts) / i128::from(times)
    }
}

impl Timer {
    /// Cycles with the number of wraps that is nearest to a time: at most a quarter of a wrap before
    /// it, since clocks drift, or else after it, since commands wait.
    fn unwrapped(self, counter: Counter, cycles: u64, at: i64) -> i128 {
        let valid = counter.valid(cycles);
        let (Some((since, reading)), Some(period)) = (self.reading, counter.period()) else {
            return valid;
        };
        let expected = counter.valid(reading) + counter.cycles(at.saturating_sub(since));
        let least = expected - period / 4;
        least + (valid - least).rem_euclid(period)
    }

    /// A reading at a time of the trace, in nanoseconds of the device.
    pub(crate) fn nanoseconds(self, cycles: u64, at: i64) -> Option<u64> {
        let counter = self.counter?;
        Some(counter.nanoseconds(self.unwrapped(counter, cycles, at)))
    }

    /// When a call began, in nanoseconds of the device, as if both clocks had the same speed.
    fn roughly(self, begin: i64) -> Option<u64> {
        let (counter, (since, reading)) = self.counter.zip(self.reading)?;
        let cycles = counter.valid(reading) + counter.cycles(begin.saturating_sub(since));
        Some(counter.nanoseconds(cycles))
    }

    /// The times of a command whose call began at `begin`.
    fn times(self, begin: i64, cycles: [u64; 2], path: Option<&Path>) -> Option<[u64; 4]> {
        let counter = self.counter?;
        let [start, end] = cycles.map(|of| counter.valid(of));
        let length = match counter.period() {
            Some(period) => (end - start).rem_euclid(period),
            None => (end - start).max(0),
        };
        let start = self.nanoseconds(cycles[0], begin)?;
        let queued = match path {
            Some(path) => device_time(path, begin, start),
            None => self.roughly(begin),
        };
        let queued = queued.map_or(start, |queued| queued.min(start));
        let end = start.saturating_add(counter.nanoseconds(length));
        Some([queued, queued, start, end])
    }
}

/// The time of a device at a time of the trace; `near` is a time of the device.
fn device_time(path: &Path, at: i64, near: u64) -> Option<u64> {
    let mut device = i64::try_from(near).ok()?;
    // Clocks differ by far less than the half: each step leaves a small part of the difference.
    for _ in 0..8 {
        let off = at.checked_sub(path.at(device)?.round())?;
        if off == 0 {
            break;
        }
        device = device.checked_add(off)?;
    }
    u64::try_from(device).ok()
}

impl Learned {
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty() || self.timers.is_empty()
    }

    pub(crate) fn add_list(&mut self, list: Handle, at: i64, of: List) {
        let known = self.lists.entry(list).or_default();
        if known.last().is_none_or(|(_, last)| *last != of) {
            known.push((at, of));
        }
    }

    pub(crate) fn add_counter(&mut self, device: Handle, counter: Counter) {
        self.timers.entry(device).or_default().counter = Some(counter);
    }

    pub(crate) fn add_reading(&mut self, device: Handle, at: i64, cycles: u64) {
        let timer = self.timers.entry(device).or_default();
        timer.reading.get_or_insert((at, cycles));
    }

    /// The list that has a handle at a time.
    pub(crate) fn list(&self, list: Handle, at: i64) -> Option<List> {
        let known = self.lists.get(&list)?;
        let after = known.partition_point(|(since, _)| *since <= at);
        known.get(after.checked_sub(1)?).map(|(_, list)| *list)
    }

    /// The timer of a device, whose commands are on the line of `line`.
    pub(crate) fn timer(&self, device: Handle, line: Handle) -> Option<Timer> {
        let timers = [line, device].map(|of| self.timers.get(&of).copied());
        let [whole, own] = timers.map(Option::unwrap_or_default);
        let (whole, own) = match whole.counter {
            Some(_) => (whole, own),
            None => (own, whole),
        };
        whole.counter?;
        // All processes that use a device count the same wraps.
        let reading = whole.reading.or(own.reading);
        Some(Timer { reading, ..whole })
    }
}

/// A complete command whose times are cycles, in nanoseconds: without times if its timer is unknown.
pub(crate) fn timed(
    completed: Completed,
    timer: Option<Timer>,
    begin: i64,
    path: Option<&Path>,
) -> Completed {
    let [.., start, end] = completed.times;
    let times = timer.and_then(|timer| timer.times(begin, [start, end], path));
    Completed {
        is_profiled: completed.is_profiled && times.is_some(),
        times: times.unwrap_or_default(),
        kind: Times::OfCall,
        ..completed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTER: Counter = Counter {
        nanoseconds: (80, 1),
        bits: 8,
    };

    fn timer(reading: Option<(i64, u64)>) -> Timer {
        Timer {
            counter: Some(COUNTER),
            reading,
        }
    }

    #[test]
    fn counters_wrap_between_start_and_end_and_between_reading_and_start() {
        let timer = timer(Some((1_000_000, 200)));
        // 20 cycles after the reading: 220 of 256.
        let at = |cycles: i64| 1_000_000 + cycles * 80;
        assert_eq!(
            timer.times(at(10), [220, 230], None),
            Some([210 * 80, 210 * 80, 220 * 80, 230 * 80])
        );
        assert_eq!(
            timer.times(at(50), [250, 4], None),
            Some([250 * 80, 250 * 80, 250 * 80, 260 * 80])
        );
        assert_eq!(
            timer.times(at(300), [260 % 256 + 1, 9], None),
            Some([500 * 80, 500 * 80, 517 * 80, 521 * 80])
        );
    }

    #[test]
    fn a_start_shortly_before_the_call_is_in_the_same_turn() {
        let timer = timer(Some((0, 0)));
        let times = timer.times(600 * 80, [(600 - 5) % 256, 610 % 256], None);
        assert_eq!(times, Some([595 * 80, 595 * 80, 595 * 80, 610 * 80]));
    }

    #[test]
    fn handles_of_lists_are_used_again() {
        let mut learned = Learned::default();
        let list = Handle {
            process: 0,
            handle: 1,
        };
        let of = |device, is_immediate| List {
            device,
            is_immediate,
        };
        learned.add_list(list, 10, of(1, true));
        learned.add_list(list, 20, of(1, true));
        learned.add_list(list, 30, of(2, false));
        let found = [9, 10, 29, 30, 99].map(|at| learned.list(list, at));
        let [one, two] = [of(1, true), of(2, false)].map(Some);
        assert_eq!(found, [None, one, one, two, two]);
    }

    #[test]
    fn properties_are_at_their_offsets() {
        let mut bytes = vec![0; 368];
        bytes[0] = 3;
        bytes[80] = 52;
        bytes[92] = 32;
        bytes[96] = 9;
        bytes[112..116].copy_from_slice(b"Arc\0");
        let found = Described::of(&bytes).expect("properties");
        assert_eq!(
            (found.counter.nanoseconds, found.counter.bits),
            ((52, 1), 32)
        );
        assert_eq!((found.uuid[0], found.name.as_str()), (9, "Arc"));
        assert_eq!(Described::of(&bytes[..100]), None);
        bytes[..4].copy_from_slice(&CYCLES_PER_SECOND.to_le_bytes());
        let found = Described::of(&bytes).expect("properties");
        assert_eq!(found.counter.nanoseconds, (1_000_000_000, 52));
    }
}
