//! One pass over traces that gives each event record to three analyses: delimiting executions, the
//! graph, and counting.
//!
//! Events are taken out of the merged chunks in stages, which consist of whole intervals where
//! possible. Workers play the calls and the graph of a stage; [`Stream::go_on`] composes the result
//! and returns further jobs: batches of executions, work of the sink, and slices to free.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_engine::{
    Analysis, Chunk, Composition, Control, Record, Slice, StreamPlace, StreamRef,
};
use tracebraid_follow::KernelAnalysis;
use tracebraid_graph::{CutSlice, GraphAnalysis, GraphPartial};
use tracebraid_periods::Ended;

use crate::build::Sink;
use crate::counts::{CountAnalysis, CountPartial};
use crate::delimit::{DelimitedAnalysis, DelimitedPartial};
use crate::grid::{Grid, Stage};
use crate::known::Known;
use crate::stream::{Job, Parts, Stream};

/// The analyses of the pass.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) periods: DelimitedAnalysis,
    pub(crate) graph: GraphAnalysis,
    pub(crate) counts: CountAnalysis,
    /// Number of metrics other than those of [`crate::Metric`].
    pub(crate) extra: usize,
    wanted: Wanted,
}

/// The analysis of the whole pass: makes executions as soon as the state that they need is known.
pub(crate) struct Streaming<'s, S: Sink> {
    pub(crate) pass: Pass,
    /// The graph, counts and stacks that executions are made of: composing writes, workers that
    /// make executions read.
    pub(crate) known: RwLock<Known>,
    /// Division of stages into parts.
    pub(crate) grid: Grid,
    /// Part of the state of all merged chunks, without executions that the sink has. Only composing
    /// locks it.
    pub(crate) stream: Mutex<Stream<'s, S>>,
    pub(crate) control: &'s Control,
}

/// State after some chunks. Once stages are composed, the size is bounded by the number of CPUs, of
/// threads, and of periods and calls in progress (tested in `bounds`). The graph, counts and stacks
/// are in [`Known`], which drops those that ended before all executions that the sink does not have
/// yet.
pub(crate) type PassPartial = (DelimitedPartial, GraphPartial, CountPartial);

/// Flags of event records; several may be set.
const OF_PERIODS: u8 = 1;
const OF_GRAPH: u8 = 2;
const OF_COUNTS: u8 = 4;

/// The analyses that want each event record, as flags in one flat list.
#[derive(Debug)]
struct Wanted {
    /// By index of the stream in all traces: offset of its event classes in `bits`, and their
    /// number.
    streams: Vec<(usize, usize)>,
    bits: Vec<u8>,
}

impl Wanted {
    fn new(set: &TraceSet, of: impl Fn(usize, usize, usize) -> u8) -> Wanted {
        let mut wanted = Wanted {
            streams: Vec::new(),
            bits: Vec::new(),
        };
        for (index, trace) in set.traces.iter().enumerate() {
            let bases = wanted.classes(index, trace, &of);
            let streams = trace.streams.iter();
            let own = streams.map(|stream| bases.get(stream.class).copied().unwrap_or_default());
            wanted.streams.extend(own);
        }
        wanted
    }

    /// Adds the event classes of a trace; returns offset and length by stream class.
    fn classes(
        &mut self,
        index: usize,
        trace: &Trace,
        of: &impl Fn(usize, usize, usize) -> u8,
    ) -> Vec<(usize, usize)> {
        let mut bases = Vec::new();
        for (class, stream) in trace.layout.streams.iter().enumerate() {
            let events = stream.events.len();
            bases.push((self.bits.len(), events));
            self.bits
                .extend((0..events).map(|event| of(index, class, event)));
        }
        bases
    }

    #[inline(always)]
    fn of(&self, record: &Record<'_>) -> u8 {
        let stream = self.streams.get(record.number as usize);
        let (base, count) = stream.copied().unwrap_or_default();
        if record.class >= count {
            return 0;
        }
        self.bits.get(base + record.class).copied().unwrap_or(0)
    }
}

