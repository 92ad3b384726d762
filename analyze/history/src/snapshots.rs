//! Chooses the blocks that get a snapshot of all values, so that reading an attribute never goes
//! far back.
//!
//! The choice is made before blocks are assembled, from approximate sizes: it depends neither on
//! when they are assembled, nor on where a history was continued.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// A snapshot takes at most one `SHARE`th of the bytes written since the last one.
const SHARE: u64 = 8;
/// Approximate size of an attribute in a snapshot, in bytes.
const BYTES: u64 = 4;
/// Maximum distance from a block back to a snapshot, in blocks.
const MOST_BLOCKS: u32 = 64;
/// Distance between snapshots while no sizes of blocks are known.
const FIRST_BLOCKS: u32 = 4;
/// Number of blocks after which the size of a block is used.
pub(crate) const LATER: usize = 16;

/// The inputs of a block of all changes to the choice of snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Weight {
    /// Approximate size of the changes, in bytes.
    pub(crate) bytes: u64,
    /// Number of attributes with a value at the start of the block.
    pub(crate) attributes: usize,
}

impl Weight {
    /// True for coarse blocks, which have no weight.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Weight::default()
    }
}

/// Data written since the last snapshot.
#[derive(Clone, Copy, Debug)]
struct Since {
    bytes: u64,
    blocks: u32,
}

impl Default for Since {
    /// The first block always gets a snapshot.
    fn default() -> Since {
        Since {
            bytes: u64::MAX,
            blocks: MOST_BLOCKS,
        }
    }
}

impl Since {
    fn is_worth(self, attributes: usize) -> bool {
        self.bytes / SHARE >= attributes as u64 * BYTES || self.blocks >= MOST_BLOCKS
    }

    fn count(&mut self, bytes: u64, has_snapshot: bool) {
        *self = match has_snapshot {
            true => Since { bytes, blocks: 1 },
            false => Since {
                bytes: self.bytes.saturating_add(bytes),
                blocks: self.blocks.saturating_add(1),
            },
        };
    }
}

/// Snapshots of blocks of all changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct FineSnapshots {
    /// Number of blocks since the last snapshot; `None` before the first block.
    blocks: Option<u32>,
    /// Weights of completed blocks in order. Those of the last [`LATER`] blocks are not used,
    /// whether or not they are known.
    recent: VecDeque<Weight>,
    /// Number of planned blocks whose weight is not in `recent`.
    planned: usize,
}

impl FineSnapshots {
    /// Whether the next block has a snapshot.
    pub(crate) fn next(&mut self) -> bool {
        let has_snapshot = match self.blocks {
            None => true,
            Some(blocks) => blocks >= MOST_BLOCKS || self.is_worth(blocks),
        };
        self.blocks = match has_snapshot {
            true => Some(1),
            false => self.blocks.map(|blocks| blocks + 1),
        };
        self.planned += 1;
        has_snapshot
    }

    fn is_worth(&self, blocks: u32) -> bool {
        let until = (self.recent.len() + self.planned).saturating_sub(LATER);
        let from = until.saturating_sub(LATER);
        let known = self.recent.iter().take(until).skip(from);
        let Some(last) = known.clone().next_back() else {
            return blocks >= FIRST_BLOCKS;
        };
        let bytes = known.map(|block| block.bytes).sum::<u64>() / (until - from) as u64;
        bytes.saturating_mul(blocks.into()) / SHARE >= last.attributes as u64 * BYTES
    }

    /// Adds the weight of the first planned block.
    pub(crate) fn learn(&mut self, weight: Weight) {
        self.planned = self.planned.saturating_sub(1);
        self.recent.push_back(weight);
        // Later plans use no older weights.
        if self.recent.len() > 2 * LATER {
            self.recent.pop_front();
        }
    }

    /// Adds a block that the file already contains.
    pub(crate) fn take_over(&mut self, weight: Weight, has_snapshot: bool) {
        self.blocks = match has_snapshot {
            true => Some(1),
            false => Some(self.blocks.map_or(1, |blocks| blocks + 1)),
        };
        self.planned += 1;
        self.learn(weight);
    }
}

/// Snapshots of blocks of coarse levels.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoarseSnapshots(Vec<Since>);

impl CoarseSnapshots {
    fn since(&mut self, level: u8) -> &mut Since {
        let level = usize::from(level);
        if self.0.len() <= level {
            self.0.resize_with(level + 1, Since::default);
        }
        &mut self.0[level]
    }

    /// Whether the next block of a level is worth a snapshot of that number of attributes.
    pub(crate) fn are_worth(&mut self, level: u8, attributes: usize) -> bool {
        self.since(level).is_worth(attributes)
    }

    /// Adds the next block of a level.
    pub(crate) fn count(&mut self, level: u8, bytes: u64, has_snapshot: bool) {
        self.since(level).count(bytes, has_snapshot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_take_an_eighth_of_the_rest() {
        let mut snapshots = CoarseSnapshots::default();
        assert!(
            snapshots.are_worth(1, 1_000_000),
            "the first block begins with one"
        );
        snapshots.count(1, 0, true);
        assert!(snapshots.are_worth(1, 0) && !snapshots.are_worth(1, 1));
        snapshots.count(1, 31, false);
        assert!(!snapshots.are_worth(1, 1));
        snapshots.count(1, 1, false);
        assert!(snapshots.are_worth(1, 1) && !snapshots.are_worth(1, 2));
        for blocks in 4..=MOST_BLOCKS {
            assert!(!snapshots.are_worth(1, 9), "{blocks}");
            snapshots.count(1, 0, false);
        }
        assert!(snapshots.are_worth(1, 9), "the last one is 64 blocks back");
    }

    /// Blocks that are planned together, or after those of a file, get the same snapshots.
    #[test]
    fn snapshots_do_not_depend_on_groups() {
        let blocks: Vec<Weight> = (0..200u64)
            .map(|at| Weight {
                bytes: 100 + at * 37 % 900,
                attributes: (at * at / 50) as usize,
            })
            .collect();
        let planned = |group: usize, cut: usize| {
            let mut snapshots = FineSnapshots::default();
            let mut found: Vec<bool> = Vec::new();
            for part in [&blocks[..cut], &blocks[cut..]] {
                for group in part.chunks(group) {
                    found.extend(group.iter().map(|_| snapshots.next()));
                    group.iter().for_each(|block| snapshots.learn(*block));
                }
                snapshots = FineSnapshots::default();
                for (block, &has_snapshot) in blocks.iter().zip(&found) {
                    snapshots.take_over(*block, has_snapshot);
                }
            }
            found
        };
        let expected = planned(1, 0);
        let count = expected
            .iter()
            .filter(|&&has_snapshot| has_snapshot)
            .count();
        assert!((20..150).contains(&count), "{count}");
        for (group, cut) in [(LATER, 0), (7, 0), (LATER, 41), (3, 100), (1, 199)] {
            assert_eq!(planned(group, cut), expected, "{group} {cut}");
        }
    }
}
