//! Following each CPU alone.
//!
//! Most events on a CPU concern only the thread that runs there, from one switch to the next: a
//! *stretch*. An analysis that follows each CPU alone folds stretches directly, without looking at
//! other CPUs. A fact that other CPUs need, or that a stretch needs from other CPUs, becomes an
//! item. The items of all CPUs are played in time order, once all chunks up to that time are
//! merged.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::by_cpu::ByCpu;
use crate::sources::CpuKey;

/// A CPU in a chunk: its current stretch `T`, and the steps `S` before the chunk's first boundary.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lane<T, S> {
    /// Steps before the first event that shows the running thread, which only earlier chunks know.
    head: Vec<(i64, S)>,
    /// Time of the first boundary, and the stretch since the last boundary.
    now: Option<(i64, T)>,
}

impl<T, S> Default for Lane<T, S> {
    fn default() -> Self {
        Lane {
            head: Vec::new(),
            now: None,
        }
    }
}

impl<T, S> Lane<T, S> {
    /// The current stretch, if it began in the chunk.
    #[inline(always)]
    pub fn now(&mut self) -> Option<&mut T> {
        self.now.as_mut().map(|(_, stretch)| stretch)
    }

    /// Begins another stretch; returns the previous stretch if it began in the chunk.
    #[inline(always)]
    pub fn goes_over(&mut self, time: i64, next: T) -> Option<T> {
        match &mut self.now {
            Some((_, stretch)) => Some(std::mem::replace(stretch, next)),
            None => {
                self.now = Some((time, next));
                None
            }
        }
    }

    /// Keeps a step of the stretch that only earlier chunks know, until chunks are joined.
    pub fn wait(&mut self, time: i64, step: S) {
        self.head.push((time, step));
    }

    /// The current stretch, if it is known. In the first chunk, no earlier stretch exists, so a
    /// default stretch begins with the first step.
    #[inline(always)]
    pub fn now_or_first(&mut self, is_first: bool, time: i64) -> Option<&mut T>
    where
        T: Default,
    {
        if is_first && self.now.is_none() {
            self.now = Some((time, T::default()));
        }
        self.now()
    }

    /// The waiting steps, and the current stretch, mutable.
    pub fn parts(&mut self) -> (impl Iterator<Item = &mut S>, Option<&mut T>) {
        let steps = self.head.iter_mut().map(|(_, step)| step);
        (steps, self.now.as_mut().map(|(_, stretch)| stretch))
    }

    /// The stretch since the last boundary, if there was a boundary.
    pub fn into_now(self) -> Option<T> {
        self.now.map(|(_, stretch)| stretch)
    }
}

impl<T, S> ByCpu<Lane<T, S>> {
    /// Joins the lanes of a chunk to the earlier chunks. Applies, on each CPU, the steps before the
    /// first boundary, and then begins the stretch since the last boundary, at the time of the
    /// first boundary.
    pub fn join<P>(
        self,
        earlier: &mut P,
        step: impl Fn(&mut P, CpuKey, i64, S),
        begin: impl Fn(&mut P, CpuKey, i64, T),
    ) {
        for (cpu, Lane { head, now }) in self {
            head.into_iter()
                .for_each(|(time, done)| step(earlier, cpu, time, done));
            if let Some((time, stretch)) = now {
                begin(earlier, cpu, time, stretch);
            }
        }
    }
}

/// Items that wait to be played in time order over all CPUs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Items<I> {
    lanes: ByCpu<Queue<I>>,
}

/// Items per block: some ten KiB.
const BLOCK: usize = 512;

/// The waiting items of a CPU, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Queue<I> {
    /// Nonempty blocks: queues are joined, and grow, without copying items.
    blocks: VecDeque<VecDeque<(i64, I)>>,
    /// The latest time so far: if a CPU's packets go back in time, items are held at this time.
    latest: i64,
}

impl<I> Default for Queue<I> {
    fn default() -> Self {
        Queue {
            blocks: VecDeque::new(),
            latest: i64::MIN,
        }
    }
}

impl<I> Queue<I> {
    #[inline]
    fn push(&mut self, time: i64, item: I) {
        self.latest = self.latest.max(time);
        let item = (self.latest, item);
        match self.blocks.back_mut() {
            Some(block) if block.len() < BLOCK => block.push_back(item),
            // A queue with a full block is expected to fill the next one.
            full => {
                let mut block = VecDeque::with_capacity(if full.is_some() { BLOCK } else { 1 });
                block.push_back(item);
                self.blocks.push_back(block);
            }
        }
    }

