//! Encodes the changes of a slice, by CPU, as runs, by attribute.
//!
//! The state before the slice is unknown here, so slices are encoded in parallel: the first change
//! of an attribute is kept even if it may change nothing, sums begin at 0, and a wake-up that comes
//! first is kept as such. The attribute's shard resolves these cases later, in the order of slices
//! ([`crate::shard`]).

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::Range;

use crate::attribute::{Attribute, Form};
use crate::by_attribute::{BitsHasher, SPREAD};
use crate::piece::{Piece, WAKE};
use crate::run::{Change, Run};
use crate::value::ThreadState;
use crate::varint::{self, NULL};

/// Number of shards of attributes. It only needs to cover the threads that settle at a time: the
/// others encode slices and assemble blocks.
pub(crate) const SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 4;

/// The shard of an attribute.
#[inline]
pub(crate) fn shard_of(attribute: u64) -> usize {
    (attribute.wrapping_mul(SPREAD) >> (u64::BITS - SHARD_BITS)) as usize
}

/// Changes of a slice, of all CPUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encoded {
    /// Sorted; codes of texts count from 1 in this order.
    pub(crate) texts: Vec<String>,
    /// By shard.
    pub(crate) parts: Vec<Part>,
    /// Number of losses of events.
    pub(crate) losses: u64,
    /// Times of the first and the last change.
    pub(crate) extent: Option<(i64, i64)>,
}

/// The changes of the attributes of a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// In the order of attributes, each with the end of its part of `coarse`.
    pub(crate) runs: Vec<(Attribute, Run, usize)>,
    /// Changes on the finest grid; see [`crate::levels`].
    pub(crate) coarse: Vec<Change>,
}

/// Encodes the pieces of a slice, by CPU and in the order of each CPU, for a grid of `grid`
/// nanoseconds.
pub(crate) fn encode(mut pieces: Vec<Piece>, grid: i64) -> Encoded {
    let texts = unite_texts(&mut pieces);
    let mut groups = Groups::new(&pieces);
    let mut encoded = Encoded {
        texts,
        parts: vec![Part::default(); SHARDS],
        losses: pieces.iter().map(|piece| piece.losses).sum(),
        ..Encoded::default()
    };
    let mut room = Room::default();
    for (attribute, range) in groups.sorted() {
        let changes = &mut groups.changes[range];
        // Of changes at the same time, the last CPU's takes precedence; on one CPU, the last
        // change.
        if !changes.is_sorted_by_key(|change| change.0) {
            changes.sort_by_key(|change| change.0);
        }
        let part = encoded.parts.get_mut(shard_of(attribute));
        let Some((attribute, part)) = Attribute::of_bits(attribute).zip(part) else {
            continue;
        };
        let mut folding = Folding::new(attribute.kind().form(), grid, &mut room);
        changes
            .iter()
            .for_each(|&(time, code)| folding.add(time, code));
        let latest = folding.time;
        if let Some(run) = folding.into_run() {
            let (first, last) = encoded.extent.unwrap_or((run.first.0, latest));
            encoded.extent = Some((first.min(run.first.0), last.max(latest)));
            part.coarse.append(&mut room.coarse);
            part.runs.push((attribute, run, part.coarse.len()));
        }
    }
    encoded
}

/// Memory that is reused for all attributes.
#[derive(Debug, Default)]
struct Room {
    bytes: Vec<u8>,
    coarse: Vec<Change>,
}

/// Merges the texts into one sorted list, and renumbers them in the changes.
fn unite_texts(pieces: &mut [Piece]) -> Vec<String> {
    let mut texts: Vec<String> = pieces
        .iter()
        .flat_map(|piece| &piece.texts)
        .cloned()
        .collect();
    texts.sort_unstable();
    texts.dedup();
    for piece in pieces {
        let find = |text: &String| {
            texts
                .binary_search(text)
                .map_or(NULL, |place| place as u64 + 1)
        };
        let places: Vec<u64> = piece.texts.iter().map(find).collect();
        for change in &mut piece.changes {
            let Some(form) = Attribute::text_form(change.attribute) else {
                continue;
            };
            if let Some(text) = form.text_of(change.code) {
                let place = places.get(text as usize - 1).copied();
                change.code = form.code_of_text(place.unwrap_or(NULL));
            }
        }
    }
    texts
}

/// Changes by attribute.
struct Groups {
    /// Attributes, each with the end of its changes in `changes`.
    ends: Vec<(u64, usize)>,
    changes: Vec<(i64, u64)>,
}

