//! Writes complete slices to the file, in jobs that any thread runs.
//!
//! Each slice is encoded ([`crate::encode`]); slices are settled in groups, whose texts are merged
//! first, by all shards of attributes in parallel ([`crate::shard`]); then each block is assembled
//! ([`crate::assembly`]). The sequential work depends only on the number of slices, shards and
//! texts: [`Pipeline::done`] passes on the results of jobs, numbers texts, and assigns the offsets
//! in the file at which jobs write blocks ([`crate::batch`]).

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::assembly::{Assembled, Assembly};
use crate::batch::Batch;
use crate::block::BlockSpan;
use crate::checkpoint::Checkpoint;
use crate::encode::{Encoded, Part, SHARDS, encode};
use crate::file::{HistoryError, Meta};
use crate::piece::Piece;
use crate::settling::Settling;
use crate::shard::{Order, Settled, Shard};
use crate::slices::Slices;
use crate::snapshots::{LATER, Weight};
use crate::texts::{GroupTexts, SliceTexts};
use crate::writer::Writer;

/// Number of slices that are settled together: more cost less time, fewer use less memory.
const GROUP: usize = LATER;

/// Work that any thread can do.
#[derive(Debug)]
pub(crate) enum Job {
    /// Encodes a slice, with a grid in nanoseconds.
    Encode(usize, Vec<Piece>, i64),
    /// Merges the texts of a group of slices.
    Unite(usize, Vec<Vec<String>>),
    /// Settles a group in one shard.
    Settle(usize, Box<Shard>, Vec<Part>, Arc<Order>),
    /// Assembles a block.
    Assemble(Box<Assembly>),
    /// Writes blocks to the file.
    Write(Batch),
}

/// The result of a job.
#[derive(Debug)]
pub(crate) enum Done {
    Encoded(usize, Encoded),
    United(usize, GroupTexts),
    Settled(usize, Box<Shard>, Settled),
    Assembled(Option<Assembled>),
    /// Number of bytes written.
    Written(io::Result<u64>),
}

impl Job {
    /// Runs the job.
    pub(crate) fn run(self) -> Done {
        match self {
            Job::Encode(slice, pieces, grid) => Done::Encoded(slice, encode(pieces, grid)),
            Job::Unite(group, texts) => Done::United(group, GroupTexts::unite(&texts)),
            Job::Settle(group, mut shard, parts, order) => {
                let settled = shard.settle(parts, &order);
                Done::Settled(group, shard, settled)
            }
            Job::Assemble(assembly) => Done::Assembled(assembly.run()),
            Job::Write(batch) => Done::Written(batch.write()),
        }
    }
}

/// Consecutive slices.
#[derive(Debug, Default)]
struct Group {
    encoded: Vec<Encoded>,
    /// Set once the texts are merged.
    texts: Option<Vec<SliceTexts>>,
    order: Option<Arc<Order>>,
    /// By shard.
    settled: Vec<Settled>,
}

/// State of the jobs.
#[derive(Debug)]
pub(crate) struct Pipeline {
    slices: Slices,
    grid: i64,
    /// The shards are absent while a group is settled.
    pub(crate) settling: Settling,
    groups: BTreeMap<usize, Group>,
    /// The group that is settled now or next.
    next: usize,
    ready: Vec<Job>,
    pub(crate) writer: Writer,
    error: Option<io::Error>,
}

impl Pipeline {
    /// The pipeline of these slices into a file.
    pub(crate) fn new(slices: Slices, grid: i64, settling: Settling, writer: Writer) -> Pipeline {
        Pipeline {
            slices,
            grid,
            settling,
            groups: BTreeMap::new(),
            next: 0,
            ready: Vec::new(),
            writer,
            error: None,
        }
    }

    /// Takes a complete slice. Slices come in order.
    pub(crate) fn take(&mut self, slice: usize, pieces: Vec<Piece>) {
        self.ready.push(Job::Encode(slice, pieces, self.grid));
    }