    fn append(&mut self, mut later: Queue<I>) {
        if later.first().is_some_and(|first| first < self.latest) {
            let items = later.blocks.into_iter().flatten();
            items.for_each(|(time, item)| self.push(time, item));
            return;
        }
        self.latest = self.latest.max(later.latest);
        self.blocks.append(&mut later.blocks);
    }

    /// Time of the first item.
    #[inline]
    fn first(&self) -> Option<i64> {
        Some(self.blocks.front()?.front()?.0)
    }

    #[inline]
    fn pop(&mut self) -> Option<I> {
        let block = self.blocks.front_mut()?;
        let (_, item) = block.pop_front()?;
        if block.is_empty() {
            self.blocks.pop_front();
        }
        Some(item)
    }

    /// Takes out the items before `until`. Whole blocks are moved; at most one block is split.
    fn cut(&mut self, until: i64) -> Queue<I> {
        let is_before = |item: &(i64, I)| item.0 < until;
        let whole = self
            .blocks
            .partition_point(|block| block.back().is_some_and(is_before));
        let later = self.blocks.split_off(whole);
        let mut blocks = std::mem::replace(&mut self.blocks, later);
        if let Some(split) = self.blocks.front_mut() {
            let later = split.split_off(split.partition_point(is_before));
            let earlier = std::mem::replace(split, later);
            if !earlier.is_empty() {
                blocks.push_back(earlier);
            }
        }
        let latest = self.latest;
        Queue { blocks, latest }
    }

    /// Time of the next item, if it is before `until`.
    fn due(&self, until: Option<i64>) -> Option<i64> {
        let time = self.first()?;
        until.is_none_or(|until| time < until).then_some(time)
    }
}

impl<I> Default for Items<I> {
    fn default() -> Self {
        Items {
            lanes: ByCpu::default(),
        }
    }
}

impl<I> Items<I> {
    /// Appends an item of a CPU.
    #[inline]
    pub fn push(&mut self, cpu: CpuKey, time: i64, item: I) {
        self.lanes.get(cpu).push(time, item);
    }

    /// The waiting items of each CPU, in order.
    pub fn by_cpu(&self) -> impl Iterator<Item = impl Iterator<Item = &I>> {
        let lanes = self.lanes.iter();
        lanes.map(|(_, lane)| lane.blocks.iter().flatten().map(|(_, item)| item))
    }

    /// Time of the first waiting item.
    pub fn first(&self) -> Option<i64> {
        self.lanes.iter().filter_map(|(_, lane)| lane.first()).min()
    }

    /// The latest time of any item so far, waiting or played.
    pub fn latest(&self) -> i64 {
        let latest = self.lanes.iter().map(|(_, lane)| lane.latest);
        latest.max().unwrap_or(i64::MIN)
    }

    /// Holds later items at the times at which `all`, of which this list is a part, holds its
    /// items.
    pub fn hold<J>(&mut self, all: &Items<J>) {
        for (cpu, lane) in all.lanes.iter() {
            let latest = &mut self.lanes.get(*cpu).latest;
            *latest = lane.latest.max(*latest);
        }
    }

    /// The time for the next item of a CPU: `time`, or the time of the CPU's latest item if that is
    /// later.
    #[inline]
    pub fn held(&mut self, cpu: CpuKey, time: i64) -> i64 {
        self.lanes.get(cpu).latest.max(time)
    }

