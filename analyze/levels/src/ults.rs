//! The user-level threads of a host: names, and the state of each at the beginning of each window.

use tracebraid_engine::parallel;

use crate::names::{NAME, short};
use crate::survey::{Moment, UltKey};
use crate::ult_facts::{Marks, NEVER, NOTHING, PlaceOfUlt, UltFacts};
use crate::words::Words;

/// Threads of a shard: made by one thread at a time.
const SHARD: usize = 4096;

/// State of a user-level thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UltState {
    /// Not ready: index of the reason.
    pub(crate) blocked: Option<u16>,
    /// Left its LWP blocked, and has not run since: index of the reason.
    pub(crate) waits: Option<u16>,
    pub(crate) has_ended: bool,
}

/// The user-level threads, ordered by process and id.
#[derive(Debug, Default)]
pub(crate) struct Ults {
    shards: Vec<Shard>,
    count: usize,
    places: PlaceOfUlt,
}

/// Neighbouring threads. Their lists lie in one, so that a thread needs no memory of its own.
#[derive(Debug, Default)]
struct Shard {
    ults: Vec<UltEntry>,
    names: Vec<NameEntry>,
    /// State from the end of a window on.
    states: Vec<(u32, UltState)>,
    /// See [`Ult::late_block`].
    late: Vec<(u32, u16)>,
    words: Words,
}

