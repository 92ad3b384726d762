//! Coarse levels: values of attributes at the multiples of a grid, for queries over long intervals.
//!
//! A change takes effect at the first multiple of the grid at or after its time; of several changes
//! for one multiple, the last takes precedence. The grid of each level is [`FACTOR`] times as wide
//! as that of the level below, from whose changes the level is made.

use crate::attribute::Attribute;
use crate::block::BlockSpan;
use crate::by_attribute::{ByAttribute, sorted};
use crate::encode::{ceil, put_coarse};
use crate::run::Run;
use crate::varint::NULL;

/// Ratio of the grids of successive levels.
const FACTOR: i64 = 8;
/// Number of multiples of a grid in a block.
const CELLS: i64 = 4096;
/// Minimum number of multiples of a grid in the trace: about the width of a screen.
const FEWEST: i64 = 1024;
const MOST_LEVELS: usize = 12;
/// Bytes of a trace for each multiple of the finest grid.
const CELL_BYTES: u64 = 16 << 10;

/// The finest grid for a trace of that duration in nanoseconds and that size in bytes: a power of
/// two.
pub(crate) fn finest(duration: u64, bytes: u64) -> i64 {
    let cells = (bytes / CELL_BYTES).max(1);
    let grid = (duration / cells).clamp(1 << 10, 1 << 50);
    grid.next_power_of_two() as i64
}

/// The levels above all changes.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    levels: Vec<Level>,
}

#[derive(Clone, Debug)]
struct Level {
    grid: i64,
    /// Changes of blocks that are not complete yet.
    pending: ByAttribute<Vec<(i64, u64)>>,
    /// Time of the first pending change; `i64::MAX` without pending changes.
    first: i64,
    /// Values at the end of the last block, by attribute, without nulls.
    values: ByAttribute<u64>,
}

/// A block of a level, or the part of it that belongs to a shard.
#[derive(Debug)]
pub(crate) struct Coarse {
    pub(crate) place: BlockSpan,
    /// In the order of attributes.
    pub(crate) runs: Vec<(Attribute, Run)>,
    /// Approximate size of the runs in bytes.
    pub(crate) bytes: u64,
}

impl Levels {
    pub(crate) fn new(finest: i64, duration: u64) -> Levels {
        let is_useful = |grid: &i64| i64::try_from(duration).unwrap_or(i64::MAX) / grid >= FEWEST;
        let grids = std::iter::successors(Some(finest), |grid| grid.checked_mul(FACTOR));
        let grids = grids
            .enumerate()
            .take_while(|(at, grid)| *at == 0 || is_useful(grid));
        let level = |(_, grid)| Level {
            grid,
            pending: ByAttribute::default(),
            first: i64::MAX,
            values: ByAttribute::default(),
        };
        Levels {
            levels: grids.take(MOST_LEVELS).map(level).collect(),
        }
    }

    /// Adds changes of an attribute, on the finest grid.
    pub(crate) fn add(&mut self, attribute: Attribute, changes: impl Iterator<Item = (i64, u64)>) {
        if let Some(level) = self.levels.first_mut() {
            level.add(attribute, changes);
        }
    }

    /// The number and the grid of each level.
    pub(crate) fn grids(&self) -> Vec<(u8, i64)> {
        (1..)
            .zip(self.levels.iter().map(|level| level.grid))
            .collect()
    }

    /// Sets the value of an attribute after the existing blocks of a level.
    pub(crate) fn know(&mut self, level: u8, attribute: Attribute, code: u64) {
        if let Some(level) = self.level(level) {
            level.values.insert(attribute, code);
        }
    }

    /// Values after the blocks of a level so far, by attribute, without nulls.
    pub(crate) fn snapshot(&mut self, level: u8) -> Vec<(Attribute, u64)> {
        self.level(level)
            .map_or_else(Vec::new, |level| sorted(&level.values))
    }

    /// Number of these values.
    pub(crate) fn count(&self, level: u8) -> usize {
        let level = usize::from(level)
            .checked_sub(1)
            .and_then(|at| self.levels.get(at));
        level.map_or(0, |level| level.values.len())
    }

