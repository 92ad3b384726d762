//! The user-level threads of a host: names, and the state of each at the beginning of each window.

use std::ops::Range;

use tracebraid_engine::parallel;
use tracebraid_kernel_model::events::user_level::FIRST_USER_LEVEL_TID;

use crate::course::{Course, UltState};
use crate::names::{NAME, short};
use crate::survey::{Map, Moment, UltKey};
use crate::ult_facts::{Marks, NOTHING, PlaceOfUlt, UltFacts};
use crate::words::Words;

/// First virtual thread id of the first process; each process has a range of this size.
const RANGE: i64 = FIRST_USER_LEVEL_TID as i64;
/// Processes with a range of their own; all others share the range that follows.
const RANGES: usize = 20;
/// User-level threads per shard. One worker builds a shard.
const SHARD: usize = 4096;
/// One in this number of each worker's user-level threads is a sample for the cuts of all lists.
const SAMPLE: usize = 256;

/// The user-level threads, ordered by process and id.
#[derive(Debug, Default)]
pub(crate) struct Ults {
    shards: Vec<Shard>,
    count: usize,
    places: PlaceOfUlt,
}

/// User-level threads with successive keys. Their lists are concatenated, so that no thread has an
/// allocation of its own.
#[derive(Debug, Default)]
struct Shard {
    ults: Vec<UltEntry>,
    names: Vec<NameEntry>,
    /// State from the end of a window on.
    states: Vec<(u32, UltState)>,
    /// See [`Ult::late_block`].
    late: Vec<(u32, u16)>,
    words: Words,
    processes: Vec<OfProcess>,
}

/// Threads of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfProcess {
    pub(crate) pid: i32,
    count: usize,
    /// Largest id of a thread.
    largest: u64,
}

#[derive(Debug)]
struct UltEntry {
    key: UltKey,
    tid: i32,
    is_created: bool,
    first: Moment,
    /// The first name, or the id, as scheduling events contain it.
    short_name: [u8; NAME],
    names: ListRange,
    states: ListRange,
    late: ListRange,
}

/// A name with the time from which it holds.
#[derive(Debug)]
struct NameEntry {
    from: i64,
    word: u32,
    short_name: [u8; NAME],
}

/// Entries of a list of a shard.
#[derive(Clone, Copy, Debug)]
struct ListRange {
    from: u32,
    to: u32,
}

impl ListRange {
    /// The entries that were appended since the list had this length.
    fn since<T>(list: &[T], from: usize) -> ListRange {
        ListRange {
            from: from as u32,
            to: list.len() as u32,
        }
    }

    #[inline]
    fn of<T>(self, list: &[T]) -> &[T] {
        list.get(self.from as usize..self.to as usize)
            .unwrap_or_default()
    }
}

/// A user-level thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ult<'a> {
    own: &'a UltEntry,
    shard: &'a Shard,
}

impl<'a> Ult<'a> {
    pub(crate) fn key(self) -> UltKey {
        self.own.key
    }

    /// Virtual thread id.
    #[inline]
    pub(crate) fn tid(self) -> i32 {
        self.own.tid
    }

    /// The first record of the thread is its creation: it did not exist when the trace began.
    pub(crate) fn is_created(self) -> bool {
        self.own.is_created
    }

    /// The name at a time: the latest so far, else the first.
    fn name_at(self, time: i64) -> Option<&'a NameEntry> {
        let names = self.own.names.of(&self.shard.names);
        let after = names.partition_point(|name| name.from <= time);
        names.get(after.saturating_sub(1))
    }

    /// Name at a time: the latest so far, else the first.
    pub(crate) fn name(self, time: i64) -> &'a [u8] {
        let name = self.name_at(time);
        name.map_or(&[], |name| self.shard.words.get(name.word))
    }

    /// Name at a time in scheduling events; the id of a thread without a name.
    #[inline]
    pub(crate) fn short_name(self, time: i64) -> &'a [u8; NAME] {
        let names = self.own.names;
        if names.to - names.from < 2 {
            return &self.own.short_name;
        }
        let name = self.name_at(time);
        name.map_or(&self.own.short_name, |name| &name.short_name)
    }

    /// Reason of a block that a later window records first about the thread, which left its LWP
    /// in this window.
    pub(crate) fn late_block(self, window: u32) -> Option<u16> {
        let late = self.own.late.of(&self.shard.late);
        let place = late.binary_search_by_key(&window, |(of, _)| *of).ok()?;
        late.get(place).map(|(_, reason)| *reason)
    }

    /// State at the beginning of a window.
    #[inline]
    pub(crate) fn state(self, window: u32) -> UltState {
        let states = self.own.states.of(&self.shard.states);
        let next = states.partition_point(|(of, _)| *of < window);
        let before = next.checked_sub(1).and_then(|before| states.get(before));
        before.map_or_else(UltState::default, |(_, state)| *state)
    }
}