impl Groups {
    /// Two passes over the changes: counts the changes of each attribute, then moves them to their
    /// positions.
    fn new(pieces: &[Piece]) -> Groups {
        let total = pieces.iter().map(|piece| piece.changes.len()).sum();
        let mut index = Index::default();
        let mut slots: Vec<u32> = Vec::with_capacity(total);
        for change in pieces.iter().flat_map(|piece| &piece.changes) {
            let slot = index.slot(change.attribute);
            index.counts[slot as usize].1 += 1;
            slots.push(slot);
        }
        let mut counts = index.counts;
        let mut begin = 0;
        for (_, count) in &mut counts {
            (begin, *count) = (begin + *count, begin);
        }
        let mut changes = vec![(0, 0); total];
        for (change, &slot) in pieces.iter().flat_map(|piece| &piece.changes).zip(&slots) {
            let place = &mut counts[slot as usize].1;
            changes[*place] = (change.time, change.code);
            *place += 1;
        }
        Groups {
            ends: counts,
            changes,
        }
    }

    /// Attributes, ascending, each with the range of its changes.
    fn sorted(&self) -> Vec<(u64, Range<usize>)> {
        let begins = [0].into_iter().chain(self.ends.iter().map(|entry| entry.1));
        let ranges = self.ends.iter().zip(begins);
        let mut groups: Vec<_> = ranges
            .map(|(&(attribute, end), begin)| (attribute, begin..end))
            .collect();
        groups.sort_unstable_by_key(|group| group.0);
        groups
    }
}

/// Numbers attributes in the order of first occurrence. A cache finds the few attributes that
/// change often without the map.
struct Index {
    counts: Vec<(u64, usize)>,
    map: HashMap<u64, u32, BuildHasherDefault<BitsHasher>>,
    near: [(u64, u32); NEAR],
}

const NEAR: usize = 1 << NEAR_BITS;
const NEAR_BITS: u32 = 9;

impl Default for Index {
    fn default() -> Index {
        Index {
            counts: Vec::new(),
            map: HashMap::default(),
            // No stored attribute is 0.
            near: [(0, 0); NEAR],
        }
    }
}

impl Index {
    #[inline(always)]
    fn slot(&mut self, attribute: u64) -> u32 {
        let near = (attribute.wrapping_mul(SPREAD) >> (u64::BITS - NEAR_BITS)) as usize;
        let (known, slot) = self.near[near];
        if known == attribute {
            return slot;
        }
        let counts = &mut self.counts;
        let slot = *self.map.entry(attribute).or_insert_with(|| {
            counts.push((attribute, 0));
            counts.len() as u32 - 1
        });
        self.near[near] = (attribute, slot);
        slot
    }
}

/// Folds the changes of an attribute into a run.
struct Folding<'r> {
    form: Form,
    grid: i64,
    room: &'r mut Room,
    run: Option<Run>,
    time: i64,
    /// Sum of increments of a counter.
    sum: i64,
}

impl<'r> Folding<'r> {
    /// Begins a run in `room`, which is empty.
    fn new(form: Form, grid: i64, room: &'r mut Room) -> Self {
        Folding {
            form,
            grid,
            room,
            run: None,
            time: i64::MIN,
            sum: 0,
        }
    }

    #[inline]
    fn add(&mut self, time: i64, code: u64) {
        let code = match self.form {
            Form::Counter => {
                self.sum = self.sum.saturating_add(varint::unfold(code));
                varint::code(self.sum)
            }
            _ => code,
        };
        match &mut self.run {
            None => {
                self.run = Some(Run {
                    bytes: std::mem::take(&mut self.room.bytes),
                    ..Run::new((time, code))
                });
            }
            Some(run) => {
                let Some(code) = after(run.last, code) else {
                    return;
                };
                run.push(time.abs_diff(self.time), code);
            }
        }
        self.time = time;
        let last = self.run.as_ref().map_or(code, |run| run.last);
        put_coarse(&mut self.room.coarse, self.grid, time, last);
    }

    /// The run, with exactly the memory it needs; the buffer returns to `room`.
    fn into_run(self) -> Option<Run> {
        let mut run = self.run?;
        let bytes = run.bytes.as_slice().into();
        self.room.bytes = std::mem::replace(&mut run.bytes, bytes);
        self.room.bytes.clear();
        Some(run)
    }
}

