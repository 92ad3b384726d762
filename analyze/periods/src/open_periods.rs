//! The open periods, and the effect of each event record in the order of time.
//!
//! An event record first ends periods, the innermost first; periods still open within one that ends
//! are cut. Then it begins periods, in the order of the definitions; for one definition, in the
//! order in which the enclosing periods began.

use serde::{Deserialize, Serialize};
use tracebraid_language::Datum;

use crate::index::{Entry, Index};
use crate::plan::{ClassPlan, PeriodBound, Plan};
use crate::running::{RUNNER, Runners};
use crate::sums::{Closed, Sums};
use crate::tree::{Values, key};
use crate::wanted::Wanted;
use tracebraid_follow::Candidate;

/// The open periods.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct OpenPeriods {
    /// Slots, of which those in `free` are unused.
    open: Vec<Open>,
    free: Vec<u32>,
    /// By definition.
    periods: Vec<OfPeriod>,
    /// Number of periods that began.
    begun: u64,
    /// The starts, if they are requested and until they are taken.
    pub(super) begins: Vec<Begun>,
    runners: Runners,
    #[serde(skip)]
    scratch: (Vec<Hit>, Vec<Entry>),
}

/// Open periods of one definition.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct OfPeriod {
    /// Slots, in no order.
    places: Vec<u32>,
    /// By the values that event records which may end the periods have.
    ends: Index,
    /// By the values that event records which may begin periods within them have.
    children: Vec<Index>,
}

/// Origin of an event record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spot {
    /// Index of its stream among the streams of all traces.
    pub(super) stream: u32,
    /// CPU, if known.
    pub(super) cpu: Option<u32>,
    /// Event class, as an index in the plan.
    pub(super) class: u32,
}

impl Spot {
    fn of(candidate: &Candidate) -> Spot {
        Spot {
            stream: candidate.stream,
            cpu: candidate.cpu,
            class: candidate.class,
        }
    }
}

/// A period that began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) period: usize,
    pub(super) time: i64,
    pub(super) spot: Spot,
    pub(super) captures: Vec<Datum>,
}

/// A slot of an open period.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Open {
    pub(super) period: usize,
    /// From 1 in the order of the starts; 0 for a free slot.
    pub(super) number: u64,
    pub(super) begin: i64,
    /// Event record that began the period.
    pub(super) at_begin: Spot,
    /// Slot of the enclosing period.
    parent: Option<u32>,
    /// Values for later conditions.
    keep: Vec<Datum>,
    pub(super) captures: Vec<Datum>,
    /// Slots of the periods within it, in no order.
    children: Vec<u32>,
    /// Position among the slots of its definition, and among the children of its parent.
    at: [u32; 2],
    /// Number and total duration of the periods that ended within it, by definition.
    pub(super) within: Vec<(u64, u64)>,
}

/// A period that an event record ends: depth (the deepest first), number, slot, and index of the
/// matching bound.
type Hit = (std::cmp::Reverse<usize>, u64, u32, usize);

/// An event record, with the plan that it is matched against.
struct Turn<'a> {
    plan: &'a Plan,
    wanted: &'a Wanted,
    class: &'a ClassPlan,
    candidate: &'a Candidate,
    values: &'a [Datum],
}

impl<'a> Turn<'a> {
    fn alone(&self) -> Values<'a> {
        Values {
            bits: self.candidate.bits,
            event: self.values,
            ..Values::default()
        }
    }

    fn key(&self, step: &PeriodBound) -> Option<u64> {
        let alone = self.alone();
        key(step.key.iter().map(|&place| alone.at(place)))
    }
}

