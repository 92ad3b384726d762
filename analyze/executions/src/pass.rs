//! One pass over traces that gives each event record to two analyses: which executions there are, and what all threads did.

use tracebraid_critical_path::{Graph, GraphAnalysis, GraphPartial};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_fold::{Analysis, Chunk, Record, StreamPlace, StreamRef};
use tracebraid_kernel_fold::KernelAnalysis;
use tracebraid_reports::periods::{Ended, EndedAnalysis, PeriodPartial};

/// Both analyses.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) periods: EndedAnalysis,
    pub(crate) graph: GraphAnalysis,
    wanted: Wanted,
}

/// What is known after some chunks.
pub(crate) type PassPartial = (PeriodPartial, GraphPartial);

/// An event record may be of both.
const OF_PERIODS: u8 = 1;
const OF_GRAPH: u8 = 2;

/// Which event records each analysis wants: what each event record asks for lies flat.
#[derive(Debug)]
struct Wanted {
    /// By number of the stream among those of all traces: where in `bits` its event classes begin, and how many they are.
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

    /// Adds the event classes of a trace; by stream class where they are.
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
            self.bits.extend((0..events).map(|event| of(index, class, event)));
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
    pub(crate) fn new(set: &TraceSet, periods: EndedAnalysis, graph: GraphAnalysis) -> Pass {
        let wanted = Wanted::new(set, |trace, stream, class| {
            let of_periods = periods.wants(trace, stream, class);
            let of_graph = graph.wants(trace, stream, class);
            u8::from(of_periods) * OF_PERIODS | u8::from(of_graph) * OF_GRAPH
        });
        Pass {
            periods,
            graph,
            wanted,
        }
    }

    /// What the graph lacks most, for people.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        self.graph.lacks()
    }
}

impl Analysis for Pass {
    type Partial = PassPartial;
    type Report = (Ended, Graph);

    /// The graph's, which follows each CPU alone; the other streams in which periods begin or end are
    /// each on its own: periods are put in order when they are settled.
    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        let mut groups = self.graph.groups(set);
        let known: std::collections::HashSet<StreamRef> = groups.iter().flatten().copied().collect();
        let others = self.periods.groups(set).into_iter().flatten();
        groups.extend(
            others
                .filter(|stream| !known.contains(stream))
                .map(|stream| vec![stream]),
        );
        groups
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.periods.wants(trace, stream_class, class) || self.graph.wants(trace, stream_class, class)
    }

    fn begin(&self, chunk: &Chunk) -> PassPartial {
        (self.periods.begin(chunk), self.graph.begin(chunk))
    }

    fn packet(&self, partial: &mut PassPartial, packet: &StreamPlace<'_>) {
        self.periods.packet(&mut partial.0, packet);
        self.graph.packet(&mut partial.1, packet);
    }

    fn cut(&self, partial: &mut PassPartial, packet: &StreamPlace<'_>, time: Timestamp) {
        self.periods.cut(&mut partial.0, packet, time);
        self.graph.cut(&mut partial.1, packet, time);
    }

    #[inline]
    fn event(&self, partial: &mut PassPartial, record: &mut Record<'_>) {
        let wanted = self.wanted.of(record);
        if wanted & OF_PERIODS != 0 {
            self.periods.event(&mut partial.0, record);
        }
        if wanted & OF_GRAPH != 0 {
            self.graph.event(&mut partial.1, record);
        }
    }

    fn end(&self, partial: &mut PassPartial, chunk: &Chunk) {
        self.periods.end(&mut partial.0, chunk);
        self.graph.end(&mut partial.1, chunk);
    }

    fn merge(&self, earlier: &mut PassPartial, later: PassPartial) {
        self.periods.merge(&mut earlier.0, later.0);
        self.graph.merge(&mut earlier.1, later.1);
    }

    fn settle(&self, partial: &mut PassPartial, watermark: Timestamp) {
        self.periods.settle(&mut partial.0, watermark);
        self.graph.settle(&mut partial.1, watermark);
    }

    fn finish(&self, partial: PassPartial) -> (Ended, Graph) {
        (self.periods.finish(partial.0), self.graph.finish(partial.1))
    }
}