    /// By level: the time up to which blocks are complete, if no change before `until` follows.
    pub(crate) fn complete_until(&self, mut until: i64) -> Vec<i64> {
        let levels = self.levels.iter();
        let ends = levels.map(|level| {
            until = level.first_open(until);
            until
        });
        ends.collect()
    }

    /// Adds changes of an attribute to one level only.
    pub(crate) fn refill(
        &mut self,
        level: u8,
        attribute: Attribute,
        changes: impl Iterator<Item = (i64, u64)>,
    ) {
        let mut changes = changes.peekable();
        if let Some(level) = self.level(level)
            && changes.peek().is_some()
        {
            level.add(attribute, changes);
        }
    }

    fn level(&mut self, number: u8) -> Option<&mut Level> {
        self.levels.get_mut(usize::from(number).checked_sub(1)?)
    }

    /// Passes on the blocks that are complete, if no change before `until` follows.
    pub(crate) fn complete(&mut self, mut until: i64, mut to: impl FnMut(Coarse)) {
        for at in 0..self.levels.len() {
            let (lower, upper) = self.levels.split_at_mut(at + 1);
            let Some(level) = lower.last_mut() else {
                return;
            };
            while let Some(coarse) = level.next_block(at as u8 + 1, until) {
                if let Some(upper) = upper.first_mut() {
                    for (attribute, run) in &coarse.runs {
                        upper.take(*attribute, level.grid, run);
                    }
                }
                to(coarse);
            }
            // The level above receives only the content of complete blocks.
            until = level.first_open(until);
        }
    }
}

/// Length of a block of a level, in nanoseconds.
pub(crate) fn span(grid: i64) -> i64 {
    grid.saturating_mul(CELLS)
}

impl Level {
    fn add(&mut self, attribute: Attribute, changes: impl Iterator<Item = (i64, u64)>) {
        let pending = self.pending.entry(attribute).or_default();
        changes.for_each(|(time, code)| put_coarse(pending, self.grid, time, code));
        if let Some(&(first, _)) = pending.first() {
            self.first = self.first.min(first);
        }
    }

    /// Adds the changes of the level below.
    fn take(&mut self, attribute: Attribute, grid: i64, run: &Run) {
        let steps = crate::run::Steps::new(run.first.0, &run.bytes);
        let changes = [run.first].into_iter().chain(steps);
        self.add(
            attribute,
            changes.map(|(time, code)| (time.saturating_mul(grid), code)),
        );
    }

    /// Start of the first block that may still receive changes, if no change before `until`
    /// follows.
    fn first_open(&self, until: i64) -> i64 {
        match until {
            i64::MAX => until,
            _ => {
                let span = span(self.grid);
                ceil(until, self.grid).div_euclid(span).saturating_mul(span)
            }
        }
    }

    fn first_pending(&self) -> Option<i64> {
        let firsts = self.pending.values().filter_map(|changes| changes.first());
        firsts.map(|change| change.0).min()
    }

    /// The first block with changes, if it cannot receive any more.
    fn next_block(&mut self, level: u8, until: i64) -> Option<Coarse> {
        let span = span(self.grid);
        let first = Some(self.first).filter(|&first| first != i64::MAX)?;
        let begin = first.div_euclid(span).saturating_mul(span);
        let end = begin.saturating_add(span);
        // Later changes take effect at this time or later.
        if ceil(until, self.grid) < end && until != i64::MAX {
            return None;
        }
        let mut pending: Vec<_> = self.pending.iter_mut().collect();
        pending.sort_unstable_by_key(|(attribute, _)| **attribute);
        let mut runs = Vec::new();
        for (&attribute, changes) in pending {
            let count = changes.partition_point(|change| change.0 < end);
            let value = self.values.get(&attribute).copied().unwrap_or(NULL);
            let (grid, ready) = (self.grid, changes.drain(..count));
            let (run, last) = run_of(
                ready.map(|(time, code)| (time.div_euclid(grid), code)),
                value,
            );
            match last {
                NULL => self.values.remove(&attribute),
                last => self.values.insert(attribute, last),
            };
            runs.extend(run.map(|run| (attribute, run)));
        }
        self.pending.retain(|_, changes| !changes.is_empty());
        self.first = self.first_pending().unwrap_or(i64::MAX);
        let grid = self.grid;
        let place = BlockSpan {
            level,
            grid,
            begin,
            end,
        };
        let bytes = runs.iter().map(|(_, run)| run.size()).sum();
        Some(Coarse { place, runs, bytes })
    }
}

