//! Analyses that follow each CPU alone.
//!
//! The running thread and active interrupts of a CPU follow from the events of that CPU. Facts that
//! CPUs need from each other become items, which are played in time order (`Items`).

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Chunk, Record, Slice, StreamPlace, StreamRef};
use tracebraid_kernel_model::{Body, KernelEvent};

use crate::frame::{Event, Input, KernelAnalysis, KernelReport, Packet};
use crate::recorded::Recorded;
use crate::selection::Selection;

/// Rules of an analysis that follows each CPU alone. The law of folding holds if merging does what
/// a plain pass would have done: facts that a chunk cannot know at its beginning wait in its
/// partial state.
pub trait Rules: Sync + Sized {
    /// State after some chunks.
    type Partial: Default + Send + Serialize + DeserializeOwned;
    /// Result of the analysis.
    type Report: KernelReport;

    /// Options besides the selection.
    type Options: Clone + Default;

    /// Rules for a selection with options.
    fn new(selection: &Selection, options: &Self::Options) -> Self;

    /// Receives the recorded CPUs, before the first chunk.
    fn knows(&mut self, recorded: &Arc<Recorded>) {
        let _ = recorded;
    }

    /// Whether the rules need an event.
    fn wants(&self, event: &KernelEvent) -> bool;

    /// A message for users on missing events, if required events are missing. `has` returns whether
    /// any event class is of a kind.
    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str>;

    /// The state before the first chunk, which knows that no events are earlier.
    fn first(&self) -> Self::Partial {
        Self::Partial::default()
    }

    /// Handles the beginning or continuation of a packet of a CPU.
    fn packet(&self, partial: &mut Self::Partial, packet: &Packet);

    /// Handles a loss: the rest of a packet, from `time` to its end, cannot be decoded.
    fn cut(&self, partial: &mut Self::Partial, packet: &Packet, time: i64) {
        self.packet(partial, &packet.cut(time));
    }

    /// See [`Analysis::exchange`].
    fn exchange(&self, partial: &mut Self::Partial, resident: &mut Self::Partial) {
        let _ = (partial, resident);
    }

    /// Handles an event.
    fn event(&self, partial: &mut Self::Partial, event: &Event<'_>, body: &mut Body<'_, '_>);

    /// Merges the state of later chunks into that of earlier ones.
    fn merge(&self, earlier: &mut Self::Partial, later: Self::Partial);

    /// See [`Analysis::settle`].
    fn settle(&self, partial: &mut Self::Partial, watermark: i64) {
        let _ = (partial, watermark);
    }

    /// See [`Analysis::slices`].
    fn slices<'a>(
        &'a self,
        partial: &mut Self::Partial,
        watermark: i64,
    ) -> Vec<Slice<'a, Self::Partial>> {
        self.settle(partial, watermark);
        Vec::new()
    }

    /// See [`Analysis::resolve`].
    fn resolve(&self, partial: &mut Self::Partial, watermark: i64) -> bool {
        let _ = (partial, watermark);
        false
    }

    /// See [`Analysis::follow_up`].
    fn follow_up<'a>(&'a self, partial: &mut Self::Partial) -> Vec<Slice<'a, Self::Partial>> {
        let _ = partial;
        Vec::new()
    }

    /// Makes the report.
    fn finish(&self, input: &Input, partial: Self::Partial) -> Self::Report;
}

/// The analysis with these rules.
#[derive(Debug)]
pub struct PerCpu<R> {
    input: Input,
    rules: R,
}

impl<R> PerCpu<R> {
    /// The rules of the analysis.
    pub fn rules(&self) -> &R {
        &self.rules
    }
}

impl<R: Rules> KernelAnalysis for PerCpu<R> {
    type Options = R::Options;

    fn sharing(
        set: &TraceSet,
        recorded: Option<&Arc<Recorded>>,
        selection: Selection,
        options: R::Options,
    ) -> Self {
        let mut rules = R::new(&selection, &options);
        let input = Input::sharing(set, recorded, selection, |event| rules.wants(event));
        rules.knows(&input.recorded);
        PerCpu { input, rules }
    }

    fn input(&self) -> &Input {
        &self.input
    }

    fn lacks(&self) -> Option<&'static str> {
        self.rules.lacks(&|kind| self.input.sources.has(kind))
    }

    fn wants_event(&self, event: &KernelEvent) -> bool {
        self.rules.wants(event)
    }

    #[inline(always)]
    fn fold_event(&self, partial: &mut R::Partial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        self.rules.event(partial, event, body);
    }
}

impl<R: Rules> Analysis for PerCpu<R> {
    type Partial = R::Partial;
    type Report = R::Report;

    fn groups(&self, _: &TraceSet) -> Vec<Vec<StreamRef>> {
        self.input.groups()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.input.wants(trace, stream_class, class)
    }

    fn begin(&self, chunk: &Chunk) -> R::Partial {
        match chunk.index {
            0 => self.rules.first(),
            _ => R::Partial::default(),
        }
    }

    fn packet(&self, partial: &mut R::Partial, packet: &StreamPlace<'_>) {
        for packet in self.input.any_packets(packet) {
            self.rules.packet(partial, &packet);
        }
    }

    fn cut(&self, partial: &mut R::Partial, packet: &StreamPlace<'_>, time: Timestamp) {
        for packet in self.input.any_packets(packet) {
            self.rules.cut(partial, &packet, time.0);
        }
    }

    // Called for each event from a single call site: inlined, the parts of the event need not be
    // stored.
    #[inline(always)]
    fn event(&self, partial: &mut R::Partial, record: &mut Record<'_>) {
        self.input
            .event(record, |event, body| self.fold_event(partial, event, body));
    }

    fn end(&self, _: &mut R::Partial, _: &Chunk) {}

    fn exchange(&self, partial: &mut R::Partial, resident: &mut R::Partial) {
        self.rules.exchange(partial, resident);
    }

    fn merge(&self, earlier: &mut R::Partial, later: R::Partial) {
        self.rules.merge(earlier, later);
    }

    fn settle(&self, partial: &mut R::Partial, watermark: Timestamp) {
        self.rules.settle(partial, watermark.0);
    }

    fn slices<'a>(
        &'a self,
        partial: &mut R::Partial,
        watermark: Timestamp,
    ) -> Vec<Slice<'a, R::Partial>> {
        if !self.input.is_in_order {
            // Playing a slice assumes that none of its items is earlier than its beginning. If
            // packets are not in time order, only `finish` plays.
            self.rules.settle(partial, watermark.0);
            return Vec::new();
        }
        self.rules.slices(partial, watermark.0)
    }

    fn resolve(&self, partial: &mut R::Partial, watermark: Timestamp) -> bool {
        self.input.is_in_order && self.rules.resolve(partial, watermark.0)
    }

    fn follow_up<'a>(&'a self, partial: &mut R::Partial) -> Vec<Slice<'a, R::Partial>> {
        self.rules.follow_up(partial)
    }

    fn finish(&self, partial: R::Partial) -> R::Report {
        self.rules.finish(&self.input, partial)
    }
}