/// A thread of a worker's facts: its key, the number of the worker and the index.
type FoundUlt = (UltKey, u32, u32);

impl Ults {
    /// Joins the facts of all workers. `reason_of` maps the number of a worker and of one of its
    /// reasons to the index of its word.
    pub(crate) fn new(facts: &[UltFacts], reason_of: &(dyn Fn(u32, u32) -> u16 + Sync)) -> Ults {
        let of_workers = parallel::map_large((0u32..).zip(facts).collect(), |(worker, facts)| {
            let threads = facts.threads.iter();
            let mut found: Vec<FoundUlt> = threads
                .map(|(place, own)| (own.key, worker, place))
                .collect();
            found.sort_by_key(|found| found.0);
            found
        });
        let pieces = pieces(&of_workers);
        let pieces = parallel::map_large(pieces, KeyInterval::new);
        let shards =
            parallel::map_large(parts(&pieces), |part| Shard::new(&part, facts, reason_of));
        let mut ults = Ults {
            count: shards.iter().map(|shard| shard.ults.len()).sum(),
            shards,
            places: PlaceOfUlt::default(),
        };
        let mut places = PlaceOfUlt::default();
        for (place, ult) in ults.iter() {
            *places.slot(ult.key()) = Some(place);
        }
        ults.places = places;
        ults.number();
        ults
    }

    /// The processes of all threads, in order.
    pub(crate) fn processes(&self) -> Vec<OfProcess> {
        let mut all: Vec<OfProcess> = Vec::new();
        for own in self.shards.iter().flat_map(|shard| &shard.processes) {
            match all.last_mut().filter(|last| last.pid == own.pid) {
                Some(last) => {
                    last.count += own.count;
                    last.largest = own.largest;
                }
                None => all.push(*own),
            }
        }
        all
    }

    /// Assigns virtual thread ids. In a process with a range of its own and ids below [`RANGE`]:
    /// the start of the range plus the id. In other processes: numbers in the order of the first
    /// records.
    fn number(&mut self) {
        let mut starts: Map<i32, i64> = Map::default();
        let mut by_first = Vec::new();
        let mut shared = RANGE * (RANGES as i64 + 1);
        let mut from = 0;
        for (place, process) in self.processes().into_iter().enumerate() {
            let to = from + process.count;
            let start = RANGE * (place as i64 + 1);
            match place < RANGES {
                true if process.largest < RANGE as u64 => drop(starts.insert(process.pid, start)),
                true => by_first.push((from..to, start)),
                false => {
                    by_first.push((from..to, shared));
                    shared += process.count as i64;
                }
            }
            from = to;
        }
        let shards = self.shards.iter_mut().collect();
        parallel::map_large(shards, |shard: &mut Shard| shard.number(&starts));
        for (range, start) in by_first {
            self.number_by_first(range, start);
        }
    }

    fn number_by_first(&mut self, range: Range<usize>, start: i64) {
        let own = |index: usize| self.shards.get(index / SHARD)?.ults.get(index % SHARD);
        let first = |index| Some((own(index)?.first, index));
        let mut order: Vec<(Moment, usize)> = range.filter_map(first).collect();
        order.sort_unstable();
        for (number, (_, index)) in (1..).zip(order) {
            if let Some(own) = self.shards[index / SHARD].ults.get_mut(index % SHARD) {
                own.tid = i32::try_from(start + number).unwrap_or(i32::MAX);
            }
        }
    }

    /// Number of threads.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The thread with this index.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<Ult<'_>> {
        let shard = self.shards.get(index as usize / SHARD)?;
        let own = shard.ults.get(index as usize % SHARD)?;
        Some(Ult { own, shard })
    }

    /// The index of a thread.
    #[inline]
    pub(crate) fn place(&self, key: UltKey) -> Option<u32> {
        self.places.get(key)
    }

    /// All threads with their indices, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Ult<'_>)> {
        let shards = self.shards.iter();
        let all = shards.flat_map(|shard| shard.ults.iter().map(move |own| Ult { own, shard }));
        (0..).zip(all)
    }
}

