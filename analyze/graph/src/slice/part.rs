//! Intervals of time: taken out, played on any thread, and added to the graph in their order.

use tracebraid_follow::Items;
use tracebraid_threads::ThreadDirectory;

use crate::graph_machine::GraphMachine;
use crate::graph_step::GraphItem;
use crate::rules::{GraphPartial, GraphRules};
#[cfg(test)]
use crate::slice::GraphStep;
use crate::slice::PlayedSlice;

/// The items of an interval of time.
#[derive(Debug)]
pub struct CutSlice {
    items: Items<GraphItem>,
    /// The start of the interval, in nanoseconds from the origin, and the facts known about
    /// threads; `None` if the interval can be played only on the graph.
    before: Option<(i64, ThreadDirectory)>,
    /// Composed slices, freed by the thread that plays this slice.
    retired: RetiredSlices,
}

/// Composed slices. Freeing them takes long, so the composing thread leaves it to another thread.
#[derive(Debug, Default)]
pub struct RetiredSlices(Vec<PlayedPart>);

impl RetiredSlices {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Clone for RetiredSlices {
    /// Returns an empty list: only the original is freed.
    fn clone(&self) -> Self {
        RetiredSlices::default()
    }
}

/// An interval of time, played as far as possible without the state that precedes it.
#[derive(Debug)]
pub struct PlayedPart(Played);

#[derive(Debug)]
enum Played {
    Slice(Box<PlayedSlice>),
    Items(Items<GraphItem>),
}

impl CutSlice {
    /// Time of the first item, in nanoseconds from the origin.
    pub fn first(&self) -> Option<i64> {
        self.items.first()
    }

    /// Splits off the items before a time (nanoseconds from the origin), if any.
    pub fn split(&mut self, until: i64) -> Option<CutSlice> {
        let items = self.items.cut(until);
        let before = self.before.clone();
        if let Some((begin, _)) = &mut self.before {
            *begin = until;
        }
        (!items.is_empty()).then_some(CutSlice {
            items,
            before,
            retired: RetiredSlices::default(),
        })
    }

    /// Keeps the items as they are. Composing then plays them, which is cheaper with only one
    /// thread.
    pub fn unplayed(self) -> PlayedPart {
        PlayedPart(Played::Items(self.items))
    }

    /// Plays the items as far as possible without the state that precedes them.
    pub fn play(self, rules: &GraphRules) -> PlayedPart {
        drop(self.retired);
        PlayedPart(match self.before {
            Some(before) => Played::Slice(Box::new(PlayedSlice::new(rules, self.items, before))),
            None => Played::Items(self.items),
        })
    }
}

impl PlayedPart {
    /// The steps that composing plays.
    #[cfg(test)]
    pub(super) fn steps(&self) -> Option<&[GraphStep]> {
        match &self.0 {
            Played::Slice(slice) => Some(slice.steps()),
            Played::Items(_) => None,
        }
    }

    /// Adds the interval to the graph, and passes the times of switches, wake-ups and interrupts to
    /// `happens`. Returns an upper bound of the number of new stretches.
    pub(crate) fn compose(
        self,
        rules: &GraphRules,
        machine: &mut GraphMachine,
        mut happens: impl FnMut(i64),
    ) -> usize {
        match self.0 {
            Played::Slice(mut slice) => {
                slice.happened().iter().for_each(|time| happens(*time));
                let stretches = slice.compose(rules, machine);
                machine.retired.0.push(PlayedPart(Played::Slice(slice)));
                stretches
            }
            Played::Items(mut items) => {
                let mut count = 0;
                machine.catch_up(&rules.classes);
                rules.play(&mut items, machine, |time| {
                    count += 1;
                    happens(time);
                });
                2 * count
            }
        }
    }
}

impl GraphRules {
    /// Splits off the items before a time (nanoseconds from the origin), if any.
    pub fn cut(&self, partial: &mut GraphPartial, until: i64) -> Option<CutSlice> {
        let begin = partial.begin.replace(until).unwrap_or(i64::MIN);
        let items = partial.items.cut(until);
        let directory = partial.directory.go_on(&mut partial.news, until);
        // Slices derive the positions of threads from switches, and do not follow io_uring
        // requests.
        let is_plain =
            !self.recorded.has_all_switches() || partial.rings.is_some_and(|first| first < until);
        (!items.is_empty()).then_some(CutSlice {
            items,
            before: (!is_plain).then_some((begin, directory)),
            retired: std::mem::take(&mut partial.machine.retired),
        })
    }
}
