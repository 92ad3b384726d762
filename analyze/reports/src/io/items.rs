//! Lists of items, packed: there are many, and they wait.

use serde::{Deserialize, Serialize};

use crate::io::item::{Item, UNNAMED, What};
use crate::packed::{Packed, Place};

/// Items that are being listed.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    packed: Packed,
    count: usize,
    last: Base,
    /// True if one is earlier than the one before it.
    unsorted: bool,
    /// When the first call began that is parked here.
    since: Option<i64>,
}

/// A list of items in the order of time, of which the first can be taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Items {
    packed: Packed,
    next: Option<Item>,
    /// Where those are that follow it.
    behind: Mark,
    /// Whose the items are that do not tell it themselves.
    named: i32,
}

/// What an item is written against: time and thread of the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Base {
    time: i64,
    tid: i32,
}

/// A place between two items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    place: Place,
    /// Of the items before it, the last, and how many they are.
    last: Base,
    count: usize,
}

impl Log {
    /// Adds an item.
    pub(super) fn push(&mut self, item: Item) {
        if let What::Park(open) = &item.what {
            self.since = Some(self.since.map_or(open.time, |since| since.min(open.time)));
        }
        self.unsorted |= item.time < self.last.time && !self.packed.is_empty();
        write(&mut self.packed, self.last, &item);
        self.last = Base::of(&item);
        self.count += 1;
    }

    /// The place behind the last item.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            place: self.packed.end(),
            last: self.last,
            count: self.count,
        }
    }

    /// How many there are since a mark.
    pub(super) fn count_since(&self, mark: &Mark) -> usize {
        self.count - mark.count
    }

    /// Takes out the first items.
    pub(super) fn take_first(&mut self, count: usize) -> Vec<Item> {
        if count == 0 {
            return Vec::new();
        }
        let mut items = self.split_off(Mark::default());
        self.extend(items.split_off(count.min(items.len())));
        items
    }

    /// Takes out the items behind a mark.
    pub(super) fn split_off(&mut self, mark: Mark) -> Vec<Item> {
        let mut at = mark;
        let rest = std::iter::from_fn(|| read(&self.packed, &mut at)).collect();
        self.packed.truncate(mark.place);
        (self.last, self.count) = (mark.last, mark.count);
        rest
    }

    /// When the first call began that is parked here.
    pub(super) fn since(&self) -> Option<i64> {
        self.since
    }

    /// Nothing will be added. Items of one time stay in their order.
    pub(super) fn finish(mut self) -> Items {
        if self.unsorted {
            let mut items = self.split_off(Mark::default());
            items.sort_by_key(|item| item.time);
            self.extend(items);
        }
        let mut items = Items {
            packed: self.packed,
            next: None,
            behind: Mark::default(),
            named: UNNAMED,
        };
        items.read_next();
        items
    }
}

impl Extend<Item> for Log {
    fn extend<I: IntoIterator<Item = Item>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl Items {
    /// The time of the first item.
    pub(super) fn next_time(&self) -> Option<i64> {
        Some(self.next?.time)
    }

    /// Takes the first item.
    #[inline]
    pub(super) fn take_next(&mut self) -> Option<Item> {
        let mut item = self.next?;
        if item.tid == UNNAMED {
            item.tid = self.named;
        }
        self.read_next();
        Some(item)
    }

    #[inline]
    fn read_next(&mut self) {
        self.next = read(&self.packed, &mut self.behind);
        self.packed.free(self.behind.place);
    }

    /// It turns out whose the items are that do not tell it themselves.
    pub(super) fn name(&mut self, tid: i32) {
        if self.named == UNNAMED {
            self.named = tid;
        }
    }
}

impl Base {
    fn of(item: &Item) -> Base {
        Base {
            time: item.time,
            tid: item.tid,
        }
    }
}

/// Set in the tag of an item of another thread than the one before it.
const OTHER_THREAD: u8 = 0x80;

#[inline]
fn write(to: &mut Packed, last: Base, item: &Item) {
    to.push(|record| {
        let other = item.tid != last.tid;
        record.byte(item.what.tag() | if other { OTHER_THREAD } else { 0 });
        record.int(item.time.wrapping_sub(last.time));
        if other {
            record.int(item.tid.into());
        }
        item.what.pack(item.time, record);
    });
}

#[inline]
fn read(from: &Packed, at: &mut Mark) -> Option<Item> {
    let last = at.last;
    let item = from.read(&mut at.place, |reader| {
        let tag = reader.byte()?;
        let time = last.time.wrapping_add(reader.int()?);
        let tid = match tag & OTHER_THREAD {
            0 => last.tid,
            _ => reader.int()? as i32,
        };
        let what = What::unpack(tag & !OTHER_THREAD, time, reader)?;
        Some(Item { time, tid, what })
    })?;
    at.last = Base::of(&item);
    at.count += 1;
    Some(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(time: i64, tid: i32) -> Item {
        Item {
            time,
            tid,
            what: What::End,
        }
    }

    fn taken(mut items: Items) -> Vec<(i64, i32)> {
        let items = std::iter::from_fn(|| {
            let next = items.next_time();
            let item = items.take_next();
            assert_eq!(next, item.map(|item| item.time));
            item
        });
        items.map(|item| (item.time, item.tid)).collect()
    }

    #[test]
    fn items_are_taken_in_the_order_of_time() {
        let mut log = Log::default();
        // The clock goes back, as it may from one packet to the next.
        for (time, tid) in [(5, 1), (7, 2), (7, 3), (i64::MIN, 4), (7, 1), (i64::MAX, 9)] {
            log.push(ended(time, tid));
        }
        let expected = [(i64::MIN, 4), (5, 1), (7, 2), (7, 3), (7, 1), (i64::MAX, 9)];
        assert_eq!(taken(log.finish()), expected);
        assert_eq!(taken(Log::default().finish()), []);
    }

    #[test]
    fn items_without_a_thread_are_of_whom_it_turns_out() {
        let mut log = Log::default();
        log.extend([ended(1, UNNAMED), ended(2, 8), ended(3, UNNAMED)]);
        let mut items = log.finish();
        items.name(7);
        items.name(6);
        assert_eq!(taken(items), [(1, 7), (2, 8), (3, 7)]);
    }

    #[test]
    fn lists_are_cut_and_go_on() {
        let all: Vec<_> = (0..1000).map(|at| ended(at * at, at as i32 % 3)).collect();
        for cut in [0, 1, 500, 1000] {
            let mut log = Log::default();
            log.extend(all.iter().copied().take(cut));
            let mark = log.mark();
            log.extend(all.iter().copied().skip(cut));
            assert_eq!(log.count_since(&mark), 1000 - cut);
            assert_eq!(log.split_off(mark), all[cut..]);
            log.extend(all.iter().copied().skip(cut));
            assert_eq!(log.take_first(cut), all[..cut]);
            let rest: Vec<_> = all[cut..].iter().map(|item| (item.time, item.tid)).collect();
            assert_eq!(taken(log.finish()), rest);
        }
    }
}