/// Threads of all workers with keys in an interval, in order.
struct KeyInterval {
    found: Vec<FoundUlt>,
    /// Where each thread begins in `found`.
    starts: Vec<usize>,
}

impl KeyInterval {
    /// Joins lists that are in order.
    fn new(lists: Vec<&[FoundUlt]>) -> KeyInterval {
        let mut found = lists.concat();
        if lists.len() > 1 {
            // The stable sort merges lists that are in order.
            found.sort_by_key(|found| found.0);
        }
        let mut starts = Vec::with_capacity(found.len());
        let mut at = 0;
        for same in found.chunk_by(|own, next| own.0 == next.0) {
            starts.push(at);
            at += same.len();
        }
        KeyInterval { found, starts }
    }

    /// The threads with these numbers.
    fn threads(&self, range: Range<usize>) -> &[FoundUlt] {
        let end = self.found.len();
        let start = |thread: usize| self.starts.get(thread).copied().unwrap_or(end);
        &self.found[start(range.start)..start(range.end)]
    }
}

/// Cuts the lists of all workers at the same keys, so that the pieces can be joined beside each
/// other.
fn pieces(lists: &[Vec<FoundUlt>]) -> Vec<Vec<&[FoundUlt]>> {
    let samples = lists.iter().flat_map(|list| list.iter().step_by(SAMPLE));
    let mut samples: Vec<UltKey> = samples.map(|found| found.0).collect();
    samples.sort_unstable();
    let cuts = samples.into_iter().step_by(SHARD / SAMPLE).skip(1);
    let mut rest: Vec<&[FoundUlt]> = lists.iter().map(Vec::as_slice).collect();
    let mut pieces = Vec::new();
    for cut in cuts {
        let piece = rest.iter_mut().map(|rest| {
            let (own, others) = rest.split_at(rest.partition_point(|found| found.0 < cut));
            *rest = others;
            own
        });
        pieces.push(piece.collect());
    }
    pieces.push(rest);
    pieces
}

/// The threads of each shard, which may be in several pieces.
fn parts(pieces: &[KeyInterval]) -> Vec<Vec<&[FoundUlt]>> {
    let mut parts = Vec::new();
    let (mut part, mut room) = (Vec::new(), SHARD);
    for piece in pieces {
        let mut from = 0;
        while from < piece.starts.len() {
            let to = piece.starts.len().min(from + room);
            part.push(piece.threads(from..to));
            room -= to - from;
            from = to;
            if room == 0 {
                parts.push(std::mem::take(&mut part));
                room = SHARD;
            }
        }
    }
    parts.push(part);
    parts
}

impl Shard {
    fn new(
        found: &[&[FoundUlt]],
        facts: &[UltFacts],
        reason_of: &(dyn Fn(u32, u32) -> u16 + Sync),
    ) -> Shard {
        let mut shard = Shard {
            ults: Vec::with_capacity(SHARD),
            names: Vec::with_capacity(SHARD),
            states: Vec::with_capacity(SHARD),
            ..Shard::default()
        };
        let (mut names, mut marks) = (Vec::new(), Vec::new());
        let threads = found.iter();
        for same in threads.flat_map(|found| found.chunk_by(|own, next| own.0 == next.0)) {
            names.clear();
            marks.clear();
            let mut first = ((i64::MAX, u64::MAX), false);
            for &(_, worker, place) in same {
                let Some(facts) = facts.get(worker as usize) else {
                    continue;
                };
                let Some(sight) = facts.threads.get(place) else {
                    continue;
                };
                first = first.min((sight.first, sight.is_created));
                names.extend(facts.names_of(sight));
                let reason = |number| match number {
                    NOTHING => NOTHING,
                    number => reason_of(worker, number).into(),
                };
                marks.extend(facts.marks_of(sight).map(|mut own| {
                    own.reason = reason(own.reason);
                    own.first_reason = reason(own.first_reason);
                    own
                }));
            }
            if let Some(&(key, ..)) = same.first() {
                shard.add(key, first, &mut names, &mut marks);
            }
        }
        let of_process = shard.ults.chunk_by(|own, next| own.key.0 == next.key.0);
        let of_process = of_process.filter_map(|own| {
            let (pid, largest) = own.last()?.key;
            let count = own.len();
            Some(OfProcess {
                pid,
                count,
                largest,
            })
        });
        shard.processes = of_process.collect();
        shard
    }

