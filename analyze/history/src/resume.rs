//! Continues a history at a cut: keeps the part before it, and restores the state there.

use std::collections::BTreeMap;
use std::io;

use crate::assembly::Assembly;
use crate::attribute::Attribute;
use crate::file::{BlockRef, HistoryError, Index, Meta, Source};
use crate::levels::{Levels, span};
use crate::settling::Settling;
use crate::varint::NULL;
use crate::writer::Writer;

/// If more bytes than this, and more than the used ones, are unused, the file is copied.
const MOST_UNUSED: u64 = 1 << 20;

/// A history that is being continued.
pub(crate) struct Resumed {
    pub(crate) writer: Writer,
    pub(crate) settling: Settling,
    /// Values of attributes at the cut.
    pub(crate) values: BTreeMap<Attribute, u64>,
    /// Number of losses of events before the cut.
    pub(crate) losses: u64,
}

/// Continues a history at a time, as a history `of` these traces. Without a cut, nothing of it is
/// kept.
pub(crate) fn resume(
    source: &Source,
    index: Index,
    cut: Option<i64>,
    levels: Levels,
    of: &Meta,
) -> Result<Resumed, HistoryError> {
    let cut = cut.unwrap_or(i64::MIN);
    let levels_now = levels.grids();
    let mut index = kept(index, cut, &levels_now);
    let values = after(source, &index, 0)?;
    let losses = index.losses.iter().map(|&(_, losses)| losses).sum();
    let fine: Vec<BlockRef> = of_level(&index, 0).copied().collect();
    let mut refills = Vec::new();
    for &(level, grid) in &levels_now {
        let from = refilled_from(&index, (level, grid), cut);
        let below = of_level(&index, level - 1).filter(|block| level > 1 && block.end > from);
        refills.push((level, from, below.copied().collect::<Vec<_>>()));
    }
    let of_levels = levels_now
        .iter()
        .map(|&(level, _)| Ok((level, after(source, &index, level)?)));
    let of_levels: Vec<_> = of_levels.collect::<Result<_, HistoryError>>()?;
    let mut writer = writer(source, &mut index, of)?;
    let mut settling = settling(levels, &index, &values);
    writer.take_over(index);
    for (level, values) in of_levels {
        settling.shards.go_on(level, values);
    }
    for (level, from, below) in refills.iter().filter(|(level, ..)| *level > 1) {
        for place in below {
            refill(source, &mut settling, place, (*level, *from))?;
        }
    }
    let from = refills.first().map_or(i64::MAX, |(_, from, _)| *from);
    for place in fine.iter().filter(|place| place.end > from) {
        refill(source, &mut settling, place, (1, from))?;
        complete(&mut settling, &mut writer, place.end).map_err(|error| writer.failed(error))?;
    }
    Ok(Resumed {
        writer,
        settling,
        values,
        losses,
    })
}

/// A writer that appends to the file or, if too much of the file is unused, to a copy with the kept
/// blocks and checkpoints.
fn writer(source: &Source, index: &mut Index, of: &Meta) -> Result<Writer, HistoryError> {
    let checkpoints = index.checkpoints.iter().map(|kept| kept.length);
    let used: u64 = index
        .blocks
        .iter()
        .map(|block| block.length)
        .chain(checkpoints)
        .sum();
    let unused = source.end.saturating_sub(used);
    match unused > used.max(MOST_UNUSED) {
        true => {
            let mut writer = Writer::create(&source.path, of)?;
            for block in &mut index.blocks {
                let copied = writer.copy(source.bytes(block)?);
                block.offset = copied.map_err(|error| writer.failed(error))?;
            }
            for kept in &mut index.checkpoints {
                let copied = writer.copy(source.checkpoint(kept)?);
                kept.offset = copied.map_err(|error| writer.failed(error))?;
            }
            Ok(writer)
        }
        false => Writer::behind(&source.path, source.end),
    }
}

/// Values and snapshots at the cut.
fn settling(levels: Levels, index: &Index, values: &BTreeMap<Attribute, u64>) -> Settling {
    let mut settling = Settling::new(levels);
    settling.shards.take_over(values);
    for block in &index.blocks {
        let has_snapshot = block.has_snapshot;
        match block.level {
            0 => settling
                .fine_snapshots
                .take_over(block.weight, has_snapshot),
            level => settling
                .coarse_snapshots
                .count(level, block.length, has_snapshot),
        }
    }
    settling
}

/// The kept part: blocks that end before the cut; coarse blocks only if the grids are the same.
fn kept(mut index: Index, cut: i64, levels: &[(u8, i64)]) -> Index {
    let is_known =
        |block: &BlockRef| block.level == 0 || levels.contains(&(block.level, block.grid));
    let is_same = index.blocks.iter().all(is_known);
    index
        .blocks
        .retain(|block| block.end <= cut && (block.level == 0 || is_same));
    let texts = of_level(&index, 0).last().and_then(|block| block.texts);
    index.texts.truncate(texts.unwrap_or(0));
    index.losses.retain(|&(begin, _)| begin < cut);
    index.checkpoints.retain(|kept| kept.time <= cut);
    index
}

fn of_level(index: &Index, level: u8) -> impl DoubleEndedIterator<Item = &BlockRef> {
    index
        .blocks
        .iter()
        .filter(move |block| block.level == level)
}

/// Codes of attributes after the blocks of a level, without nulls.
fn after(
    source: &Source,
    index: &Index,
    level: u8,
) -> Result<BTreeMap<Attribute, u64>, HistoryError> {
    let blocks: Vec<&BlockRef> = of_level(index, level).collect();
    let first = blocks
        .iter()
        .rposition(|block| block.has_snapshot)
        .unwrap_or(0);
    let mut values = BTreeMap::new();
    for place in blocks.get(first..).unwrap_or_default() {
        let block = source.block(place)?;
        if let Some(snapshot) = &block.snapshot {
            values = snapshot.iter().copied().collect();
        }
        for entry in &block.directory {
            match entry.last {
                NULL => values.remove(&entry.attribute),
                last => values.insert(entry.attribute, last),
            };
        }
    }
    Ok(values)
}

/// The kept blocks of a level do not contain changes after this time.
fn refilled_from(index: &Index, (level, grid): (u8, i64), cut: i64) -> i64 {
    match of_level(index, level).next() {
        Some(_) => {
            let span = span(grid);
            cut.div_euclid(span)
                .saturating_mul(span)
                .saturating_sub(grid)
        }
        None => i64::MIN,
    }
}

/// Writes the coarse blocks that are complete.
fn complete(settling: &mut Settling, writer: &mut Writer, until: i64) -> io::Result<()> {
    let snapshots = settling.coarse_snapshots(until);
    let shards = settling.shards.0.iter_mut();
    let parts: Vec<_> = shards
        .map(|shard| shard.complete(until, &snapshots))
        .collect();
    let blocks = settling.coarse(parts.into_iter());
    let mut blocks = blocks.into_iter().filter_map(Assembly::run);
    blocks.try_for_each(|block| match writer.append(block) {
        Some(full) => writer.write(full),
        None => Ok(()),
    })
}

/// Adds the changes of a block to a level that lacks them.
fn refill(
    source: &Source,
    settling: &mut Settling,
    place: &BlockRef,
    (level, from): (u8, i64),
) -> Result<(), HistoryError> {
    let block = source.block(place)?;
    for entry in &block.directory {
        let changes = block.changes(entry).filter(|change| change.0 > from);
        settling.shards.refill(level, entry.attribute, changes);
    }
    Ok(())
}