impl OpenPeriods {
    /// Processes the next event record.
    pub(super) fn see(
        &mut self,
        plan: &Plan,
        wanted: &Wanted,
        (candidate, values): (&Candidate, &[Datum]),
        sums: &mut Sums,
    ) {
        let trace = plan.trace(candidate.stream);
        if candidate.class == RUNNER {
            return self.runners.take(trace, candidate, values);
        }
        let Some(class) = plan.classes.get(candidate.class as usize) else {
            return;
        };
        let mut told = Vec::new();
        if !class.runs.is_empty() {
            told.extend_from_slice(values);
        }
        for &place in &class.runs {
            if let Some(value) = told.get_mut(place) {
                *value = self.runners.at(trace, candidate);
            }
        }
        let values = if told.is_empty() { values } else { &told };
        if self.periods.len() < plan.periods.len() {
            let new = |period: &crate::plan::PeriodPlan| OfPeriod {
                children: vec![Index::default(); period.child_keys.len()],
                ..OfPeriod::default()
            };
            self.periods = plan.periods.iter().map(new).collect();
        }
        let turn = Turn {
            plan,
            wanted,
            class,
            candidate,
            values,
        };
        self.end_some(&turn, sums);
        for step in &class.begins {
            self.begin_some(&turn, step, sums);
        }
    }

    /// Number of slots.
    pub(super) fn room(&self) -> usize {
        self.open.len()
    }

    /// Start times of the open periods.
    pub(super) fn open_begins(&self) -> impl Iterator<Item = i64> {
        let open = self.open.iter().filter(|open| open.number > 0);
        open.map(|open| open.begin)
    }

    /// Counts all open periods as unfinished.
    pub(super) fn finish(&mut self, sums: &mut Sums) {
        for open in self.open.iter().filter(|open| open.number > 0) {
            sums.unfinished(open.period);
        }
    }

    /// The open periods that a bound may apply to. `index` selects the index of ends or of children
    /// to search by `key`; `None` returns every open period of the definition.
    fn candidates(
        &mut self,
        period: usize,
        index: Option<Option<usize>>,
        key: Option<u64>,
        to: &mut Vec<Entry>,
    ) {
        let Some(of_period) = self.periods.get_mut(period) else {
            return;
        };
        let open = &self.open;
        let is_open = |entry: Entry| is_open(open, entry);
        let index = match index {
            Some(Some(child)) => of_period.children.get_mut(child),
            Some(None) => Some(&mut of_period.ends),
            None => {
                let number = |place: u32| open.get(place as usize).map_or(0, |open| open.number);
                to.extend(of_period.places.iter().map(|&place| Entry {
                    place,
                    number: number(place),
                }));
                return;
            }
        };
        if let Some((index, key)) = index.zip(key) {
            to.extend_from_slice(index.find(key, is_open));
        }
    }

    fn end_some(&mut self, turn: &Turn<'_>, sums: &mut Sums) {
        let (mut hits, mut entries) = std::mem::take(&mut self.scratch);
        hits.clear();
        for (number, step) in turn.class.ends.iter().enumerate() {
            if step.tree.decided(turn.candidate.bits) == Some(false) {
                continue;
            }
            let Some(plan) = turn.plan.periods.get(step.period) else {
                continue;
            };
            entries.clear();
            let index = (!plan.end_key.is_empty()).then_some(None);
            self.candidates(step.period, index, turn.key(step), &mut entries);
            for entry in &entries {
                if step.tree.holds(&self.values(turn, entry.place)) {
                    hits.push((
                        std::cmp::Reverse(plan.depth),
                        entry.number,
                        entry.place,
                        number,
                    ));
                }
            }
        }
        hits.sort_unstable();
        for &(_, _, place, number) in &hits {
            if let Some(step) = turn.class.ends.get(number) {
                self.end(turn, place, step, sums);
            }
        }
        self.scratch = (hits, entries);
    }

    /// The values that conditions on an open period refer to.
    fn values<'v>(&'v self, turn: &Turn<'v>, place: u32) -> Values<'v> {
        let kept = |place: Option<u32>| {
            let open = place.and_then(|place| self.open.get(place as usize));
            open.map_or(&[][..], |open| &open.keep)
        };
        let parent = self.open.get(place as usize).and_then(|open| open.parent);
        Values {
            begin: kept(Some(place)),
            parent: kept(parent),
            ..turn.alone()
        }
    }