/// The run of effective changes, and the value after them.
fn run_of(changes: impl Iterator<Item = (i64, u64)>, mut value: u64) -> (Option<Run>, u64) {
    let mut run: Option<Run> = None;
    let mut last = 0;
    for (time, code) in changes {
        if code == value {
            continue;
        }
        match &mut run {
            Some(run) => run.push(time.abs_diff(last), code),
            None => run = Some(Run::new((time, code))),
        }
        (last, value) = (time, code);
    }
    (run, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::AttributeKind;

    #[test]
    fn levels_show_the_last_change_before_each_multiple() {
        let attribute = Attribute::new(AttributeKind::ThreadCpu, 0, 1);
        let mut levels = Levels::new(4, 1 << 20);
        let changes = [(0, 5), (4, 6), (8, 5), (16, 5), (36, 7)];
        levels.add(attribute, changes.into_iter());
        let mut blocks = Vec::new();
        levels.complete(100, |coarse| blocks.push(coarse));
        assert!(blocks.is_empty(), "the first block reaches to 16384");
        levels.complete(i64::MAX, |coarse| blocks.push(coarse));
        let steps = |coarse: &Coarse| {
            let (_, run) = &coarse.runs[0];
            let steps = crate::run::Steps::new(run.first.0, &run.bytes);
            let all = [run.first].into_iter().chain(steps);
            all.map(|(time, code)| (time * coarse.place.grid, code))
                .collect::<Vec<_>>()
        };
        assert_eq!(blocks[0].place.grid, 4);
        assert_eq!(steps(&blocks[0]), [(0, 5), (4, 6), (8, 5), (36, 7)]);
        assert_eq!(blocks[1].place.grid, 32);
        assert_eq!(steps(&blocks[1]), [(0, 5), (64, 7)]);
    }

    /// The number of pending changes is bounded by the number of attributes, not by that of
    /// changes.
    #[test]
    fn pending_changes_are_bounded() {
        let attribute = Attribute::new(AttributeKind::ThreadCpu, 0, 1);
        let duration = 1 << 40;
        let mut levels = Levels::new(1 << 20, duration);
        let of_block = usize::try_from(CELLS).expect("a few");
        let mut most = vec![0; levels.levels.len()];
        // The attribute changes in every cell of the finest grid.
        for time in (0..duration as i64 / 8).step_by(1 << 20) {
            levels.add(attribute, [(time, time as u64 >> 20)].into_iter());
            levels.complete(time, |_| ());
            for (most, level) in most.iter_mut().zip(&levels.levels) {
                *most = level
                    .pending
                    .values()
                    .map(Vec::len)
                    .sum::<usize>()
                    .max(*most);
            }
        }
        assert!(most.len() > 2 && most[0] == of_block, "{most:?}");
        // A level receives a block of the level below at once, in addition to its own pending
        // cells.
        assert!(
            most.iter().all(|&most| most <= of_block + of_block / 8),
            "{most:?}"
        );
    }

    #[test]
    fn a_block_is_complete_when_those_below_are() {
        let attribute = Attribute::new(AttributeKind::ThreadCpu, 0, 1);
        let mut levels = Levels::new(4, 1 << 20);
        levels.add(attribute, [(10, 5), (120_000, 6)].into_iter());
        let mut blocks = Vec::new();
        // The second level is complete up to 131072, except for the first level's last block before
        // that, which is still open.
        levels.complete(131_050, |coarse| blocks.push(coarse.place));
        assert!(blocks.iter().all(|place| place.level == 1), "{blocks:?}");
        levels.complete(i64::MAX, |coarse| blocks.push(coarse.place));
        assert_eq!(blocks.iter().filter(|place| place.level == 2).count(), 1);
    }
}
