//! Definitions of periods, compiled for each event class of the traces.

use tracebraid_ctf::layout::StreamLayout;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_language::ast::{Expr, Field, Operator, Value};
use tracebraid_language::glob::Glob;
use tracebraid_language::periods::{
    Capture, Condition, Operand, Period, Periods, Reference, Source,
};
use tracebraid_language::{ClassField, ClassFilter, Datum};

use crate::running::{Running, is_thread, mentions_thread};
use crate::tree::{Right, Tree, ValueSource};

/// The compiled definitions.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) periods: Vec<PeriodPlan>,
    /// The event classes that may begin or end periods.
    pub(super) classes: Vec<ClassPlan>,
    /// By trace, stream class and event class: index in `classes` plus one, or 0.
    places: Vec<Vec<Vec<u32>>>,
    /// Trace of each stream, by index among the streams of all traces.
    traces: Vec<u32>,
}

/// The parts of a period that do not depend on the event class.
#[derive(Debug, Default)]
pub(super) struct PeriodPlan {
    pub(super) parent: Option<usize>,
    /// Number of enclosing periods.
    pub(super) depth: usize,
    /// Fields of the event record at its start that later conditions or captures use.
    keep: Vec<Named>,
    /// Indices in `keep` of the key by which an end finds the period; empty: every open period is a
    /// candidate.
    pub(super) end_key: Vec<usize>,
    /// Indices in `keep` of the keys by which the starts of inner periods find this one.
    pub(super) child_keys: Vec<Vec<usize>>,
    /// Index in the parent's `child_keys` of the key that finds the parent.
    pub(super) parent_key: Option<usize>,
    /// The periods within it: each child followed by those within the child.
    pub(super) within: Vec<usize>,
    /// Index in the parent's `within`.
    pub(super) place: usize,
}

/// Bounds of periods that the event records of a class may be.
#[derive(Debug, Default)]
pub(super) struct ClassPlan {
    /// Filters that are evaluated for each event record.
    pub(super) filters: Vec<ClassFilter>,
    pub(super) fields: Vec<ClassField>,
    names: Vec<Named>,
    /// Indices of the fields that hold the running thread, which only the order of time determines.
    pub(super) runs: Vec<usize>,
    /// Innermost first.
    pub(super) ends: Vec<PeriodBound>,
    /// Outermost first.
    pub(super) begins: Vec<PeriodBound>,
}

/// The start or the end of a period at an event record.
#[derive(Debug)]
pub(super) struct PeriodBound {
    pub(super) period: usize,
    pub(super) tree: Tree,
    /// Values that find the periods that the bound applies to: for an end, those that may end; for
    /// a start, the possible parents.
    pub(super) key: Vec<ValueSource>,
    /// Values that are kept for later conditions.
    pub(super) keep: Vec<ValueSource>,
    pub(super) captures: Vec<ValueSource>,
}

/// A field, and whether numbers become labels: captures are for people, values to compare are not.
type Named = (Field, bool);

/// Maximum number of conditions on single event records of one class: each has a bit.
const MOST_FILTERS: usize = 64;

impl Plan {
    /// # Errors
    /// There are too many conditions on one event class.
    pub(super) fn new(
        set: &TraceSet,
        periods: &Periods,
        running: Option<&Running>,
    ) -> Result<Plan, String> {
        let streams =
            |(trace, index): (&Trace, u32)| std::iter::repeat_n(index, trace.streams.len());
        let mut plan = Plan {
            periods: period_plans(&periods.list),
            classes: Vec::new(),
            places: Vec::new(),
            traces: set.traces.iter().zip(0..).flat_map(streams).collect(),
        };
        for (index, trace) in set.traces.iter().enumerate() {
            let runs = running.is_some_and(|running| running.is_told(index));
            let mut of_trace = Vec::new();
            for stream in &trace.layout.streams {
                let mut of_stream = Vec::new();
                for event in 0..stream.events.len() {
                    let class = plan.class(&periods.list, (trace, stream, event), runs);
                    if class.filters.len() > MOST_FILTERS {
                        return Err(format!(
                            "more than {MOST_FILTERS} conditions apply to the event {}: use fewer periods or split them over several runs",
                            stream.events.get(event).map_or("", |event| &event.name)
                        ));
                    }
                    let matters = !class.begins.is_empty() || !class.ends.is_empty();
                    if matters {
                        plan.classes.push(class);
                    }
                    of_stream.push(if matters {
                        plan.classes.len() as u32
                    } else {
                        0
                    });
                }
                of_trace.push(of_stream);
            }
            plan.places.push(of_trace);
        }
        Ok(plan)
    }

    /// The index of an event class in `classes`.
    #[inline]
    pub(super) fn place(&self, trace: usize, stream_class: usize, class: usize) -> Option<usize> {
        let place = *self.places.get(trace)?.get(stream_class)?.get(class)?;
        (place as usize).checked_sub(1)
    }

