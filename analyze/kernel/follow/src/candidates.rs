//! Event records of any class that may matter to an analysis in time order, with the values that
//! the analysis needs, in little memory.

use serde::{Deserialize, Serialize};
use tracebraid_language::Datum;

/// An event record that may matter.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Candidate {
    /// Time, in nanoseconds from the origin.
    pub time: i64,
    /// Number of the stream among the streams of all traces.
    pub stream: u32,
    /// Index of the event class among the relevant classes.
    pub class: u32,
    /// Filters of the class that the record passed, as a bit set.
    pub bits: u64,
    /// CPU of the record, if known.
    pub cpu: Option<u32>,
    /// Index of the first value in the list of values.
    at: usize,
    count: u32,
}

impl Candidate {
    /// Range of the record's values in the list of values.
    fn values(&self) -> std::ops::Range<usize> {
        self.at..self.at.saturating_add(self.count as usize)
    }
}

/// Event records: those of each stream in the order in which they were read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Candidates {
    list: Vec<Candidate>,
    values: Vec<Datum>,
    /// Number of values of records that were removed.
    gone: usize,
    /// By stream.
    seen: Vec<Seen>,
}

/// Time range of the added records of a stream.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Seen {
    first: i64,
    latest: i64,
}

/// No records yet.
const NOTHING: Seen = Seen {
    first: i64::MAX,
    latest: i64::MIN,
};

impl Candidates {
    /// Adds a record with its values. If a stream's clock goes back, the time is held.
    pub fn add(
        &mut self,
        (time, stream, class, bits): (i64, u32, u32, u64),
        cpu: Option<u32>,
        values: impl Iterator<Item = Datum>,
    ) {
        let time = self.hold(stream, time);
        let at = self.values.len();
        self.values.extend(values);
        self.list.push(Candidate {
            time,
            stream,
            class,
            bits,
            cpu,
            at,
            count: (self.values.len() - at) as u32,
        });
    }

    fn hold(&mut self, stream: u32, time: i64) -> i64 {
        let seen = self.seen(stream);
        seen.latest = seen.latest.max(time);
        seen.first = seen.first.min(time);
        seen.latest
    }

    fn seen(&mut self, stream: u32) -> &mut Seen {
        let stream = stream as usize;
        if stream >= self.seen.len() {
            self.seen.resize(stream + 1, NOTHING);
        }
        &mut self.seen[stream]
    }

    /// Appends the records of later chunks.
    pub fn append(&mut self, later: Candidates) {
        let before = self.seen.clone();
        let latest = |stream: usize| before.get(stream).map_or(i64::MIN, |seen| seen.latest);
        let mut seen = later.seen.iter().enumerate();
        let goes_back = seen.any(|(stream, seen)| seen.first < latest(stream));
        for (stream, seen) in later.seen.iter().enumerate() {
            let own = self.seen(stream as u32);
            own.first = own.first.min(seen.first);
            own.latest = own.latest.max(seen.latest);
        }
        let behind = self.values.len();
        self.values.extend(later.values);
        self.gone += later.gone;
        let moved = later.list.into_iter().map(|one| Candidate {
            at: one.at + behind,
            time: match goes_back {
                true => one.time.max(latest(one.stream as usize)),
                false => one.time,
            },
            ..one
        });
        self.list.extend(moved);
    }

    /// Takes out the records before `time`, in time order; at equal times in the order of the
    /// streams, and within a stream in the order of reading.
    pub fn take_before(&mut self, time: Option<i64>) -> Candidates {
        let key = |one: &Candidate| (one.time, one.stream);
        if !self.list.is_sorted_by_key(key) {
            // The sort is stable: records of one stream stay in the order of reading.
            self.list.sort_by_key(key);
        }
        let count = match time {
            Some(time) => self.list.partition_point(|one| one.time < time),
            None => self.list.len(),
        };
        let mut taken = Candidates::default();
        if count == self.list.len() {
            taken.list = std::mem::take(&mut self.list);
            taken.values = std::mem::take(&mut self.values);
            self.gone = 0;
            return taken;
        }
        for one in self.list.drain(..count) {
            let values = self.values.get_mut(one.values());
            taken.push(one, values.unwrap_or_default());
        }
        self.gone += taken.values.len();
        if 2 * self.gone > self.values.len() {
            self.close_gaps();
        }
        taken
    }

    /// Adds a record, moving its values here.
    fn push(&mut self, one: Candidate, values: &mut [Datum]) {
        let at = self.values.len();
        self.values.extend(values.iter_mut().map(std::mem::take));
        self.list.push(Candidate { at, ..one });
    }

    /// Frees the room of values that were taken out.
    fn close_gaps(&mut self) {
        let mut values = std::mem::take(&mut self.values);
        for one in std::mem::take(&mut self.list) {
            let own = values.get_mut(one.values());
            self.push(one, own.unwrap_or_default());
        }
        self.gone = 0;
    }

    /// All records with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&Candidate, &[Datum])> {
        self.list.iter().map(|one| (one, self.of(one)))
    }

    fn of(&self, one: &Candidate) -> &[Datum] {
        self.values.get(one.values()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[(i64, u32)]) -> Candidates {
        let mut candidates = Candidates::default();
        for (number, &(time, stream)) in times.iter().enumerate() {
            let value = Datum::Integer(number as i128);
            candidates.add((time, stream, 0, 0), None, [value].into_iter());
        }
        candidates
    }

    fn list(candidates: &Candidates) -> Vec<(i64, u32, i128)> {
        let value = |values: &[Datum]| match values {
            [Datum::Integer(number)] => *number,
            _ => -1,
        };
        candidates
            .iter()
            .map(|(one, values)| (one.time, one.stream, value(values)))
            .collect()
    }

    #[test]
    fn ties_are_in_the_order_of_streams() {
        let mut all = of(&[(5, 1), (5, 0)]);
        all.append(of(&[(5, 1), (4, 2), (9, 0)]));
        let taken = all.take_before(Some(9));
        assert_eq!(list(&taken), [(4, 2, 1), (5, 0, 1), (5, 1, 0), (5, 1, 0)]);
        assert_eq!(list(&all), [(9, 0, 2)]);
        // The remaining records keep their times, whatever follows.
        let mut rest = of(&[(5, 0), (6, 0), (7, 0)]);
        rest.take_before(Some(6));
        assert_eq!(list(&rest), [(6, 0, 1), (7, 0, 2)]);
        assert_eq!(list(&all.take_before(None)).len(), 1);
    }

    #[test]
    fn clocks_that_go_back_are_held_however_chunks_are_cut() {
        let times = [(5, 0), (7, 1), (3, 0), (6, 0), (4, 1)];
        let whole = list(&of(&times).take_before(None));
        let expected = [(5, 0, 0), (5, 0, 2), (6, 0, 3), (7, 1, 1), (7, 1, 4)];
        assert_eq!(whole, expected);
        for cut in 1..times.len() {
            let mut parts = of(&times[..cut]);
            parts.append(of(&times[cut..]));
            let parts = list(&parts.take_before(None));
            let places = |list: &[(i64, u32, i128)]| {
                list.iter()
                    .map(|&(time, stream, _)| (time, stream))
                    .collect::<Vec<_>>()
            };
            assert_eq!(places(&parts), places(&expected), "{cut}");
        }
    }
}
