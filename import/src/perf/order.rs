//! Records in the order of time.
//!
//! perf writes the buffers of all CPUs one after the other, round by round; when a round has been
//! finished, nothing that is older than the latest of the round before can come any more.

/// A record that waits.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// In nanoseconds; 0 for what perf made up for the time before the recording.
    pub(crate) time: u64,
    /// Its time was made up: it happens at that of another.
    pub(crate) has_no_time: bool,
    /// Where it stands in the file, in bytes.
    pub(crate) offset: u64,
    /// `type` of the record.
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    pub(crate) cpu: u32,
    /// Index of its event.
    pub(crate) attr: usize,
    /// What is behind the head.
    pub(crate) body: Box<[u8]>,
}

/// What waits takes at most about so many bytes.
const MOST_BYTES: usize = 256 << 20;

/// Records that wait for older ones.
#[derive(Debug)]
pub(crate) struct Order {
    /// In the order of the file, or sorted.
    waiting: Vec<Record>,
    bytes: usize,
    most_bytes: usize,
    /// Latest time of all.
    latest: u64,
    /// Latest time of all when the last round was finished.
    latest_before: u64,
    /// More waited than there is room for.
    pub(crate) was_full: bool,
}

impl Default for Order {
    fn default() -> Self {
        Order {
            waiting: Vec::new(),
            bytes: 0,
            most_bytes: MOST_BYTES,
            latest: 0,
            latest_before: 0,
            was_full: false,
        }
    }
}

fn size(record: &Record) -> usize {
    size_of::<Record>() + record.body.len() + 16
}

impl Order {
    /// Takes a record. Gives others that wait no longer, in order, if there is no room.
    pub(crate) fn add(&mut self, record: Record) -> Vec<Record> {
        self.bytes += size(&record);
        self.latest = self.latest.max(record.time);
        self.waiting.push(record);
        if self.bytes <= self.most_bytes {
            return Vec::new();
        }
        self.was_full = true;
        self.sort();
        self.first(self.waiting.len() / 2 + 1)
    }

    /// A round is finished: gives what waits no longer, in order.
    pub(crate) fn finish_round(&mut self) -> Vec<Record> {
        let limit = std::mem::replace(&mut self.latest_before, self.latest);
        self.sort();
        // What has no time waits for the first that has one.
        match self.waiting.partition_point(|record| record.time <= limit) {
            _ if limit == 0 => Vec::new(),
            count => self.first(count),
        }
    }

    /// Gives all that is left, in order.
    pub(crate) fn finish(&mut self) -> Vec<Record> {
        self.sort();
        self.first(self.waiting.len())
    }

    /// Records of one time stay in the order of the file.
    fn sort(&mut self) {
        self.waiting.sort_by_key(|record| record.time);
    }

    fn first(&mut self, count: usize) -> Vec<Record> {
        let rest = self.waiting.split_off(count.min(self.waiting.len()));
        let first = std::mem::replace(&mut self.waiting, rest);
        self.bytes -= first.iter().map(size).sum::<usize>();
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64, cpu: u32) -> Record {
        Record {
            time,
            has_no_time: false,
            offset: 0,
            kind: 9,
            misc: 0,
            cpu,
            attr: 0,
            body: Box::default(),
        }
    }

    fn times(records: &[Record]) -> Vec<u64> {
        records.iter().map(|record| record.time).collect()
    }

    #[test]
    fn a_round_gives_what_is_not_newer_than_the_round_before() {
        let mut order = Order::default();
        for time in [1, 2, 2, 3, 4] {
            assert!(order.add(record(time, 0)).is_empty());
        }
        assert!(order.finish_round().is_empty());
        for time in [3, 4, 5, 6, 7] {
            order.add(record(time, 1));
        }
        assert_eq!(times(&order.finish_round()), [1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(times(&order.finish()), [5, 6, 7]);
    }

    #[test]
    fn what_has_no_time_waits_for_what_has_one() {
        let mut order = Order::default();
        order.add(record(0, 0));
        assert!(order.finish_round().is_empty());
        assert!(order.finish_round().is_empty());
        order.add(record(7, 0));
        order.finish_round();
        assert_eq!(times(&order.finish_round()), [0, 7]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut order = Order {
            most_bytes: 100 * size(&record(0, 0)),
            ..Order::default()
        };
        let mut given = Vec::new();
        for time in 0..1000u64 {
            given.extend(order.add(record(time ^ 1, 0)));
            assert!(order.waiting.len() <= 100);
        }
        given.extend(order.finish());
        assert!(order.was_full && order.bytes == 0);
        assert_eq!(times(&given), (0..1000).collect::<Vec<_>>());
    }
}
