//! Packed lists of items: there are many, and they wait.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Serialize};
use tracebraid_follow::KeyHasher;

use crate::io::item::{IoAction, IoItem, UNNAMED};
use crate::packed::{Packed, PackedPosition};

/// A list under construction, with the list of acts.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    all: Draft,
    /// Items that decide which thread uses which descriptor table, and a touch by each thread that
    /// may change a table.
    acts: Draft,
    touched: HashSet<i32, BuildHasherDefault<KeyHasher>>,
    /// True if an item is earlier than its predecessor.
    unsorted: bool,
    /// Start of the oldest call that is parked in the list.
    since: Option<i64>,
}

/// A list under construction.
#[derive(Clone, Debug, Default)]
struct Draft {
    list: List,
    count: usize,
    /// Every [`INTERVAL`]th item.
    index: Vec<Indexed>,
}

/// A boundary between two items of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct End {
    at: Position,
    /// Number of items before it.
    count: usize,
}

/// An item that is found without reading those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Indexed {
    time: i64,
    at: Position,
    /// Start of the oldest call that is parked from this item on, or `i64::MAX`; during
    /// construction, up to the next indexed item.
    since: i64,
}

/// A search for a time decodes fewer items than this.
const INTERVAL: usize = 128;

/// Items, packed one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct List {
    packed: Packed,
    last: Base,
}

/// Time and thread of the previous item, against which an item is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Base {
    time: i64,
    tid: i32,
}

/// A reading position in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    place: PackedPosition,
    /// The previous item.
    last: Base,
}

/// A boundary between two items of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    all: End,
    acts: End,
}

/// A complete list of items in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Items {
    list: List,
    index: Vec<Indexed>,
    /// Times of the first and the last item.
    pub(super) range: Option<(i64, i64)>,
}

/// Reads items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// Position after the next item.
    at: Position,
    next: Option<IoItem>,
}

impl Log {
    /// Appends an item.
    #[inline]
    pub(super) fn push(&mut self, item: IoItem) {
        self.unsorted |= item.time < self.all.list.last.time && !self.all.list.packed.is_empty();
        self.all.push(&item);
        if let IoAction::Park(open) = &item.what {
            self.since = Some(self.since.map_or(open.time, |since| since.min(open.time)));
            let indexed = self.all.index.last_mut().into_iter();
            indexed.for_each(|indexed| indexed.since = indexed.since.min(open.time));
        }
        if item.what.touches() && (item.tid == UNNAMED || self.touched.insert(item.tid)) {
            let what = IoAction::Touch;
            self.acts.push(&IoItem { what, ..item });
        }
        if item.what.act().is_some() {
            self.acts.push(&item);
        }
    }

    /// The boundary after the last item.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            all: self.all.end(),
            acts: self.acts.end(),
        }
    }

    /// Number of items since a mark.
    pub(super) fn count_since(&self, mark: &Mark) -> usize {
        self.all.count - mark.all.count
    }

    /// Removes and returns the first items.
    pub(super) fn take_first(&mut self, count: usize) -> Vec<IoItem> {
        if count == 0 {
            return Vec::new();
        }
        let mut items = self.split_off(Mark::default());
        self.extend(items.split_off(count.min(items.len())));
        items
    }

    /// Removes and returns the items after a mark.
    pub(super) fn split_off(&mut self, mark: Mark) -> Vec<IoItem> {
        let mut at = mark.all.at;
        let rest = std::iter::from_fn(|| self.all.list.read(&mut at)).collect();
        self.all.truncate(mark.all);
        self.acts.truncate(mark.acts);
        self.touched.clear();
        rest
    }

    /// Start of the oldest call that is parked in the list.
    pub(super) fn since(&self) -> Option<i64> {
        self.since
    }

    /// Completes the list. Returns all items, and those that decide which thread uses which
    /// descriptor table, with a touch by each thread that may change a table. Items with the same
    /// time keep their order.
    pub(super) fn finish(mut self) -> (Items, Items) {
        if self.unsorted {
            let mut items = self.split_off(Mark::default());
            items.sort_by_key(|item| item.time);
            self.extend(items);
        }
        (self.all.finish(), self.acts.finish())
    }
}

impl Draft {
    #[inline]
    fn push(&mut self, item: &IoItem) {
        if self.count.is_multiple_of(INTERVAL) {
            self.index.push(Indexed {
                time: item.time,
                at: self.list.end(),
                since: i64::MAX,
            });
        }
        self.list.push(item);
        self.count += 1;
    }

    fn end(&self) -> End {
        End {
            at: self.list.end(),
            count: self.count,
        }
    }

    fn truncate(&mut self, end: End) {
        self.list.truncate(end.at);
        self.index.truncate(end.count.div_ceil(INTERVAL));
        self.count = end.count;
    }

    fn finish(mut self) -> Items {
        let first = self.index.first().map(|indexed| indexed.time);
        let mut since = i64::MAX;
        for indexed in self.index.iter_mut().rev() {
            since = since.min(indexed.since);
            indexed.since = since;
        }
        Items {
            range: first.map(|first| (first, self.list.last.time)),
            list: self.list,
            index: self.index,
        }
    }
}