    /// True if any event class of a stream class may begin or end periods.
    pub(super) fn reads(&self, trace: usize, stream_class: usize) -> bool {
        let classes = self
            .places
            .get(trace)
            .and_then(|trace| trace.get(stream_class));
        classes.is_some_and(|classes| classes.iter().any(|&place| place > 0))
    }

    /// The trace of a stream, by the stream's index among those of all traces.
    pub(super) fn trace(&self, stream: u32) -> u32 {
        self.traces.get(stream as usize).copied().unwrap_or(0)
    }

    /// The index of a stream among those of all traces.
    pub(super) fn stream(&self, trace: u32, stream: u32) -> u32 {
        self.traces.partition_point(|&of| of < trace) as u32 + stream
    }

    /// True if some event records need the running thread.
    pub(super) fn asks_who_runs(&self) -> bool {
        self.classes.iter().any(|class| !class.runs.is_empty())
    }

    fn class(
        &self,
        list: &[Period],
        (trace, stream, event): (&Trace, &StreamLayout, usize),
        runs: bool,
    ) -> ClassPlan {
        let mut builder = Builder {
            trace,
            stream,
            event,
            runs,
            plan: self,
            class: ClassPlan::default(),
        };
        for (index, period) in list.iter().enumerate() {
            builder.begin(index, period);
        }
        for (index, period) in list.iter().enumerate() {
            builder.end(index, period);
        }
        let mut class = builder.class;
        let depth = |step: &PeriodBound| {
            self.periods
                .get(step.period)
                .map_or(0, |period| period.depth)
        };
        class
            .ends
            .sort_by_key(|step| std::cmp::Reverse(depth(step)));
        class
    }
}

/// The index of a field in a list; appends the field if it is new.
fn place_of(fields: &mut Vec<Named>, field: &Field, is_labelled: bool) -> usize {
    let known = fields
        .iter()
        .position(|(other, labelled)| other == field && *labelled == is_labelled);
    known.unwrap_or_else(|| {
        fields.push((field.clone(), is_labelled));
        fields.len() - 1
    })
}

/// Adds the fields that a condition and captures use of an event record other than the current one.
fn keep(to: &mut Vec<Named>, source: Source, condition: Option<&Condition>, captures: &[Capture]) {
    let mut one = |reference: &Reference, is_labelled| {
        if reference.source == source {
            place_of(to, &reference.field, is_labelled);
        }
    };
    if let Some(condition) = condition {
        condition.references(&mut |reference| one(reference, false));
    }
    captures
        .iter()
        .for_each(|capture| one(&capture.reference, true));
}

fn period_plans(list: &[Period]) -> Vec<PeriodPlan> {
    let mut plans: Vec<PeriodPlan> = Vec::new();
    for period in list {
        let mut plan = PeriodPlan {
            parent: period.parent,
            ..PeriodPlan::default()
        };
        keep(
            &mut plan.keep,
            Source::Begin,
            Some(&period.end),
            &period.end_captures,
        );
        let pairs = period.end.equalities(Source::Begin);
        plan.end_key = pairs
            .iter()
            .map(|(_, field)| place_of(&mut plan.keep, field, false))
            .collect();
        if let Some(parent) = period.parent.and_then(|parent| plans.get_mut(parent)) {
            plan.depth = parent.depth + 1;
            let to = &mut parent.keep;
            keep(
                to,
                Source::Parent,
                Some(&period.begin),
                &period.begin_captures,
            );
            keep(to, Source::Parent, Some(&period.end), &period.end_captures);
            let pairs = period.begin.equalities(Source::Parent);
            if !pairs.is_empty() {
                let places = pairs
                    .iter()
                    .map(|(_, field)| place_of(to, field, false))
                    .collect();
                parent.child_keys.push(places);
                plan.parent_key = Some(parent.child_keys.len() - 1);
            }
        }
        plans.push(plan);
    }
    // Children follow their parents: backwards, each is complete when its parent takes it.
    for index in (0..plans.len()).rev() {
        let (upto, behind) = plans.split_at_mut(index + 1);
        let mut within = Vec::new();
        for (at, child) in behind.iter_mut().enumerate() {
            if child.parent == Some(index) {
                child.place = within.len();
                within.push(index + 1 + at);
                within.extend_from_slice(&child.within);
            }
        }
        if let Some(own) = upto.last_mut() {
            own.within = within;
        }
    }
    plans
}

/// Builds the plan of an event class.
struct Builder<'a> {
    trace: &'a Trace,
    stream: &'a StreamLayout,
    event: usize,
    /// True if switches record the running thread.
    runs: bool,
    plan: &'a Plan,
    class: ClassPlan,
}