    /// Jobs that can run now; pass their results to [`Pipeline::done`] in this order.
    pub(crate) fn take_jobs(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.ready)
    }

    /// Takes the result of a job.
    pub(crate) fn done(&mut self, done: Done) {
        match done {
            Done::Encoded(slice, encoded) => self.encoded(slice, encoded),
            Done::United(group, texts) => self.united(group, texts),
            Done::Settled(group, shard, settled) => self.settled(group, *shard, settled),
            Done::Assembled(None) => {}
            Done::Assembled(Some(block)) => {
                if self.error.is_none() {
                    self.ready.extend(self.writer.append(block).map(Job::Write));
                }
            }
            Done::Written(Ok(bytes)) => self.writer.wrote(bytes),
            Done::Written(Err(error)) => self.error = self.error.take().or(Some(error)),
        }
    }

    /// The slices of a group.
    fn slices_of(&self, group: usize) -> std::ops::Range<usize> {
        let begin = group.saturating_mul(GROUP);
        begin..begin.saturating_add(GROUP).min(self.slices.len())
    }

    fn encoded(&mut self, slice: usize, mut encoded: Encoded) {
        let number = slice / GROUP;
        let slices = self.slices_of(number).len();
        if encoded.losses > 0 {
            self.writer.lose(self.slices.begin(slice), encoded.losses);
        }
        let group = self.groups.entry(number).or_default();
        encoded.texts.shrink_to_fit();
        group.encoded.push(encoded);
        if group.encoded.len() == slices {
            let texts = group.encoded.iter_mut();
            let texts = texts
                .map(|encoded| std::mem::take(&mut encoded.texts))
                .collect();
            self.ready.push(Job::Unite(number, texts));
        }
    }

    fn united(&mut self, number: usize, texts: GroupTexts) {
        let in_file = self.writer.texts();
        let numbers = texts
            .texts
            .iter()
            .map(|text| self.writer.text(text))
            .collect();
        if let Some(group) = self.groups.get_mut(&number) {
            group.texts = Some(texts.numbered(numbers, in_file));
        }
        self.settle_next();
    }

    /// Starts to settle the next group, if it is encoded and the previous group is settled.
    fn settle_next(&mut self) {
        let is_free = self.settling.shards.0.len() == SHARDS;
        let until = self
            .slices
            .end(self.slices_of(self.next).end.saturating_sub(1));
        let Some(group) = self.groups.get_mut(&self.next).filter(|_| is_free) else {
            return;
        };
        let Some(texts) = group.texts.take() else {
            return;
        };
        let order = Arc::new(Order {
            texts,
            snapshots: self.settling.snapshots_of(&group.encoded),
            coarse_snapshots: self.settling.coarse_snapshots(until),
            until,
        });
        group.order = Some(order.clone());
        for (at, shard) in std::mem::take(&mut self.settling.shards.0)
            .into_iter()
            .enumerate()
        {
            let parts = group.encoded.iter_mut().map(|encoded| {
                let part = encoded.parts.get_mut(at);
                part.map(std::mem::take).unwrap_or_default()
            });
            let parts = parts.collect();
            self.ready.push(Job::Settle(
                self.next,
                Box::new(shard),
                parts,
                order.clone(),
            ));
        }
    }

    fn settled(&mut self, number: usize, shard: Shard, settled: Settled) {
        self.settling.shards.0.push(shard);
        let Some(group) = self.groups.get_mut(&number) else {
            return;
        };
        group.settled.push(settled);
        if group.settled.len() < SHARDS {
            return;
        }
        if let Some(group) = self.groups.remove(&number) {
            self.assemble(number, group);
        }
        self.next = number + 1;
        self.settle_next();
    }

    /// Creates the jobs that assemble the blocks of a group.
    fn assemble(&mut self, number: usize, group: Group) {
        let slices = self.slices_of(number);
        let Group {
            encoded,
            order,
            settled,
            ..
        } = group;
        let Some(order) = order else { return };
        let mut of_shards: Vec<_> = Vec::with_capacity(settled.len());
        let mut coarse = Vec::with_capacity(settled.len());
        for settled in settled {
            of_shards.push(settled.slices.into_iter());
            coarse.push(settled.coarse);
        }
        for ((slice, encoded), texts) in slices.zip(&encoded).zip(&order.texts) {
            let mut weight = Weight::default();
            let parts = of_shards.iter_mut().filter_map(Iterator::next);
            let parts = parts.map(|part| {
                weight.attributes += part.attributes;
                weight.bytes += part.bytes;
                (part.snapshot, part.runs)
            });
            let (snapshots, runs): (Vec<_>, Vec<_>) = parts.unzip();
            let Some(place) = self.place(slice, encoded.extent) else {
                continue;
            };
            self.settling.fine_snapshots.learn(weight);
            self.ready.push(Job::Assemble(Box::new(Assembly {
                place,
                fine: Some((texts.clone(), weight)),
                snapshots: snapshots.into_iter().collect(),
                runs,
            })));
        }
        let coarse = self.settling.coarse(coarse.into_iter());
        let coarse = coarse
            .into_iter()
            .map(|block| Job::Assemble(Box::new(block)));
        self.ready.extend(coarse);
    }

    /// The span of a slice, given the times of its first and last change; `None` without changes.
    /// The span of the first slice begins with the first change.
    fn place(&self, slice: usize, extent: Option<(i64, i64)>) -> Option<BlockSpan> {
        let (first, latest) = extent?;
        let begin = match self.slices.begin(slice) {
            i64::MIN => first,
            begin => begin,
        };
        Some(BlockSpan {
            level: 0,
            grid: 1,
            begin: begin.min(first),
            end: self
                .slices
                .end(slice)
                .min(latest.saturating_add(1))
                .max(begin),
        })
    }

    /// Completes the file. Returns its length.
    pub(crate) fn finish(
        self,
        meta: Meta,
        checkpoints: Vec<Checkpoint>,
    ) -> Result<u64, HistoryError> {
        match self.error {
            Some(error) => Err(self.writer.failed(error)),
            None => self.writer.finish(meta, checkpoints),
        }
    }
}
