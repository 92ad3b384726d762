//! Ended executions of one family of definitions, and the numbers of begun ones.

use std::vec::IntoIter;

use serde::{Deserialize, Serialize};
use tracebraid_language::Datum;
use tracebraid_periods::{Bound, EndedPeriod};

use crate::delimit::calls::EndedCall;
use crate::turns::Turn;

/// Ended executions, in the order in which their ends became known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) ended: EndedList,
    /// Offset of the numbers in the block: the number of executions that began before the slice in
    /// which they were numbered.
    pub(crate) before: u64,
    /// Begin of the earliest execution.
    pub(crate) earliest: i64,
}

/// Ended executions. Calls stay in their compact form, since there may be millions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum EndedList {
    Calls(Vec<EndedCall>),
    /// With the times at which their ends became known.
    Periods(Vec<(i64, EndedPeriod)>),
}

/// Iterator over executions, with the times at which their ends became known.
#[derive(Debug)]
pub(crate) enum EndedOnes {
    Calls(IntoIter<EndedCall>, u64),
    Periods(IntoIter<(i64, EndedPeriod)>),
}

impl Block {
    /// Executions of a full block: enough to outweigh the cost of a job, few enough to share among
    /// threads.
    pub(crate) const FULL: usize = 256;

    /// A block of calls whose numbers are final.
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

    /// Times at which the ends of the first and the last execution became known.
    pub(crate) fn told(&self) -> Option<(i64, i64)> {
        match &self.ended {
            EndedList::Calls(ended) => Some((ended.first()?.end, ended.last()?.end)),
            EndedList::Periods(ended) => Some((ended.first()?.0, ended.last()?.0)),
        }
    }

    /// Number of executions.
    pub(crate) fn len(&self) -> usize {
        match &self.ended {
            EndedList::Calls(ended) => ended.len(),
            EndedList::Periods(ended) => ended.len(),
        }
    }

    /// The executions with their final numbers.
    pub(crate) fn numbered(self) -> EndedOnes {
        match self.ended {
            EndedList::Calls(ended) => EndedOnes::Calls(ended.into_iter(), self.before),
            EndedList::Periods(ended) => EndedOnes::Periods(ended.into_iter()),
        }
    }
}

impl EndedOnes {
    /// End of the next execution.
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

/// Executions of one family of definitions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Log {
    /// With the times at which their ends became known.
    pub(crate) ended: Vec<(i64, EndedPeriod)>,
    /// Number of begun executions; the numbers of executions begin at 1.
    numbered: u64,
    /// By definition: number of open executions.
    open: Vec<u64>,
    /// Number of executions that were not begun because too many were open.
    pub(crate) refused: u64,
    /// Begins, and ends of executions that are not selected. They show when threads turned to other
    /// work.
    pub(crate) turns: Vec<Turn>,
}

impl Log {
    /// Number of the next execution.
    pub(crate) fn number(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered
    }

    /// Adds the counts of a later slice, whose numbers begin at 1. Returns the number of executions
    /// that had begun earlier.
    pub(crate) fn take_over(&mut self, later: &Log) -> u64 {
        for (kind, open) in later.open.iter().enumerate() {
            *self.of(kind) += open;
        }
        let before = self.numbered;
        self.numbered += later.numbered;
        before
    }

    /// An execution of the definition begins.
    pub(crate) fn begins(&mut self, kind: usize) {
        *self.of(kind) += 1;
    }

    /// An execution ends.
    pub(crate) fn ends(&mut self, kind: usize, numbers: Vec<u64>, bounds: [Bound; 2]) {
        let told = bounds[1].time;
        self.ends_as_told(told, kind, numbers, bounds);
    }

    /// An execution ends that is stored elsewhere.
    pub(crate) fn ends_elsewhere(&mut self, kind: usize) {
        let open = self.of(kind);
        *open = open.saturating_sub(1);
    }

    /// An execution ended; its end became known at `told`.
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

    /// By definition: number of executions without an end.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = u64> + '_ {
        self.open.iter().copied().chain(std::iter::repeat(0))
    }
}

/// Beginning or end of an execution: time, CPU and captures, of which the thread is the last.
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