#[derive(Debug)]
struct UltEntry {
    key: UltKey,
    tid: i32,
    is_created: bool,
    first: Moment,
    /// The first name, or the id, as scheduling events contain it.
    short_name: [u8; NAME],
    names: Run,
    states: Run,
    late: Run,
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
struct Run {
    from: u32,
    to: u32,
}

impl Run {
    /// What was appended since the list had this length.
    fn since<T>(list: &[T], from: usize) -> Run {
        Run {
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

/// A thread of a worker's facts: its key, the number of the worker and the place.
type Found = (UltKey, u32, u32);

impl Ults {
    /// Joins the facts of all workers. `reason_of` maps the number of a worker and of one of its
    /// reasons to the index of its word.
    pub(crate) fn new(facts: &[UltFacts], reason_of: &(dyn Fn(u32, u32) -> u16 + Sync)) -> Ults {
        let of_workers = parallel::map_large((0u32..).zip(facts).collect(), |(worker, facts)| {
            let threads = facts.threads.iter();
            let mut found: Vec<Found> = threads
                .map(|(place, own)| (own.key, worker, place))
                .collect();
            found.sort_by_key(|found| found.0);
            found
        });
        let found = joined(of_workers);
        let parts = parts(&found);
        let shards = parallel::map_large(parts, |part| Shard::new(part, facts, reason_of));
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
        ults
    }

    /// Gives the threads their virtual thread ids, which `tids` makes of their keys and their first
    /// moments.
    pub(crate) fn number(&mut self, tids: impl FnOnce(&[(UltKey, Moment)]) -> Vec<i32>) {
        let own = self.shards.iter().flat_map(|shard| &shard.ults);
        let firsts: Vec<(UltKey, Moment)> = own.map(|own| (own.key, own.first)).collect();
        let tids = tids(&firsts);
        let own = self.shards.iter_mut().flat_map(|shard| &mut shard.ults);
        for (own, tid) in own.zip(tids) {
            own.tid = tid;
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

/// All lists as one, by key.
fn joined(mut lists: Vec<Vec<Found>>) -> Vec<Found> {
    if lists.len() < 2 {
        return lists.pop().unwrap_or_default();
    }
    let mut all = lists.concat();
    // The stable sort merges lists that are in order.
    all.sort_by_key(|found| found.0);
    all
}

/// Cuts the list where a shard is full.
fn parts(found: &[Found]) -> Vec<&[Found]> {
    let mut parts = Vec::with_capacity(found.len() / SHARD + 1);
    let (mut from, mut at, mut threads) = (0, 0, 0);
    for same in found.chunk_by(|own, next| own.0 == next.0) {
        if threads == SHARD {
            parts.push(&found[from..at]);
            (from, threads) = (at, 0);
        }
        at += same.len();
        threads += 1;
    }
    parts.push(&found[from..]);
    parts
}

impl Shard {
    fn new(
        found: &[Found],
        facts: &[UltFacts],
        reason_of: &(dyn Fn(u32, u32) -> u16 + Sync),
    ) -> Shard {
        let mut shard = Shard::default();
        let (mut names, mut marks) = (Vec::new(), Vec::new());
        for same in found.chunk_by(|own, next| own.0 == next.0) {
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
        shard
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
        // Of a window, each stream has marks of its own.
        marks.sort_unstable_by_key(|own| own.window);
        Course {
            states: &mut self.states,
            late: &mut self.late,
            from: lengths.1,
        }
        .run(marks);
        self.ults.push(UltEntry {
            key,
            tid: -1,
            is_created,
            first,
            short_name,
            names: Run::since(&self.names, lengths.0),
            states: Run::since(&self.states, lengths.1),
            late: Run::since(&self.late, lengths.2),
        });
    }
}

/// States and late blocks of a user-level thread, at the end of the lists of its shard.
struct Course<'a> {
    /// State after each window in which it changed.
    states: &'a mut Vec<(u32, UltState)>,
    /// Windows after which the first record about the thread is a block, although it has left its
    /// LWP as ready: the reason.
    late: &'a mut Vec<(u32, u16)>,
    /// Index of the first state of the thread.
    from: usize,
}

impl Course<'_> {
    fn last(&self) -> UltState {
        let own = self.states.get(self.from..).unwrap_or_default();
        own.last().map_or_else(UltState::default, |(_, last)| *last)
    }

    /// Follows the marks of the thread, which are ordered by window.
    fn run(&mut self, marks: &[Marks]) {
        let mut all: Option<Marks> = None;
        let mut late = NEVER;
        // The window in which the last record was the switch from the thread.
        let mut left: Option<u32> = None;
        for same in marks.chunk_by(|own, next| own.window == next.window) {
            let Some((mut own, others)) = same.split_first().map(|(own, others)| (*own, others))
            else {
                continue;
            };
            others.iter().for_each(|other| own.join(other));
            if let (Some(left), Some(reason)) = (left, reason_of(own.first_reason)) {
                self.late.push((left, reason));
                late = own.first;
                // The second pass begins the wait where the thread left its LWP.
                let waits = Some(reason);
                let last = self.last();
                self.states.push((left, UltState { waits, ..last }));
            }
            let now = all.get_or_insert(own);
            now.join(&own);
            let is_between = own.switch_out < own.ready && own.ready < own.block;
            let is_out = now.switch_out > now.switch_in && !is_between;
            if own.switch_out != NEVER && own.block > own.switch_out && is_out {
                late = own.block;
            }
            let others = now.ready.max(now.switch_in).max(now.end).max(now.block);
            left = (now.switch_out > others).then_some(own.window);
            let state = state(now, late);
            if self.last() != state {
                self.states.push((own.window, state));
            }
        }
    }
}

fn reason_of(number: u32) -> Option<u16> {
    u16::try_from(number).ok()
}

/// State after these marks. `late` is the last block after the switch from the thread.
fn state(marks: &Marks, late: Moment) -> UltState {
    let alive = marks.switch_in.max(marks.ready);
    let has_ended = marks.end != NEVER && marks.end > alive;
    let mut state = UltState {
        has_ended,
        ..UltState::default()
    };
    let block = marks.block;
    // An earlier thread with this id may have blocked.
    if block == NEVER || has_ended || block < marks.switch_in || block < marks.end {
        return state;
    }
    let reason = reason_of(marks.reason);
    if block > marks.ready {
        state.blocked = reason;
    }
    // Woken between the block and the switch: it never waited.
    let was_ready = block < marks.ready && marks.ready < marks.switch_out;
    if block < marks.switch_out && !was_ready || block == late {
        state.waits = reason;
    }
    state
}
