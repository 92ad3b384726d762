//! Executions of one family that ended, and how many began.

use std::vec::IntoIter;

use serde::{Deserialize, Serialize};
use tracebraid_language::Datum;
use tracebraid_periods::{Bound, EndedPeriod};

use crate::delimit::calls::EndedCall;
use crate::turns::Turn;

/// Executions that ended, in the order in which that was known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) ended: EndedList,
    /// Added to the numbers in the block: executions that began before the slice in which these are
    /// numbered.
    pub(crate) before: u64,
    /// When the first one began.
    pub(crate) earliest: i64,
}

/// Executions that ended: of calls as they were found, since there may be a great many.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum EndedList {
    Calls(Vec<EndedCall>),
    /// With the times when it was known.
    Periods(Vec<(i64, EndedPeriod)>),
}

/// Executions one by one, with the times when it was known that they ended.
#[derive(Debug)]
pub(crate) enum EndedOnes {
    Calls(IntoIter<EndedCall>, u64),
    Periods(IntoIter<(i64, EndedPeriod)>),
}

impl Block {
    /// Executions of a full block: enough to outweigh the cost of a job, few enough to share among
    /// threads.
    pub(crate) const FULL: usize = 256;

    /// Calls that are numbered among all.
    pub(crate) fn of_calls(ended: Vec<EndedCall>) -> Block {
        let begins = ended.iter().map(|call| call.begin);
        Block {
            earliest: begins.min().unwrap_or(i64::MAX),
            before: 0,
            ended: EndedList::Calls(ended),
        }
    }

    fn of_periods(ended: Vec<(i64, EndedPeriod)>) -> Block {
        let begins = ended.iter().map(|(_, period)| period.begin.time);
        Block {
            earliest: begins.min().unwrap_or(i64::MAX),
            before: 0,
            ended: EndedList::Periods(ended),
        }
    }

    /// Divides a list into blocks of at most [`Block::FULL`]; a block never spans one of the times
    /// in `cuts`.
    pub(crate) fn all(ended: Vec<(i64, EndedPeriod)>, cuts: &[i64]) -> Vec<Block> {
        let mut ended = ended.into_iter().peekable();
        let mut blocks = Vec::new();
        while let Some(&(told, _)) = ended.peek() {
            let before = cuts.partition_point(|cut| *cut <= told);
            let is_in = |of: &(i64, EndedPeriod)| cuts.get(before).is_none_or(|cut| of.0 < *cut);
            let block = std::iter::from_fn(|| ended.next_if(is_in));
            blocks.push(Block::of_periods(block.take(Block::FULL).collect()));
        }
        blocks
    }

    /// When it was known of the first and of the last one that they had ended.
    pub(crate) fn told(&self) -> Option<(i64, i64)> {
        match &self.ended {
            EndedList::Calls(ended) => Some((ended.first()?.end, ended.last()?.end)),
            EndedList::Periods(ended) => Some((ended.first()?.0, ended.last()?.0)),
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match &self.ended {
            EndedList::Calls(ended) => ended.len(),
            EndedList::Periods(ended) => ended.len(),
        }
    }

    /// Each, with its number among all.
    pub(crate) fn numbered(self) -> EndedOnes {
        match self.ended {
            EndedList::Calls(ended) => EndedOnes::Calls(ended.into_iter(), self.before),
            EndedList::Periods(ended) => EndedOnes::Periods(ended.into_iter()),
        }
    }
}

impl EndedOnes {
    /// When the next one ended.
    pub(crate) fn end(&self) -> Option<i64> {
        match self {
            EndedOnes::Calls(ended, _) => ended.as_slice().first().map(|call| call.end),
            EndedOnes::Periods(ended) => {
                ended.as_slice().first().map(|(_, period)| period.end.time)
            }
        }
    }
}

impl Iterator for EndedOnes {
    type Item = (i64, EndedPeriod);

    fn next(&mut self) -> Option<(i64, EndedPeriod)> {
        match self {
            EndedOnes::Calls(ended, before) => {
                ended.next().map(|call| (call.end, call.period(*before)))
            }
            EndedOnes::Periods(ended) => ended.next(),
        }
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
    /// Begins, and ends of executions that are not selected, which show when threads turned to
    /// other work.
    pub(crate) turns: Vec<Turn>,
}

impl Log {
    /// The number of the next one.
    pub(crate) fn number(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered
    }

    /// Counts what began later, numbered from 1, and what ended of that. Gives how many had begun
    /// before.
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

    /// One ended that is kept elsewhere.
    pub(crate) fn ends_elsewhere(&mut self, kind: usize) {
        let open = self.of(kind);
        *open = open.saturating_sub(1);
    }

    /// One has ended, as is known since that time.
    pub(crate) fn ends_as_told(
        &mut self,
        told: i64,
        kind: usize,
        numbers: Vec<u64>,
        [begin, end]: [Bound; 2],
    ) {
        self.ends_elsewhere(kind);
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
