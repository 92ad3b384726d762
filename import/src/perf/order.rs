//! Sorts records by time.
//!
//! perf writes the buffers of all CPUs in sequence, in rounds. When a round is finished, no later
//! record can be older than the latest record of the previous round.

/// A buffered record.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// In nanoseconds; 0 for records that perf synthesized for the time before the recording.
    pub(crate) time: u64,
    /// The time is synthetic: the record gets the time of another record.
    pub(crate) has_no_time: bool,
    /// Offset of the record in the file, in bytes.
    pub(crate) offset: u64,
    /// `type` of the record.
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    pub(crate) cpu: u32,
    /// Index of its event.
    pub(crate) attr: usize,
    /// The bytes after the head.
    pub(crate) body: Box<[u8]>,
}

/// Limit for the size of the buffered records, in bytes.
const MOST_BYTES: usize = 256 << 20;

/// A buffer that sorts records by time.
#[derive(Debug)]
pub(crate) struct Order {
    /// In the order of the file, or sorted.
    waiting: Vec<Record>,
    bytes: usize,
    most_bytes: usize,
    /// Latest time of all records.
    latest: u64,
    /// Latest time of all records at the end of the last round.
    latest_before: u64,
    /// The buffer has exceeded its limit.
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
    /// Adds a record. If the buffer is full, returns the older half of the records in order.
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

    /// Ends a round. Returns the records that no later record can precede, in order.
    pub(crate) fn finish_round(&mut self) -> Vec<Record> {
        let limit = std::mem::replace(&mut self.latest_before, self.latest);
        self.sort();
        // Records without a time are kept until there is a record with a time.
        match self.waiting.partition_point(|record| record.time <= limit) {
            _ if limit == 0 => Vec::new(),
            count => self.first(count),
        }
    }

    /// Returns all remaining records in order.
    pub(crate) fn finish(&mut self) -> Vec<Record> {
        self.sort();
        self.first(self.waiting.len())
    }

    /// The sort is stable: records of equal time stay in the order of the file.
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