impl Pass {
    pub(crate) fn new(
        set: &TraceSet,
        (periods, graph, counts): (DelimitedAnalysis, GraphAnalysis, CountAnalysis),
    ) -> Pass {
        let wanted = Wanted::new(set, |trace, stream, class| {
            let of_periods = periods.wants(trace, stream, class);
            let of_graph = graph.wants(trace, stream, class);
            let of_counts = counts.wants(trace, stream, class);
            let bits = [
                (of_periods, OF_PERIODS),
                (of_graph, OF_GRAPH),
                (of_counts, OF_COUNTS),
            ];
            let wanted = bits.into_iter().filter(|(is_wanted, _)| *is_wanted);
            wanted.fold(0, |all, (_, bit)| all | bit)
        });
        Pass {
            periods,
            graph,
            extra: counts.quantities().extra().len(),
            counts,
            wanted,
        }
    }

    /// Finds the executions that ended before a time, or all, except for calls, which are played
    /// separately.
    pub(crate) fn settle_periods(&self, partial: &mut DelimitedPartial, until: Option<i64>) {
        self.periods
            .settle(partial, Timestamp(until.unwrap_or(i64::MAX)));
    }

    /// The most useful data that was not recorded for the graph, as a message for the user.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        self.graph.lacks()
    }
}

impl<'s, S: Sink + Send> Streaming<'s, S>
where
    S::Error: Send,
{
    fn stream(&self) -> MutexGuard<'_, Stream<'s, S>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plays the calls and the graph of a stage. If `is_alone`, no other thread composes meanwhile,
    /// so the graph is played while it is composed.
    fn stage<'a>(
        &'a self,
        partial: &mut PassPartial,
        stage: Stage,
        is_alone: bool,
    ) -> Slice<'a, PassPartial> {
        let calls = self.pass.periods.cut_calls(&mut partial.0, stage.until);
        let rules = self.pass.graph.rules();
        let cut = rules.cut(&mut partial.1, stage.until);
        Box::new(move |_| {
            let (until, cut): (Vec<Option<i64>>, Vec<_>) =
                self.grid.parts(stage, cut).into_iter().unzip();
            let play = |cut: CutSlice| {
                if is_alone {
                    cut.unplayed()
                } else {
                    cut.play(rules)
                }
            };
            let played = cut.into_iter().map(|cut| cut.map(play)).collect();
            let cuts: Vec<i64> = until
                .iter()
                .map(|until| until.unwrap_or(i64::MAX))
                .collect();
            let calls = calls.map(|calls| calls.play(&cuts));
            self.composition(move |stream, partial| {
                stream.take_parts(Parts {
                    until,
                    played,
                    calls,
                });
                stream.go_on((&self.pass, &self.known), partial)
            })
        })
    }

    /// Job that follows from a composition.
    fn slice<'a>(&'a self, job: Job<S>) -> Slice<'a, PassPartial> {
        Box::new(move |_| {
            let done = job.run((&self.pass, &self.known));
            self.composition(move |stream, partial| {
                stream.take_done(done);
                stream.go_on((&self.pass, &self.known), partial)
            })
        })
    }

    /// A serial step; cancels the fold once the sink has failed.
    fn composition<'a>(
        &'a self,
        compose: impl FnOnce(&mut Stream<'s, S>, &mut PassPartial) -> bool + Send + 'a,
    ) -> Composition<'a, PassPartial> {
        Box::new(move |partial| {
            if !compose(&mut self.stream(), partial) {
                self.control.cancel();
            }
        })
    }

    /// Plays and composes all remaining stages, if no chunk ended.
    pub(crate) fn complete(&self, partial: &mut PassPartial) {
        let has_ended = self.stream().has_ended();
        if !has_ended {
            self.resolve_before(partial, i64::MAX);
        }
    }

    /// Plays and composes the stages before `until` (nanoseconds from the origin) on this thread.
    fn resolve_before(&self, partial: &mut PassPartial, until: i64) {
        let stage = self.stream().stage(self.grid.intervals(), until);
        let stage = stage.map(|stage| self.stage(partial, stage, true));
        let mut slices: VecDeque<_> = stage.into_iter().collect();
        while let Some(slice) = slices.pop_front() {
            let mut resident = PassPartial::default();
            slice(&mut resident)(partial);
            slices.extend(self.follow_up(partial));
        }
    }
}