    /// All waiting items, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut I> {
        let lanes = self.lanes.iter_mut();
        lanes.flat_map(|(_, lane)| lane.blocks.iter_mut().flatten().map(|(_, item)| item))
    }

    /// Appends the later items of each CPU.
    pub fn append(&mut self, later: Items<I>) {
        for (cpu, items) in later.lanes {
            self.lanes.get(cpu).append(items);
        }
    }

    /// True if no item waits.
    pub fn is_empty(&self) -> bool {
        self.lanes.iter().all(|(_, lane)| lane.blocks.is_empty())
    }

    /// Takes out the items before `until` without visiting each: only a few hundred on each CPU are
    /// copied.
    #[must_use]
    pub fn cut(&mut self, until: i64) -> Items<I> {
        let lanes = self.lanes.iter_mut();
        let lanes = lanes.map(|(cpu, lane)| (cpu, lane.cut(until))).collect();
        Items { lanes }
    }

    /// Passes the items before `until`, or all items, to `to` in time order; at equal times by CPU,
    /// and within a CPU in order.
    pub fn play(&mut self, until: Option<i64>, mut to: impl FnMut(CpuKey, i64, I)) {
        let lanes = self.lanes.iter_mut();
        let heads = lanes.filter_map(|(cpu, lane)| Some(((lane.due(until)?, cpu), lane)));
        let mut heads: Vec<_> = heads.collect();
        // Sorted so that the first head is at the end.
        heads.sort_unstable_by_key(|head| std::cmp::Reverse(head.0));
        while let Some(((mut time, cpu), lane)) = heads.pop() {
            let bound = heads.last().map(|next| next.0);
            let next = loop {
                if bound.is_some_and(|bound| bound < (time, cpu)) {
                    break Some(time);
                }
                if let Some(item) = lane.pop() {
                    to(cpu, time, item);
                }
                match lane.due(until) {
                    Some(next) => time = next,
                    None => break None,
                }
            };
            // Few CPUs are busy at a time, so the position is seldom far from the end.
            if let Some(time) = next {
                let place = heads.iter().rposition(|other| other.0 > (time, cpu));
                heads.insert(place.map_or(0, |place| place + 1), ((time, cpu), lane));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn items_are_played_in_the_order_of_time(
            gaps in prop::collection::vec((0u32..4, 0i64..3), 0..60),
            cuts in prop::collection::vec(0i64..40, 0..4),
        ) {
            let key = |cpu| CpuKey { trace: 0, cpu };
            let mut times = [0; 4];
            let mut items = Items::default();
            let mut expected = Vec::new();
            for (number, (cpu, gap)) in gaps.into_iter().enumerate() {
                times[cpu as usize] += gap;
                items.push(key(cpu), times[cpu as usize], number);
                expected.push((times[cpu as usize], key(cpu), number));
            }
            expected.sort_unstable();
            let mut found = Vec::new();
            let mut cuts = cuts;
            cuts.sort_unstable();
            for until in cuts.into_iter().map(Some).chain([None]) {
                let from = found.len();
                items.play(until, |cpu, time, item| found.push((time, cpu, item)));
                let due = |played: &(i64, CpuKey, usize)| until.is_none_or(|until| played.0 < until);
                prop_assert!(found[from..].iter().all(due));
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn cut_items_are_those_that_would_have_been_played(
            gaps in prop::collection::vec((0u32..3, 0i64..2), 0..3 * BLOCK),
            cuts in prop::collection::vec(0i64..700, 0..4),
        ) {
            let mut times = [0; 3];
            let mut items = Items::default();
            for (number, (cpu, gap)) in gaps.into_iter().enumerate() {
                times[cpu as usize] += gap;
                items.push(CpuKey { trace: 0, cpu }, times[cpu as usize], number);
            }
            let all = |mut items: Items<usize>, until| {
                let mut played = Vec::new();
                items.play(until, |cpu, time, item| played.push((time, cpu, item)));
                played
            };
            for until in cuts {
                let expected = all(items.clone(), Some(until));
                let cut = items.cut(until);
                prop_assert_eq!(cut.is_empty(), expected.is_empty());
                prop_assert_eq!(all(cut, None), expected);
                prop_assert_eq!(all(items.clone(), Some(until)), vec![]);
            }
        }

        #[test]
        fn pieces_are_held_as_the_whole(
            times in prop::collection::vec(0i64..20, 0..20),
            cut in 0usize..20,
            played in 0i64..20,
        ) {
            let key = CpuKey::default();
            let of = |times: &[i64]| {
                let mut items = Items::default();
                times.iter().for_each(|&time| items.push(key, time, ()));
                items
            };
            let mut expected = Vec::new();
            of(&times).play(None, |_, time, ()| expected.push(time));
            let (earlier, later) = times.split_at(cut.min(times.len()));
            let mut found = Vec::new();
            let mut items = of(earlier);
            items.play(Some(played), |_, time, ()| found.push(time));
            items.append(of(later));
            items.play(None, |_, time, ()| found.push(time));
            prop_assert_eq!(found, expected);
        }
    }
}