    /// Gives virtual ids to the threads of processes with these starts of their ranges.
    fn number(&mut self, starts: &Map<i32, i64>) {
        for of_process in self.ults.chunk_by_mut(|own, next| own.key.0 == next.key.0) {
            let pid = of_process.first().map(|own| own.key.0);
            let Some(start) = pid.and_then(|pid| starts.get(&pid)) else {
                continue;
            };
            for own in of_process {
                own.tid = (start + own.key.1 as i64) as i32;
            }
        }
    }

    fn add(
        &mut self,
        key: UltKey,
        (first, is_created): (Moment, bool),
        names: &mut Vec<(Moment, &[u8])>,
        marks: &mut [Marks],
    ) {
        let lengths = (self.names.len(), self.states.len(), self.late.len());
        names.sort_unstable();
        names.dedup_by(|next, before| next.1 == before.1);
        let short_name = |name: &[u8]| match name {
            [] => short(format!("ult {}", key.1).as_bytes()),
            name => short(name),
        };
        for &((from, _), name) in &*names {
            self.names.push(NameEntry {
                from,
                word: self.words.number(name),
                short_name: short_name(name),
            });
        }
        let first_name = self.names.get(lengths.0);
        let short_name = first_name.map_or_else(|| short_name(&[]), |name| name.short_name);
        // Several streams may have marks of the same window.
        marks.sort_unstable_by_key(|own| own.window);
        Course::new(&mut self.states, &mut self.late).run(marks);
        self.ults.push(UltEntry {
            key,
            tid: -1,
            is_created,
            first,
            short_name,
            names: ListRange::since(&self.names, lengths.0),
            states: ListRange::since(&self.states, lengths.1),
            late: ListRange::since(&self.late, lengths.2),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The virtual ids of threads with these keys, each first seen at this time.
    fn numbers(threads: &[(UltKey, i64)]) -> Vec<i32> {
        // Two workers see them.
        let mut facts = [UltFacts::default(), UltFacts::default()];
        for (place, &(key, time)) in threads.iter().rev().enumerate() {
            facts[place % 2].sees(key, (time, 1), true);
            facts[1].sees(key, (time + 1, 1), false);
        }
        let ults = Ults::new(&facts, &|_, _| 0);
        let index = |&(key, _): &(UltKey, i64)| ults.place(key);
        let indices: Vec<_> = threads.iter().filter_map(index).collect();
        assert!(indices.into_iter().eq(0..threads.len() as u32));
        assert!(ults.iter().all(|(_, ult)| ult.is_created()));
        ults.iter().map(|(_, ult)| ult.tid()).collect()
    }

    #[test]
    fn virtual_ids_show_process_and_thread() {
        let threads = [((7, 1), 3), ((7, 2), 2), ((9, 1), 1)];
        assert_eq!(numbers(&threads), [100_000_001, 100_000_002, 200_000_001]);
        let large = [((7, 1 << 40), 3), ((7, 1 << 41), 2), ((9, 5), 1)];
        assert_eq!(numbers(&large), [100_000_002, 100_000_001, 200_000_005]);
    }

    #[test]
    fn processes_without_a_range_share_one() {
        let threads: Vec<_> = (1..=23)
            .flat_map(|pid| [((pid, 1), 0), ((pid, 2), 0)])
            .collect();
        let numbers = numbers(&threads);
        assert_eq!(numbers[38..40], [2_000_000_001, 2_000_000_002]);
        assert_eq!(
            numbers[40..44],
            [2_100_000_001, 2_100_000_002, 2_100_000_003, 2_100_000_004]
        );
    }

    #[test]
    fn threads_of_many_shards_keep_their_order() {
        let count = 3 * SHARD as u64 + 1;
        let threads: Vec<_> = (1..=count).map(|id| ((7, id << 4), -(id as i64))).collect();
        let numbers = numbers(&threads);
        assert_eq!(numbers.first(), Some(&(100_000_000 + 16)));
        let addresses = |id: u64| ((7, 0x7000_0000_0000 + (id << 4)), -(id as i64));
        let threads: Vec<_> = (1..=count).map(addresses).collect();
        let expected = (1..=count as i32).rev().map(|number| 100_000_000 + number);
        assert!(self::numbers(&threads).into_iter().eq(expected));
    }
}
