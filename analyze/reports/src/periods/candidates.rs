//! Event records that may begin or end a period, with the values that matter, in little memory.

use serde::{Deserialize, Serialize};
use tracebraid_filter::Datum;

/// An event record that may matter.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Candidate {
    /// Nanoseconds from the origin.
    pub(super) time: i64,
    /// Place of its stream among all streams.
    pub(super) stream: u32,
    /// Place of its class among those that matter.
    pub(super) class: u32,
    /// The filters of its class that it passed.
    pub(super) bits: u64,
    /// Its CPU, if it is known.
    pub(super) cpu: Option<u32>,
    /// Where its values begin, and how many they are.
    at: usize,
    count: u32,
}

/// Event records in the order in which they were read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Candidates {
    list: Vec<Candidate>,
    values: Vec<Datum>,
}

impl Candidates {
    /// Adds one, with the values that follow.
    pub(super) fn add(
        &mut self,
        (time, stream, class, bits): (i64, u32, u32, u64),
        cpu: Option<u32>,
        values: impl Iterator<Item = Datum>,
    ) {
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

    /// Adds those of later chunks.
    pub(super) fn append(&mut self, later: Candidates) {
        if self.list.is_empty() {
            *self = later;
            return;
        }
        let behind = self.values.len();
        self.values.extend(later.values);
        let moved = later.list.into_iter().map(|one| Candidate {
            at: one.at + behind,
            ..one
        });
        self.list.extend(moved);
    }

    /// Takes those that are earlier than that out, in the order of time; of equal times in the order
    /// of the streams, and of one stream in its order.
    pub(super) fn take_before(&mut self, time: Option<i64>) -> Candidates {
        let mut taken = std::mem::take(self);
        let key = |one: &Candidate| (one.time, one.stream);
        if !taken.list.is_sorted_by_key(key) {
            // Stable: those of one stream follow each other as they were read.
            taken.list.sort_by_key(key);
        }
        let count = match time {
            Some(time) => taken.list.partition_point(|one| one.time < time),
            None => taken.list.len(),
        };
        for one in taken.list.split_off(count) {
            let values = taken.of(&one).to_vec();
            let about = (one.time, one.stream, one.class, one.bits);
            self.add(about, one.cpu, values.into_iter());
        }
        taken
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Candidate, &[Datum])> {
        self.list.iter().map(|one| (one, self.of(one)))
    }

    fn of(&self, one: &Candidate) -> &[Datum] {
        self.values
            .get(one.at..one.at + one.count as usize)
            .unwrap_or_default()
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
        assert_eq!(list(&all.take_before(None)).len(), 1);
    }
}