/// The code after a change of the value `before`; `None` if the change has no effect.
fn after(before: u64, code: u64) -> Option<u64> {
    if code != WAKE {
        return (code != before).then_some(code);
    }
    // If the preceding wake-up had no effect, this one has none either.
    let state = varint::number(before).and_then(ThreadState::of_number);
    let wakes = before != WAKE && state.is_none_or(ThreadState::is_waiting);
    wakes.then(|| varint::code(ThreadState::Woken as i64))
}

/// The code after a wake-up that is the first change in its slice; `None` if it has no effect.
pub(crate) fn woken(before: u64) -> Option<u64> {
    after(before, WAKE)
}

/// Adds a change to a grid: the last change before a multiple of the grid determines its value.
#[inline]
pub(crate) fn put_coarse(coarse: &mut Vec<(i64, u64)>, grid: i64, time: i64, code: u64) {
    match coarse.last_mut() {
        // Both changes apply at the same multiple.
        Some(last) if time <= last.0 => last.1 = code,
        _ => coarse.push((ceil(time, grid), code)),
    }
}

/// The first multiple of a grid at or after a time.
pub(crate) fn ceil(time: i64, grid: i64) -> i64 {
    let floor = time.div_euclid(grid).saturating_mul(grid);
    if floor < time {
        floor.saturating_add(grid)
    } else {
        floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::AttributeKind;
    use crate::piece::Change;
    use crate::run::Steps;

    fn changes(encoded: &Encoded, kind: AttributeKind) -> Vec<(i64, u64)> {
        let runs = encoded.parts.iter().flat_map(|part| &part.runs);
        let (_, run, _) = runs
            .into_iter()
            .find(|(attribute, ..)| attribute.kind() == kind)
            .unwrap();
        [run.first]
            .into_iter()
            .chain(Steps::new(run.first.0, &run.bytes))
            .collect()
    }

    fn piece(kind: AttributeKind, changes: &[(i64, u64)], texts: &[&str]) -> Piece {
        let attribute = Attribute::new(kind, 0, 1).bits();
        Piece {
            slice: 0,
            changes: changes
                .iter()
                .map(|&(time, code)| Change {
                    time,
                    attribute,
                    code,
                })
                .collect(),
            texts: texts.iter().map(ToString::to_string).collect(),
            losses: 0,
        }
    }

    #[test]
    fn changes_of_all_cpus_are_in_order_and_change_something() {
        let first = piece(AttributeKind::ThreadCpu, &[(1, 5), (4, 6), (9, 7)], &[]);
        let second = piece(AttributeKind::ThreadCpu, &[(2, 5), (4, 8), (7, 8)], &[]);
        let encoded = encode(vec![first, second], 4);
        assert_eq!(
            changes(&encoded, AttributeKind::ThreadCpu),
            [(1, 5), (4, 6), (4, 8), (9, 7)]
        );
        let coarse: Vec<_> = encoded.parts.iter().flat_map(|part| &part.coarse).collect();
        assert_eq!(coarse, [&(4, 8), &(12, 7)]);
        assert_eq!(encoded.extent, Some((1, 9)));
    }

    #[test]
    fn wake_ups_change_who_waits() {
        let state = |state: ThreadState| varint::code(state as i64);
        let (running, sleeping, woken) = (
            state(ThreadState::Running),
            state(ThreadState::Sleeping),
            state(ThreadState::Woken),
        );
        let told = [
            (1, WAKE),
            (2, WAKE),
            (3, running),
            (4, WAKE),
            (5, sleeping),
            (6, WAKE),
            (7, WAKE),
        ];
        let encoded = encode(vec![piece(AttributeKind::ThreadState, &told, &[])], 4);
        let expected = [(1, WAKE), (3, running), (5, sleeping), (6, woken)];
        assert_eq!(changes(&encoded, AttributeKind::ThreadState), expected);
    }

    #[test]
    fn sums_begin_at_the_slice_and_texts_are_in_order() {
        let counter = piece(
            AttributeKind::DiskRead,
            &[
                (1, varint::fold(4)),
                (2, varint::fold(0)),
                (3, varint::fold(5)),
            ],
            &[],
        );
        let names = piece(
            AttributeKind::ThreadName,
            &[(1, 1), (2, 2), (3, 1), (4, 0)],
            &["b", "a"],
        );
        let encoded = encode(vec![counter, names], 4);
        assert_eq!(
            changes(&encoded, AttributeKind::DiskRead),
            [(1, varint::code(4)), (3, varint::code(9))]
        );
        assert_eq!(encoded.texts, ["a", "b"]);
        assert_eq!(
            changes(&encoded, AttributeKind::ThreadName),
            [(1, 2), (2, 1), (3, 2), (4, 0)]
        );
    }
}
