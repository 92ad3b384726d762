//! Assembles the bytes of a block from the parts of all shards.

use crate::block::{self, BlockSpan, Content};
use crate::run::Run;
use crate::shard::{Runs, Snapshot};
use crate::snapshots::Weight;
use crate::texts::SliceTexts;

/// The parts of a block.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) place: BlockSpan,
    /// The texts and the weight of a block of all changes; `None` for coarse blocks.
    pub(crate) fine: Option<(SliceTexts, Weight)>,
    /// By shard; `None` for a block without a snapshot.
    pub(crate) snapshots: Option<Vec<Snapshot>>,
    /// By shard.
    pub(crate) runs: Vec<Runs>,
}

/// The bytes of a block.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) place: BlockSpan,
    pub(crate) bytes: Vec<u8>,
    pub(crate) has_snapshot: bool,
    /// Number of texts in the file after this block, and the block's weight; `None` for coarse
    /// blocks.
    pub(crate) fine: Option<(usize, Weight)>,
}

impl Assembly {
    /// Assembles the block; `None` for a coarse block without content.
    pub(crate) fn run(self) -> Option<Assembled> {
        let snapshot = self.snapshots.map(|parts| {
            let mut snapshot = parts.concat();
            snapshot.sort_unstable_by_key(|entry| entry.0);
            snapshot
        });
        let has_snapshot = snapshot.is_some();
        let content = Content {
            texts: self
                .fine
                .as_ref()
                .map_or_else(Vec::new, |fine| fine.0.numbers()),
            snapshot,
            runs: in_order(self.runs),
        };
        // A block of all changes is always written, since it was counted before its changes were
        // known.
        let is_empty =
            content.runs.is_empty() && content.snapshot.as_ref().is_none_or(Vec::is_empty);
        if is_empty && self.fine.is_none() {
            return None;
        }
        Some(Assembled {
            place: self.place,
            bytes: block::write(self.place, &content),
            has_snapshot,
            fine: self.fine.map(|(texts, weight)| (texts.in_file(), weight)),
        })
    }
}

/// The runs of all shards in the order of attributes. Runs are large, so their indexes are sorted
/// and each run is moved once.
fn in_order(mut parts: Vec<Runs>) -> Runs {
    let mut places = Vec::with_capacity(parts.iter().map(Vec::len).sum());
    for (part, runs) in parts.iter().enumerate() {
        let of_part = runs.iter().enumerate();
        places.extend(of_part.map(|(at, run)| (run.0, part as u32, at as u32)));
    }
    places.sort_unstable();
    let taken = places.into_iter().filter_map(|(attribute, part, at)| {
        let (_, run, before) = parts.get_mut(part as usize)?.get_mut(at as usize)?;
        let run = std::mem::replace(run, Run::new((0, 0)));
        Some((attribute, run, *before))
    });
    taken.collect()
}