    fn end(&mut self, turn: &Turn<'_>, place: u32, step: &PeriodBound, sums: &mut Sums) {
        let mut end_captures = Vec::new();
        self.values(turn, place)
            .copy(&step.captures, &mut end_captures);
        self.cut_children(turn.plan, place, sums);
        let Some(mut open) = self.open.get_mut(place as usize).map(std::mem::take) else {
            return;
        };
        let around = self.around(open.parent);
        let closed = Closed {
            open: &open,
            around: &around,
            end: turn.candidate.time,
            at_end: Spot::of(turn.candidate),
            end_captures,
        };
        let duration = closed.duration();
        let counts = sums.add(turn.plan, turn.wanted, closed);
        drop(around);
        if let Some(parent) = open.parent.filter(|_| counts) {
            self.tell_parent(turn.plan, parent, &open, duration);
        }
        self.forget(turn.plan, place, &mut open);
    }

    /// The enclosing periods, innermost first.
    fn around(&self, mut parent: Option<u32>) -> Vec<&Open> {
        let mut around = Vec::new();
        while let Some(open) = parent.and_then(|place| self.open.get(place as usize)) {
            around.push(open);
            parent = open.parent;
        }
        around
    }

    /// Adds an ended period, and the periods within it, to its parent.
    fn tell_parent(&mut self, plan: &Plan, parent: u32, child: &Open, duration: u64) {
        let Some(parent) = self.open.get_mut(parent as usize) else {
            return;
        };
        let (Some(of_parent), Some(of_child)) = (
            plan.periods.get(parent.period),
            plan.periods.get(child.period),
        ) else {
            return;
        };
        parent.within.resize(of_parent.within.len(), (0, 0));
        let news = std::iter::once((1, duration)).chain(child.within.iter().copied());
        for (own, (count, time)) in parent.within.iter_mut().skip(of_child.place).zip(news) {
            *own = (own.0 + count, own.1.saturating_add(time));
        }
    }

    /// Cuts the periods within one that ends: they stay unfinished.
    fn cut_children(&mut self, plan: &Plan, place: u32, sums: &mut Sums) {
        let mut cut = vec![];
        let mut next = vec![place];
        while let Some(open) = next.pop().and_then(|place| self.open.get(place as usize)) {
            cut.extend_from_slice(&open.children);
            next.extend_from_slice(&open.children);
        }
        // Innermost first, so that the parent of each still exists.
        for place in cut.into_iter().rev() {
            if let Some(mut open) = self.open.get_mut(place as usize).map(std::mem::take) {
                sums.unfinished(open.period);
                self.forget(plan, place, &mut open);
            }
        }
    }

    /// Removes a period, whose slot is already empty, from all lists.
    fn forget(&mut self, plan: &Plan, place: u32, open: &mut Open) {
        let [among, at_parent] = open.at.map(|at| at as usize);
        let siblings = open
            .parent
            .and_then(|parent| self.open.get_mut(parent as usize));
        let moved = siblings.and_then(|parent| remove(&mut parent.children, at_parent));
        if let Some(other) = moved.and_then(|other| self.open.get_mut(other as usize)) {
            other.at[1] = at_parent as u32;
        }
        if let Some(of_period) = self.periods.get_mut(open.period) {
            let moved = remove(&mut of_period.places, among);
            if let Some(other) = moved.and_then(|other| self.open.get_mut(other as usize)) {
                other.at[0] = among as u32;
            }
            let all = &self.open;
            let is_indexed = plan
                .periods
                .get(open.period)
                .is_some_and(|plan| !plan.end_key.is_empty());
            if is_indexed {
                of_period.ends.end(|entry| is_open(all, entry));
            }
            of_period
                .children
                .iter_mut()
                .for_each(|index| index.end(|entry| is_open(all, entry)));
        }
        // Reuses the slot with the memory of its lists.
        open.number = 0;
        open.keep.clear();
        open.captures.clear();
        open.children.clear();
        open.within.clear();
        if let Some(room) = self.open.get_mut(place as usize) {
            std::mem::swap(room, open);
            self.free.push(place);
        }
    }

