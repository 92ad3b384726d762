//! Which blocks get a snapshot of all values, so that reading an attribute never leads far back.
//!
//! That is decided before blocks are made, by what they take about: so it does not depend on when they are made.

/// A snapshot may take that part of what was written since the last one.
const SHARE: u64 = 8;
/// Bytes of an attribute in a snapshot, about.
const BYTES: u64 = 4;
/// No snapshot is further back than so many blocks.
const MOST_BLOCKS: u32 = 64;

/// What was written since the last snapshot, by level.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshots(Vec<Since>);

#[derive(Clone, Copy, Debug)]
struct Since {
    bytes: u64,
    blocks: u32,
}

/// Before the first block there is none.
const NEVER: Since = Since {
    bytes: u64::MAX,
    blocks: MOST_BLOCKS,
};

impl Snapshots {
    fn since(&mut self, level: u8) -> &mut Since {
        let level = usize::from(level);
        if self.0.len() <= level {
            self.0.resize(level + 1, NEVER);
        }
        &mut self.0[level]
    }

    /// Whether the next block of a level is worth a snapshot of so many attributes.
    pub(crate) fn are_worth(&mut self, level: u8, attributes: usize) -> bool {
        let since = self.since(level);
        since.bytes / SHARE >= attributes as u64 * BYTES || since.blocks >= MOST_BLOCKS
    }

    /// A block of so many bytes, without its snapshot, comes next in its level; with a snapshot of so many attributes, if
    /// it has one.
    pub(crate) fn count(&mut self, level: u8, bytes: u64, snapshot: Option<usize>) {
        let since = self.since(level);
        *since = match snapshot {
            Some(attributes) => Since {
                bytes: bytes.saturating_add(attributes as u64 * BYTES),
                blocks: 1,
            },
            None => Since {
                bytes: since.bytes.saturating_add(bytes),
                blocks: since.blocks.saturating_add(1),
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_take_an_eighth_of_the_rest() {
        let mut snapshots = Snapshots::default();
        assert!(snapshots.are_worth(1, 1_000_000), "the first block begins with one");
        snapshots.count(1, 0, Some(0));
        assert!(snapshots.are_worth(1, 0) && !snapshots.are_worth(1, 1));
        snapshots.count(1, 31, None);
        assert!(!snapshots.are_worth(1, 1));
        snapshots.count(1, 1, None);
        assert!(snapshots.are_worth(1, 1) && !snapshots.are_worth(1, 2));
        for _ in 0..61 {
            snapshots.count(1, 0, None);
            assert_eq!(snapshots.are_worth(1, 9), snapshots.0[1].blocks == MOST_BLOCKS);
        }
        assert!(snapshots.are_worth(1, 9), "the last one is 64 blocks back");
    }
}
