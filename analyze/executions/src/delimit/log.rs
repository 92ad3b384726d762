//! Executions of one family that ended, and how many began.

use serde::{Deserialize, Serialize};
use tracebraid_language::Datum;
use tracebraid_periods::{Bound, EndedPeriod};

use crate::turns::Turn;

/// Executions that ended, in the order in which that was known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Block {
    /// With the times when it was known.
    pub(crate) ended: Vec<(i64, EndedPeriod)>,
    /// What their numbers grow by: how many had begun before those that these are counted with.
    pub(crate) before: u64,
    /// When the first one began.
    pub(crate) earliest: i64,
}

impl Block {
    /// So many executions are not many for one piece of work, and not few.
    pub(crate) const FULL: usize = 1024;

    /// Executions that are numbered among all.
    pub(crate) fn new(ended: Vec<(i64, EndedPeriod)>) -> Block {
        let begins = ended.iter().map(|(_, period)| period.begin.time);
        Block {
            earliest: begins.min().unwrap_or(i64::MAX),
            before: 0,
            ended,
        }
    }

    /// A list, each so many of it.
    pub(crate) fn all(ended: Vec<(i64, EndedPeriod)>) -> Vec<Block> {
        let mut ended = ended.into_iter();
        let block = || Block::new(ended.by_ref().take(Block::FULL).collect());
        let blocks = std::iter::repeat_with(block);
        blocks.take_while(|block| !block.ended.is_empty()).collect()
    }

    /// Each, with its number among all.
    pub(crate) fn numbered(self) -> impl Iterator<Item = (i64, EndedPeriod)> {
        let before = self.before;
        self.ended.into_iter().map(move |(told, mut period)| {
            period.numbers.iter_mut().for_each(|number| *number += before);
            (told, period)
        })
    }
}

/// Executions that are delimited in one way.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Log {
    /// With the times when that was known.
    pub(crate) ended: Vec<(i64, EndedPeriod)>,
    /// How many have begun: they are numbered from 1.
    numbered: u64,
    /// By definition: how many began that have not ended.
    open: Vec<u64>,
    /// How many were not begun, since too many were open.
    pub(crate) refused: u64,
    /// Begins, and ends of executions that are not selected, which show when threads turned to other work.
    pub(crate) turns: Vec<Turn>,
}

impl Log {
    /// The number of the next one.
    pub(crate) fn number(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered
    }

    /// Counts what began later, numbered from 1, and what ended of that. Gives how many had begun before.
    pub(crate) fn take_over(&mut self, later: &Log) -> u64 {
        for (kind, open) in later.open.iter().enumerate() {
            *self.of(kind) += open;
        }
        let before = self.numbered;
        self.numbered += later.numbered;
        before
    }

    /// One of that definition begins.
    pub(crate) fn begins(&mut self, kind: usize) {
        *self.of(kind) += 1;
    }

    /// One ends.
    pub(crate) fn ends(&mut self, kind: usize, numbers: Vec<u64>, bounds: [Bound; 2]) {
        let told = bounds[1].time;
        self.ends_as_told(told, kind, numbers, bounds);
    }

    /// One has ended, as is known since that time.
    pub(crate) fn ends_as_told(
        &mut self,
        told: i64,
        kind: usize,
        numbers: Vec<u64>,
        [begin, end]: [Bound; 2],
    ) {
        let open = self.of(kind);
        *open = open.saturating_sub(1);
        let ended = EndedPeriod {
            period: kind,
            numbers,
            begin,
            end,
        };
        self.ended.push((told, ended));
    }

    fn of(&mut self, kind: usize) -> &mut u64 {
        if kind >= self.open.len() {
            self.open.resize(kind + 1, 0);
        }
        &mut self.open[kind]
    }

    /// By definition: how many did not end.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = u64> + '_ {
        self.open.iter().copied().chain(std::iter::repeat(0))
    }
}

/// What delimits an execution: when, where, and what is kept, with the thread as the last.
pub(crate) fn bound(
    time: i64,
    (trace, cpu): (u32, Option<u32>),
    tid: Option<i64>,
    mut captures: Vec<Datum>,
) -> Bound {
    captures.push(tid.map_or(Datum::Missing, |tid| Datum::Integer(tid.into())));
    Bound {
        time,
        trace,
        cpu,
        is_call: false,
        captures,
    }
}