impl<S: Sink + Send> Analysis for Streaming<'_, S>
where
    S::Error: Send,
{
    type Partial = PassPartial;
    type Report = Ended;

    /// The graph's groups, which follow each CPU. Each other stream in which periods begin or end
    /// is a group of its own: periods are sorted by time when they are settled.
    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        let mut groups = self.pass.graph.groups(set);
        let mut known: HashSet<StreamRef> = groups.iter().flatten().copied().collect();
        let others = [self.pass.periods.groups(set), self.pass.counts.groups(set)];
        for mut group in others.into_iter().flatten() {
            // A group without known streams belongs to one CPU, or is one stream.
            group.retain(|stream| known.insert(*stream));
            groups.extend(Some(group).filter(|group| !group.is_empty()));
        }
        groups
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        let Pass {
            periods,
            graph,
            counts,
            ..
        } = &self.pass;
        periods.wants(trace, stream_class, class)
            || graph.wants(trace, stream_class, class)
            || counts.wants(trace, stream_class, class)
    }

    fn begin(&self, chunk: &Chunk) -> PassPartial {
        let Pass {
            periods,
            graph,
            counts,
            ..
        } = &self.pass;
        (
            periods.begin(chunk),
            graph.begin(chunk),
            counts.begin(chunk),
        )
    }

    fn packet(&self, partial: &mut PassPartial, packet: &StreamPlace<'_>) {
        self.pass.periods.packet(&mut partial.0, packet);
        self.pass.graph.packet(&mut partial.1, packet);
        self.pass.counts.packet(&mut partial.2, packet);
    }

    fn cut(&self, partial: &mut PassPartial, packet: &StreamPlace<'_>, time: Timestamp) {
        self.pass.periods.cut(&mut partial.0, packet, time);
        self.pass.graph.cut(&mut partial.1, packet, time);
        self.pass.counts.cut(&mut partial.2, packet, time);
    }

    fn exchange(&self, partial: &mut PassPartial, resident: &mut PassPartial) {
        self.pass.graph.exchange(&mut partial.1, &mut resident.1);
    }

    #[inline]
    fn event(&self, partial: &mut PassPartial, record: &mut Record<'_>) {
        let wanted = self.pass.wanted.of(record);
        if wanted & OF_PERIODS != 0 {
            self.pass.periods.event(&mut partial.0, record);
        }
        if wanted & OF_GRAPH != 0 {
            self.pass.graph.event(&mut partial.1, record);
        }
        if wanted & OF_COUNTS != 0 {
            self.pass.counts.event(&mut partial.2, record);
        }
    }

    fn end(&self, partial: &mut PassPartial, chunk: &Chunk) {
        self.pass.periods.end(&mut partial.0, chunk);
        self.pass.graph.end(&mut partial.1, chunk);
        self.pass.counts.end(&mut partial.2, chunk);
    }

    fn merge(&self, earlier: &mut PassPartial, later: PassPartial) {
        self.pass.periods.merge(&mut earlier.0, later.0);
        self.pass.graph.merge(&mut earlier.1, later.1);
        self.pass.counts.merge(&mut earlier.2, later.2);
    }

    fn slices<'a>(
        &'a self,
        partial: &mut PassPartial,
        watermark: Timestamp,
    ) -> Vec<Slice<'a, PassPartial>> {
        let stage = self.stream().stage(self.grid.intervals(), watermark.0);
        stage
            .map(|stage| self.stage(partial, stage, false))
            .into_iter()
            .collect()
    }

    fn resolve(&self, partial: &mut PassPartial, watermark: Timestamp) -> bool {
        self.resolve_before(partial, watermark.0);
        true
    }

    fn follow_up<'a>(&'a self, _: &mut PassPartial) -> Vec<Slice<'a, PassPartial>> {
        let jobs = self.stream().take_jobs();
        jobs.into_iter().map(|job| self.slice(job)).collect()
    }

    fn finish(&self, mut partial: PassPartial) -> Ended {
        self.complete(&mut partial);
        self.pass.periods.finish(partial.0)
    }
}