    fn begin_some(&mut self, turn: &Turn<'_>, step: &PeriodBound, sums: &mut Sums) {
        if step.tree.decided(turn.candidate.bits) == Some(false) {
            return;
        }
        let Some(plan) = turn.plan.periods.get(step.period) else {
            return;
        };
        let Some(parent) = plan.parent else {
            if step.tree.holds(&turn.alone()) {
                self.begin(turn, step, None, sums);
            }
            return;
        };
        let mut entries = Vec::new();
        self.candidates(
            parent,
            plan.parent_key.map(Some),
            turn.key(step),
            &mut entries,
        );
        let holds = |entry: &Entry| {
            let open = self.open.get(entry.place as usize);
            let values = Values {
                parent: open.map_or(&[], |open| &open.keep),
                ..turn.alone()
            };
            step.tree.holds(&values)
        };
        entries.retain(holds);
        entries.sort_unstable_by_key(|entry| entry.number);
        for entry in entries {
            self.begin(turn, step, Some(entry.place), sums);
        }
    }

    fn begin(&mut self, turn: &Turn<'_>, step: &PeriodBound, parent: Option<u32>, sums: &mut Sums) {
        if self.open.len() - self.free.len() >= turn.wanted.most_open {
            sums.refuse();
            return;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.open.push(Open::default());
            self.open.len() as u32 - 1
        });
        let Some(mut open) = self.open.get_mut(place as usize).map(std::mem::take) else {
            return;
        };
        self.begun += 1;
        let around = parent.and_then(|parent| self.open.get(parent as usize));
        let values = Values {
            parent: around.map_or(&[], |open| &open.keep),
            ..turn.alone()
        };
        values.copy(&step.keep, &mut open.keep);
        values.copy(&step.captures, &mut open.captures);
        open.period = step.period;
        open.number = self.begun;
        open.begin = turn.candidate.time;
        open.at_begin = Spot::of(turn.candidate);
        open.parent = parent;
        if turn.wanted.begins {
            self.begins.push(Begun {
                period: open.period,
                time: open.begin,
                spot: open.at_begin,
                captures: open.captures.clone(),
            });
        }
        self.enlist(turn.plan, place, &mut open);
        if let Some(room) = self.open.get_mut(place as usize) {
            *room = open;
        }
    }

    /// Adds a period to all lists.
    fn enlist(&mut self, plan: &Plan, place: u32, open: &mut Open) {
        if let Some(parent) = open
            .parent
            .and_then(|parent| self.open.get_mut(parent as usize))
        {
            open.at[1] = parent.children.len() as u32;
            parent.children.push(place);
        }
        let (Some(of_period), Some(plan)) = (
            self.periods.get_mut(open.period),
            plan.periods.get(open.period),
        ) else {
            return;
        };
        open.at[0] = of_period.places.len() as u32;
        of_period.places.push(place);
        let entry = Entry {
            place,
            number: open.number,
        };
        let keep = &open.keep;
        let of = |fields: &[usize]| key(fields.iter().filter_map(|&field| keep.get(field)));
        if let Some(key) = of(&plan.end_key).filter(|_| !plan.end_key.is_empty()) {
            of_period.ends.add(key, entry);
        }
        for (index, fields) in of_period.children.iter_mut().zip(&plan.child_keys) {
            if let Some(key) = of(fields) {
                index.add(key, entry);
            }
        }
    }
}

#[inline]
fn is_open(open: &[Open], entry: Entry) -> bool {
    open.get(entry.place as usize)
        .is_some_and(|open| open.number == entry.number)
}

/// Removes an element; the last one takes its position, and is returned.
fn remove(list: &mut Vec<u32>, at: usize) -> Option<u32> {
    if at < list.len() {
        list.swap_remove(at);
    }
    list.get(at).copied()
}
