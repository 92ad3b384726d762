//! The sequential part of settling slices: the shards, and the choice of blocks that get a
//! snapshot.

use std::collections::BTreeMap;

use crate::assembly::Assembly;
use crate::encode::Encoded;
use crate::levels::Levels;
use crate::shard::{CoarseParts, Shards};
use crate::snapshots::{CoarseSnapshots, FineSnapshots};
use crate::varint::NULL;

/// The state after the slices that were settled.
#[derive(Clone, Debug)]
pub(crate) struct Settling {
    pub(crate) shards: Shards,
    pub(crate) fine_snapshots: FineSnapshots,
    pub(crate) coarse_snapshots: CoarseSnapshots,
    /// By coarse level, from 1 on: the time up to which its blocks were complete.
    complete_until: Vec<i64>,
    levels: Levels,
}

impl Settling {
    /// The state before the first slice.
    pub(crate) fn new(levels: Levels) -> Settling {
        Settling {
            shards: Shards::new(&levels),
            fine_snapshots: FineSnapshots::default(),
            coarse_snapshots: CoarseSnapshots::default(),
            complete_until: Vec::new(),
            levels,
        }
    }

    /// By slice: whether its block has a snapshot.
    pub(crate) fn snapshots_of(&mut self, slices: &[Encoded]) -> Vec<bool> {
        let snapshots = &mut self.fine_snapshots;
        let of_slice = |slice: &Encoded| slice.extent.is_some() && snapshots.next();
        slices.iter().map(of_slice).collect()
    }

    /// By coarse level: whether the next block to be completed, if no change before `until`
    /// follows, has a snapshot.
    pub(crate) fn coarse_snapshots(&mut self, until: i64) -> Vec<bool> {
        let ends = self.levels.complete_until(until);
        let known = std::mem::replace(&mut self.complete_until, ends);
        let mut known = known.into_iter();
        let ends = self.complete_until.iter().zip(1..);
        let is_worth = ends.map(|(&end, level)| {
            let is_first = known.next().is_none_or(|known| known < end);
            let attributes = self.shards.count_of_level(level);
            is_first && self.coarse_snapshots.are_worth(level, attributes)
        });
        is_worth.collect()
    }

    /// The coarse blocks that shards have completed, each with the parts of all shards, in order.
    pub(crate) fn coarse(&mut self, of_shards: impl Iterator<Item = CoarseParts>) -> Vec<Assembly> {
        let mut blocks: BTreeMap<(u8, i64), (Assembly, u64)> = BTreeMap::new();
        let mut snapshots: Vec<Option<Vec<_>>> = Vec::new();
        for CoarseParts {
            blocks: parts,
            snapshots: of_levels,
        } in of_shards
        {
            for part in parts {
                let place = part.place;
                let new = Assembly {
                    place,
                    fine: None,
                    snapshots: None,
                    runs: Vec::new(),
                };
                let (block, bytes) = blocks.entry((place.level, place.begin)).or_insert((new, 0));
                *bytes += part.bytes;
                let runs = part.runs.into_iter();
                block.runs.push(
                    runs.map(|(attribute, run)| (attribute, run, NULL))
                        .collect(),
                );
            }
            snapshots.resize_with(of_levels.len(), || None);
            for (all, of_level) in snapshots.iter_mut().zip(of_levels) {
                if let Some(of_level) = of_level {
                    all.get_or_insert_default().push(of_level);
                }
            }
        }
        for (block, bytes) in blocks.values_mut() {
            let level = block.place.level;
            let of_level = usize::from(level)
                .checked_sub(1)
                .and_then(|at| snapshots.get_mut(at));
            block.snapshots = of_level.and_then(Option::take);
            let has_snapshot = block.snapshots.is_some();
            self.coarse_snapshots.count(level, *bytes, has_snapshot);
        }
        blocks.into_values().map(|(block, _)| block).collect()
    }
}