impl Builder<'_> {
    fn begin(&mut self, index: usize, period: &Period) {
        let Some(plan) = self.plan.periods.get(index) else {
            return;
        };
        let bound = (&period.begin, Source::Parent, &*period.begin_captures);
        let bound = self.bound(index, bound, &plan.keep);
        self.class.begins.extend(bound);
    }

    fn end(&mut self, index: usize, period: &Period) {
        let bound = (&period.end, Source::Begin, &*period.end_captures);
        let bound = self.bound(index, bound, &[]);
        self.class.ends.extend(bound);
    }

    /// A bound of a period, if an event record of the class can be one.
    fn bound(
        &mut self,
        index: usize,
        (condition, other, captures): (&Condition, Source, &[Capture]),
        keep: &[Named],
    ) -> Option<PeriodBound> {
        let tree = self.tree(index, condition);
        if !may_hold(&tree) {
            return None;
        }
        let pairs = condition.equalities(other);
        Some(PeriodBound {
            period: index,
            tree,
            key: pairs
                .iter()
                .map(|(field, _)| self.event_place(field, false))
                .collect(),
            keep: keep
                .iter()
                .map(|(field, is_labelled)| self.event_place(field, *is_labelled))
                .collect(),
            captures: self.captures(index, captures),
        })
    }

    fn captures(&mut self, index: usize, captures: &[Capture]) -> Vec<ValueSource> {
        let places = captures
            .iter()
            .map(|capture| self.place(index, &capture.reference, true));
        places.collect()
    }

    fn tree(&mut self, index: usize, condition: &Condition) -> Tree {
        match condition {
            Condition::Event(expr) => self.alone(expr),
            Condition::And(parts) => {
                Tree::all(parts.iter().map(|part| self.tree(index, part)).collect())
            }
            Condition::Or(parts) => {
                Tree::any(parts.iter().map(|part| self.tree(index, part)).collect())
            }
            Condition::Not(inner) => self.tree(index, inner).negated(),
            Condition::Compare(reference, operator, operand) => {
                let left = self.place(index, reference, false);
                let right = match operand {
                    Operand::Reference(other) => Right::Value(self.place(index, other, false)),
                    Operand::Constant(constant) => Right::Constant(constant.clone()),
                    Operand::Pattern(pattern) => Right::Pattern(pattern.clone()),
                };
                Tree::compare(left, *operator, right)
            }
        }
    }

    /// A condition on the event record alone: a filter, except for comparisons of the running
    /// thread.
    fn alone(&mut self, expr: &Expr) -> Tree {
        if !self.runs || !mentions_thread(expr) {
            let filter = ClassFilter::new(expr, self.trace, self.stream, self.event);
            return Tree::filter(filter, &mut self.class.filters);
        }
        match expr {
            Expr::And(parts) => Tree::all(parts.iter().map(|part| self.alone(part)).collect()),
            Expr::Or(parts) => Tree::any(parts.iter().map(|part| self.alone(part)).collect()),
            Expr::Not(inner) => self.alone(inner).negated(),
            Expr::Compare(field, operator, value) => {
                let right = match (operator, value) {
                    (Operator::Matches | Operator::MatchesNot, Value::Text(pattern)) => {
                        Right::Pattern(Glob::new(pattern))
                    }
                    (_, Value::Integer(number)) => Right::Constant(Datum::Integer(*number)),
                    (_, Value::Float(number, _)) => Right::Constant(Datum::float(*number)),
                    (_, Value::Text(text)) => Right::Constant(Datum::text(text.as_bytes())),
                };
                Tree::compare(self.event_place(field, false), *operator, right)
            }
            Expr::Event(_) | Expr::Has(_) => Tree::Const(true),
        }
    }

    fn place(&mut self, index: usize, reference: &Reference, is_labelled: bool) -> ValueSource {
        let is_it = |named: &Named| named.0 == reference.field && named.1 == is_labelled;
        let kept = |period: Option<&PeriodPlan>| {
            period.and_then(|period| period.keep.iter().position(is_it))
        };
        let own = self.plan.periods.get(index);
        match reference.source {
            Source::Event => self.event_place(&reference.field, is_labelled),
            Source::Begin => kept(own).map_or(ValueSource::Missing, ValueSource::Begin),
            Source::Parent => {
                let parent = own.and_then(|own| own.parent);
                kept(parent.and_then(|parent| self.plan.periods.get(parent)))
                    .map_or(ValueSource::Missing, ValueSource::Parent)
            }
        }
    }

    fn event_place(&mut self, field: &Field, is_labelled: bool) -> ValueSource {
        let found = match ClassField::new(field, self.trace, self.stream, self.event) {
            Some(found) if is_labelled => found.labelled(),
            Some(found) => found,
            None if self.runs && is_thread(field) => ClassField::missing(),
            None => return ValueSource::Missing,
        };
        // A field without labels is the same either way, and is read once.
        let name = (field.clone(), found.has_labels());
        if let Some(known) = self.class.names.iter().position(|other| *other == name) {
            return ValueSource::Event(known);
        }
        if found.is_missing() {
            self.class.runs.push(self.class.fields.len());
        }
        self.class.fields.push(found);
        self.class.names.push(name);
        ValueSource::Event(self.class.fields.len() - 1)
    }
}

fn may_hold(tree: &Tree) -> bool {
    !matches!(tree, Tree::Const(false))
}
