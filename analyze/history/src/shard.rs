//! A shard of attributes, with their values after the slices that were settled.
//!
//! The shard resolves the state that was unknown when a slice was encoded, the values before it:
//! changes without effect are dropped, initial wake-ups are resolved, and sums get their base.
//! Attributes are divided into shards by their numbers, so that all shards are settled in parallel.

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

/// Runs of a block, each with the code at the start of the block.
pub(crate) type Runs = Vec<(Attribute, Run, u64)>;

/// Values at the start of a block, in the order of attributes.
pub(crate) type Snapshot = Vec<(Attribute, u64)>;

/// A subset of the attributes.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    /// Values after all slices so far, without nulls.
    pub(crate) values: ByAttribute<u64>,
    levels: Levels,
}

/// The common input of all shards for a group of slices.
#[derive(Debug)]
pub(crate) struct Order {
    /// By slice.
    pub(crate) texts: Vec<SliceTexts>,
    /// By slice: whether its block has a snapshot.
    pub(crate) snapshots: Vec<bool>,
    /// By level, from 1 on: whether the first block that is completed now has a snapshot.
    pub(crate) coarse_snapshots: Vec<bool>,
    /// End of the last slice of the group.
    pub(crate) until: i64,
}

/// A shard's part of a group of slices.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// By slice.
    pub(crate) slices: Vec<SettledSlice>,
    pub(crate) coarse: CoarseParts,
}

/// A shard's part of a slice.
#[derive(Debug, Default)]
pub(crate) struct SettledSlice {
    /// Number of attributes with a value at the start of the slice.
    pub(crate) attributes: usize,
    /// Approximate size of the runs, in bytes.
    pub(crate) bytes: u64,
    /// Values at the start of the slice, if the block has a snapshot.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) runs: Runs,
}

/// A shard's part of the coarse blocks that are completed.
#[derive(Debug, Default)]
pub(crate) struct CoarseParts {
    pub(crate) blocks: Vec<Coarse>,
    /// By level, from 1 on: values before the first of these blocks, if it has a snapshot.
    pub(crate) snapshots: Vec<Option<Snapshot>>,
}

impl Shard {
    /// Settles the shard's part of a group of slices.
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

    /// Takes the coarse blocks that are complete, if no change before `until` follows.
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
    /// The shards before the first slice.
    pub(crate) fn new(levels: &Levels) -> Shards {
        let shard = Shard {
            values: ByAttribute::default(),
            levels: levels.clone(),
        };
        Shards(vec![shard; SHARDS])
    }

    /// Sets the values of attributes after the kept part of a history.
    pub(crate) fn take_over(&mut self, values: &BTreeMap<Attribute, u64>) {
        for (&attribute, &code) in values {
            if let Some(shard) = self.0.get_mut(shard_of(attribute.bits())) {
                shard.values.insert(attribute, code);
            }
        }
    }

    /// Sets the values of attributes after the kept blocks of a level.
    pub(crate) fn go_on(&mut self, level: u8, values: BTreeMap<Attribute, u64>) {
        for (attribute, code) in values {
            if let Some(shard) = self.0.get_mut(shard_of(attribute.bits())) {
                shard.levels.know(level, attribute, code);
            }
        }
    }

    /// Adds changes of an attribute to one level only.
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

    /// Number of attributes with a value after the last block of a level.
    pub(crate) fn count_of_level(&self, level: u8) -> usize {
        self.0.iter().map(|shard| shard.levels.count(level)).sum()
    }
}

/// The meaning of the codes in a run, given the value before its slice.
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

    /// Converts a code of the slice to a code of the file.
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

    /// Resolves the first change of a run; drops it if it has no effect.
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
