//! How slices are settled one after the other: the shards, and which blocks get a snapshot.

use std::collections::BTreeMap;

use crate::assembly::Assembly;
use crate::encode::Encoded;
use crate::levels::Levels;
use crate::shard::{CoarseParts, Shards};
use crate::snapshots::Snapshots;
use crate::varint::NULL;

/// The state behind the slices that were settled.
#[derive(Clone, Debug)]
pub(crate) struct Settling {
    pub(crate) shards: Shards,
    pub(crate) snapshots: Snapshots,
    /// By coarse level, from 1 on: up to when its blocks were complete.
    complete_until: Vec<i64>,
    levels: Levels,
}

impl Settling {
    /// Nothing is known yet.
    pub(crate) fn new(levels: Levels) -> Settling {
        Settling {
            shards: Shards::new(&levels),
            snapshots: Snapshots::default(),
            complete_until: Vec::new(),
            levels,
        }
    }

    /// By slice: whether its block has a snapshot. Attributes that come up in the slices themselves count as far as one
    /// slice shows them.
    pub(crate) fn snapshots_of(&mut self, slices: &[Encoded]) -> Vec<bool> {
        let mut attributes = self.shards.count();
        let mut of_slice = |slice: &Encoded| {
            let has_block = slice.extent.is_some();
            let is_worth = has_block && self.snapshots.are_worth(0, attributes);
            if has_block {
                self.snapshots
                    .count(0, slice.bytes, is_worth.then_some(attributes));
            }
            attributes = attributes.max(slice.runs);
            is_worth
        };
        slices.iter().map(&mut of_slice).collect()
    }

    /// By coarse level: whether the first of its blocks that will be complete, as nothing will change before a time, has
    /// a snapshot.
    pub(crate) fn coarse_snapshots(&mut self, until: i64) -> Vec<bool> {
        let ends = self.levels.complete_until(until);
        let known = std::mem::replace(&mut self.complete_until, ends);
        let mut known = known.into_iter();
        let ends = self.complete_until.iter().zip(1..);
        let is_worth = ends.map(|(&end, level)| {
            let is_first = known.next().is_none_or(|known| known < end);
            is_first
                && self
                    .snapshots
                    .are_worth(level, self.shards.count_of_level(level))
        });
        is_worth.collect()
    }

    /// The coarse blocks that shards have taken out, each of all shards, in their order.
    pub(crate) fn coarse(&mut self, of_shards: impl Iterator<Item = CoarseParts>) -> Vec<Assembly> {
        let mut blocks: BTreeMap<(u8, i64), Assembly> = BTreeMap::new();
        let mut snapshots: Vec<Option<Vec<_>>> = Vec::new();
        for CoarseParts {
            blocks: parts,
            snapshots: of_levels,
        } in of_shards
        {
            for part in parts {
                let place = part.place;
                let block = blocks.entry((place.level, place.begin)).or_insert(Assembly {
                    place,
                    texts: None,
                    snapshots: None,
                    runs: Vec::new(),
                });
                let runs = part.runs.into_iter();
                block.runs.push(runs.map(|(attribute, run)| (attribute, run, NULL)).collect());
            }
            snapshots.resize_with(of_levels.len(), || None);
            for (all, of_level) in snapshots.iter_mut().zip(of_levels) {
                if let Some(of_level) = of_level {
                    all.get_or_insert_default().push(of_level);
                }
            }
        }
        for block in blocks.values_mut() {
            let level = block.place.level;
            let of_level = usize::from(level).checked_sub(1).and_then(|at| snapshots.get_mut(at));
            block.snapshots = of_level.and_then(Option::take);
            let attributes = block.snapshots.as_ref();
            let attributes = attributes.map(|parts| parts.iter().map(Vec::len).sum());
            self.snapshots.count(level, block.bytes(), attributes);
        }
        blocks.into_values().collect()
    }
}
