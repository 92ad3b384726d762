//! A shard of attributes, and what they are as far as slices have been settled.
//!
//! What a slice could not know when it was encoded, the values before it, is known here: changes
//! that change nothing are left out, wake-ups that came first are settled, and sums get their
//! beginning. Attributes are divided into shards by their numbers, so that all shards are settled
//! beside each other.

use std::collections::BTreeMap;

use crate::attribute::{Attribute, Form};
use crate::block;
use crate::by_attribute::{ByAttribute, sorted};
use crate::encode::{Part, SHARDS, shard_of, woken};
use crate::levels::{Coarse, Levels};
use crate::piece::WAKE;
use crate::run::Run;
use crate::texts::SliceTexts;
use crate::varint::NULL;

/// Runs of a block, each with the code when the block begins.
pub(crate) type Runs = Vec<(Attribute, Run, u64)>;

/// Values when a block begins, in the order of attributes.
pub(crate) type Snapshot = Vec<(Attribute, u64)>;

/// Some of the attributes.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    /// After all slices so far, but null.
    pub(crate) values: ByAttribute<u64>,
    levels: Levels,
}

/// How a group of slices is settled.
#[derive(Debug)]
pub(crate) struct Order {
    /// By slice.
    pub(crate) texts: Vec<SliceTexts>,
    /// By slice: whether its block has a snapshot.
    pub(crate) snapshots: Vec<bool>,
    /// By level, from 1 on: whether the first block that is complete now has a snapshot.
    pub(crate) coarse_snapshots: Vec<bool>,
    /// When the last slice of the group ends.
    pub(crate) until: i64,
}

/// Its part of a group of slices.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// By slice.
    pub(crate) slices: Vec<SettledSlice>,
    pub(crate) coarse: CoarseParts,
}

/// Its part of a slice.
#[derive(Debug, Default)]
pub(crate) struct SettledSlice {
    /// How many attributes have a value when it begins.
    pub(crate) attributes: usize,
    /// Bytes that its runs take, about.
    pub(crate) bytes: u64,
    /// These, if the block has a snapshot.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) runs: Runs,
}

/// Its part of the coarse blocks that are complete.
#[derive(Debug, Default)]
pub(crate) struct CoarseParts {
    pub(crate) blocks: Vec<Coarse>,
    /// By level, from 1 on: what is known before the first of them, if that was asked for.
    pub(crate) snapshots: Vec<Option<Snapshot>>,
}

impl Shard {
    /// Settles its part of a group of slices.
    pub(crate) fn settle(&mut self, parts: Vec<Part>, order: &Order) -> Settled {
        let of_slices = parts.into_iter().zip(&order.texts).zip(&order.snapshots);
        let slices = of_slices.map(|((part, texts), wants_snapshot)| {
            let attributes = self.values.len();
            let snapshot = wants_snapshot.then(|| sorted(&self.values));
            let runs = self.settle_slice(part, texts);
            SettledSlice {
                attributes,
                bytes: runs.iter().map(|(_, run, _)| run.size()).sum(),
                snapshot,
                runs,
            }
        });
        Settled {
            slices: slices.collect(),
            coarse: self.complete(order.until, &order.coarse_snapshots),
        }
    }

    fn settle_slice(&mut self, part: Part, texts: &SliceTexts) -> Runs {
        let mut runs = Vec::with_capacity(part.runs.len());
        let mut begin = 0;
        for (attribute, run, end) in part.runs {
            let coarse = part.coarse.get(begin..end).unwrap_or_default();
            begin = end;
            let before = self.values.get(&attribute).copied().unwrap_or(NULL);
            let terms = Terms::new(attribute, before, texts);
            let coarse = coarse
                .iter()
                .map(|&(time, code)| (time, terms.global(code)));
            self.levels.add(attribute, coarse);
            let Some(run) = terms.settle(run) else {
                continue;
            };
            match terms.global(run.last) {
                NULL => self.values.remove(&attribute),
                last => self.values.insert(attribute, last),
            };
            runs.push((attribute, run, before));
        }
        runs
    }

    /// Takes out the coarse blocks to which nothing is added any longer, as nothing will change
    /// before a time.
    pub(crate) fn complete(&mut self, until: i64, snapshots: &[bool]) -> CoarseParts {
        let of_levels = (1..).zip(snapshots);
        let snapshots =
            of_levels.map(|(level, wanted)| wanted.then(|| self.levels.snapshot(level)));
        let mut parts = CoarseParts {
            snapshots: snapshots.collect(),
            blocks: Vec::new(),
        };
        self.levels
            .complete(until, |coarse| parts.blocks.push(coarse));
        parts
    }
}

/// All shards, while none is being settled.
#[derive(Clone, Debug)]
pub(crate) struct Shards(pub(crate) Vec<Shard>);

impl Shards {
    /// Nothing is known yet.
    pub(crate) fn new(levels: &Levels) -> Shards {
        let shard = Shard {
            values: ByAttribute::default(),
            levels: levels.clone(),
        };
        Shards(vec![shard; SHARDS])
    }

    /// What attributes are behind what a history holds.
    pub(crate) fn take_over(&mut self, values: &BTreeMap<Attribute, u64>) {
        for (&attribute, &code) in values {
            if let Some(shard) = self.0.get_mut(shard_of(attribute.bits())) {
                shard.values.insert(attribute, code);
            }
        }
    }

    /// What attributes are behind the blocks of a level that are there already.
    pub(crate) fn go_on(&mut self, level: u8, values: BTreeMap<Attribute, u64>) {
        for (attribute, code) in values {
            if let Some(shard) = self.0.get_mut(shard_of(attribute.bits())) {
                shard.levels.know(level, attribute, code);
            }
        }
    }

    /// Changes of an attribute that one level alone does not know yet.
    pub(crate) fn refill(
        &mut self,
        level: u8,
        attribute: Attribute,
        changes: impl Iterator<Item = (i64, u64)>,
    ) {
        if let Some(shard) = self.0.get_mut(shard_of(attribute.bits())) {
            shard.levels.refill(level, attribute, changes);
        }
    }

    /// How many attributes have a value behind the last block of a level.
    pub(crate) fn count_of_level(&self, level: u8) -> usize {
        self.0.iter().map(|shard| shard.levels.count(level)).sum()
    }
}

/// What codes of a run mean behind what came before its slice.
struct Terms<'t> {
    form: Form,
    before: u64,
    texts: &'t SliceTexts,
}

impl<'t> Terms<'t> {
    fn new(attribute: Attribute, before: u64, texts: &'t SliceTexts) -> Self {
        let form = attribute.kind().form();
        Terms {
            form,
            before,
            texts,
        }
    }

    /// The code in the file's terms.
    fn global(&self, code: u64) -> u64 {
        if let Some(text) = self.form.text_of(code) {
            let number = self.texts.number(text as usize - 1);
            return self
                .form
                .code_of_text(number.map_or(NULL, |number| number + 1));
        }
        match self.form {
            Form::Counter => block::sum_of(self.before, code),
            _ if code == WAKE => woken(self.before).unwrap_or(self.before),
            _ => code,
        }
    }

    /// The run with its first change settled: left out if it changes nothing.
    fn settle(&self, mut run: Run) -> Option<Run> {
        while self.global(run.first.1) == self.before {
            run = run.without_first()?;
        }
        if run.first.1 == WAKE {
            run = run.with_first_code(self.global(WAKE));
        }
        Some(run)
    }
}