impl Extend<IoItem> for Log {
    fn extend<I: IntoIterator<Item = IoItem>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl Items {
    /// A cursor from a position on, at the first item that is not before the time `from`.
    pub(super) fn read_from(&self, at: Position, from: i64) -> Cursor {
        let mut cursor = Cursor { at, next: None };
        cursor.step(&self.list);
        while cursor.next_time().is_some_and(|time| time < from) {
            cursor.step(&self.list);
        }
        cursor
    }

    /// The last indexed item before a time.
    fn before(&self, time: i64) -> Option<&Indexed> {
        let before = self.index.partition_point(|indexed| indexed.time < time);
        self.index.get(before.checked_sub(1)?)
    }

    /// A position at or shortly before the first item that is not before a time.
    pub(super) fn seek(&self, time: i64) -> Position {
        self.before(time)
            .map_or(Position::default(), |indexed| indexed.at)
    }

    /// Start of the oldest call that is parked after a time, or shortly before it.
    pub(super) fn since(&self, time: i64) -> Option<i64> {
        let indexed = self.before(time).or(self.index.first());
        let since = indexed.map(|indexed| indexed.since);
        since.filter(|since| *since < i64::MAX)
    }

    /// Takes the next item; `named` is the thread of unnamed items.
    #[inline]
    pub(super) fn take_next(&self, cursor: &mut Cursor, named: i32) -> Option<IoItem> {
        cursor.take_next(&self.list, named)
    }
}

impl Cursor {
    /// Time of the next item.
    #[inline]
    pub(super) fn next_time(&self) -> Option<i64> {
        Some(self.next?.time)
    }

    #[inline]
    fn step(&mut self, list: &List) {
        self.next = list.read(&mut self.at);
    }

    #[inline]
    fn take_next(&mut self, list: &List, named: i32) -> Option<IoItem> {
        let mut item = self.next?;
        if item.tid == UNNAMED {
            item.tid = named;
        }
        self.step(list);
        Some(item)
    }
}

impl Base {
    fn of(item: &IoItem) -> Base {
        Base {
            time: item.time,
            tid: item.tid,
        }
    }
}

/// Set in the tag of an item whose thread differs from that of the previous item.
const OTHER_THREAD: u8 = 0x80;

impl List {
    #[inline]
    fn push(&mut self, item: &IoItem) {
        let other = item.tid != self.last.tid;
        let last = std::mem::replace(&mut self.last, Base::of(item));
        self.packed.push(|record| {
            record.byte(item.what.tag() | if other { OTHER_THREAD } else { 0 });
            record.int(item.time.wrapping_sub(last.time));
            if other {
                record.int(item.tid.into());
            }
            item.what.pack(item.time, record);
        });
    }

    fn end(&self) -> Position {
        Position {
            place: self.packed.end(),
            last: self.last,
        }
    }

    fn truncate(&mut self, end: Position) {
        self.packed.truncate(end.place);
        self.last = end.last;
    }

    #[inline]
    fn read(&self, at: &mut Position) -> Option<IoItem> {
        let last = at.last;
        let item = self.packed.read(&mut at.place, |reader| {
            let tag = reader.byte()?;
            let time = last.time.wrapping_add(reader.int()?);
            let tid = match tag & OTHER_THREAD {
                0 => last.tid,
                _ => reader.int()? as i32,
            };
            let what = IoAction::unpack(tag & !OTHER_THREAD, time, reader)?;
            Some(IoItem { time, tid, what })
        })?;
        at.last = Base::of(&item);
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(time: i64, tid: i32) -> IoItem {
        IoItem {
            time,
            tid,
            what: IoAction::End,
        }
    }

    fn taken_from(items: &Items, from: i64, named: i32) -> Vec<(i64, i32)> {
        let mut cursor = items.read_from(items.seek(from), from);
        let items = std::iter::from_fn(|| {
            let next = cursor.next_time();
            let item = items.take_next(&mut cursor, named);
            assert_eq!(next, item.map(|item| item.time));
            item
        });
        items.map(|item| (item.time, item.tid)).collect()
    }

    fn taken((items, acts): (Items, Items)) -> Vec<(i64, i32)> {
        let taken = taken_from(&items, i64::MIN, UNNAMED);
        assert_eq!(
            items.range.map(|range| range.0),
            taken.first().map(|item| item.0)
        );
        assert_eq!(
            items.range.map(|range| range.1),
            taken.last().map(|item| item.0)
        );
        // All items end their threads, so all are acts.
        assert_eq!(acts.range, items.range);
        assert_eq!(taken_from(&acts, i64::MIN, UNNAMED), taken);
        taken
    }

    #[test]
    fn items_are_found_by_time() {
        let mut log = Log::default();
        log.extend((0..1000).map(|at| ended(at / 7 * 10, at as i32)));
        let (items, acts) = log.finish();
        for from in [i64::MIN, 0, 1, 10, 180, 185, 1000, 1420, 1421, i64::MAX] {
            let expected = (0..1000).filter(|at| at / 7 * 10 >= from);
            let expected: Vec<_> = expected.map(|at| (at / 7 * 10, at as i32)).collect();
            assert_eq!(taken_from(&items, from, UNNAMED), expected, "{from}");
            assert_eq!(taken_from(&acts, from, UNNAMED), expected, "{from}");
        }
    }

    #[test]
    fn items_are_taken_in_the_order_of_time() {
        let mut log = Log::default();
        // Clocks may go back from one packet to the next.
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
        let (items, _) = log.finish();
        assert_eq!(taken_from(&items, i64::MIN, 7), [(1, 7), (2, 8), (3, 7)]);
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
            let rest: Vec<_> = all[cut..]
                .iter()
                .map(|item| (item.time, item.tid))
                .collect();
            assert_eq!(taken(log.finish()), rest);
        }
    }
}
