//! Sums of finished reactions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_engine::parallel;
use tracebraid_follow::{CpuKey, Table, ThreadKey};
use tracebraid_statistics::{Distribution, Top};

use crate::levels::reactions::ReactionRules;
use crate::levels::reactions::reaction::{PARTS, Reaction, ReactionSource};

/// A finished reaction: the longest come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Reacted {
    pub(super) total: u64,
    pub(super) end: i64,
    pub(super) cpu: u32,
    pub(super) reaction: Reaction,
}

/// Sums of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ThreadReactions {
    pub(super) all: Distribution,
    pub(super) longest: Top<Reacted>,
    by_source: Vec<(ReactionSource, SourceParts)>,
}

/// Durations of each of [`PARTS`], and of whole reactions.
type SourceParts = [Distribution; PARTS.len() + 1];

/// Sums of all threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ReactionSums(Table<ThreadReactions>);

impl ThreadReactions {
    fn of_source(&mut self, source: ReactionSource) -> &mut SourceParts {
        let by_source = &mut self.by_source;
        let at = by_source.iter().position(|(of, _)| *of == source);
        let at = at.unwrap_or_else(|| {
            by_source.push((source, SourceParts::default()));
            by_source.len() - 1
        });
        // The entry exists, or was added.
        &mut by_source[at].1
    }

    fn merge(&mut self, later: ThreadReactions, longest: usize) {
        self.all.merge(&later.all);
        self.longest.merge(later.longest, longest, |_| ());
        for (source, parts) in &later.by_source {
            merge_parts(self.of_source(*source), parts);
        }
    }
}

fn merge_parts(sums: &mut SourceParts, parts: &SourceParts) {
    let pairs = sums.iter_mut().zip(parts);
    pairs.for_each(|(sum, part)| sum.merge(part));
}

impl ReactionSums {
    /// Adds a reaction of a thread that an act at `end` on this CPU has finished, if it is
    /// selected.
    pub(super) fn add(
        &mut self,
        rules: &ReactionRules,
        key: ThreadKey,
        (cpu, end): (CpuKey, i64),
        reaction: Reaction,
    ) {
        if !rules.counts(end, cpu.cpu) {
            return;
        }
        let total = end.abs_diff(reaction.begin);
        let sums = self.0.get(key);
        sums.all.add(total);
        let reacted = Reacted {
            total,
            end,
            cpu: cpu.cpu,
            reaction,
        };
        sums.longest.add(reacted, rules.longest());
        let parts = reaction.parts(end).into_iter().chain([total]);
        let sums = sums.of_source(reaction.source).iter_mut();
        sums.zip(parts).for_each(|(sum, part)| sum.add(part));
    }

    pub(super) fn merge(&mut self, later: ReactionSums, longest: usize) {
        let add = |own: &mut ThreadReactions, other| own.merge(other, longest);
        self.0.merge_by(later.0, add);
    }

    pub(super) fn threads(&self) -> impl Iterator<Item = (ThreadKey, &ThreadReactions)> {
        self.0.entries()
    }
}

/// Distributions of several threads by source.
pub(super) fn by_source<'a>(
    threads: &'a [&'a ThreadReactions],
) -> BTreeMap<ReactionSource, SourceParts> {
    let sources = |thread: &'a &'a ThreadReactions| {
        let sources = thread.by_source.iter();
        sources.map(|(source, parts)| (*source, parts))
    };
    parallel::sums_by_key(threads, sources, merge_parts)
}
