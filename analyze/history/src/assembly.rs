//! From what shards know of a block to its bytes.

use crate::block::{self, BlockSpan, Content};
use crate::run::Run;
use crate::shard::{Runs, Snapshot};
use crate::snapshots::Weight;
use crate::texts::SliceTexts;

/// What is to become a block.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) place: BlockSpan,
    /// Of a block of all changes: its texts, and what it counts for.
    pub(crate) fine: Option<(SliceTexts, Weight)>,
    /// Of each shard; none if it has none.
    pub(crate) snapshots: Option<Vec<Snapshot>>,
    /// Of each shard.
    pub(crate) runs: Vec<Runs>,
}

/// A block as it is written.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) place: BlockSpan,
    pub(crate) bytes: Vec<u8>,
    pub(crate) has_snapshot: bool,
    /// Of a block of all changes: how many texts the file has behind it, and what it counts for.
    pub(crate) fine: Option<(usize, Weight)>,
}

impl Assembly {
    /// Puts it together; none if it is coarse, and there is nothing in it.
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
        // A block of all changes is there in any case, as it was counted before it was known what
        // changes.
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

/// The runs of all shards in the order of attributes. Runs are large: their places are sorted, and
/// each is moved once.
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
